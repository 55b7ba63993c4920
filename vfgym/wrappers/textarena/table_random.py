"""Random numbers that belong to one table, although TextArena's games draw theirs from the generators of the process.

The modules of TextArena are given `RANDOM` for ``random`` and `NUMPY` for ``numpy`` (see `package`). Inside `RandomNumbers.run` they
forward to the generators of that table, elsewhere to the real modules. Two tables that are played by turns, or on several threads, do
not disturb each other, and neither disturbs the process. Saving and restoring the global generators around each call would take 20 to
40 µs, and fail when two threads do so. A ``with`` block around each call would take 0.5 µs, `RandomNumbers.run` takes 0.1 µs.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextvars import Context, ContextVar
from typing import Any

import numpy as np

from vfgym.copying import deep_copy
from vfgym.reseeding import OwnDice


class _Process:
    """The random numbers of the process."""

    python = random
    numpy = np.random


class RandomNumbers(OwnDice):
    """The random numbers of one table. Games draw from them inside `run`.

    Python's generator is seeded as TextArena seeds the process's, so the same seed gives the same game as there. TextArena never seeds
    NumPy's, from which two of its games draw; here the seed decides those too.
    """

    run: Callable[..., Any]
    """``run(function, *args, **kwargs)`` calls a function that draws from these numbers, and returns what it returns.

    The function sees no other context variables than those of the table (``np.errstate`` among them), and one table cannot be run inside
    itself, nor on two threads at once.
    """

    def __init__(self) -> None:
        self.python = random.Random()
        self._seed: int | None = None
        self._numpy: np.random.RandomState | None = None
        self._open_context()

    def _open_context(self) -> None:
        # A context of its own, in which nothing else is set: to run in it is to switch a pointer.
        context = Context()
        context.run(_playing.set, self)
        self.run = context.run

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "run"}  # contexts cannot be copied

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open_context()

    def __deepcopy__(self, memo: dict[int, Any]) -> RandomNumbers:
        memo[id(self)] = made = RandomNumbers.__new__(RandomNumbers)
        memo.setdefault(id(memo), [])
        made.python, made._seed, made._numpy = deep_copy(self.python, memo), self._seed, deep_copy(self._numpy, memo)
        made._open_context()
        return made

    def reseed(self, seed: int) -> None:
        """Start at a seed, NumPy's numbers too, which nobody may have asked for yet."""
        self.seed(seed)

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

    def next_seed(self) -> int:
        """Return a seed for a generator that a game makes without one. Python's numbers, which decide the game, are left alone."""
        return int(self.numpy.randint(2**32, dtype=np.uint64))


_playing: ContextVar[RandomNumbers | type[_Process]] = ContextVar("_playing", default=_Process)
"""Whose random numbers the games draw from."""


class _Random:
    """Stands in for the module ``random``."""

    def __getattribute__(self, name: str) -> Any:
        # Games draw often, and `__getattr__` is called only after a search has failed, which takes longer than this.
        if name == "Random":
            return _OwnGenerator
        try:
            return getattr(_playing.get().python, name) if name[:2] != "__" else object.__getattribute__(self, name)
        except AttributeError:
            return getattr(random, name)

    def __reduce__(self) -> str:
        return "RANDOM"


class _OwnGenerator(random.Random):
    """``random.Random`` for games: made without a seed, it takes one that follows from the table's numbers."""

    def __init__(self, seed: Any = None) -> None:
        numbers = _playing.get()
        super().__init__(numbers.next_seed() if seed is None and isinstance(numbers, RandomNumbers) else seed)


class _NumpyRandom:
    """Stands in for the module ``numpy.random``."""

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(_playing.get().numpy, name)
        except AttributeError:
            return getattr(np.random, name)

    @staticmethod
    def default_rng(seed: Any = None) -> np.random.Generator:
        """Make a generator; without a seed, one that follows from the table's numbers."""
        numbers = _playing.get()
        return np.random.default_rng(numbers.next_seed() if seed is None and isinstance(numbers, RandomNumbers) else seed)


class _Numpy:
    """Stands in for the module ``numpy``."""

    random = _NumpyRandom()

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


RANDOM = _Random()
NUMPY = _Numpy()
