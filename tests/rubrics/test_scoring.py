"""What reward functions may ask for, how their signatures and ranges are read, and how scores are put into a state."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from tests.rubrics.scored import played
from vfgym import State, blocking, reward
from vfgym.aio.steps import run_async
from vfgym.endings import Ending
from vfgym.errors import ConfigurationError, InfraError
from vfgym.rubrics.scoring import (
    RewardFunction,
    Score,
    apply_advantages,
    apply_score,
    group_namespace_of,
    member_score,
    namespace_of,
    score_episode,
    score_members,
    zero,
)


def number() -> float:
    return 1.0


@pytest.mark.parametrize("declared", [(0,), (0, 1, 2), "01", (0, float("inf")), (float("nan"), 1), ("0", "1"), 7, {0, 1}])
def test_a_range_is_two_finite_numbers(declared: Any) -> None:
    with pytest.raises(ConfigurationError, match="the range of number must be the lowest and the highest number that it gives"):
        RewardFunction(number, 1.0, range=declared)


def test_a_range_begins_with_the_lowest_and_is_that_of_the_mark_where_none_is_given() -> None:
    with pytest.raises(ConfigurationError, match=r"must begin with the lowest number that it gives, got \(1, 0\)"):
        RewardFunction(number, 1.0, range=(1, 0))
    marked = reward(weight=1.0, range=(-1, 1))(lambda: 0.0)
    assert RewardFunction(marked, 1.0).range == (-1.0, 1.0)
    assert RewardFunction(marked, 1.0, range=(0, 0)).range == (0.0, 0.0)
    assert RewardFunction(number, 1.0).range is None


@pytest.mark.parametrize("weight", ["1", None, [1.0]])
def test_a_weight_is_a_number(weight: Any) -> None:
    with pytest.raises(ConfigurationError, match="the weight of number must be a number"):
        RewardFunction(number, weight)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="a reward function must be a function"):
        RewardFunction(7, 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("plural", ["states", "prompts", "completions", "answers", "tasks", "infos"])
def test_one_plural_name_makes_a_group_function(plural: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def group({plural}): ...\ndef single({plural[:-1]}): ...\ndef both({plural}, {plural[:-1]}): ...", scope)
    assert [RewardFunction(scope[name], 1.0).when for name in ("group", "single", "both")] == ["group", "episode", "group"]


def test_what_a_function_scores_can_be_said_and_whether_it_asks_for_the_task() -> None:
    assert RewardFunction(lambda states: [], 1.0, "step").when == "step"
    assert not RewardFunction(lambda state, step, completion: 0, 1.0).asks_for_task
    for func in (lambda answer: 0, lambda step, **names: 0):
        assert RewardFunction(func, 1.0).asks_for_task
    assert RewardFunction(blocking(lambda: 0), 1.0).is_blocking
    assert not RewardFunction(number, 1.0).is_blocking


def test_names_are_those_of_the_row_then_of_the_episode_then_of_the_rubric() -> None:
    state = played("said", level=7)
    names = namespace_of(state, {"judge": 1, "level": 8})
    assert (names["answer"], names["info"], names["judge"], names["level"]) == ("42", {"level": 3}, 1, 8)
    assert names["completion"][-1].content == "said"
    assert names["state"] is state
    assert namespace_of(state, {"task": "not this"})["task"] is state["task"], "the task is always the episode's"
    bare = State(input={}, completion=None)
    names = namespace_of(bare, {})
    assert (names["prompt"], names["answer"], names["info"], names["completion"], names["task"]) == (None, "", {}, [], None)


def test_names_of_a_group_are_lists_in_the_order_of_its_states() -> None:
    states = [played("a", answer="1"), played("b", answer="2")]
    names = group_namespace_of(states, {"judge": 1})
    assert names["answers"] == ["1", "2"]
    assert [completion[-1].content for completion in names["completions"]] == ["a", "b"]
    assert names["states"] == states
    assert names["judge"] == 1
    assert set(names) == {"states", "prompts", "completions", "answers", "tasks", "infos", "judge"}


def test_scores_are_added_up_with_metrics_of_one_name_and_the_first_failure() -> None:
    first, second = ValueError("first"), ValueError("second")
    score = Score(1.0, {"a": 1.0, "b": 0.0})
    score.add(Score(0.5, {"a": 2.0, "c": 0.0}, first))
    score.add(Score(0.0, {}, second))
    assert (score.reward, score.metrics, score.failure) == (1.5, {"a": 3.0, "b": 0.0, "c": 0.0}, first)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), asyncio.CancelledError()])
def test_what_ends_a_run_is_no_members_failure(error: BaseException) -> None:
    score = Score()
    if isinstance(error, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            score.fail(error)
    score.fail(SystemExit(3))
    kept = score.failure
    score.fail(ValueError())
    assert kept is not None
    assert score.failure is kept, "the first one stays"


def test_the_reward_is_the_sum_of_what_the_steps_emit_from_left_to_right() -> None:
    state = played()
    state["trajectory"].append({**state["trajectory"][0], "extras": {}})
    state.emitted = [0.1, 0.2]
    state.step_metrics = {"polite": 2.0, "both": 1.0}
    apply_score(state, Score(0.3, {"both": 4.0}))
    assert state["reward"] == 0.1 + (0.2 + 0.3)
    assert state["metrics"] == {"both": 5.0, "polite": 2.0}
    assert [step["extras"]["reward"] for step in state["trajectory"]] == [0.1, 0.2 + 0.3]
    assert state.emitted == [0.1, 0.2], "an episode that is scored again emits no more"
    apply_score(state, Score())
    assert state["reward"] == 0.1 + 0.2


def test_an_episode_without_a_turn_earns_what_its_functions_give() -> None:
    state = State(input={}, trajectory=[], reward=None, metrics=None)
    apply_score(state, Score(0.5, {"a": 0.5}))
    assert (state["reward"], state["metrics"], state.rewards) == (0.5, {"a": 0.5}, [0.5])


def test_a_function_that_fails_is_loud_once_and_fails_the_rollout_where_it_has_a_weight(caplog: pytest.LogCaptureFixture) -> None:
    weighted, metric = RewardFunction(number, -1.0), RewardFunction(lambda: 0.0, 0.0)
    with caplog.at_level(logging.DEBUG, "vfgym"):
        first, second = played(), played()
        assert zero(weighted, ValueError("no"), first) == zero(weighted, ValueError("again"), second) == 0.0
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.DEBUG]
    assert (first["metrics_errors"], second["metrics_errors"]) == ({"number": "ValueError('no')"}, {"number": "ValueError('again')"})
    assert first.reward_failure_cause == "environment"
    zero(weighted, InfraError("the host"), first)
    assert first.reward_failure_cause == "environment", "the first cause stays"
    hosted = played()
    zero(weighted, InfraError("the host"), hosted)
    assert Ending.of_cause(hosted.reward_failure_cause) == Ending.INFRASTRUCTURE_FAILED  # type: ignore[arg-type]
    unweighted = played()
    zero(metric, ValueError("no"), unweighted)
    assert unweighted.reward_failure_cause is None
    assert unweighted["metrics_errors"]


@pytest.mark.parametrize(
    ("annotation", "when"),
    [
        (list, "group"),
        (list[float], "group"),
        ("list[float]", "group"),
        ("typing.List[float]", "group"),
        ("float", "episode"),
        (float, "episode"),
    ],
)
def test_a_function_that_names_nothing_scores_a_group_where_it_returns_a_list(annotation: Any, when: str) -> None:
    def func(judge): ...  # type: ignore[no-untyped-def]

    func.__annotations__["return"] = annotation
    assert RewardFunction(func, 1.0).when == when


async def eventually(answer: str) -> float:
    await asyncio.sleep(0)
    if answer == "broken":
        raise ValueError("late")
    return len(answer)


def soon(answer: str) -> Any:
    if answer == "broken":
        raise ValueError("soon")
    return len(answer)


def ranks(answers: list[str]) -> list[float]:
    if "refused" in answers:
        raise ValueError("nobody")
    return [float(index) for index, _ in enumerate(answers)][: 1 if "short" in answers else None]


async def slow_ranks(answers: list[str]) -> list[float]:
    await asyncio.sleep(0)
    return ranks(answers)


FUNCTIONS = [RewardFunction(function, weight) for function, weight in ((soon, 1.0), (eventually, 2.0), (ranks, 10.0), (slow_ranks, 0.0))]
LATE, SOON = "ValueError('late')", "ValueError('soon')"
SHORT = [f"ValueError('{name} must return one number for each of 2 states, got 1')" for name in ("ranks", "slow_ranks")]


@pytest.mark.parametrize(
    ("answers", "rewards", "failures"),
    [
        (["a"], [3.0], [{}]),
        (["a", "bcd"], [3.0, 19.0], [{}, {}]),
        (["a", "broken"], [3.0, 10.0], [{}, {"soon": SOON, "eventually": LATE}]),
        (["broken", "ab"], [0.0, 16.0], [{"soon": SOON, "eventually": LATE}, {}]),
        (["ab", "short"], [6.0, 15.0], [dict(zip(("ranks", "slow_ranks"), SHORT, strict=True))] * 2),
        (["ab", "refused"], [6.0, 21.0], [dict.fromkeys(("ranks", "slow_ranks"), "ValueError('nobody')")] * 2),
    ],
)
async def test_functions_score_the_members_of_a_group_whichever_way_they_answer(
    answers: list[str], rewards: list[float], failures: list[Any]
) -> None:
    states = [played(answer=answer) for answer in answers]
    scores = await run_async(score_members(FUNCTIONS, states, {}))
    assert [score.reward for score in scores] == rewards
    assert [state.get("metrics_errors", {}) for state in states] == failures
    for index, (score, answer) in enumerate(zip(scores, answers, strict=True)):
        number = 0.0 if answer == "broken" else float(len(answer))
        rank = 0.0 if {"short", "refused"} & {*answers} else float(index)
        assert score.metrics == {"soon": number, "eventually": number, "ranks": rank, "slow_ranks": rank}
        assert all(type(value) is float for value in score.metrics.values())
    alone = played(answer=answers[0])
    own = await run_async(score_episode(FUNCTIONS, alone, {}))
    assert own.metrics == {name: scores[0].metrics[name] for name in ("soon", "eventually")}, "what needs a group is left out"
    assert own.reward == own.metrics["soon"] + 2 * own.metrics["eventually"]


@pytest.mark.parametrize("others", [0, 1])
async def test_what_is_cancelled_for_one_member_is_its_failure_and_no_others(others: int) -> None:
    def cancelled(answer: str) -> float:
        if answer == "b":
            raise asyncio.CancelledError
        return 1.0

    async def cancelled_later(answer: str) -> float:
        return cancelled(answer)

    functions = [RewardFunction(cancelled, 1.0), RewardFunction(cancelled_later, 1.0)]
    states = [played(answer=answer) for answer in "ab"[1 - others :]]
    for each in (functions, functions[1:]):
        scores = await run_async(score_members(each, states, {}))
        assert [score.failure is None for score in scores] == [True, False][1 - others :]
        assert [score.reward for score in scores] == [float(len(each)), 0.0][1 - others :]

    def failing() -> Any:
        yield from ()
        raise SystemExit(3)

    score = await run_async(member_score(failing()))
    assert (score.reward, score.metrics, score.failure is None) == (0.0, {}, False)
    assert "SystemExit" in repr(score.failure)


def test_advantages_are_rewards_less_their_mean_in_each_turn_that_has_none() -> None:
    states = [played(), played()]
    for state, reward_of_state in zip(states, (0.0, 1.0), strict=True):
        state["reward"] = reward_of_state
    first, second = (state["trajectory"][0] for state in states)
    first["reward"], first["advantage"], second["reward"], second["advantage"] = 0.0, 0.0, None, None
    apply_advantages(states)
    assert [state["advantage"] for state in states] == [-0.5, 0.5]
    assert [(step["reward"], step["advantage"]) for step in (first, second)] == [(0.0, 0.0), (1.0, 0.5)]


def test_what_is_earned_after_the_last_answer_is_earned_by_it() -> None:
    state = played()
    state.emitted = [1.0, 0.5, 0.25]
    apply_score(state, Score(2.0))
    assert (state["reward"], state.rewards) == (3.75, [1.0, 0.5, 2.25])
    assert [step["extras"]["reward"] for step in state["trajectory"]] == [3.75]
