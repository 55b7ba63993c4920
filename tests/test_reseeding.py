"""`reseed` reaches every generator that an object holds, and none that it does not."""

from __future__ import annotations

import collections
import functools
import random
from typing import Any

import numpy as np

from vfgym.reseeding import OwnDice, reseed


class Dice:
    __slots__ = ("rng",)

    def __init__(self, rng: Any) -> None:
        self.rng = rng

    def roll(self) -> float:
        return float(self.rng.random())


class Promised(OwnDice):
    """Will draw from a generator that is made when it is first asked for."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def reseed(self, seed: int) -> None:
        self.seed = seed

    def roll(self) -> float:
        return random.Random(self.seed).random()


def holders(seed: int) -> list[Any]:
    """Return things that draw random numbers, each in another way and place."""
    numpy, python, legacy = np.random.default_rng(seed), random.Random(seed), np.random.RandomState(seed)
    return [
        numpy.random,
        Dice(python).roll,
        {"deep": [(1, {"er": collections.deque([Dice(legacy)])})]},
        functools.partial(Dice.roll, Dice(np.random.Generator(np.random.MT19937(seed)))),
        Promised(seed),
    ]


def drawn(held: list[Any]) -> list[float]:
    numpy, python, deep, partial, promised = held
    return [float(numpy()), python(), deep["deep"][0][1]["er"][0].roll(), partial(), promised.roll()]


def test_every_generator_begins_anew_and_alike_under_one_seed() -> None:
    held = [holders(1) for _ in range(3)]
    held[0][0] = np.random.default_rng(1)
    for each in held:
        each[0] = Dice(np.random.default_rng(1)).roll
    reseed(held[1], 5)
    reseed(held[2], 5)
    before, after, again = map(drawn, held)
    assert after == again
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert len(set(after)) == len(after)


def test_what_is_spawned_begins_anew_too() -> None:
    rng, other = np.random.default_rng(1), np.random.default_rng(1)
    reseed([rng], 5)
    assert rng.spawn(1)[0].random() != other.spawn(1)[0].random()


def test_the_numbers_of_the_process_and_what_is_shared_are_left_alone() -> None:
    shared = np.random.default_rng(3)
    before = random.getstate(), np.random.get_state()[1].tolist(), shared.bit_generator.state  # type: ignore[index, union-attr]
    reseed([random.random, random, np.random, test_what_is_spawned_begins_anew_too, {"a": Dice(shared)}], 5, {id(shared)})
    assert (random.getstate(), np.random.get_state()[1].tolist(), shared.bit_generator.state) == before  # type: ignore[index, union-attr]
