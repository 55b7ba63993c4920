"""Observations of a game as text that a model reads."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import GraphInstance
from numpy.typing import NDArray

TextRenderer = Callable[[Any], str]
"""Gives an observation as text. Renderers can be pickled and copied."""

_STYLE = re.compile(r"\x1b\[([\d;]*)m")
_Style = tuple[str, str]
"""What a terminal's code sets (the letters, the ground behind them, or nothing that has a colour) and the name of its colour, if any."""

DEEPEST = 50
"""Levels of an observation that are shown: each is indented, so that to show all of them would take quadratic time."""

_MOST_STYLES, _MOST_DIGITS = 16, 9
"""Styles that are kept at once, and digits of a number in a code: more are no drawing."""

_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def without_colours(drawing: str) -> str:
    r"""Return a terminal drawing as plain text: what is coloured stands in brackets, with its colours if there are several.

    >>> without_colours("S\x1b[41mF\x1b[0mFH"), without_colours("\x1b[34;1m\x1b[43mR\x1b[0m\x1b[0m: ")
    ('S[F]FH', '[R:blue,yellow]: ')
    """
    texts = _STYLE.split(drawing)
    pieces: list[str] = [texts[0]]
    coloured: list[tuple[int, str]] = []  # the places of the pieces that are coloured, and their colours
    seen: set[str] = set()
    styles: tuple[_Style, ...] = ()
    for code, text in zip(texts[1::2], texts[2::2], strict=True):
        styles = _styled(styles, code)
        if styles and text:
            colours = [colour for _, colour in styles if colour]
            seen.update(colours or ("",))
            coloured.append((len(pieces), ",".join(colours)))
        pieces.append(text)
    for place, colours_of_piece in coloured:
        named = f":{colours_of_piece}" if colours_of_piece and len(seen) > 1 else ""
        pieces[place] = f"[{pieces[place]}{named}]"
    return "".join(pieces).strip("\n")


@functools.lru_cache(maxsize=1024)  # a drawing has few styles, and this takes 2 µs
def _styled(styles: tuple[_Style, ...], code: str) -> tuple[_Style, ...]:
    """Return the styles after a terminal's code."""
    styled = list(styles)
    parts = iter([int(part or 0) for part in code.split(";") if len(part) <= _MOST_DIGITS])
    for part in parts:
        target = {3: "letters", 9: "letters", 4: "ground", 10: "ground"}.get(part // 10, "")
        if part == 0:
            styled.clear()
        elif part in (*range(22, 30), 39, 49):
            styled = [style for style in styled if style[0] != target]
        elif part in (38, 48):  # a colour by its number (5, n) or its parts (2, r, g, b)
            for _ in range({5: 1, 2: 3}.get(next(parts, 0), 0)):
                next(parts, 0)
            styled.append((target, ""))
        else:
            styled.append((target, _COLOURS[part % 10] if target and part % 10 < 8 else ""))
    return tuple(styled[-_MOST_STYLES:])


def text_renderer(space: gym.Space[Any], labels: Sequence[str] = ()) -> TextRenderer:
    """Return a function that gives observations of a space as text, compiled once for many observations.

    Args:
        space: The space of the observations. One that does not lie in it is rendered by what it is.
        labels: A label for each number of a vector or member of a tuple, or for each value of a `Discrete`. They are left out
            where their count does not fit.
    """
    return _renderer(space, tuple(labels), is_inside=False)


def _renderer(space: gym.Space[Any], labels: tuple[str, ...], *, is_inside: bool) -> TextRenderer:
    """Return what renders observations of a space, inside brackets or not."""
    if isinstance(space, gym.spaces.Box | gym.spaces.MultiDiscrete | gym.spaces.MultiBinary) and len(space.shape) == 1 and space.shape[0]:
        return VectorText(space.shape[0], space.dtype.kind == "f", labels)
    if isinstance(space, gym.spaces.Discrete):
        fits = len(labels) == int(space.n)
        return DiscreteText({int(space.start) + index: str(label) for index, label in enumerate(labels)}) if fits else str
    if isinstance(space, gym.spaces.Text):
        return functools.partial(value_text, is_inside=True) if is_inside else str
    if isinstance(space, gym.spaces.Dict):
        return DictText(tuple((key, _renderer(member, (), is_inside=is_inside)) for key, member in space.spaces.items()), is_inside)
    if isinstance(space, gym.spaces.Tuple):
        kept = labels if len(labels) == len(space.spaces) else ()
        return TupleText(tuple(_renderer(member, (), is_inside=is_inside or not kept) for member in space.spaces), kept)
    if isinstance(space, gym.spaces.OneOf):
        return OneOfText(tuple(_renderer(member, (), is_inside=is_inside) for member in space.spaces))
    return functools.partial(value_text, labels=labels, is_inside=is_inside)


def observation_text(space: gym.Space[Any] | None, observation: Any, labels: Sequence[str] = ()) -> str:
    r"""Return an observation as text: numbers with their labels, one a line, where they are known; a table row by row.

    >>> observation_text(None, (14, 10, 0), ("Player current sum", "Dealer showing card value", "Usable Ace"))
    'Player current sum: 14\nDealer showing card value: 10\nUsable Ace: 0'

    Args:
        space: The space of the observation, or ``None`` to render it by what it is.
        observation: The observation.
        labels: As for `text_renderer`.
    """
    return value_text(observation, labels) if space is None else text_renderer(space, labels)(observation)


@dataclass(frozen=True)
class VectorText:
    """Renders vectors of one length with one format string, which is what games of a few microseconds a step need."""

    size: int
    is_float: bool
    labels: tuple[str, ...]
    _format: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        number = "%.6g" if self.is_float else "%s"
        if len(self.labels) == self.size:
            written = "\n".join(f"{label.replace('%', '%%')}: {number}" for label in self.labels)
        else:
            written = "[" + ", ".join([number] * self.size) + "]"
        object.__setattr__(self, "_format", written)

    def __call__(self, observation: Any) -> str:
        """Return a vector as text."""
        try:
            return self._format % tuple(observation.tolist())
        except (AttributeError, TypeError):  # no array, or another shape than the game promised
            return value_text(observation, self.labels)


@dataclass(frozen=True)
class DiscreteText:
    """Renders numbers that have names."""

    names: dict[int, str]

    def __call__(self, observation: Any) -> str:
        """Return a number and its name."""
        try:
            name = self.names.get(observation)
        except TypeError:  # an array, say
            return value_text(observation)
        return str(observation) if name is None else f"{observation} ({name})"


@dataclass(frozen=True)
class DictText:
    """Renders dicts, a key a line."""

    members: tuple[tuple[Any, TextRenderer], ...]
    is_inside: bool
    """Whether they stand inside brackets."""

    def __call__(self, observation: Any) -> str:
        """Return a dict as text."""
        if not isinstance(observation, Mapping) or observation.keys() != {key for key, _ in self.members}:
            return value_text(observation, is_inside=self.is_inside)
        return "\n".join([_under(key, render(observation[key])) for key, render in self.members])


@dataclass(frozen=True)
class TupleText:
    """Renders tuples: with labels a member a line, in brackets without."""

    members: tuple[TextRenderer, ...]
    labels: tuple[str, ...]

    def __call__(self, observation: Any) -> str:
        """Return a tuple as text."""
        if not isinstance(observation, list | tuple) or len(observation) != len(self.members):
            return value_text(observation, self.labels)
        return _joined([render(member) for render, member in zip(self.members, observation, strict=True)], self.labels)


@dataclass(frozen=True)
class OneOfText:
    """Renders what is of one of several spaces."""

    members: tuple[TextRenderer, ...]

    def __call__(self, observation: Any) -> str:
        """Return the choice and its value."""
        if not isinstance(observation, list | tuple) or len(observation) != 2:
            return value_text(observation)
        choice, value = observation
        if not isinstance(choice, int | np.integer) or not 0 <= choice < len(self.members):
            return value_text(observation)
        return _under(f"choice {choice}", self.members[choice](value))


_AMBIGUOUS = re.compile(r'\A\Z|\A\s|\s\Z|[,;:\[\]{}"\n\r]')
"""What makes a text inside brackets look like several things, or like none."""


def value_text(value: Any, labels: Sequence[str] = (), *, is_inside: bool = False, depth: int = 0) -> str:
    """Return any observation as text, by what it is.

    Args:
        value: The observation.
        labels: A label for each of its members.
        is_inside: Whether it stands inside brackets, where texts are quoted that could be read as something else.
        depth: Levels of data that it is inside of; what is more than `DEEPEST` levels deep is left out.
    """
    if depth > DEEPEST:
        return "..."
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) if is_inside and _AMBIGUOUS.search(value) else value
    if isinstance(value, np.ndarray):
        return _array_text(value, labels)
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}"
    if isinstance(value, Mapping):
        return "\n".join([_under(key, value_text(member, is_inside=is_inside, depth=depth + 1)) for key, member in value.items()])
    if isinstance(value, GraphInstance):
        return _graph_text(value)
    if isinstance(value, list | tuple):
        is_inside = is_inside or not _fits(labels, value)
        return _joined([value_text(member, is_inside=is_inside, depth=depth + 1) for member in value], labels)
    return str(value)


def _array_text(array: NDArray[Any], labels: Sequence[str]) -> str:
    """Return a vector in brackets or labelled, a table row by row, and what has more axes table by table."""
    if array.ndim == 0:
        return value_text(array.item())
    if array.ndim == 1:
        return value_text(array.tolist(), labels)
    if array.ndim == 2:
        return "\n".join([" ".join([value_text(item) for item in row]) for row in array.tolist()])
    return "\n\n".join([_array_text(table, ()) for table in array])


def _graph_text(graph: GraphInstance) -> str:
    """Return the nodes of a graph by number, and its edges as links between them."""
    nodes = [f"node {index}: {_inline(value_text(node))}" for index, node in enumerate(graph.nodes)]
    if graph.edges is None or graph.edge_links is None:
        return "\n".join(nodes)
    links = zip(graph.edge_links.tolist(), graph.edges, strict=True)
    return "\n".join([*nodes, *[f"edge {link[0]} -> {link[1]}: {_inline(value_text(edge))}" for link, edge in links]])


def _joined(texts: list[str], labels: Sequence[str]) -> str:
    if _fits(labels, texts):
        return "\n".join([_under(label, text) for label, text in zip(labels, texts, strict=True)])
    return "[" + ", ".join([_inline(text) for text in texts]) + "]"


def _fits(labels: Sequence[str], members: Sequence[Any]) -> bool:
    return len(labels) == len(members) > 0


def _under(key: Any, text: str) -> str:
    """Return text after its key: on the same line, or indented below it if it has several."""
    return f"{key}:\n  " + text.replace("\n", "\n  ") if "\n" in text else f"{key}: {text}"


def _inline(text: str) -> str:
    """Return text in one line."""
    return "{" + text.replace("\n", "; ") + "}" if "\n" in text else text
