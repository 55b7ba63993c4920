"""Discrete spaces: actions by number and, where they are known, by name."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from vfgym.codecs.answers import answer_in, labelled, narrowings
from vfgym.codecs.base import NO_ACTION, ActionNotFound, Codec, Schema, register_codec, shown
from vfgym.codecs.relaxed import read_json
from vfgym.errors import ConfigurationError, InvalidAction

_MOST_NUMBERS_KEPT = 1024
"""Numbers whose texts are kept in a dict; those of larger spaces are converted each time."""

_MOST_LISTED = 40
"""Names that a listing shows; of more it shows the ends."""

_DECORATION = " \t\r\n.!\"'`*"
_NUMBER = re.compile(r"(?<![\w.+-])[+-]?\d+(?!\w|[.,]\d)")
_WHOLE = re.compile(r"([+-]?\d+)(?:\.0*)?\Z")
_MENTION_START = re.compile(r"(?<![\w.+-])\S")
_MENTION_END = re.compile(r"\w|[.,]\d")
_WHOLE_DIGITS = 25
"""Digits of the longest number that is converted: no 64-bit number has as many."""


class DiscreteCodec(Codec):
    """The actions of a `gymnasium.spaces.Discrete`.

    Reading forgives format: an answer in ``<action>`` tags, with quotes, in another case, in a sentence, after reasoning. An
    answer that names two different actions names none. A name that looks like a number is a name; in JSON data a number is one.
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
        if self.names is None:
            self.schema: Schema = {"type": "integer", "minimum": self._low, "maximum": self._high}
        else:
            self.schema = {"type": "string", "enum": list(self.names)}
            self._exact |= {name: self._type(self._low + index) for index, name in enumerate(self.names)}
            folds = Counter(name.casefold() for name in self.names)
            for name in self.names:
                fold = name.casefold()
                if folds[fold] == 1:
                    self._folded[fold] = self._exact[name]
                else:  # moves of chess: bxc3 is a pawn's, Bxc3 a bishop's
                    self._cased[name] = self._exact[name]

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
            return self._type(int(data))
        kind = "a whole number" if self.names is None else "a name or a number"
        raise ActionNotFound(f"must be {kind} from {self._low} to {self._high}, got {shown(data)}")

    def encode(self, action: Any) -> str:
        """Return the name of an action, or its number as text."""
        return str(self.to_json(action))

    def decode(self, text: str) -> Any:
        """Return the action that a text names, as a scalar of the space's dtype."""
        action = self._exact.get(text)
        return self._search(text) if action is None else action

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

    def _search(self, text: str) -> Any:
        answer = answer_in(text)
        action = self._named(answer)
        if action is not None:
            return action
        for candidate in reversed(narrowings(answer)):
            action = self._named(candidate)
            if action is None and candidate[:1] in ("{", "["):
                action = self._wrapped(candidate)
            if action is not None:
                return action
        for candidate in reversed(labelled(answer)):
            mentioned = self._mentioned(candidate)
            if len(mentioned) == 1:
                return mentioned.pop()
            if mentioned:
                raise self.not_found(f"Your answer names {len(mentioned)} different actions")
        raise self.not_found(NO_ACTION)

    def _named(self, text: str) -> Any:
        """Return the action whose name or number a text is, but for decoration; or ``None``."""
        action = self._exact.get(text)
        if action is None:
            text = text.strip(_DECORATION)
            action = self._exact.get(text)
        if action is None:
            action = self._folded.get(text.casefold())
        if action is None and len(text) <= _WHOLE_DIGITS and (whole := _WHOLE.match(text)):
            number = int(whole[1])
            return self._type(number) if self._low <= number <= self._high else None
        return action

    def _wrapped(self, candidate: str) -> Any:
        """Return the action in a JSON object or list of one action, or ``None``."""
        try:
            data = read_json(candidate)
            return self.read_answer(data[0] if isinstance(data, list) and len(data) == 1 else data)
        except ValueError:
            return None

    def _mentioned(self, text: str) -> set[Any]:
        """Return the actions whose names or numbers stand in a text as words of their own."""
        mentioned, rest = _mentions(text, self._cased)
        named, rest = _mentions(rest.casefold(), self._folded)
        numbers = {int(number) for number in _NUMBER.findall(rest) if len(number) <= _WHOLE_DIGITS}
        return mentioned | named | {self._type(number) for number in numbers if self._low <= number <= self._high}


def _is_whole(data: Any) -> bool:
    """Say whether data is a whole number; a truth value is none."""
    return (isinstance(data, int | np.integer) and not isinstance(data, bool)) or (isinstance(data, float) and data.is_integer())


def _mentions(text: str, actions: Mapping[str, Any]) -> tuple[set[Any], str]:
    """Return the actions that a text mentions, the longest name first at each place, and the text without these names.

    Slices are looked up, since a regex of thousands of names takes a tenth of a second to compile and milliseconds to search.
    """
    found: set[Any] = set()
    lengths = sorted({len(name) for name in actions}, reverse=True)
    rest: list[str] = []
    end = 0
    for start in [match.start() for match in _MENTION_START.finditer(text)] if lengths else ():
        if start < end:
            continue
        for length in lengths:
            action = actions.get(text[start : start + length])
            if action is not None and not _MENTION_END.match(text, start + length):
                found.add(action)
                rest.append(text[end:start])
                end = start + length
                break
    return found, " ".join([*rest, text[end:]])


register_codec(gym.spaces.Discrete, DiscreteCodec)
