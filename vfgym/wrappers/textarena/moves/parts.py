"""What the modules of moves are built from: the shapes of their functions, and a few ways to choose."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

Raw: TypeAlias = Any
"""A TextArena game without wrappers, after its ``reset``. (textarena is an optional dependency and has no types.)"""

Legal: TypeAlias = Callable[[Raw, int], list[str] | None]
"""What lists the legal moves of a player; None where (or while) they cannot be listed."""

Sampler: TypeAlias = Callable[[Raw, int, np.random.Generator], str]
"""What makes up a move where none are listed."""

T = TypeVar("T")

MOST_LISTED = 500
"""No more legal moves than these are listed, since the list is plain data of every step. More are the words of a dictionary (up to 14,000
in Wordle), the pairs of a large MemoryGame, or the bids for a hundred dice; chess has 218 at most, the largest Battleship 400."""

REMARKS = (
    "Let us think about this together.",
    "I am not sure yet what is best here.",
    "That sounds reasonable to me.",
    "Tell me more about what you would like.",
    "I would rather wait and see.",
    "We could both do well out of this.",
    "I see it in another way.",
    "Fair enough, go on.",
)
"""What is said where anything may be said. No digits and no brackets, so that no game takes it for a move."""


@functools.lru_cache(maxsize=64)
def numbers(start: int, stop: int) -> tuple[str, ...]:
    """Return the numbers of a range as moves. Games list theirs at every step, and to write one takes 0.05 µs."""
    return tuple(f"[{number}]" for number in range(start, stop))


def pick(rng: np.random.Generator, options: Sequence[T]) -> T:
    """Return one of the options, each with the same probability."""
    return options[int(rng.integers(len(options)))]


def remark(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """Say something that is not a move."""
    return pick(rng, REMARKS)
