"""The player that steps: what an agent is asked, what ends its episode, and when an episode is played again."""

from __future__ import annotations

import asyncio
import copy
import time
from types import NoneType
from typing import Any

import gymnasium
import numpy as np
import pytest

from tests.environments import Talk
from vfgym import Rubric, State
from vfgym.aio.bridge import bridge
from vfgym.aio.deadlines import DeadlinePassed
from vfgym.endings import Ending
from vfgym.errors import InfraError, InvalidAction, ModelError, OverlongPromptError
from vfgym.limits import RolloutLimits, RolloutMeter
from vfgym.runs import retries
from vfgym.runs.engine import GroupJob, PlayedRollout
from vfgym.runs.failure_rewards import FailureRewards
from vfgym.runs.inputs import Example
from vfgym.runs.replicas import Replica
from vfgym.runs.step_player import StepPlayer, StepPlayerConfig, _pass_over_children, ask_in_time

ROWS = [{"question": "What next?"}, {"question": "And then?"}]


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "_FIRST_WAIT", 0.0)


class Versioned:
    policy_version = 0

    def __call__(self, observation: Any, info: Any) -> str:
        self.policy_version += 1
        return f"{self.policy_version} to {observation[-1]['content']}"


class Answers:
    """Raises or returns one thing after another, the last for ever."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = answers, 0

    def __call__(self, observation: Any, info: Any) -> Any:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(answer, BaseException):
            raise answer
        return answer


async def play(agent: Any, number: int = 0, wrap: Any = None, **options: Any) -> PlayedRollout:
    scored = options.pop("scored", [])

    def length(state: State) -> float:
        scored.append(state)
        return float(len(state["trajectory"]))

    seat = Talk(dataset=ROWS, max_turns=3, rubric=Rubric(length))
    config = StepPlayerConfig(
        lambda env: agent, "train", lambda example, number: 10 * example.place + number, FailureRewards(seat, "train"), **options
    )
    player = StepPlayer(config, Replica(seat if wrap is None else wrap(seat), seat))
    played = await player.play(GroupJob(Example(1, 1, 2, 1), [number]), number)
    await player.close()
    return played


async def test_an_episode_is_played_to_its_end_and_its_return_is_what_wrappers_pass_on() -> None:
    played = await play(Answers("yes"), 1, fingerprint=lambda example: f"task {example.example_id}")
    assert (played.number, played.seed, played.fingerprint, played.route, played.pair) == (1, 11, "task 1", [], {})
    assert (played.failure, played.is_scored, played.seen_return, played.state["reward"]) == (None, True, 3.0, 3.0)
    assert played.state["prompt"][-1]["content"] == "And then?"
    played = await play(Answers("yes"), wrap=lambda env: gymnasium.wrappers.TransformReward(env, lambda reward: 10 * reward + 1))
    assert (played.seen_return, played.state["reward"]) == (33.0, 3.0)
    played = await play(Answers("yes"), wrap=lambda env: gymnasium.wrappers.TimeLimit(env, 2))
    assert (played.state["is_completed"], played.state.ending, played.state["reward"]) == (True, Ending.TRUNCATED, 2.0)


@pytest.mark.parametrize(
    ("error", "failure", "recorded", "ending"),
    [
        (ModelError("it refuses"), None, ModelError, Ending.POLICY_FAILED),
        (InfraError("no disk"), None, InfraError, Ending.POLICY_FAILED),
        (LookupError("a bug"), LookupError, ModelError, Ending.POLICY_FAILED),
        (TimeoutError("its own"), TimeoutError, ModelError, Ending.POLICY_FAILED),
        (OverlongPromptError("long"), None, NoneType, Ending.CUT),
        (7, None, InvalidAction, Ending.POLICY_FAILED),
    ],
)
async def test_what_an_agent_raises_or_says_wrongly_ends_its_episode(error: Any, failure: Any, recorded: Any, ending: Ending) -> None:
    played = await play(Answers("yes", error))
    assert type(played.state["error"]) is recorded
    assert played.state.ending is ending
    assert (None if played.failure is None else type(played.failure)) is failure
    assert len(played.state["trajectory"]) == 1


@pytest.mark.parametrize(("turns", "played"), [(1, 1), (2, 2), (3, 3), (None, 3)])
async def test_a_limit_of_turns_ends_an_episode_after_so_many(turns: int | None, played: int) -> None:
    seat = Talk(dataset=ROWS, max_turns=3, rubric=Rubric(lambda state: float(len(state["trajectory"]))))
    config = StepPlayerConfig(lambda env: Answers("yes"), "train", lambda *_: 0, FailureRewards(seat, "train"))
    limit = RolloutMeter(RolloutLimits(turns=turns))
    rollout = await StepPlayer(config, Replica(seat, seat)).play(GroupJob(Example(0, 0, 1), [0]), 0, limit)
    assert (len(rollout.state["trajectory"]), rollout.seen_return, rollout.state["reward"]) == (played, played, played)
    assert rollout.state.ending is (Ending.CUT if played < 3 else Ending.TRUNCATED)


async def test_an_interruption_ends_the_run_and_a_bug_is_not_played_again() -> None:
    with pytest.raises(KeyboardInterrupt):
        await play(Answers(KeyboardInterrupt()))
    agent = Answers(LookupError("a bug"))
    await play(agent, max_retries=3)
    assert agent.asked == 1


@pytest.mark.parametrize(("max_retries", "asked", "has_error"), [(0, 1, True), (1, 2, True), (2, 5, False), (3, 5, False)])
async def test_an_episode_is_played_again_and_scored_once(max_retries: int, asked: int, has_error: bool) -> None:
    agent, scored = Answers(InfraError("one"), InfraError("two"), "yes"), []
    played = await play(agent, max_retries=max_retries, scored=scored)
    assert (agent.asked, played.state["error"] is not None, len(scored)) == (asked, has_error, 1)


async def test_each_turn_keeps_the_version_that_answered() -> None:
    agent = Versioned()
    played = await play(agent, policy=agent)
    assert [step["extras"]["policy_version"] for step in played.state["trajectory"]] == [1, 2, 3]
    zero = await play(agent, policy=agent, asked_version=lambda: 0)
    assert [step["extras"]["policy_version"] for step in zero.state["trajectory"]] == [0, 0, 0]
    unversioned = await play(Answers("yes"))
    assert all("policy_version" not in step["extras"] for step in unversioned.state["trajectory"])


async def test_what_begin_raises_stops_the_run_and_a_task_that_cannot_begin_its_rollout() -> None:
    def broken(env: Any) -> Any:
        raise LookupError("set up wrong")

    seat = Talk(dataset=ROWS)
    player = StepPlayer(StepPlayerConfig(broken, "train", lambda *_: 0, FailureRewards(seat, "train")), Replica(seat, seat))
    with pytest.raises(LookupError, match="set up wrong"):
        await player.play(GroupJob(Example(0, 0, 1), [0]), 0)
    seat = Talk(dataset=ROWS)
    config = StepPlayerConfig(lambda env: Answers("yes"), "train", lambda *_: 0, FailureRewards(seat, "train"))
    played = await StepPlayer(config, Replica(seat, seat)).play(GroupJob(Example(9, 9, 1), [0]), 0)
    assert played.failure is not None
    assert played.seen_return == 0.0


async def test_an_answer_is_awaited_until_its_deadline() -> None:
    cancelled = []

    async def never(observation: Any, info: Any) -> str:
        try:
            return await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cancelled.append(info)
            raise

    async def at_once(observation: Any, info: Any) -> str:
        return "said"

    with pytest.raises(DeadlinePassed):
        await bridge(ask_in_time, never, [], {"turn": 1}, time.monotonic() + 0.001)
    assert cancelled == [{"turn": 1}]
    assert await bridge(ask_in_time, at_once, [], {}, time.monotonic() + 600) == "said"
    assert await bridge(ask_in_time, at_once, [], {}, None) == "said"
    assert await bridge(ask_in_time, Answers("plain"), [], {}, 0.0) == "plain"


@pytest.mark.parametrize("number", [0, 2])
def test_a_member_spawns_what_follows_on_those_before_and_goes_on_as_they_do(number: int) -> None:
    for parent in (np.random.default_rng(5), np.random.default_rng(5).spawn(2)[1]):
        twin = copy.deepcopy(parent)
        _pass_over_children(twin, number)
        assert twin.spawn(1)[0].random() == parent.spawn(number + 1)[-1].random()
        assert twin.random() == parent.random()
