"""Random numbers of a table: what TextArena's modules draw from them, and that none of them draws from elsewhere."""

from __future__ import annotations

import copy
import pickle
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from vfgym.wrappers.textarena.table_random import NUMPY, RANDOM, RandomNumbers


def seeded(seed: int) -> RandomNumbers:
    numbers = RandomNumbers()
    numbers.seed(seed)
    return numbers


@pytest.fixture(autouse=True)
def _process_is_left_alone() -> Iterator[None]:
    before = random.getstate(), np.random.get_state()[1].tolist()
    yield
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before


def test_inside_a_table_its_numbers_are_drawn_and_outside_the_ones_of_the_process() -> None:
    drawn, own = seeded(4).run(lambda: [RANDOM.random(), RANDOM.choice("abc"), RANDOM.sample(range(9), 3)]), random.Random(4)
    assert drawn == [own.random(), own.choice("abc"), own.sample(range(9), 3)]
    state, states = random.getstate(), np.random.get_state()
    outside = [RANDOM.random(), NUMPY.random.rand()]
    random.setstate(state)
    np.random.set_state(states)
    assert outside == [random.random(), np.random.rand()]
    random.setstate(state)
    np.random.set_state(states)


def test_seeding_inside_a_table_seeds_the_table() -> None:
    numbers = RandomNumbers()
    numbers.run(lambda: RANDOM.seed(9))
    assert numbers.run(lambda: RANDOM.random()) == random.Random(9).random()


def test_numpy_follows_from_the_seed_and_leaves_python_alone() -> None:
    def drawn(numbers: RandomNumbers) -> list[float]:
        rng, array = NUMPY.random, NUMPY.array
        return numbers.run(  # type: ignore[no-any-return]
            lambda: [rng.rand(), rng.default_rng().random(), rng.default_rng(3).random(), float(array([1.5])[0])]
        )

    one, other = seeded(4), seeded(4)
    assert drawn(one) == drawn(other) != drawn(other)
    assert one.python.getstate() == random.Random(4).getstate()
    assert drawn(RandomNumbers()) != drawn(RandomNumbers())
    assert drawn(one)[2:] == [np.random.default_rng(3).random(), 1.5]


def test_a_generator_that_is_made_without_a_seed_follows_from_the_tables() -> None:
    def drawn(numbers: RandomNumbers) -> list[float]:
        return numbers.run(lambda: [RANDOM.Random().random(), RANDOM.Random(None).random(), RANDOM.Random(3).random()])  # type: ignore[no-any-return]

    one, other = seeded(4), seeded(4)
    first, second = drawn(one), drawn(one)
    assert [first, second] == [drawn(other), drawn(other)]
    assert len({*first[:2], *second[:2]}) == 4
    assert first[2] == second[2] == random.Random(3).random() == RANDOM.Random(3).random()
    assert one.python.getstate() == random.Random(4).getstate()
    assert RANDOM.Random().random() != RANDOM.Random().random()


def test_each_thread_plays_at_its_own_table() -> None:
    both_are_inside = threading.Barrier(2, timeout=10)

    def draw() -> float:
        both_are_inside.wait()
        drawn = RANDOM.random()
        both_are_inside.wait()
        return drawn  # type: ignore[no-any-return]

    with ThreadPoolExecutor(2) as threads:
        drawn = [*threads.map(lambda seed: seeded(seed).run(draw), range(2))]
    assert drawn == [random.Random(seed).random() for seed in range(2)]


def test_a_table_inside_a_table() -> None:
    outer, inner = seeded(1), seeded(2)
    drawn = outer.run(lambda: [inner.run(lambda: RANDOM.random()), RANDOM.random()])
    assert drawn == [random.Random(2).random(), random.Random(1).random()]


def test_copies_draw_the_same_numbers_each_by_itself() -> None:
    numbers = seeded(3)
    copies = [copy.deepcopy(numbers), pickle.loads(pickle.dumps(numbers))]
    assert [one.run(lambda: RANDOM.random()) for one in (numbers, *copies)] == [random.Random(3).random()] * 3


def test_an_exception_leaves_the_table() -> None:
    state = random.getstate()
    with pytest.raises(ZeroDivisionError):
        seeded(1).run(lambda: 1 / 0)
    drawn = RANDOM.random()
    random.setstate(state)
    assert drawn == random.random()
    random.setstate(state)


def test_a_seed_starts_pythons_and_numpys_numbers_anew() -> None:
    def drawn(numbers: RandomNumbers) -> list[float]:
        return numbers.run(lambda: [RANDOM.random(), NUMPY.random.rand()])  # type: ignore[no-any-return]

    numbers = seeded(4)
    first = drawn(numbers)
    assert drawn(numbers) != first
    for start in (numbers.seed, numbers.reseed):
        start(4)
        assert drawn(numbers) == first
        start(5)
        assert not {*drawn(numbers)} & {*first}


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda numbers: pickle.loads(pickle.dumps(numbers))], ids=["deepcopy", "pickle"])
@pytest.mark.parametrize("is_begun", [False, True])
def test_a_copy_goes_on_with_numpys_numbers_alone(duplicate: Any, is_begun: bool) -> None:
    """Whether or not some were drawn before, and whoever draws first."""
    numbers, twin = seeded(3), seeded(3)
    for each in (numbers, twin) if is_begun else ():
        each.run(lambda: [NUMPY.random.rand(), RANDOM.random()])
    copied = duplicate(numbers)
    expected = [twin.run(lambda: [NUMPY.random.rand(), RANDOM.random()]) for _ in range(2)]
    for each in (copied, numbers):
        assert [each.run(lambda: [NUMPY.random.rand(), RANDOM.random()]) for _ in range(2)] == expected


def test_names_that_a_generator_lacks_are_those_of_the_modules() -> None:
    def named() -> list[Any]:
        return [RANDOM.SystemRandom, NUMPY.random.Generator, NUMPY.random.SeedSequence, NUMPY.ndarray]

    assert named() == seeded(1).run(named) == [random.SystemRandom, np.random.Generator, np.random.SeedSequence, np.ndarray]
    assert pickle.loads(pickle.dumps(RANDOM)) is RANDOM
    assert copy.deepcopy(RANDOM) is RANDOM
    for make in (lambda: RANDOM.no_such_name, lambda: NUMPY.random.no_such_name, lambda: NUMPY.no_such_name):
        with pytest.raises(AttributeError):
            make()
    assert NUMPY.random.default_rng(0).random() == seeded(1).run(lambda: NUMPY.random.default_rng(0).random())
    assert RANDOM.Random(0).random() == seeded(1).run(lambda: RANDOM.Random(0).random()) == random.Random(0).random()
