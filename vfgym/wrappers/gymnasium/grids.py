"""Observations that are writing or a map, though they are arrays: bytes of a terminal, and channels of 0 and 1 that a game names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

_TEXT = re.compile(r"(?:\w*_)?(?:chars|descriptions|letters|message|screen_text|strs|text)(?:_crop)?")
"""Keys of arrays whose bytes are letters (NetHack's ``tty_chars``, ``message``, ``inv_strs``)."""

_SCREEN = "tty_chars"
"""The key of a whole terminal: whatever else is text stands on it."""


def text_keys(space: Any) -> tuple[str, ...]:
    """Return the keys of a `Dict` space that hold bytes of text, lines of equal length at most; empty where there are none."""
    if not isinstance(space, spaces.Dict):
        return ()
    return tuple(key for key, member in space.spaces.items() if _TEXT.fullmatch(str(key)) and _is_text(member))


def _is_text(space: Any) -> bool:
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) in (1, 2)


def code_keys(space: spaces.Dict) -> frozenset[str]:
    """Return the keys of a `Dict` space that say something of each letter of a text in numbers: its colour, say."""
    texts = text_keys(space)
    shapes = {space.spaces[key].shape for key in texts}
    return frozenset(
        key
        for key, member in space.spaces.items()
        if key not in texts and isinstance(member, spaces.Box) and any(member.shape[: len(shape or ())] == shape for shape in shapes)
    )


def bytes_text(letters: Any) -> str:
    r"""Return bytes as text, each line up to its first zero; empty lines around it are left out.

    >>> bytes_text(np.array([[0, 0, 0], [64, 46, 0], [46, 62, 32]], np.uint8))
    '@.\n.>'
    """
    array = np.asarray(letters, dtype=np.uint8)
    rows = array.reshape(-1, array.shape[-1])
    return "\n".join(row.tobytes().partition(b"\0")[0].decode("latin-1").rstrip() for row in rows).strip("\n")


@dataclass(frozen=True)
class ScreenText:
    """Shows the bytes of text in a `Dict` observation as text, and its other members below."""

    keys: tuple[str, ...]
    rest: Any = None
    """What shows the other members (see `ObservationRenderer`); None where there are none."""

    def __call__(self, game: Any, observation: Any) -> str:
        """Return the observation as text."""
        texts = {key: bytes_text(observation[key]) for key in self.keys}
        if len(texts) == 1:
            shown = [*texts.values()]
        else:
            shown = [f"{key}: {text}" if "\n" not in text else f"{key}:\n{text}" for key, text in texts.items() if text]
        return "\n".join([*shown, *([] if self.rest is None else [self.rest(game, observation)])])


def screen_keys(space: spaces.Dict) -> tuple[tuple[str, ...], spaces.Dict | None]:
    """Return the keys of a `Dict` space that are shown as text, and the space of what is shown beside them; None if nothing is."""
    texts = text_keys(space)
    if _SCREEN in texts:
        return (_SCREEN,), None
    hidden = {*texts, *code_keys(space)}
    others = {key: member for key, member in space.spaces.items() if key not in hidden}
    return texts, spaces.Dict(others) if others else None


@dataclass(frozen=True)
class ChannelText:
    """Shows channels of 0 and 1 as one map, with a letter for each channel."""

    names: tuple[str, ...]
    is_first: bool
    """Whether the channels are the first axis; else they are the last."""

    def __call__(self, game: Any, observation: Any) -> str:
        """Return the observation as text."""
        channels = np.asarray(observation, dtype=bool)
        if not self.is_first:
            channels = np.moveaxis(channels, -1, 0)
        marks = channel_marks(self.names)
        rows = [
            ["".join(mark for mark, channel in zip(marks, channels, strict=True) if channel[row, column]) or "." for column in columns]
            for row, columns in ((row, range(channels.shape[2])) for row in range(channels.shape[1]))
        ]
        width = max((len(cell) for row in rows for cell in row), default=1)
        return "\n".join(" ".join(cell.ljust(width) for cell in row).rstrip() for row in rows)

    @property
    def legend(self) -> str:
        """What the letters stand for."""
        marks = ", ".join(f"{mark} {name.replace('_', ' ')}" for mark, name in zip(channel_marks(self.names), self.names, strict=True))
        return f"Each cell of the map shows what is there: {marks}. Several letters are several things in one cell, and . is nothing."


def channel_marks(names: Sequence[str]) -> tuple[str, ...]:
    """Return a letter for each name, of the name where one is left.

    >>> channel_marks(["paddle", "ball", "trail", "brick"])
    ('p', 'b', 't', 'r')
    """
    marks: list[str] = []
    for name in names:
        letters = [*filter(str.isalnum, name), *map(str.upper, filter(str.isalnum, name)), *_SPARE]
        marks.append(next(letter for letter in letters if letter not in marks))
    return tuple(marks)


_SPARE = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
MOST_CHANNELS = 32


def channel_renderer(space: Any, declared: Iterator[Any]) -> ChannelText | None:
    """Return what shows the elements of a space as a map, where they are channels of 0 and 1 that the game names; None for any other.

    Args:
        space: The space.
        declared: What a game declares as its channels: names, or a mapping from names to numbers of channels.
    """
    if not _is_binary(space) or len(space.shape) != 3:
        return None
    for value in declared:
        names = _channel_names(value)
        if names and len(names) <= MOST_CHANNELS and len(names) in (space.shape[0], space.shape[-1]):
            return ChannelText(names, is_first=len(names) != space.shape[-1])
    return None


def _is_binary(space: Any) -> bool:
    if isinstance(space, spaces.MultiBinary):
        return True
    if not isinstance(space, spaces.Box):
        return False
    return space.dtype == np.bool_ or (np.issubdtype(space.dtype, np.integer) and bool((space.low == 0).all() and (space.high == 1).all()))


def _channel_names(declared: Any) -> tuple[str, ...]:
    names: Any = declared
    if isinstance(declared, Mapping):
        by_number = {number: name for name, number in declared.items() if isinstance(number, int)}
        names = [by_number.get(number) for number in range(len(declared))]
    is_list = isinstance(names, list | tuple) and bool(names) and all(isinstance(name, str) and name for name in names)
    return tuple(names) if is_list and len({*names}) == len(names) else ()
