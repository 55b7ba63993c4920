"""``group_size``: environments that begin each task alike, wait for each other, and are compared when all have ended."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import vfgym
from tests.environments import Echo
from vfgym.errors import ConfigurationError, InvalidAction, SandboxError, ToolParseError
from vfgym.vector import ChatVectorEnv

ROWS = [{"question": f"question {i}", "answer": str(i)} for i in range(5)]


def length(completion: list[vfgym.Message]) -> float:
    """Score the number of the model's messages."""
    return float(sum(message["role"] == "assistant" for message in completion))


async def place_in_group(states: list[vfgym.State]) -> list[float]:
    """Score how many of the group played fewer turns."""
    return [float(sum(len(other["trajectory"]) < len(state["trajectory"]) for other in states)) for state in states]


class UntilDone(Echo):
    """Ends when the answer is "done"; fails at "fail" or "outage", by the policy's doing or by its host's, and breaks at "break"."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dataset": ROWS, "rubric": vfgym.Rubric(length), **kwargs})

    def env_response(self, messages: list[vfgym.Message], state: vfgym.State) -> Any:
        if messages[-1].content == "fail":
            raise ToolParseError("no such thing")
        if messages[-1].content == "outage":
            raise SandboxError("no such host")
        if messages[-1].content == "break":
            raise OSError("the disk is full")
        return [vfgym.UserMessage(f"{state.rng.integers(1000)}")]

    @vfgym.stop
    def is_done(self, state: vfgym.State) -> bool:
        return bool(state["trajectory"]) and state["trajectory"][-1]["completion"][-1].content == "done"


def questions(observations: Any) -> list[str]:
    return [conversation[0].content for conversation in observations]


def test_a_group_waits_for_its_last_member_and_then_begins_the_next_task() -> None:
    """Its rewards, flags, infos and observations, step by step; the other group goes on by itself."""
    envs = ChatVectorEnv(UntilDone(), 4, group_size=2)
    observations, infos = envs.reset(seed=3)
    assert questions(observations)[:2] == questions(UntilDone().reset(seed=3)[0] for _ in range(2))
    assert questions(observations)[2:] == questions(UntilDone().reset(seed=4)[0] for _ in range(2))
    observations, rewards, terminations, truncations, infos = envs.step(["done", "a", "a", "a"])
    assert (rewards.tolist(), terminations.tolist(), truncations.any()) == ([1.0, 0.0, 0.0, 0.0], [True, False, False, False], False)
    assert len(observations[0]) == 2
    assert "group_reward" not in infos
    assert "final_obs" not in infos
    for ignored in (None, "anything"):
        again, rewards, terminations, _, infos = envs.step([ignored, "b", "b", "done"])
        assert (rewards[0], terminations[0], again[0]) == (0.0, True, observations[0])
        if ignored is None:
            assert rewards.tolist() == [0.0, 0.0, 0.0, 2.0]
            before = again
    observations, rewards, terminations, truncations, infos = envs.step([None, "done", "done", None])
    assert (rewards.tolist(), terminations.tolist()) == ([0.0, 4.0, 4.0, 0.0], [True] * 4)
    assert (infos["group_reward"].tolist(), infos["group_advantage"].tolist()) == ([1.0, 4.0, 4.0, 2.0], [-1.5, 1.5, 1.0, -1.0])
    assert infos["_group_reward"].tolist() == infos["_group_advantage"].tolist() == [True] * 4
    assert (infos["final_obs"][0], infos["final_info"]["metrics"]["length"].tolist()) == (before[0], [1.0, 4.0, 4.0, 2.0])
    assert [len(conversation) for conversation in observations] == [1] * 4
    assert (questions(observations)[0], infos["example_id"][2]) == (questions(observations)[1], infos["example_id"][3])
    *_, infos = envs.step(["done", "done", "a", "a"])
    assert infos["_group_reward"].tolist() == [True, True, False, False]
    envs.close()


@pytest.mark.parametrize("seed", [0, 7])
def test_members_begin_alike_and_meet_every_task_once(seed: int) -> None:
    envs = ChatVectorEnv(UntilDone(), 3, group_size=3)
    runs = []
    for _ in range(2):
        observations, _ = envs.reset(seed=seed)
        met, drawn = [], []
        for _ in range(5):
            assert len(set(questions(observations))) == 1
            met.append(questions(observations)[0])
            observations, *_ = envs.step(["a", "b", "c"])
            said = {conversation[-1].content for conversation in observations}
            assert len(said) == 1
            drawn.append(said.pop())
            observations, *_ = envs.step(["done"] * 3)
        runs.append((met, drawn))
    assert sorted(runs[0][0]) == [row["question"] for row in ROWS]
    assert len(set(runs[0][1])) > 1
    assert runs[0] == runs[1]
    envs.close()


@pytest.mark.parametrize("wrap", [lambda env: env, lambda env: gym.wrappers.TimeLimit(env, 9)])
def test_a_rubric_of_whole_groups_scores_when_all_have_ended(wrap: Any) -> None:
    """Alone nobody could play it. What it gives is told with the group."""
    rubric = vfgym.Rubric(place_in_group)
    with pytest.raises(ConfigurationError, match=r"scores whole groups \(place_in_group\): .*group_size"):
        ChatVectorEnv(UntilDone(rubric=rubric), 3)
    envs = ChatVectorEnv(wrap(UntilDone(rubric=rubric)), 3, group_size=3)
    envs.reset(seed=0)
    total = envs.step(["done", "a", "a"])[1]
    total = total + envs.step([None, "done", "a"])[1]
    _, rewards, _, _, infos = envs.step([None, None, "done"])
    assert ((total + rewards).tolist(), infos["group_reward"].tolist()) == ([0.0, 0.0, 0.0], [0.0, 1.0, 2.0])
    assert infos["group_advantage"].tolist() == [-1.0, 0.0, 1.0]
    assert infos["final_info"]["metrics"]["place_in_group"].tolist() == [0.0, 1.0, 2.0]
    envs.close()


@pytest.mark.parametrize(("declared", "counts"), [(None, 1.0), (-2.0, -2.0), (3.0, 1.0)])
def test_failing_never_pays(declared: float | None, counts: float) -> None:
    """A member that failed counts with the lower of what is declared and the least that another earned."""
    envs = ChatVectorEnv(UntilDone(failure_reward=declared), 3, group_size=3)
    envs.reset(seed=0)
    _, rewards, terminations, _, infos = envs.step(["fail", "done", "a"])
    assert (rewards[0], terminations[0]) == (1.0, True)
    assert "no such thing" in infos["error"][0]
    *_, infos = envs.step([None, None, "done"])
    assert (infos["group_reward"].tolist(), infos["group_advantage"].sum()) == ([counts, 1.0, 2.0], pytest.approx(0.0))
    envs.close()


@pytest.mark.parametrize(("declared", "counts"), [(0.0, 0.0), (None, -7.0)])
def test_the_environment_that_plays_declares_before_its_group(declared: float | None, counts: float) -> None:
    """A failure reward of 0 is one."""
    group = vfgym.EnvGroup([UntilDone(failure_reward=declared)], ["only"], failure_reward=-7.0)
    envs = ChatVectorEnv(group, 2, group_size=2)
    envs.reset(seed=0)
    *_, infos = envs.step(["fail", "done"])
    assert infos["group_reward"].tolist() == [counts, 1.0]
    envs.close()


def test_an_outage_costs_nobody_anything() -> None:
    """A member whose host went away has no reward, an advantage of nothing, and is in no baseline."""
    envs = ChatVectorEnv(UntilDone(failure_reward=-2.0), 3, group_size=3)
    envs.reset(seed=0)
    envs.step(["outage", "done", "a"])
    *_, infos = envs.step([None, None, "done"])
    np.testing.assert_array_equal(infos["group_reward"], [np.nan, 1.0, 2.0])
    assert infos["group_advantage"].tolist() == [0.0, -0.5, 0.5]
    envs.close()


def test_an_episode_that_a_wrapper_ends_is_scored_for_the_group() -> None:
    """A `TimeLimit` knows nothing of scores: the step's reward lacks it, what the group counts does not."""
    envs = ChatVectorEnv(gym.wrappers.TimeLimit(UntilDone(), 2), 2, group_size=2)
    envs.reset(seed=0)
    envs.step(["done", "a"])
    _, rewards, terminations, truncations, infos = envs.step([None, "a"])
    assert (rewards.tolist(), terminations.tolist(), truncations.tolist()) == ([0.0, 0.0], [True, False], [False, True])
    assert infos["group_reward"].tolist() == [1.0, 2.0]
    envs.close()


class Unscorable(vfgym.Rubric):
    async def score_group(self, states: list[vfgym.State]) -> None:  # type: ignore[override]
        if any("bad" in str(state["completion"]) for state in states):
            raise ValueError("nobody can score this")
        for state in states:
            state["reward"], state["metrics"] = 1.0, {}


def test_a_group_of_which_one_raises_leaves_the_others_unharmed() -> None:
    """It has to be reset as a whole; the other group's step can be received."""
    envs = ChatVectorEnv(UntilDone(), 4, group_size=2)
    envs.reset(seed=0)
    with pytest.raises(OSError, match="the disk is full"):
        envs.step(["break", "a", "done", "done"])
    _, rewards, _, _, infos = envs.recv(min_ready=2)
    assert (infos["env_id"].tolist(), infos["group_reward"].tolist(), rewards.tolist()) == ([2, 3], [1.0, 1.0], [1.0, 1.0])
    for index in (0, 1):
        with pytest.raises(vfgym.errors.ResetNeeded, match="it raised OSError"):
            envs.send(["a", "b"], [index, 1 - index])
    envs.reset(options={"reset_mask": np.array([True, True, False, False])})
    envs.step(["a"] * 4)
    envs.close()


def test_a_group_that_cannot_be_scored_is_an_error() -> None:
    """What its scoring raises. Once it is reset, it plays on."""
    envs = ChatVectorEnv(UntilDone(rubric=Unscorable(place_in_group)), 4, group_size=2)
    envs.reset(seed=0)
    envs.step(["bad", "a", "a", "a"])
    with pytest.raises(ValueError, match="nobody can score this"):
        envs.step(["done"] * 4)
    assert envs.recv(min_ready=2)[-1]["group_reward"].tolist() == [1.0, 1.0]
    envs.reset(options={"reset_mask": np.array([True, True, False, False])})
    *_, infos = envs.step(["done"] * 4)
    assert infos["group_reward"].tolist() == [1.0] * 4
    envs.close()


def test_groups_are_sent_and_received_as_a_whole() -> None:
    """In any order of their ids; masks, options and seeds fit the groups too."""
    envs = ChatVectorEnv(UntilDone(), 4, group_size=2)
    envs.reset(seed=[5, 5, None, None], options=[{"example_id": 3}, {"example_id": 3}, None, None])
    with pytest.raises(ConfigurationError, match=r"environments \[0, 1\] are a group: send their actions together"):
        envs.send(["a", "a"], [1, 2])
    with pytest.raises(InvalidAction, match="environment 1"):
        envs.step(["done", None, "a", "a"])
    envs.send(["done", "first"], [1, 0])
    observations, *_, terminations, _, infos = envs.recv(min_ready=1)
    assert (infos["env_id"].tolist(), terminations.tolist(), observations[0][1].content) == ([0, 1], [False, True], "first")
    for arguments in (
        {"seed": [1, 2, 3, 3]},
        {"options": [{"example_id": 1}, None, None, None]},
        {"options": {"reset_mask": np.array([True, False, False, False])}},
    ):
        with pytest.raises(ConfigurationError, match="environments 0 to 1 are a group, and it must be the same"):
            envs.reset(**arguments)
    envs.close()


def test_an_episode_that_is_over_before_its_first_turn_counts_in_its_group() -> None:
    """Set-up failed, say, or a condition holds at once."""

    class Over(UntilDone):
        @vfgym.stop
        def is_over(self, state: vfgym.State) -> bool:
            return True

    for rubric in (vfgym.Rubric(length), vfgym.Rubric(place_in_group)):
        envs = ChatVectorEnv(Over(rubric=rubric), 2, group_size=2)
        envs.reset(seed=0)
        _, _, terminations, _, infos = envs.step(["a", "a"])
        assert (terminations.tolist(), infos["group_reward"].tolist()) == ([True, True], [0.0, 0.0])
        envs.close()
