"""Discrete spaces: actions by number and, where they are known, by name."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from vfgym.codecs.base import Codec, Schema
from vfgym.codecs.choices import chosen_number, is_chosen, says_nothing
from vfgym.codecs.data import after_key, beside, quote_data, wrapped_in
from vfgym.codecs.numbers import is_bare, is_changed, is_negated, numbers_in, with_plain_signs
from vfgym.codecs.problems import NO_ACTION, STATE_IT, ActionNotFound, several
from vfgym.codecs.registry import register_codec
from vfgym.codecs.relaxed import bracketed, read_json
from vfgym.errors import ConfigurationError, InvalidAction

_MOST_NUMBERS_KEPT = 1024
"""Numbers whose texts are kept in a dict; those of larger spaces are converted each time."""

_MOST_LISTED = 40
"""Names that a listing shows; of more it shows the ends."""

_DECORATION = " \t\r\n.!\"'`*$_"
_BRACKETED = re.compile(r"(?:\\boxed)?[(\[{<]([^()\[\]{}<>]*)[)\]}>]\Z")
_WITH_ITS_NUMBER = re.compile(r"(.*\S)\s*\((?:action )?([+-]?\d{1,25})\)\Z", re.IGNORECASE)
_UNDERSCORE = re.compile(r"(?<=[^\W\d_])_(?=[^\W\d_])")
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
"""What may join words where others put a space. (Before a digit it may be a sign, and in a sentence it makes another word of a name.)"""
_NUMBER = re.compile(r"(?<![\w.+-])[+-]?\d+(?!\w|[.,]\d)")
_WHOLE = re.compile(r"([+-]?\d+)(?:\.0*)?\Z")
_MENTION_START = re.compile(r"(?<![\w.+-])\S")
_MENTION_END = re.compile(r"\w|[.,]\d|-\w")
_ITS_NUMBER = re.compile(
    r"(?:\b(?:action|option|number)[ \t]+#?|#|(?<![\w.+-]))\d+(?:[ \t]*(?=\()|[ \t]*:[ \t]*|[ \t]+-[ \t]+(?=[^\W\d]))", re.IGNORECASE
)
"""What may stand before a name and tells its number."""

_REMARK = re.compile(r"(.*\S)\s*\([^()]*\)\Z")
_REMARK_FOLLOWS = re.compile(r"\s*\(")
_LEADING_NUMBER = re.compile(
    r"(?i:#|(?:option|no\.|number)[ \t]+)?([+-]?\d+)"
    r"(?=[ \t*_`]*(?:[.;:!)\n]|,(?!\d)|</?\w|<\||\Z|[ \t](?:\(|[-\u2014][ \t]+[^\W\d]|(?i:because|since)\b)))(?!\.\d)"
)
_TAG = re.compile(r"</?\w+>|<\|\w+\|>")
_TEX_STYLE = re.compile(r"\\(?:text|math)[a-z]*(?=\s*\{)")
_WORD_OR_CHANGE = re.compile(
    r"\w|[%\u2030^\u00d7\u00f7\u00b7/\u00b0\u00b1\u2213\u221a\u00ac\u2260\u2264\u2265\u274c\u2717\u2718\U0001f6ab\u26d4]|!="
)
"""What beside a number is a word, or makes another number of it, or the opposite."""

_BULLET = re.compile(r"\s*[-\u2014][ \t]+\Z")
_CHOOSING = re.compile(
    r"(\\boxed|\b(?:choose|pick|take|play|select|go with|answer is|action(?: is)?|option(?: is)?|choice is|move is|(?:act|step)(?=\()))"
    r"(?:\\boxed|[\s:#*_`$\"'\u201c({\[<>])*\Z",
    re.IGNORECASE,
)
"""What stands before a number that is a choice."""

_CHOICE_END = re.compile(r"[^\w?%/^+\u00b0\u00d7\u00f7\u00b7-]*(?:\Z|[ ,(](?:because|since)\b)", re.IGNORECASE)
_WHOLE_DIGITS = 25
"""Digits of the longest number that is converted: no 64-bit number has as many."""


class DiscreteCodec(Codec):
    """The actions of a `gymnasium.spaces.Discrete`.

    Reading forgives format: an answer in ``<action>`` tags, with quotes, in another case, in a sentence, after reasoning, without the
    remark in parentheses at the end of a name. An answer that names two different actions names none, nor does one with "not" before
    the name. In a sentence a name counts where the sentence says that it is the choice (`is_chosen`). Where actions have names, a number
    counts only where it stands alone or after a label, and not in a sentence. A text that is a name, or the same number as a name (1 for
    1.0), is the name; as a number in JSON data it is refused, unless it is the index of the same action.
    """

    def __init__(self, space: gym.spaces.Discrete[Any], names: Sequence[str] | Mapping[int, str] | None = None) -> None:
        """Describe the actions of `space`.

        Args:
            space: The action space.
            names: A name for each action, in order or by number (which may be text: ``{"0": ...}``); numbers alone without them.

        Raises:
            ConfigurationError: If the names are not one for each action, or not different.
        """
        self.space = space
        self._low = int(space.start)
        self._high = self._low + int(space.n) - 1
        self._type = space.dtype.type
        self.names: list[str] | None = None if names is None else self._in_order(names)
        kept = range(self._low, self._high + 1) if int(space.n) <= _MOST_NUMBERS_KEPT else ()
        self._exact = {str(number): self._type(number) for number in kept}
        self._cased: dict[str, Any] = {}
        self._folded: dict[str, Any] = {}
        self._shortened: frozenset[str] = frozenset()
        """Names without the remark at their end."""
        spoken = with_plain_signs(" ".join(self.names or ())).casefold()
        self._words = frozenset(re.findall(r"\w+", spoken))
        self._has_digits = any(character.isdigit() for character in spoken)
        self._has_signs = self._low < 0 or re.search(r"[-+]\s*\.?\d", spoken) is not None
        if self.names is None:
            self.schema: Schema = {"type": "integer", "minimum": self._low, "maximum": self._high}
        else:
            self.schema = {"type": "string", "enum": list(self.names)}
            named = {name: self._type(self._low + index) for index, name in enumerate(self.names)}
            self._exact |= {**_by_value(named), **named}
            self._add_forgiving(self.names)
            self._add_shortened(self.names)

    def _in_order(self, names: Sequence[str] | Mapping[int, str]) -> list[str]:
        """Return the names in the order of their numbers."""
        count = int(self.space.n)  # type: ignore[attr-defined]
        given: Any = names
        if isinstance(names, Mapping):
            by_text = {str(number): name for number, name in names.items()}  # JSON, in which specs are kept, has texts as keys
            numbers = [str(number) for number in range(self._low, self._high + 1)[: len(names) + 1]]
            given = [by_text[number] for number in numbers] if len(numbers) == len(names) and by_text.keys() == {*numbers} else None
        fits = isinstance(given, Sequence) and not isinstance(given, str) and len(given) == count
        if not fits or not all(isinstance(name, str) and name.strip() == name != "" for name in given) or len({*given}) != count:
            raise ConfigurationError(f"expected {count} different action names, one for each of {self.space}, got {names!r}")
        return list(given)

    def _add_forgiving(self, names: Sequence[str]) -> None:
        """Add the forms in which names are looked up with white space, signs and, where they tell no names apart, cases alike."""
        spaced = [_spaced(name) for name in names]
        known, folds = Counter(spaced), Counter(name.casefold() for name in spaced)
        for name, form in zip(names, spaced, strict=True):
            if folds[form.casefold()] == 1:
                self._folded[form.casefold()] = self._exact[name]
            elif known[form] == 1:  # moves of chess: bxc3 is a pawn's, Bxc3 a bishop's
                self._cased[form] = self._exact[name]

    def _add_shortened(self, names: Sequence[str]) -> None:
        """Add names without the remark in parentheses at their end, where these are still different from all names."""
        shortened = [(_spaced(match[1]).casefold(), name) for name in names if (match := _REMARK.match(name))]
        counts = Counter([*(short for short, _ in shortened), *(_spaced(name).casefold() for name in names)])
        unique = {short: self._exact[name] for short, name in shortened if counts[short] == 1}
        self._folded |= unique
        self._shortened = frozenset(unique)

    def to_json(self, action: Any) -> int | str:
        """Return the name of an action, or its number where there are no names."""
        try:
            number = operator.index(action)
        except TypeError:
            number = self._high + 1
        if not self._low <= number <= self._high:
            raise InvalidAction(f"expected an action of {self.space}, got {action!r}")
        return number if self.names is None else self.names[number - self._low]

    def read(self, data: Any) -> Any:
        """Return the action with a number or a name."""
        if isinstance(data, str):
            action = self._named(data)
            if action is not None:
                return action
        elif _is_whole(data) and self._low <= data <= self._high:
            number = int(data)
            action = self._type(number)
            if self.names is not None and self._exact.get(str(number), action) != action:
                raise ActionNotFound(
                    f"must be a name in quotes, since {quote_data(data)} is the number of one action and the name of another"
                )
            return action
        kind = "a whole number" if self.names is None else "a name or a number"
        raise ActionNotFound(f"must be {kind} from {self._low} to {self._high}, got {quote_data(data)}")

    def encode(self, action: Any) -> str:
        """Return the name of an action, or its number as text."""
        return str(self.to_json(action))

    def decode(self, text: str) -> Any:
        """Return the action that a text names, as a scalar of the space's dtype."""
        action = self._exact.get(text)
        return self._search(text) if action is None else action

    def decode_cut_off(self, text: str) -> Any:
        """Return the action that a message names which was cut off: in closed tags, or as a name that no other one begins with."""
        text = text.strip()
        is_whole = text in self._exact and not any(other.startswith(text) for other in self._exact if other != text)
        return self._exact[text] if is_whole else super().decode_cut_off(text)

    def listing(self) -> str:
        """Return all actions in one line; of very many only the ends.

        >>> DiscreteCodec(gym.spaces.Discrete(2), ["left", "right"]).listing()
        '0 (left), 1 (right)'
        """
        if self.names is None:
            if self._high - self._low > 3:
                return f"{self._low} to {self._high}"
            return ", ".join(str(number) for number in range(self._low, self._high + 1))
        shown_names = [f"{number} ({name})" for number, name in enumerate(self.names, self._low)]
        if len(shown_names) > _MOST_LISTED:
            shown_names[_MOST_LISTED // 2 : -3] = ["..."]
        return ", ".join(shown_names)

    def representative(self) -> Any:
        """Return the action in the middle."""
        return self._type((self._low + self._high) // 2)

    def legal_texts(self, mask: Any) -> list[str] | None:
        """Return the texts of the actions whose entry in the mask is not 0; ``None`` without a mask.

        Raises:
            ConfigurationError: If the mask has not one entry for each action.
        """
        if mask is None:
            return None
        legal = np.asarray(mask)
        if legal.shape != (int(self.space.n),):  # type: ignore[attr-defined]
            raise ConfigurationError(f"expected a mask of shape ({self._high - self._low + 1},) for {self.space}, got shape {legal.shape}")
        indices = np.flatnonzero(legal).tolist()
        return [str(self._low + index) for index in indices] if self.names is None else [self.names[index] for index in indices]

    def alone(self, text: str) -> Any:
        """Return the action whose name or number a text is, but for decoration, or that a JSON object or list of one action holds."""
        action = self._named(text)
        return self._wrapped(text) if action is None and text[:1] in ("{", "[") else action

    def prose(self, text: str, is_marked: bool) -> Any:
        """Return the only action that a text mentions as its choice."""
        action = self._leading_number(text) if is_marked else None
        if action is not None:
            return action
        objects = [(inner, *place) for data, *place in bracketed(text) for inner in _chosen_in(data)] if "{" in text else []
        if not objects:
            rest = after_key(text)
            return self._mentioned(rest, is_marked or rest is not text)
        inner, start, end = objects[0]
        if len(objects) == 1 and isinstance(inner, str):  # it may be a sentence
            action = self._named(inner)
            action = self._mentioned(inner, is_marked=True) if action is None else action
            if action is not None and (is_negated(text, start) or is_changed(text, start, end)):
                raise ActionNotFound(f"It is unclear whether {self.encode(action)} is meant")
        else:
            action = self.stated(text, objects)
        if action is not None and self._all_mentioned(beside(text, objects)) - {action}:
            raise several(2)
        return action

    def read_answer(self, data: Any) -> Any:
        """Return the action of data that stood alone in an answer, also of ``{"move": ...}``."""
        try:
            return super().read_answer(data)
        except ActionNotFound:
            chosen = _chosen_in(data)
            if len(chosen) != 1 or wrapped_in(data):
                raise
            return self.read_answer(chosen[0])

    def _named(self, text: str) -> Any:
        """Return the action whose name or number a text is, but for decoration; or ``None``."""
        action = self._exact.get(text)
        if action is None:
            bare = text.strip(_DECORATION)
            if bare[:1].isdigit() and "." in text[: text.index(bare)]:  # .5 is not 5
                return None
            text = bare
            action = self._exact.get(text)
        if action is None and (self._folded or self._cased):
            form = _spaced(text)
            action = self._cased.get(form)
            if action is None:
                action = self._folded.get(form.casefold())
            if action is None:
                action = self._folded.get(_HYPHEN.sub(" ", form).casefold())
        if action is None and len(text) <= _WHOLE_DIGITS and (whole := _WHOLE.match(with_plain_signs(text))):
            return self._called(int(whole[1]))
        if action is None and (inner := _BRACKETED.match(text)):
            return self._named(inner[1].strip())
        if action is None and (named := _WITH_ITS_NUMBER.match(text)):
            action = self._folded.get(_spaced(named[1]).casefold())
            return action if action == self._called(int(named[2])) else None
        return action

    def _numbered(self, number: float) -> Any:
        """Return the action with a number, or ``None`` if there is none."""
        is_action = self._low <= number <= self._high and number == int(number)
        return self._type(int(number)) if is_action else None

    def _called(self, number: int) -> Any:
        """Return the action that a whole number stands for in a text: as its name or else as its index; or ``None``."""
        return self._exact.get(str(number), self._numbered(number))

    def _wrapped(self, candidate: str) -> Any:
        """Return the action in a JSON object or list of one action, or ``None``."""
        try:
            data = read_json(candidate)
            return self.read_answer(data[0] if isinstance(data, list) and len(data) == 1 else data)
        except ValueError:
            return None

    def _mentioned(self, text: str, is_marked: bool) -> Any:
        """Return the only action that a sentence mentions; takes, returns and raises as `prose` does."""
        if self.names is not None:
            return self._name_in(text, is_marked)
        number = chosen_number(text, is_marked)
        return None if number is None else self._numbered(number)

    def _all_mentioned(self, text: str) -> set[Any]:
        """Return all actions that a text mentions, by number too."""
        if self.names is not None:
            named, rest = self._names_in(text)
            return {*named.values()} | self._numbers_of_actions(rest)
        try:
            return {self._numbered(number) for number in numbers_in(text)} - {None}
        except ValueError as error:
            raise ActionNotFound(str(error)) from None

    def _name_in(self, text: str, is_marked: bool) -> Any:
        """Return the action of the only name in a text, or ``None`` if there is none.

        A name consists of words of the language ("I give up"), and counts where it is said to be the choice; so does a number without
        a name. Beside a name, a number that is another action's makes it unclear which one is meant: "1 (left)", "It leans left, so 1".
        """
        named, rest = self._names_in(text)
        actions, numbered = {*named.values()}, self._numbers_of_actions(rest)
        if len(actions | numbered) > 1 and actions:
            raise several(len(actions | numbered))
        if actions:
            if not says_nothing(rest) and not any(self._is_name_chosen(text, name, is_marked) for name in named):
                raise ActionNotFound(f"It is unclear whether {self.encode(actions.pop())!r} is your choice: {STATE_IT}")
            return actions.pop()
        if numbered and not self._is_choice(text):
            raise ActionNotFound(f"{NO_ACTION}: a number counts only where it stands alone")
        return numbered.pop() if numbered else None

    def _is_name_chosen(self, text: str, name: str, is_marked: bool) -> bool:
        """Say whether a text says at one of the places where it mentions a name that this is the choice.

        The action's own number beside its name says nothing else.
        """
        spoken = r"[\s_]+".join(map(re.escape, name.split()))
        text = with_plain_signs(text)
        if not self._has_digits:
            text = _ITS_NUMBER.sub("", text)
        mention = re.compile(rf"(?<![\w.+-]){spoken}(?!\w)", re.IGNORECASE)
        return is_chosen(text, [match.span() for match in mention.finditer(text)], is_specific=is_marked)

    def _names_in(self, text: str) -> tuple[dict[str, Any], str]:
        """Return the actions that a text mentions by the names that it uses, and the text without these names."""
        named, rest = _mentions(_spaced(text), self._cased)
        folded, rest = _mentions(rest.casefold(), self._folded, self._shortened)
        return named | folded, rest

    def _is_choice(self, text: str) -> bool:
        """Say whether the number in a text without names is what the text chooses: "#1", "I choose 1.", but not "It leans 1 degree"."""
        text = _TEX_STYLE.sub("", _TAG.sub("<>", with_plain_signs(text)))
        numbers = list(_NUMBER.finditer(text))
        if len({number[0] for number in numbers}) != 1:
            return False
        before, after = text[: numbers[-1].start()], text[numbers[-1].end() :]
        if len(numbers) == 1 and not _WORD_OR_CHANGE.search(f"{before} {after}".replace("\\boxed", "")) and "-" not in after:
            is_bullet = _BULLET.match(before) is not None and not self._has_signs
            return is_bullet or is_bare(text, len(before))
        verb = _CHOOSING.search(before)
        if verb is None or self._has_digits or not _CHOICE_END.match(after) or is_negated(text, verb.start()):
            return False
        return is_bare(text, verb.start() if verb[1] == "\\boxed" else len(before)) and verb[1].split()[0].casefold() not in self._words

    def _leading_number(self, text: str) -> Any:
        """Return the action whose number a text begins with that is marked as an answer; ``None`` if it begins with something else."""
        text = with_plain_signs(text.lstrip("*_`\"' "))
        leading = _LEADING_NUMBER.match(text)
        if leading is None or self.names is None:
            return None
        action = self._called(int(leading[1])) if len(leading[1]) <= _WHOLE_DIGITS else None
        if action is None:
            raise ActionNotFound(NO_ACTION)
        rest = text[leading.end() :]
        if self._all_mentioned(rest) - {action}:
            raise several(2)
        return action

    def _numbers_of_actions(self, text: str) -> set[Any]:
        """Return the actions whose numbers stand in a text as words of their own."""
        numbers = [int(number) for number in _NUMBER.findall(text) if len(number) <= _WHOLE_DIGITS]
        return {action for action in map(self._called, numbers) if action is not None}


def _chosen_in(data: Any) -> list[Any]:
    """Return what stands under the keys with which models wrap an action, or else a choice."""
    if wrapped := wrapped_in(data):
        return wrapped
    return [value for key, value in data.items() if key.casefold() in ("move", "choice")] if isinstance(data, Mapping) else []


def _is_whole(data: Any) -> bool:
    """Say whether data is a whole number; a truth value is none."""
    return (isinstance(data, int | np.integer) and not isinstance(data, bool)) or (isinstance(data, float) and data.is_integer())


def _by_value(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the actions whose names are whole numbers in another form, such as 1.0 or +1, by the plain form: there it is not an index."""
    plain = [(str(int(whole[1])), action) for name, action in named.items() if len(name) <= _WHOLE_DIGITS and (whole := _WHOLE.match(name))]
    counts = Counter(number for number, _ in plain)
    return {number: action for number, action in plain if counts[number] == 1}


def _spaced(text: str) -> str:
    """Return a text with plain signs, and with single spaces between words."""
    return " ".join(_UNDERSCORE.sub(" ", with_plain_signs(text)).split())


def _mentions(text: str, actions: Mapping[str, Any], shortened: Collection[str] = ()) -> tuple[dict[str, Any], str]:
    """Return the actions that a text mentions, the longest name first at each place, by these names, and the text without them.

    Slices are looked up, since a regex of thousands of names takes a tenth of a second to compile and milliseconds to search.
    A shortened name does not count where a remark follows, which may be another name's.

    Raises:
        ActionNotFound: If it is unclear whether the one name is meant: there is a "not" before it, or a sign that is none of its own.
    """
    unclear = None
    found: dict[str, Any] = {}
    lengths = sorted({len(name) for name in actions}, reverse=True)
    rest: list[str] = []
    end = 0
    for start in [match.start() for match in _MENTION_START.finditer(text)] if lengths else ():
        for length in lengths:
            if start + length <= end:  # a part of the name before
                break
            name = text[start : start + length]
            action = actions.get(name)
            if action is None or _MENTION_END.match(text, start + length):
                continue
            if name in shortened and _REMARK_FOLLOWS.match(text, start + length):
                continue
            if is_negated(text, start) or (name[0].isdigit() and not is_bare(text, start)):
                unclear = name
            found[name] = action
            rest.append(text[end:start])
            end = start + length
            break
    if unclear is not None and len({*found.values()}) == 1:
        raise ActionNotFound(f"It is unclear whether {unclear!r} is meant")
    return found, " ".join([*rest, text[end:]])


register_codec(gym.spaces.Discrete, DiscreteCodec)
