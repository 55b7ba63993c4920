"""Rewards: within the declared range, more for a right answer than for a wrong one, nothing for nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from vfgym import Rubric, SingleTurnEnv
from vfgym.checks.comparison import Broken
from vfgym.checks.rewards import reward_promises
from vfgym.messages import content_text

ROWS = [{"question": f"{number} + 1?", "answer": str(number + 1)} for number in range(4)]
RANGE, RIGHT, NOTHING = (
    "pays within the range that it declares",
    "pays more for a right answer than for a wrong one",
    "pays nothing for silence, failure and garbage",
)


def said(completion: list[Any]) -> str:
    return content_text(completion[-1]["content"]) if completion else ""


def exact(completion: list[Any], answer: str) -> float:
    return float(said(completion) == answer)


def number(completion: list[Any]) -> float:
    return float(said(completion).isdigit())


def spoke(completion: list[Any]) -> float:
    return float(bool(completion))


def was_silent(completion: list[Any]) -> float:
    return float(not completion)


def failed(state: Any) -> float:
    return float(state["error"] is not None)


def sampled(completion: list[Any], answer: str) -> float:
    """Pay for what neither a silly answer nor the right one is."""
    is_text = bool(completion) and isinstance(completion[-1]["content"], str)
    return 2.0 * (is_text and said(completion) not in ("", answer) and "\x00" not in said(completion))


def calls(completion: list[Any], name: str) -> float:
    return float(sum(call.name == name for message in completion for call in message.get("tool_calls") or ()))


def nothing_said(completion: list[Any]) -> float:
    return float(any(message["content"] is None and not message.get("tool_calls") for message in completion))


def graded(answers: dict[str, float], otherwise: float = 0.0) -> Callable[..., float]:
    return lambda completion: answers.get(said(completion), otherwise)


def check(promise: str, rubric: Rubric, paid_for_nothing: float = 0.0, rows: Any = ROWS, **kwargs: Any) -> str:
    made = reward_promises(lambda: SingleTurnEnv(dataset=rows, rubric=rubric, **kwargs), paid_for_nothing)
    return dict(made)[promise]()


def test_an_exact_reward_keeps_all_promises() -> None:
    assert check(RANGE, Rubric(exact), failure_reward=0.0) == "14 episodes from 0 to inf"
    assert (check(RIGHT, Rubric(exact)), check(NOTHING, Rubric(exact))) == ("3 right answers", "8 episodes")


@pytest.mark.parametrize(
    ("func", "what"),
    [
        (was_silent, "that ended before any answer earned 1.0"),
        (failed, "in which the model failed earned 1.0"),
        (spoke, "of nothing but the answer '' earned 1.0"),
        (graded({"parts": 0.1}), "of nothing but the answer .*parts.* earned 0.1"),
        (graded({}, float("nan")), "earned nan"),
        (lambda completion: float("\x00" in said(completion)), "of nothing but the answer '.x00 .* earned 1.0"),
        (lambda completion: calls(completion, "no_such_tool"), r"of nothing but the answer calling no_such_tool\({}\) earned 1.0"),
        (lambda completion: calls(completion, "x"), r"of nothing but the answer calling x\({not json\), calling x\(\[1\]\) earned 2.0"),
        (nothing_said, "of nothing but the answer None earned 1.0"),
    ],
    ids=["silence", "failure", "an empty answer", "some garbage", "not a number", "signs", "a tool", "broken calls", "no content"],
)
def test_what_is_paid_for_nothing_is_found(func: Any, what: str) -> None:
    with pytest.raises(Broken, match=f"an episode {what}" if not what.startswith("earned") else what):
        check(NOTHING, Rubric(func))


def test_what_may_be_paid_for_nothing_is_the_authors_to_say() -> None:
    assert check(NOTHING, Rubric(spoke, weights=[0.5]), paid_for_nothing=0.5) == "8 episodes"
    with pytest.raises(Broken, match=r"earned 0.5, and should earn 0.4 at most"):
        check(NOTHING, Rubric(spoke, weights=[0.5]), paid_for_nothing=0.4)


@pytest.mark.parametrize(
    ("func", "says"),
    [
        (spoke, "the right answer '.' earned 1.0, and '' earned 1.0"),
        (lambda completion: 0.0, "the right answer '.' earned 0.0, and '' earned 0.0"),
        (graded({"I do not know.": 2.0}, 0.5), "'' earned 0.5"),
        (lambda completion, answer: float(said(completion) in (answer, "I do not know.")), "'I do not know.' earned 1.0"),
        (lambda completion, answer: float(said(completion) in (answer, "\N{PILE OF POO}")), "'\N{PILE OF POO}' earned 1.0"),
        (number, "the right answers to other tasks earn as much as those to the task itself: '.' instead of '.' earned 1.0"),
    ],
    ids=["anything is right", "nothing is right", "a wrong answer is better", "no answer", "a sign", "the task does not matter"],
)
def test_a_rubric_that_does_not_tell_right_from_wrong_is_found(func: Any, says: str) -> None:
    with pytest.raises(Broken, match=re.escape(says).replace("'\\.'", "'.'").replace("\\.", ".")):
        check(RIGHT, Rubric(func))


def test_answers_that_are_right_in_another_task_by_chance_are_no_fault() -> None:
    rows = [{"question": f"Is {number} even?", "answer": "yes" if number % 2 == 0 else "no"} for number in range(2)] * 2
    assert check(RIGHT, Rubric(exact), rows=rows) == "3 right answers"
    assert check(RIGHT, Rubric(exact), rows=ROWS[:1]) == "3 right answers", "there is only one task"


@pytest.mark.parametrize("promise", [RANGE, RIGHT, NOTHING])
def test_what_is_not_scored_is_not_compared(promise: str) -> None:
    assert check(promise, Rubric(spoke), score_rollouts=False).startswith("not compared")


def test_without_a_right_answer_none_is_compared() -> None:
    assert check(RIGHT, Rubric(spoke), rows=[{"question": "?"}]).startswith("not compared: it knows no right answer")


def test_the_range_is_that_of_the_rubric_and_of_failure_reward() -> None:
    def bounded(func: Any) -> Rubric:
        rubric = Rubric()
        rubric.add_reward_func(func, range=(0, 1))
        return rubric

    assert check(RANGE, Rubric(spoke)).startswith("not compared")
    for failure_reward in (None, -0.5, 0.0):
        assert check(RANGE, bounded(exact), failure_reward=failure_reward) == "14 episodes from 0 to 1"
    with pytest.raises(Broken, match=r"earned 0.0, which is not from 0.5 to 1"):
        check(RANGE, bounded(exact), failure_reward=0.5)
    with pytest.raises(Broken, match=r"an episode of sampled answers \(seed 0\) earned 2.0, which is not from 0 to 1"):
        check(RANGE, bounded(sampled))
    with pytest.raises(Broken, match=r"an episode in which the model failed earned 2.0, which is not from 0 to 1"):
        check(RANGE, bounded(lambda state: 2 * failed(state)))
    assert check(RANGE, Rubric(graded({}, -0.5)), failure_reward=-0.5) == "14 episodes from -0.5 to inf"
    with pytest.raises(Broken, match=r"an episode that ended before any answer earned -0.5, which is not from -0.4 to inf"):
        check(RANGE, Rubric(graded({}, -0.5)), failure_reward=-0.4)


def test_a_right_answer_that_earns_too_much_is_found() -> None:
    """Only the oracle's episode shows it."""
    rubric = Rubric()
    rubric.add_reward_func(lambda completion, answer: 2 * exact(completion, answer), range=(0, 1))
    with pytest.raises(Broken, match=r"an episode of the oracle's answers to example \d earned 2.0, which is not from 0 to 1"):
        check(RANGE, rubric)
