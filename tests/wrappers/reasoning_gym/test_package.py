"""reasoning-gym in somebody else's process: it prints nothing, runs no answer, and leaves the random numbers alone."""

from __future__ import annotations

import importlib
import random
from typing import Any

import numpy as np
import pytest

from tests.wrappers.reasoning_gym.making import items_of, score, small
from vfgym.wrappers.reasoning_gym.env import ReasoningGymEnv
from vfgym.wrappers.reasoning_gym.package import borrow_random_numbers, reasoning_gym

pytest.importorskip("reasoning_gym", reason="needs the extra reasoning-gym")


def numbers_of_the_process() -> tuple[Any, ...]:
    kind, keys, *rest = np.random.get_state()
    return random.getstate(), kind, keys.tolist(), *rest  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", [0, 5, 2**32 + 5])
def test_random_numbers_are_borrowed_and_put_back(seed: int) -> None:
    """Those of Python and of NumPy, whatever is raised meanwhile."""
    before = numbers_of_the_process()
    drawn = []

    def draw_and_fail() -> None:
        with borrow_random_numbers(seed):
            drawn.append((random.random(), np.random.rand()))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        draw_and_fail()
    assert drawn == [(random.Random(seed).random(), np.random.RandomState(seed % 2**32).rand())]
    assert numbers_of_the_process() == before


@pytest.mark.parametrize("name", ["list_functions", "pool_matrix"])
def test_the_random_numbers_of_the_process_are_left_alone(name: str) -> None:
    """Those of list_functions come from Python's global generator, and pool_matrix seeds NumPy's."""
    before = numbers_of_the_process()
    env = small(name)
    env.reset(seed=0)
    env.step("1")
    assert numbers_of_the_process() == before


@pytest.mark.parametrize(("name", "size"), [("list_functions", 100), ("codeio", 100)])
def test_the_random_numbers_of_the_process_do_not_matter(name: str, size: int) -> None:
    """Some items of list_functions are made with Python's, some programs of codeio draw from NumPy's."""
    questions = []
    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)
        items = items_of(name, size)
        questions.append([items.entry(index)["question"] for index in range(size)])
    assert questions[0] == questions[1]


@pytest.mark.parametrize(("name", "size"), [("bf", 5), ("codeio", 100), ("tower_of_hanoi", 5)])
def test_nothing_is_printed(name: str, size: int, capfd: pytest.CaptureFixture[str]) -> None:
    """The compiler behind bf prints its progress, some programs of codeio print, and so does what checks moves of discs."""
    items = items_of(name, size, seed=7)
    for index in range(size):
        items.entry(index)
    assert score(items, "Move disk 1 from Peg 9 to Peg 8") < 0.1
    for module in ("code.codeio", "code.contrib.bfit.Compiler.Optimizer", "cognition.rectangle_count", "games.tower_of_hanoi"):
        vars(importlib.import_module(f"reasoning_gym.{module}"))["print"]("loud")
    assert capfd.readouterr().out == ""


CODE = ("print(1)", "print(1)!", "[print(1)]", "(lambda: print(1))()", "__import__('builtins').print(1)")


@pytest.mark.parametrize("name", ["binary_matrix", "n_queens", "spiral_matrix", "string_insertion"])
def test_scorers_that_evaluate_answers_take_literals_only(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Evaluated, the last texts would be the scorer's own variables."""
    items = items_of(name)
    assert max(score(items, code) for code in CODE) < 0.1
    assert [score(items, text) for text in ("oracle_answer", "valid_solutions[0]", "entry['answer']")] == [0.0] * 3
    assert capfd.readouterr().out == ""


def test_moves_that_name_a_layer_are_written_out() -> None:
    expand = reasoning_gym().factory.DATASETS["rubiks_cube"][0].expand_moves
    assert expand(None, "R2 2R 3Fw' U'") == "R R 2R 3Fw' U'"


def test_a_number_sequence_ends_with_its_first_large_term() -> None:
    """Items are the same as if all terms had been computed, which takes minutes and more memory than there is at higher levels."""
    from reasoning_gym.cognition.number_sequences import PatternRule

    items = items_of("number_sequence", 30)
    questions = [items.entry(index)["question"] for index in range(30)]
    stopping = PatternRule.apply
    PatternRule.apply = stopping.__wrapped__
    try:
        assert [items.dataset()[index]["question"] for index in range(30)] == questions
    finally:
        PatternRule.apply = stopping
    hardest = ReasoningGymEnv("number_sequence", seed=7, curriculum={"level": 3})
    assert len(hardest.tasks.rows[16]["question"]) < 200
