"""Giving everything in an episode other random numbers, wherever it keeps its generators."""

from __future__ import annotations

import gc
import random
from collections.abc import Collection
from enum import Enum
from types import ModuleType
from typing import Any, cast

import numpy as np

from vfgym.copying import ATOMIC
from vfgym.messages import Message


class OwnDice:
    """Something that knows better than `reseed` how its random numbers begin anew: what it will draw from is not there yet, say."""

    __slots__ = ()

    def reseed(self, seed: int) -> None:
        """Draw other random numbers from now on: those that follow from a seed."""
        raise NotImplementedError


class SeededNumbers(OwnDice):
    """A player's random numbers, which begin at a seed when the first of them is drawn.

    Many environments draw none (a wrapped game has its own), and a generator takes 30 µs to make and 1.5 KB.

    >>> SeededNumbers(7).generator.random() == np.random.default_rng(7).random()
    True
    """

    __slots__ = ("_generator", "_seed")

    def __init__(self, seed: int | None = None) -> None:
        """Take a seed, from 0; without one they begin anywhere."""
        self._seed = seed
        self._generator: np.random.Generator | None = None

    @classmethod
    def drawn_from(cls, generator: np.random.Generator) -> SeededNumbers:
        """Return the numbers that a generator draws."""
        numbers = cls(-1)
        numbers._generator = generator
        return numbers

    @property
    def generator(self) -> np.random.Generator:
        """What draws them."""
        if self._generator is None:
            self._generator = np.random.default_rng(self.seed)
        return self._generator

    @property
    def seed(self) -> int:
        """Where they began; -1 where that is not known, as Gymnasium has it."""
        if self._seed is None:
            self._seed = cast(int, np.random.SeedSequence().entropy)
        return self._seed

    def reseed(self, seed: int) -> None:
        """Go on with the numbers of another seed, also for whoever else holds the generator."""
        if self._generator is None:
            self._generator = np.random.default_rng(seed)
        else:
            _begin_anew(self._generator.bit_generator, np.random.SeedSequence(seed))
        self._seed = -1


def reseed(root: Any, seed: int, shared: Collection[int] = ()) -> None:
    """Let every generator that is reachable from an object begin anew.

    What `copy.deepcopy` does not copy (functions, classes, modules) is not looked into: its generators are not the object's own.

    Args:
        root: The object.
        seed: What all of them follow from.
        shared: Ids of objects that are not looked into.
    """
    for number, generator in enumerate(find_generators(root, shared)):
        sequence = np.random.SeedSequence([seed, number])
        if isinstance(generator, np.random.Generator):
            _begin_anew(generator.bit_generator, sequence)
        elif isinstance(generator, np.random.BitGenerator):
            _begin_anew(generator, sequence)
        elif isinstance(generator, np.random.RandomState):
            generator.seed(sequence.generate_state(624))
        elif isinstance(generator, OwnDice):
            generator.reseed(_as_integer(sequence))
        else:
            generator.seed(_as_integer(sequence))


def find_generators(root: Any, shared: Collection[int]) -> list[Any]:
    """Return all generators that are reachable from an object, in an order that is the same for equal objects."""
    met = set(shared)
    found: list[Any] = []
    level = [root]
    while level:
        # Whatever holds a generator is tracked; numbers, text, and most tuples of them are not.
        fresh = filter(gc.is_tracked, gc.get_referents(*level))
        level = []
        for value in fresh:
            kind = _KINDS.get(value.__class__) or _learn(value.__class__)
            if kind is _Kind.closed or id(value) in met:
                continue
            met.add(id(value))
            if kind is _Kind.open:
                level.append(value)
                continue
            found.append(value)
            if isinstance(value, np.random.Generator):
                met.add(id(value.bit_generator))
    return found


class _Kind(Enum):
    """What objects of a class are to whoever looks for generators."""

    open = "open"
    closed = "closed"
    generator = "generator"


_KINDS: dict[type, _Kind] = {}
_MOST_KNOWN = 4096


def _learn(cls: type) -> _Kind:
    """Learn what objects of a class are, and return it."""
    kind = _Kind.open
    if issubclass(cls, np.random.Generator | np.random.RandomState | np.random.BitGenerator | random.Random | OwnDice):
        kind = _Kind.generator
    elif cls in ATOMIC or issubclass(cls, type | ModuleType | Message):
        kind = _Kind.closed
    if len(_KINDS) >= _MOST_KNOWN:
        _KINDS.clear()
    _KINDS[cls] = kind
    return kind


def _begin_anew(bits: Any, sequence: np.random.SeedSequence) -> None:
    """Give a bit generator the state, and the seeds of what it spawns, that it would have if it were made of a sequence."""
    bits.__setstate__(type(bits)(sequence).__getstate__())


def _as_integer(sequence: np.random.SeedSequence) -> int:
    return int.from_bytes(sequence.generate_state(4).tobytes(), "little")
