"""Spaces of strings, and spaces of which nothing is known but their own JSON."""

from __future__ import annotations

import itertools
import json
import re
import string
from typing import Any

import gymnasium as gym

from vfgym.codecs.base import Codec, Schema, Space, seeded_sample
from vfgym.codecs.data import json_text, quote_data
from vfgym.codecs.marks import has_marks
from vfgym.codecs.problems import ActionNotFound
from vfgym.codecs.reading import Where
from vfgym.codecs.registry import register_codec
from vfgym.codecs.relaxed import read_json
from vfgym.codecs.thinking import MARKUP
from vfgym.errors import ConfigurationError, InvalidAction

_EXAMPLES = ("look", "hello")
"""Texts that are shown as an example, where a space holds them."""

_EXAMPLE_LENGTH = 5
_LONGEST_ESCAPE = 12
"""Characters that one character takes in JSON, at most."""
_LONGEST_RUN = 3
"""Characters of a run that a listing writes out."""
_MOST_RANGES = 12
"""Runs of neighbouring characters that a listing shows."""
_QUOTES = "\"'`"
_PAIRS = ("**", "__", "*", "_", "`", '"', "'", "\u201c\u201d", "\u2018\u2019", "\u00ab\u00bb")
"""Emphasis and quotes that may stand around a text: the same sign at both ends, or an opening and a closing one."""

_MOST_SET_ASIDE = 6
"""Forms around each other that are set aside."""

_ENDS_SENTENCES = re.compile(r"[.!?]")
_KINDS = {
    "letters": string.ascii_letters,
    "lower-case letters": string.ascii_lowercase,
    "capital letters": string.ascii_uppercase,
    "digits": string.digits,
    "punctuation": string.punctuation,
    "spaces": " ",
    "line breaks": "\n",
}
"""Characters that a listing names together, if a space has all of a kind that was not named yet."""


class TextCodec(Codec):
    """The actions of a space of strings: a `gymnasium.spaces.Text`, or any other space whose dtype is ``str``.

    A text is written as it is where it is read back from a message unchanged, and as a JSON string where it is not (it is empty,
    begins with a space, looks like markup, ...).
    """

    def __init__(self, space: Space, names: None = None) -> None:
        """Describe the texts of `space`.

        Raises:
            ConfigurationError: If there are names: texts have none.
        """
        if names is not None:
            raise ConfigurationError(f"expected no names for {space}, whose actions are texts, got {names!r}")
        self.space = space
        self.names = None
        self.schema: Schema = {"type": "string"}
        self._length = self._characters = ""
        if isinstance(space, gym.spaces.Text):
            ranges = _ranges(space.characters)
            pattern = "".join(_escaped(first) + (f"-{_escaped(last)}" if last != first else "") for first, last in ranges)
            self.schema |= {
                "minLength": space.min_length,
                "maxLength": space.max_length,
                "pattern": f"^[{pattern}]*$" if pattern else "^$",
            }
            short, long = space.min_length, space.max_length
            self.longest = _LONGEST_ESCAPE * long
            self._length = f" of {long} characters" if short == long else f" of {short} to {long} characters"
            self._characters = _characters_in_words(space.characters)

    def to_json(self, action: Any) -> str:
        """Return the text itself."""
        if not isinstance(action, str):
            raise InvalidAction(f"expected a text for {self.space}, got {type(action).__name__}")
        return str(action)

    def read(self, data: Any) -> str:
        """Return the text itself, which the space contains; a whole number is read as its digits."""
        text = str(data) if type(data) is int and abs(data) < 10**30 else data
        if isinstance(text, str) and self.space.contains(text):
            return text
        raise ActionNotFound(self._problem(text))

    def encode(self, action: Any) -> str:
        """Return the text as it is, or as a JSON string where it would be read as something else."""
        text = self.to_json(action)
        if text and not MARKUP.search(text) and self._read_back(text) == self._read_back(f"<action>{text}</action>") == text:
            return text
        return json_text(text)

    def read_exactly(self, text: str) -> str | None:
        """Return the content of a JSON string that the space contains; ``None`` for any other text."""
        if text[:1] != '"':
            return None
        try:
            content = str(read_json(text))
        except ValueError:
            return None
        return content if self.space.contains(content) else None

    def match(self, text: str, where: Where) -> str | None:
        """Return a text that the space contains: what is marked, or one line alone.

        Emphasis and quotes around it, a ``>`` before it, and the full stop of a single sentence are set aside where the space contains the
        rest. A JSON string keeps them.

        Raises:
            ActionNotFound: If it is one, and the space does not contain it.
        """
        if where is Where.LAST_LINE or (where is Where.WHOLE_ANSWER and ("\n" in text or has_marks(text))):
            return None
        forms = (_without_form(text), text, text.strip(_QUOTES), text.rstrip(".!").strip(_QUOTES))
        fitting: list[str] = [form for form in forms if self.space.contains(form)]
        if fitting:
            return fitting[0]
        raise ActionNotFound(self._problem(text))

    def listing(self) -> str:
        """Return how long the text may be, and of what characters."""
        return f"a text{self._length}{self._characters}"

    def representative(self) -> str:
        """Return a short text."""
        if not isinstance(self.space, gym.spaces.Text):
            return str(seeded_sample(self.space))
        example = next((each for each in _EXAMPLES if self.space.contains(each)), None)
        if example is not None:
            return example
        length = min(max(_EXAMPLE_LENGTH, self.space.min_length), self.space.max_length)
        characters = [each for each in self.space.character_list if each.isalpha()] or self.space.character_list
        return "".join(itertools.islice(itertools.cycle(characters), length))

    def _problem(self, data: Any) -> str:
        """Return what is wrong with data that is not text of this space, as the rest of a sentence."""
        if not isinstance(data, str):
            return f"must be a text, got {quote_data(data)}"
        if isinstance(self.space, gym.spaces.Text):
            if not self.space.min_length <= len(data) <= self.space.max_length:
                return f"must be a text{self._length}, got {quote_data(data)}, which has {len(data)}"
            unknown = next((each for each in data if each not in self.space.character_set), None)
            if unknown is not None:
                return f"must be a text without the character {quote_data(unknown)}, got {quote_data(data)}"
        return f"must be another text, got {quote_data(data)}"

    def _read_back(self, text: str) -> str | None:
        """Return what is read from a text that stands as it is in a message."""
        try:
            return str(self.decode(text))
        except ActionNotFound:
            return None


class OwnJsonCodec(Codec):
    """The actions of a space of a user's own kind, by its own `to_jsonable` and `from_jsonable`."""

    def __init__(self, space: Space, names: None = None) -> None:
        """Describe the actions of `space`.

        Raises:
            ConfigurationError: If there are names: nothing is known that they could be given to.
        """
        if names is not None:
            raise ConfigurationError(f"expected no names for {space}, a space of an unknown kind, got {names!r}")
        self.space = space
        self.names = None
        self.schema: Schema = {"description": self.listing()}

    def to_json(self, action: Any) -> Any:
        """Return the first item of what the space makes of a batch of one."""
        batch = self.space.to_jsonable([action])
        return batch[0] if isinstance(batch, list) and len(batch) == 1 else batch

    def read(self, data: Any) -> Any:
        """Return what the space makes of the data, which it contains."""
        try:
            (action,) = self.space.from_jsonable([data])
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            raise ActionNotFound(f"must be a member of {self.space}, got {quote_data(data)}") from None
        if not self.space.contains(action):
            raise ActionNotFound(f"must be a member of {self.space}, got {quote_data(data)}")
        return action

    def listing(self) -> str:
        """Return what the space says of itself."""
        return f"the JSON of a member of {self.space}"

    def representative(self) -> Any:
        """Return a sample."""
        return seeded_sample(self.space)


def _unknown_kind(space: Space, names: Any) -> Codec:
    """Return the codec of a space of a class that nobody registered: of strings, or by its own JSON."""
    return TextCodec(space, names) if space.dtype is not None and space.dtype.kind == "U" else OwnJsonCodec(space, names)


def _without_form(text: str) -> str:
    """Return a text without emphasis and quotes around it, a prompt's sign before it, and the full stop of a single sentence.

    >>> _without_form("> **open the door.**"), _without_form("I agree. Let us go."), _without_form("wait...")
    ('open the door', 'I agree. Let us go.', 'wait...')
    """
    for _ in range(_MOST_SET_ASIDE):
        before = text
        text = text.removeprefix(">").strip()
        for pair in _PAIRS:
            opening, closing = (pair[0], pair[1]) if pair[0] != pair[-1] else (pair, pair)
            inner = text[len(opening) : -len(closing)]
            if inner.strip() and text.startswith(opening) and text.endswith(closing) and opening not in inner and closing not in inner:
                text = inner.strip()
                break
        if text.endswith(".") and not _ENDS_SENTENCES.search(text, 0, len(text) - 1):
            text = text.removesuffix(".")
        if text == before:
            break
    return text


def _characters_in_words(characters: str) -> str:
    """Return of what a text may consist, in words and in parentheses; empty where that would take too many.

    >>> _characters_in_words(string.printable), _characters_in_words("abc 0123456789")
    (' (letters, digits, punctuation, spaces, line breaks)', ' (digits, spaces, any of "abc")')
    """
    left, kinds = set(characters), []
    for kind, members in _KINDS.items():
        if left.issuperset(members):
            kinds.append(kind)
            left -= set(members)
    others = "".join(sorted(each for each in left if not each.isspace()))
    if len(_ranges(others)) > _MOST_RANGES:
        return ""
    if others:
        runs = ((first, "".join(map(chr, range(ord(first), ord(last) + 1)))) for first, last in _ranges(others))
        listed = "".join(run if len(run) <= _LONGEST_RUN else f"{first}-{run[-1]}" for first, run in runs)
        kinds.append(f"any of {json.dumps(listed, ensure_ascii=False)}")
    return f" ({', '.join(kinds)})" if kinds else ""


def _ranges(characters: str) -> list[tuple[str, str]]:
    """Return sorted characters as runs of neighbours: their first and last ones."""
    runs = itertools.groupby(enumerate(characters), lambda pair: ord(pair[1]) - pair[0])
    members = [[character for _, character in run] for _, run in runs]
    return [(run[0], run[-1]) for run in members]


def _escaped(character: str) -> str:
    """Return a character as it stands in a set of a regular expression, of Python's kind and of JSON schema's."""
    if (character.isascii() and character.isalnum()) or ord(character) > 0xFFFF:
        return character
    return f"\\u{ord(character):04x}"


register_codec(gym.spaces.Text, TextCodec)
register_codec(gym.Space, _unknown_kind)
