"""Signals as lists: what can be added, in which order they run, and what they do to states that are plain dicts."""

from __future__ import annotations

from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.verifiers_compat.v1.playing import noting, noting_groups
from verifiers_compat.v1.utils.scoring_utils import add_advantage, add_reward, apply_scoring
from vfgym.errors import ConfigurationError

exact = noting([], "exact", 0.5)
first = vf.reward(weight=2.0, priority=5)(noting([], "first", 1))
shared = vf.reward(stage="group")(noting_groups([], "shared", 1.0))


async def late(task: Any, state: Any) -> bool:
    return True


def level(task: Any, state: Any, level: int) -> int:
    return level


@vf.metric(stage="group")
def size(tasks: Any, states: Any) -> list[int]:
    return [len(states)] * len(states)


@vf.advantage
def over_one(tasks: Any, states: Any) -> list[float]:
    return [state["reward"] - 1 for state in states]


class Owner:
    """Has marked methods, as a taskset has."""

    @vf.reward(weight=0.5)
    async def own(self, task: Any, state: Any) -> float:
        return 1.0

    @vf.metric
    def length(self, task: Any, state: Any) -> int:
        return 4

    @vf.stop
    def never(self, task: Any, state: Any) -> bool:
        return False


async def test_signals_score_a_state_that_has_nothing_yet() -> None:
    """The values are those that verifiers 0.1.14 gives for the same program."""
    signals = vf.build_signals(Owner(), rewards=[exact, late, first])
    state = {"reward": 1.0, "metrics": {"x": 1.0}}
    assert await vf.score_rollout(signals, {}, state) is state
    assert state == {"reward": 5.0, "metrics": {"x": 1.0, "first": 1.0, "exact": 0.5, "late": 1.0, "length": 4.0, "own": 1.0}}
    assert list(state["metrics"]) == ["x", "first", "exact", "late", "length", "own"]  # type: ignore[call-overload]
    assert await vf.score_rollout(vf.build_signals(Owner()), {}, {}) == {"metrics": {"length": 4.0, "own": 1.0}, "reward": 0.5}
    assert vf.build_signals() == []


async def test_signals_are_added_one_by_one() -> None:
    signals: list[Any] = []
    vf.add_metric(signals, size)
    vf.add_reward(signals, exact)
    vf.add_advantage(signals, over_one)
    vf.add_reward(signals, first)
    assert [(signal.name, signal.kind, signal.stage) for signal in vf.collect_signals(signals)] == [
        ("first", "reward", "rollout"),
        ("exact", "reward", "rollout"),
        ("over_one", "advantage", "group"),
        ("size", "metric", "group"),
    ]
    with pytest.raises(ConfigurationError, match="two signals are called 'exact'"):
        vf.add_reward(signals, exact)
    with pytest.raises(ConfigurationError, match="size is marked as a metric, so it cannot be an item of rewards"):
        vf.add_reward(signals, size)
    with pytest.raises(ConfigurationError, match="two signals are called"):
        vf.collect_signals(vf.build_signals(Owner()), vf.build_signals(Owner()))


async def test_a_group_is_scored_together_and_advantages_come_last() -> None:
    signals = vf.build_signals(rewards=[shared, exact], metrics=[size], advantages=[over_one])
    states: list[dict[str, Any]] = [{"reward": 1.0}, {"trajectory": [{"advantage": None}, {"advantage": 3}, {}]}]
    scored = await vf.score_group(signals, [{}, {}], states)
    assert [state["reward"] for state in scored] == [2.0, 1.0]
    assert [state["metrics"] for state in scored] == [{"shared": 1.0, "size": 2.0}] * 2
    assert [state["advantage"] for state in states] == [1.0, 0.0]
    assert states[1]["trajectory"] == [{"advantage": 0.0}, {"advantage": 3}, {"advantage": 0.0}]
    assert "advantage" not in (await vf.score_group(vf.build_signals(rewards=[shared]), [{}], [{}]))[0]


async def test_more_arguments_can_be_given_to_signals() -> None:
    async def more(func: Any, task: Any, state: Any) -> dict[str, int]:
        return {"level": task["level"]} if func is level else {}

    state = await vf.score_rollout(vf.build_signals(rewards=[level, exact]), {"level": 5}, {}, more)
    assert state["metrics"] == {"level": 5.0, "exact": 0.5}
    with pytest.raises(TypeError, match="level"):
        await vf.score_rollout(vf.build_signals(rewards=[level]), {}, {})
    with pytest.raises(ConfigurationError, match="the rollout reward level asks for level; it can have state, task"):
        vf.Taskset(rewards=[level])


async def test_scoring_changes_signals_by_name() -> None:
    signals = vf.build_signals(Owner(), {"own": {"weight": 3.0, "priority": 9}, "length": {"skip": True}}, rewards=[exact])
    assert [(signal.name, signal.weight, signal.priority) for signal in signals] == [("own", 3.0, 9), ("exact", 1.0, 0)]
    with pytest.raises(ConfigurationError, match=r"scoring names 'onw', and there is no such signal; there are: .*Did you mean `own`"):
        apply_scoring(vf.build_signals(Owner()), {"onw": {"weight": 1.0}})
    with pytest.raises(ValueError, match="Did you mean `weight`"):
        vf.build_signals(Owner(), {"own": {"wieght": 3.0}})


@pytest.mark.parametrize("value", ["x", None, [1]])
async def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="wrong must return a number, got"):
        await vf.score_rollout(vf.build_signals(rewards=[noting([], "wrong", value)]), {}, {})


of_one_in_a_group = vf.reward(stage="group")(noting([], "of_one_in_a_group"))
of_all_in_a_rollout = vf.reward(stage="rollout")(noting_groups([], "of_all_in_a_rollout"))


@pytest.mark.parametrize(
    ("func", "list_name", "text"),
    [
        (of_one_in_a_group, "rewards", "sees a whole group: it asks for state, task, and can have tasks and states"),
        (of_all_in_a_rollout, "rewards", "sees one rollout: it asks for states, tasks, and can have task and state"),
        (exact, "advantages", "sees a whole group"),
    ],
)
def test_what_asks_for_the_other_stage_is_refused(func: Any, list_name: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        vf.build_signals(**{list_name: [func]})
    with pytest.raises(ValueError, match=text):
        (add_reward if list_name == "rewards" else add_advantage)([], func)


@pytest.mark.parametrize(
    ("values", "error", "told"),
    [
        ("ab", TypeError, "shared must return a list with one number for each of 2 states, got str"),
        (b"ab", TypeError, "got bytes"),
        (None, TypeError, "got NoneType"),
        ({0: 1, 1: 2}, TypeError, "got dict"),
        ([1.0], ConfigurationError, "shared must return one number for each of 2 states, got 1$"),
        ([1.0] * 3, ConfigurationError, "got 3$"),
        ([1.0, None], TypeError, "shared must return a number, got NoneType: None"),
    ],
)
@pytest.mark.parametrize("kind", ["rewards", "advantages"])
async def test_what_is_no_number_for_each_of_a_group_is_refused(kind: str, values: Any, error: type[Exception], told: str) -> None:
    def shared(tasks: Any, states: Any) -> Any:
        return values

    with pytest.raises(error, match=told):
        await vf.score_group(vf.build_signals(**{kind: [shared]}), [{}, {}], [{}, {}])


async def test_a_reward_of_no_weight_is_measured_only_and_each_stage_is_scored_alone() -> None:
    signals = vf.build_signals(rewards=[{"fn": first, "weight": 0.0}, {"fn": shared, "weight": -2.0}])
    assert await vf.score_rollout(signals, {}, {}) == {"metrics": {"first": 1.0}, "reward": 0.0}
    assert await vf.score_group(signals, [{}, {}], [{}, {"trajectory": None}]) == [
        {"metrics": {"shared": 1.0}, "reward": -2.0},
        {"trajectory": None, "metrics": {"shared": 1.0}, "reward": -2.0},
    ]
    assert await vf.score_group(signals, [], []) == []


def test_what_is_skipped_and_what_is_not() -> None:
    kept = apply_scoring(vf.build_signals(rewards=[exact, first]), {"exact": {"skip": True}, "first": {"skip": False, "stage": "group"}})
    assert [(signal.name, signal.stage, signal.weight) for signal in kept] == [("first", "group", 2.0)]
    with pytest.raises(ConfigurationError, match="there is no such signal; there are: none"):
        apply_scoring([], {"exact": {}})
    with pytest.raises(ConfigurationError, match="size is a metric, which has no weight"):
        apply_scoring(vf.build_signals(metrics=[size]), {"size": {"weight": 0.0}})
