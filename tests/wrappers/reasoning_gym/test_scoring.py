"""Scores of answers: the dataset's own, without what is wrong with some scorers."""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import Any

import pytest

from tests.wrappers.reasoning_gym.making import SYMBOLIC, items_of, original_score, score
from vfgym.data import reasoning_gym_datasets
from vfgym.errors import WorkerTimeout
from vfgym.wrappers.reasoning_gym import scoring
from vfgym.wrappers.reasoning_gym.package import reasoning_gym
from vfgym.wrappers.reasoning_gym.scoring import is_symbolic, score_later

pytest.importorskip("reasoning_gym", reason="needs the extra reasoning-gym")

MINUS = "\u2212"


class Given:
    """A dataset whose scorer returns, or raises, what it is given; it keeps the answers that reach it."""

    def __init__(self, result: Any = 0.5) -> None:
        self.result, self.seen = result, []

    def score_answer(self, answer: str | None, entry: Any) -> Any:
        self.seen.append(answer)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def scores(name: str, answers: list[str], **entry: Any) -> list[float]:
    """Return what answers to an entry are worth; the scorer behind it gives 0.5."""
    return [scoring.score(Given(), name, answer, {"metadata": {}, **entry}) for answer in answers]


@pytest.mark.parametrize(
    ("given", "expected"), [(1, 1.0), (0, 0.0), (float("nan"), 0.0), (float("inf"), 0.0), (KeyError("x"), 0.0), (None, 0.0)]
)
def test_a_scorer_that_fails_or_gives_something_else_than_a_number_gives_nothing(
    given: Any, expected: float, caplog: pytest.LogCaptureFixture
) -> None:
    """Unreadable answers are ordinary: nobody is alarmed."""
    with caplog.at_level(logging.INFO):
        value = scoring.score(Given(given), "any", "x", {"answer": "x"})
    assert (value, type(value), caplog.records) == (expected, float, [])


def test_game_of_life_halting() -> None:
    """The wrong word is wrong, although the dataset's scorer says 1.0."""
    for right, wrong in (("True", "False"), ("False", "True")):
        assert scores("game_of_life_halting", [right, right.lower(), wrong, "zzz", ""], answer=right) == [1.0, 1.0, 0.0, 0.0, 0.0]


def test_coin_flip() -> None:
    """A small probability is not zero; decimals, fractions and a few digits are understood."""
    right = ["0.00012207", "1/8192", "1.221e-4", "0.00012207031"]
    wrong = ["0", "0.0", "0.0002", "1", "-1", "1/0", "nan", "inf", "1e999999999", "half", ""]
    assert scores("coin_flip", right, answer="0.0001220703125") == [1.0] * 4
    assert scores("coin_flip", wrong, answer="0.0001220703125") == [0.0] * len(wrong)
    assert scores("coin_flip", ["1", "0.9995"], answer="0.9995") == [0.0, 1.0]


def test_gsm_symbolic() -> None:
    """The wrong sign is wrong, although the dataset's scorer says 1.0, and worth what any wrong number is."""
    answers = ["7", "It is $7.", "-7", "It is -7.", "7/7", "7,000", "zzz", "7.0", "x7"]
    assert scores("gsm_symbolic", answers, answer="7") == [1.0, 1.0, 0.01, 0.01, 0.01, 0.01, 0.0, 1.0, 0.0]
    answers = ["1,000", "$1,000.00", "2000/2", "1000 of 2000", "1,00", "1.000", "1000th"]
    assert scores("gsm_symbolic", answers, answer="1000") == [1.0] * 4 + [0.01, 0.01, 0.0]
    for name in ("gsm_symbolic", "coin_flip", "game_of_life_halting", "spell_backward"):
        assert scoring.score(Given(), name, None, {"answer": "1"}) == 0.0
    answers = ["-1", f"{MINUS}1", "-1.0", "$-1$", "-1 years", "He was -1 years old.", "1", "-2", "-1/2"]
    assert scores("gsm_symbolic", answers, answer="-1") == [1.0] * 6 + [0.01] * 3


def test_spell_backward() -> None:
    """A right answer with more after it is worth 0.8, whatever the fractions add up to."""
    assert scores("spell_backward", ["olleh", "OLLEH", "olleh x", "olle", "?", "?lleh", ""], answer="olleh") == pytest.approx(
        [1.0, 1.0, 0.8, 0.8, 0.0, 0.8, 0.0]
    )


def test_puzzle24_wants_each_number_of_the_puzzle_once() -> None:
    answers = ["6*4*1*1", "1 * 4 * (6 * 1)", "6*4*1", "6*4*1*1*1", "8*3*1*1", "64*1*1", "24"]
    assert scores("puzzle24", answers, metadata={"numbers": [1, 4, 1, 6]}, answer="") == [0.5] * 7  # a scorer that takes anything
    given = Given()
    for answer in answers:
        scoring.score(given, "puzzle24", answer, {"metadata": {"numbers": [1, 4, 1, 6]}, "answer": ""})
    assert given.seen == [*answers[:2], *[None] * 5]


@pytest.mark.parametrize(
    ("name", "admitted", "refused"),
    [
        ("complex_arithmetic", ["1 + 2i", ""], ["nan", "NaN", "nan + nani", "1 + nani"]),
        ("pool_matrix", ["1 2\n3 4", "[]", "# x\n1"], ["", " \n", "# 1 2", " # x\n\t"]),
        ("rubiks_cube", ["F2", "R 2U"], ["F+999999999", "R10"]),
        ("rush_hour", ["A+1 B-2"], ["A+999999999", "A-10"]),
    ],
)
def test_what_an_answer_must_be_to_reach_its_scorer(name: str, admitted: list[str], refused: list[str]) -> None:
    """Another one is scored as none: not-a-number is right to one scorer, and two would write out a thousand million moves."""
    given = Given()
    for answer in admitted + refused:
        assert scoring.score(given, name, answer, {"answer": "", "metadata": {}}) == 0.5
    assert given.seen == [*admitted, *[None] * len(refused)]
    assert is_symbolic(given) is False
    later = Given()
    assert [score_later(later, name, answer, {"answer": "", "metadata": {}}) for answer in admitted + refused] == [0.5] * len(given.seen)
    assert later.seen == given.seen


def test_nan_and_an_unsolved_integral_are_no_answers() -> None:
    """The scorers themselves take them; the derivative of the integral is the integrand, and rows have it as their answer."""
    items = items_of("complex_arithmetic")
    assert (original_score(items, "nan"), score(items, "nan")) == (1.0, 0.0)
    items = items_of("intermediate_integration", 200)
    index = next(index for index in range(200) if "Integral(" in items.entry(index)["answer"])
    answer = items.entry(index)["answer"]
    assert (original_score(items, answer, index), score(items, answer, index)) == (1.0, 0.0)


@pytest.mark.parametrize("dataset", ["chain_sum", "rotten_oranges"])
def test_a_typographic_minus_sign_is_a_minus_sign(dataset: str) -> None:
    items = items_of(dataset, 30)
    index = next(index for index in range(30) if str(items.entry(index)["answer"]).startswith("-"))
    right = items.entry(index)["answer"]
    assert [score(items, answer, index) for answer in (right, right.replace("-", MINUS))] == [1.0, 1.0]
    assert score(items, right.removeprefix("-"), index) < 1.0
    given = Given()
    scoring.score(given, "any", f"{MINUS}1", {"answer": f"{MINUS}1"})
    assert given.seen == [f"{MINUS}1"], "where it belongs to the right answer, it stays"
    score_later(given, "any", f"{MINUS}1 {MINUS}2", {"answer": -1})
    assert given.seen[1:] == ["-1 -2"]


def test_which_scorers_are_symbolic() -> None:
    """It follows from their code, so those of a newer reasoning-gym, or of a user's dataset, are seen too."""
    names = sorted(reasoning_gym_datasets().keys() - {"composite"})
    classes = {name: reasoning_gym().factory.DATASETS[name][0] for name in names}
    assert tuple(name for name, kind in classes.items() if is_symbolic(kind.__new__(kind))) == SYMBOLIC


def test_a_composite_is_scored_by_the_dataset_of_the_item() -> None:
    part, other, items = Given(0.25), Given(0.75), Given(0.0)
    items.datasets = {"one": part, "other": other}  # type: ignore[attr-defined]
    entry = {"answer": ""}
    assert [scoring.score(items, name, "x", entry) for name in ("one", "other", "elsewhere")] == [0.25, 0.75, 0.0]
    assert [score_later(items, name, "x", entry) for name in ("one", "other", "elsewhere")] == [0.25, 0.75, 0.0]


@pytest.mark.parametrize("error", [WorkerTimeout("too long"), MemoryError()])
def test_what_no_worker_can_evaluate_scores_as_no_answer(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """In both ways to ask; another error of a worker is an error."""
    items = items_of("simple_integration")
    raised: list[Exception] = [error]

    async def call(*args: Any, **limits: Any) -> float:
        assert limits == scoring._LIMITS
        raise raised[0]

    monkeypatch.setattr(scoring._workers, "call", call)
    monkeypatch.setattr(scoring._workers, "call_sync", lambda *args, **limits: asyncio.run(call(*args, **limits)))
    entry = items.entry(0)
    later: Any = score_later(items.dataset(), "simple_integration", "x", entry)
    assert inspect.isawaitable(later)
    with asyncio.Runner() as runner:
        assert runner.run(later) == score(items, "x") == original_score(items, None)
    raised[0] = RuntimeError("the pool is gone")
    with pytest.raises(RuntimeError, match="the pool is gone"):
        score(items, "x")


def test_where_no_worker_is_needed_nothing_is_waited_for() -> None:
    plain, symbolic = items_of("leg_counting"), items_of("countdown")
    assert plain.score_later(plain.entry(0)["answer"], 0) == 1.0
    assert symbolic.score_later(None, 0) == original_score(symbolic, None)
