"""Random numbers that belong to one table, although TextArena's games draw theirs from the generators of the process.

The modules of TextArena are given `RANDOM` for ``random`` and `NUMPY` for ``numpy`` (see `package`). Inside ``with numbers:`` they
forward to the generators of that table, elsewhere to the real modules. Two tables that are played by turns, or on several threads, do
not disturb each other, and neither disturbs the process. Saving and restoring the global generators around each call would take 20 to
40 µs, and fail when two threads do so.
"""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np


class _Playing(threading.local):
    """Whose random numbers the games on this thread draw from."""

    numbers: RandomNumbers | None = None


_playing = _Playing()


class RandomNumbers:
    """The random numbers of one table. Games draw from them inside ``with numbers:``.

    Python's generator is seeded as TextArena seeds the process's, so the same seed gives the same game as there. TextArena never seeds
    NumPy's, from which two of its games draw; here the seed decides those too.
    """

    def __init__(self) -> None:
        """Start anywhere."""
        self.python = random.Random()
        self._seed: int | None = None
        self._numpy: np.random.RandomState | None = None
        self._outer: RandomNumbers | None = None

    def seed(self, seed: int) -> None:
        """Start at a seed."""
        self.python.seed(seed)
        self._seed = seed
        self._numpy = None

    @property
    def numpy(self) -> np.random.RandomState:
        """NumPy's generator. It is made when it is first asked for, since few games do."""
        if self._numpy is None:
            self._numpy = np.random.RandomState(random.Random(self._seed).getrandbits(32))
        return self._numpy

    def __enter__(self) -> None:
        self._outer = _playing.numbers
        _playing.numbers = self

    def __exit__(self, *error: object) -> None:
        _playing.numbers, self._outer = self._outer, None


class _Random:
    """Stands in for the module ``random``."""

    def __getattr__(self, name: str) -> Any:
        numbers = _playing.numbers
        if numbers is not None:
            try:  # one look-up where games draw, which they do often
                return getattr(numbers.python, name)
            except AttributeError:
                pass
        return getattr(random, name)


class _NumpyRandom:
    """Stands in for the module ``numpy.random``."""

    def __getattr__(self, name: str) -> Any:
        numbers = _playing.numbers
        drawn_from = np.random if numbers is None or not hasattr(numbers.numpy, name) else numbers.numpy
        return getattr(drawn_from, name)

    @staticmethod
    def default_rng(seed: Any = None) -> np.random.Generator:
        """Make a generator; without a seed, one that follows from the table's numbers."""
        if seed is None and _playing.numbers is not None:
            seed = _playing.numbers.numpy.randint(2**32, dtype=np.uint64)
        return np.random.default_rng(seed)


class _Numpy:
    """Stands in for the module ``numpy``."""

    random = _NumpyRandom()

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


RANDOM = _Random()
NUMPY = _Numpy()
