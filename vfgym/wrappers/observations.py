"""Observations of a game as text that a model reads."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_COLOURED = re.compile(r"\x1b\[([\d;]+)m(.*?)\x1b\[0m", re.DOTALL)
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def without_colours(drawing: str) -> str:
    r"""Return a terminal drawing as plain text: what is coloured stands in brackets, with its colour if there are several.

    >>> without_colours("S\x1b[41mF\x1b[0mFH")
    'S[F]FH'
    """
    colours = {match[1] for match in _COLOURED.finditer(drawing)}

    def bracketed(match: re.Match[str]) -> str:
        codes = [int(code) % 10 for code in match[1].split(";") if len(code) == 2]
        return f"[{match[2]}:{_COLOURS[codes[0] % 8]}]" if len(colours) > 1 and codes else f"[{match[2]}]"

    return _COLOURED.sub(bracketed, drawing).strip("\n")


def observation_text(observation: Any, labels: Sequence[str] = ()) -> str:
    r"""Return an observation as text: numbers with their labels, one a line, where they are known.

    >>> observation_text((14, 10, 0), ("Player current sum", "Dealer showing card value", "Usable Ace"))
    'Player current sum: 14\nDealer showing card value: 10\nUsable Ace: 0'
    """
    if isinstance(observation, np.ndarray):
        if observation.ndim == 1 and observation.dtype.kind == "f" and len(labels) == observation.size:
            return _labelled_numbers(tuple(labels)) % tuple(observation.tolist())
        observation = observation.tolist()
    if isinstance(observation, Mapping):
        return "\n".join(f"{key}: {observation_text(value)}" for key, value in observation.items())
    if isinstance(observation, list | tuple):
        values = [f"{value:.6g}" if type(value) is float else observation_text(value) for value in observation]
        if len(labels) == len(values):
            return "\n".join([f"{label}: {value}" for label, value in zip(labels, values, strict=True)])
        return "[" + ", ".join(values) + "]"
    if isinstance(observation, float | np.floating):
        return f"{float(observation):.6g}"
    return str(observation)


@functools.lru_cache(maxsize=64)
def _labelled_numbers(labels: tuple[str, ...]) -> str:
    """Return the format of a vector of labelled numbers: games of one step a few microseconds are formatted at every step."""
    return "\n".join(f"{label.replace('%', '%%')}: %.6g" for label in labels)
