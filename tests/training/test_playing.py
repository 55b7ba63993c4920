"""One rollout at a time: it begins alike for one task, and counts by how it ended."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import pytest

import vfgym
from tests.training.policies import Policy, across
from tests.training.trainers import environments
from vfgym.errors import ConfigurationError
from vfgym.training.counting import RolloutMissing
from vfgym.training.playing import play_episode, play_rollout, read_task
from vfgym.training.recording import record

play_lake = functools.partial(play_episode, example_id=0)


@pytest.mark.parametrize(
    ("make", "ending"), [(environments.make_broken, "environment_failed"), (environments.make_unreachable, "infrastructure_failed")]
)
def test_a_rollout_that_says_nothing_of_the_policy_has_no_reward(make: Any, ending: str) -> None:
    async def play() -> None:
        with pytest.raises(RolloutMissing, match=ending):
            await play_rollout(make(failure_reward=-1.0), Policy(across), "m", example_id=0)
        state = await record(play_lake, make(), Policy(across), "m")
        assert state["ending"] == ending

    asyncio.run(play())


def test_rollouts_of_one_task_begin_alike() -> None:
    async def play() -> list[float]:
        slippery = environments.make_lake(is_slippery=True)
        return [(await play_rollout(slippery, Policy(across), "m", example_id=3)).state["trajectory"] for _ in range(2)]

    first, second = asyncio.run(play())
    assert [step["prompt"][-1] for step in first] == [step["prompt"][-1] for step in second]


def test_self_play_has_no_one_reward() -> None:
    env = vfgym.to_chat("classic/tictactoe_v3", opponents="self")
    with pytest.raises(ConfigurationError, match="several seats, each with rewards of its own"):
        asyncio.run(play_rollout(env, Policy(lambda turn: f"<action>{turn}</action>"), "m", example_id=0))


def test_a_row_says_its_task() -> None:
    assert read_task({"example_id": "3", "split": "eval", "seed": None, "question": "?"}) == {"example_id": 3, "split": "eval"}
    with pytest.raises(ConfigurationError, match="must say which task"):
        read_task({"example_id": None})
