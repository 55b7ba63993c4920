"""Discrete spaces: actions by number and, where they are known, by name."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from vfgym.codecs.base import Codec, Schema
from vfgym.codecs.data import quote_data
from vfgym.codecs.marks import EMPTY
from vfgym.codecs.numbers import JOINED, with_plain_signs
from vfgym.codecs.problems import ActionNotFound, AnswerUnclear
from vfgym.codecs.reading import Where
from vfgym.codecs.registry import register_codec
from vfgym.errors import ConfigurationError, InvalidAction

_MOST_NUMBERS_KEPT = 1024
"""Numbers whose texts are kept in a dict; those of larger spaces are converted each time."""

_MOST_LISTED = 40
"""Names that a listing shows; of more it shows the ends."""

_REMARK = re.compile(r"(.*\S)\s*\([^()]*\)\Z")
_APOSTROPHE = re.compile(r"(?<=[^\W\d])'(?=[^\W\d])")
_DO_NOT = re.compile(r"\bdo not\b", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?\d+(?:\.0*)?\Z")
_WITH_NAME = re.compile(r"([+-]?\d{1,25})(?:\s*\((.*)\)|(?:\s?[:=]|[.)])\s(.*))\Z")
_WITH_NUMBER = re.compile(r"(.*\S)\s?\(([+-]?\d{1,25})\)\Z")
"""An action as the listing shows it, "0 (left)", and in forms like that: "0: left", "0. left", "left (0)"."""

_SPACE_IN_WORDS = re.compile(r"(?<=[^\W\d]) (?=\w)|(?<=\w) (?=[^\W\d])|(?<=[,(]) | (?=[,)])")
_WORD = re.compile(r"\w+")
_WHOLE_DIGITS = 25
"""Digits of the longest number that is converted: no 64-bit number has as many."""


class DiscreteCodec(Codec):
    """The actions of a `gymnasium.spaces.Discrete`.

    A text is an action if it is its name, its number, or both as the listing shows them ("0 (left)"), also in another case, with ``_`` or
    ``-`` between words, and without the remark at the end of a name where it tells no names apart. In a mark the words that only one name
    has are that name. A text that is a name, or the same number as a name (1 for 1.0), is the name; as a number in JSON data it is
    refused, unless it is the index of the same action.
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
        self._places_of_words: dict[str, set[int]] | None = None
        self._beginnings: dict[str, int] | None = None
        self._longest = 2 * max(map(len, self.names or [""])) + _WHOLE_DIGITS
        """Characters of a text that may be a name, however it is spaced, with its number."""
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
        if not EMPTY.isdisjoint(given):
            raise ConfigurationError(
                f"expected action names with which an answer is not empty, got {sorted(EMPTY.intersection(given))[0]!r}"
            )
        return list(given)

    def _add_forgiving(self, names: Sequence[str]) -> None:
        """Add the forms in which names are looked up with white space, signs and, where they tell no names apart, cases alike."""
        spaced = [_joined(name) for name in names]
        known, folds = Counter(spaced), Counter(name.casefold() for name in spaced)
        for name, form in zip(names, spaced, strict=True):
            if folds[form.casefold()] == 1:
                self._folded[form.casefold()] = self._exact[name]
            elif known[form] == 1:  # moves of chess: bxc3 is a pawn's, Bxc3 a bishop's
                self._cased[form] = self._exact[name]

    def _add_shortened(self, names: Sequence[str]) -> None:
        """Add names without the remark in parentheses at their end, where no other name has all of the words that are left."""
        for name in names:
            remark = _REMARK.match(name)
            if remark and len(self._names_with(_words_of(remark[1]))) == 1:
                self._folded.setdefault(_joined(remark[1]).casefold(), self._exact[name])

    def _names_with(self, words: list[str]) -> list[int]:
        """Return the places of the names that contain all of these words."""
        if self._places_of_words is None:
            self._places_of_words = {}
            for place, name in enumerate(self.names or ()):
                for word in _words_of(name):
                    self._places_of_words.setdefault(word, set()).add(place)
        sets = [self._places_of_words.get(word, set()) for word in words]
        return sorted(set.intersection(*sets)) if sets else []

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
        return self._read(text) if action is None else action

    def read_exactly(self, text: str) -> Any:
        """Return the action with exactly this name or number; ``None`` if there is none."""
        return self._exact.get(text)

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

    def lookup(self, text: str, where: Where) -> Any:
        """Return the action whose name or number a text is, its case and what joins its words aside; ``None`` if it is none.

        Raises:
            ActionNotFound: If it is a number that no action has.
        """
        action = self._named(text)
        if action is None and _NUMBER.match(with_plain_signs(text)):
            kind = "number" if self.names is None else "name or a number"
            raise ActionNotFound(f"must be a {kind} from {self._low} to {self._high}, got {text[:_WHOLE_DIGITS]}")
        return action

    def find_by_words(self, words: list[str]) -> Any:
        """Return the one action whose name begins with these words, or contains all of them; ``None`` if there is none.

        Raises:
            ActionNotFound: If there are several.
        """
        if self.names is None:
            return None
        if self._beginnings is None:
            self._beginnings = _beginnings_of(self.names)
        begun = self._beginnings.get(_joined(" ".join(words)).casefold(), -1)
        if begun >= 0:
            return self._type(self._low + begun)
        if any(word.isdecimal() for word in words):
            return None
        folded = [_APOSTROPHE.sub("", word.casefold()) for word in words]
        if len({*folded}) < len(folded):  # "left left" is two moves
            return None
        fitting = self._names_with(folded)
        if len(fitting) > 1:
            named = ", ".join(self.names[index] for index in fitting[:4])
            raise AnswerUnclear(f"{' '.join(words)!r} may be any of {len(fitting)} actions ({named})")
        return self._type(self._low + fitting[0]) if fitting else None

    def mentioned_in(self, remark: str) -> list[Any]:
        """Return the actions that a remark mentions: by number, by a word that only one has, or by a whole name."""
        longest = max((len(_spaced(name).split()) for name in self.names or ()), default=0)
        words = _words_of(remark)
        parts = (words[start:end] for start in range(len(words)) for end in range(start + 2, min(start + longest, len(words)) + 1))
        named = [self._folded.get(_joined(" ".join(part))) for part in parts]
        in_brackets = self._exact.get(f"({remark})")
        return [action for action in (*super().mentioned_in(remark), *named, in_brackets) if action is not None]

    def _named(self, text: str) -> Any:
        """Return the action whose name or number a text is; or ``None``."""
        action = self._exact.get(text)
        if len(text) > self._longest:
            return action
        if action is None and (self._folded or self._cased):
            form = _joined(text)
            action = self._cased.get(form)
            if action is None:
                action = self._folded.get(form.casefold())
        if action is None and len(text) <= _WHOLE_DIGITS and _NUMBER.match(plain := with_plain_signs(text)):
            return self._called(int(plain.partition(".")[0]))
        if action is None and self.names is not None:
            number, name = _number_and_name(text)
            if name and not _NUMBER.match(name):
                action = self._called(int(number))
                return action if action is not None and action == self._named(name) else None
        return action

    def _numbered(self, number: int) -> Any:
        """Return the action with a number, or ``None`` if there is none."""
        return self._type(number) if self._low <= number <= self._high else None

    def _called(self, number: int) -> Any:
        """Return the action that a whole number stands for in a text: as its name or else as its index; or ``None``."""
        return self._exact.get(str(number), self._numbered(number))


def _number_and_name(text: str) -> tuple[str, str]:
    """Return the number and the name of an action that is written with both; two empty texts if it is not."""
    if both := _WITH_NAME.match(text):
        return both[1], both[2] or both[3] or ""
    both = _WITH_NUMBER.match(text)
    return (both[2], both[1]) if both else ("", "")


def _is_whole(data: Any) -> bool:
    """Say whether data is a whole number; a truth value is none."""
    return (isinstance(data, int | np.integer) and not isinstance(data, bool)) or (isinstance(data, float) and data.is_integer())


def _by_value(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the actions whose names are whole numbers in another form, such as 1.0 or +1, by the plain form: there it is not an index."""
    whole = {name: action for name, action in named.items() if len(name) <= _WHOLE_DIGITS and _NUMBER.match(name)}
    plain = [(str(int(name.partition(".")[0])), action) for name, action in whole.items()]
    counts = Counter(number for number, _ in plain)
    return {number: action for number, action in plain if counts[number] == 1}


def _beginnings_of(names: Sequence[str]) -> dict[str, int]:
    """Return the whole words that names begin with, joined, and the place of the name where it is the only one; else -1."""
    found: dict[str, int] = {}
    for place, name in enumerate(names):
        words = _spaced(name).split()
        for form in {_joined(" ".join(words[:count])).casefold() for count in range(1, len(words))}:
            found[form] = -1 if form in found else place
    return found


def _spaced(text: str) -> str:
    """Return a text with plain signs, without apostrophes inside of words, and with single spaces between words."""
    spaced = " ".join(JOINED.sub(" ", with_plain_signs(text)).split())
    return _DO_NOT.sub("dont", _APOSTROPHE.sub("", spaced)) if "'" in spaced or " not" in spaced else spaced


def _words_of(text: str) -> list[str]:
    return _WORD.findall(_spaced(text).casefold())


def _joined(text: str) -> str:
    """Return a text with plain signs, and without spaces, but for those that tell "1 1" from "11" or "- 1" from "-1"."""
    return _SPACE_IN_WORDS.sub("", _spaced(text))


register_codec(gym.spaces.Discrete, DiscreteCodec)
