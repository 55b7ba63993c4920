"""What failed rollouts count with: what the environment declares that plays the example, and else its group."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym import EnvGroup, Rubric, SingleTurnEnv
from vfgym.errors import ConfigurationError
from vfgym.runs.failure_rewards import FailureRewards

ROWS = [{"question": f"{number}?", "answer": str(number)} for number in range(2)]


def member(declared: float | None = None, least: float | None = None, **options: Any) -> SingleTurnEnv:
    rubric = Rubric()
    rubric.add_reward_func(lambda: 1.0, range=None if least is None else (least, 1.0))
    return SingleTurnEnv(ROWS, rubric=rubric, failure_reward=declared, **options)


@pytest.mark.parametrize("declared", [-2.0, 0.0, None])
def test_an_environment_alone_declares_it_for_all(declared: float | None) -> None:
    known = FailureRewards(member(declared), "eval")
    assert [known.failure_reward(example_id) for example_id in (0, 1, 99)] == [declared] * 3
    assert known.route(0) == []


def test_each_member_of_a_group_declares_its_own_and_the_group_the_rest() -> None:
    group = EnvGroup([member(0.0), member(-3.0), member()], names=["a", "b", "c"], failure_reward=-1.0)
    known = FailureRewards(group, "eval")
    assert [known.failure_reward(example_id) for example_id in range(6)] == [0.0, 0.0, -3.0, -3.0, -1.0, -1.0]
    assert [known.route(example_id) for example_id in (1, 2, 4)] == [["a"], ["b"], ["c"]]
    assert known.failure_reward(1) == 0.0, "asked once more"
    known = FailureRewards(EnvGroup([member(0.0)], names=["a"], failure_reward=-1.0), "eval")
    assert (known.failure_reward(99), known.route(99)) == (-1.0, [])
    group = EnvGroup([member(-2.0, eval_dataset=ROWS[:1]), member(-3.0)], names=["a", "b"])
    assert FailureRewards(group, "eval").route(1) == ["b"]
    assert FailureRewards(group, "train").route(1) == ["a"]


@pytest.mark.parametrize(
    ("env", "counted"),
    [
        (member(), None),
        (member(-1.0), None),
        (member(least=0.0), (0.0, 1.0)),
        (member(-2.0, least=0.0), (-2.0, 1.0)),
        (EnvGroup([member(-2.0, least=0.0), member(-3.0, least=-0.5)], names=["a", "b"]), (-3.0, 1.0)),
        (EnvGroup([member(least=0.0), member(least=-0.5)], names=["a", "b"], failure_reward=-4.0), (-4.0, 1.0)),
    ],
)
def test_the_range_holds_failed_rollouts_too(env: Any, counted: tuple[float, float] | None) -> None:
    assert FailureRewards(env, "eval").counted_range == counted


def test_failing_that_came_to_pay_is_refused() -> None:
    env = SingleTurnEnv(ROWS, rubric=(rubric := Rubric()), failure_reward=0.0)
    rubric.add_reward_func(lambda: -2.0, range=(-2.0, -1.0))
    with pytest.raises(ConfigurationError, match="failing would pay"):
        FailureRewards(env, "eval")
