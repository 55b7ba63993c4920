"""`reseed` reaches every generator that an object holds, and none that it does not."""

from __future__ import annotations

import collections
import copy
import functools
import pickle
import random
from typing import Any

import numpy as np
import pytest
from gymnasium.utils import seeding

from vfgym.copying import deep_copy, new_memo
from vfgym.reseeding import _KINDS, OwnDice, SeededNumbers, find_generators, reseed


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


class Meta(type):
    """A type of types."""


class Classy(metaclass=Meta):
    generator = random.Random(1)


def holders(seed: int) -> list[Any]:
    """Return things that draw random numbers, each in another way and place."""
    numpy, python, legacy = np.random.default_rng(seed), random.Random(seed), np.random.RandomState(seed)
    return [
        [numpy.bit_generator],
        Dice(python).roll,
        {"deep": [(1, {"er": collections.deque([Dice(legacy)])})]},
        functools.partial(Dice.roll, Dice(np.random.Generator(np.random.MT19937(seed)))),
        Promised(seed),
    ]


def drawn(held: list[Any]) -> list[float]:
    (bits,), python, deep, partial, promised = held
    return [float(np.random.Generator(bits).random()), python(), deep["deep"][0][1]["er"][0].roll(), partial(), promised.roll()]


def test_every_generator_begins_anew_and_alike_under_one_seed() -> None:
    held = [holders(1) for _ in range(5)]
    for each, seed in zip(held[1:], (5, 5, 6, 0), strict=True):
        reseed(each, seed)
    before, after, again, *others = map(drawn, held)
    assert after == again
    numbers = [*after, *others[0], *others[1]]
    assert len({*numbers, *before}) == len(numbers) + len(set(before))


def test_a_generator_that_is_met_twice_begins_anew_once() -> None:
    """Also in things that hold themselves, and beside its own bit generator."""
    numpy, python = np.random.default_rng(1), random.Random(1)
    ring: list[Any] = [numpy, python, {"dice": Dice(python)}]
    ring.append(ring)
    found = find_generators([ring], ())
    assert len(found) == 2
    assert numpy in found
    assert python in found
    assert find_generators([[numpy], [[numpy.bit_generator]]], ()) == [numpy]
    assert find_generators([ring, [Dice(numpy)]], {id(ring)}) == [numpy]


def test_what_is_spawned_begins_anew_too() -> None:
    rng, other = np.random.default_rng(1), np.random.default_rng(1)
    reseed([rng], 5)
    assert rng.spawn(1)[0].random() != other.spawn(1)[0].random()


def test_the_numbers_of_the_process_and_what_is_shared_are_left_alone() -> None:
    shared, of_a_class = np.random.default_rng(3), Classy.generator.getstate()
    before = random.getstate(), np.random.get_state()[1].tolist(), shared.bit_generator.state  # type: ignore[index, union-attr]
    reseed([random.random, random, np.random, test_what_is_spawned_begins_anew_too, {"a": Dice(shared)}, Classy], 5, {id(shared)})
    assert (random.getstate(), np.random.get_state()[1].tolist(), shared.bit_generator.state) == before  # type: ignore[index, union-attr]
    assert Classy.generator.getstate() == of_a_class


def test_a_players_numbers_begin_at_the_seed_whenever_they_are_asked_for() -> None:
    numbers = SeededNumbers(7)
    assert (numbers.seed, numbers.generator.random()) == (7, seeding.np_random(7)[0].random())
    assert numbers.generator is numbers.generator
    assert SeededNumbers(0).generator.random() == seeding.np_random(0)[0].random() != SeededNumbers().generator.random()
    anywhere = SeededNumbers()
    assert anywhere.generator.random() == np.random.default_rng(anywhere.seed).random()


def test_numbers_of_a_generator_have_no_known_seed() -> None:
    generator = np.random.default_rng(3)
    numbers = SeededNumbers.drawn_from(generator)
    assert numbers.seed == -1
    assert numbers.generator is generator


@pytest.mark.parametrize("is_drawn_from_before", [False, True])
def test_a_players_numbers_begin_anew_also_where_none_was_drawn(is_drawn_from_before: bool) -> None:
    made = [SeededNumbers(7) for _ in range(2)]
    if is_drawn_from_before:
        held = [numbers.generator for numbers in made]
        assert held[0].random() == held[1].random()
    for numbers in made:
        reseed([numbers], 5)
        assert numbers.seed == -1
    first, second = (numbers.generator.random() for numbers in made)
    assert first == second != np.random.default_rng(7).random()
    made[0].reseed(0)
    assert (made[0].seed, made[0].generator.random()) == (-1, np.random.default_rng(0).random())
    if is_drawn_from_before:
        assert held[0] is made[0].generator


@pytest.mark.parametrize("is_drawn_from", [False, True])
def test_a_copy_draws_the_same_numbers_on_its_own(is_drawn_from: bool) -> None:
    numbers = SeededNumbers(7)
    if is_drawn_from:
        numbers.generator.random()
    copies = [copy.deepcopy(numbers), deep_copy(numbers, new_memo()), pickle.loads(pickle.dumps(numbers))]
    assert len({each.generator.random() for each in [numbers, *copies]}) == 1


def test_no_more_classes_are_known_than_a_bound_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Environments may make classes without end, and none is kept for ever."""
    monkeypatch.setattr("vfgym.reseeding._MOST_KNOWN", 3)
    objects = [type(f"Made{number}", (), {})() for number in range(20)]
    for each in objects:
        each.generator = random.Random(1)
        assert find_generators([each], set()) == [each.generator]
    assert len(_KINDS) <= 3
