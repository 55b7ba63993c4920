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
from vfgym.model_server import ModelServer
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


@pytest.mark.parametrize(("arguments", "seed"), [({}, 2), ({"seed": 0}, 0), ({"seed": 5}, 5), ({"split": "eval"}, 2)])
def test_a_rollout_is_of_the_task_and_the_seed_that_are_given(arguments: dict[str, Any], seed: int) -> None:
    """A seed of 0 is one."""

    class Draws(vfgym.SingleTurnEnv):
        def setup_state(self, state: Any) -> None:
            drawn.append(int(state.rng.integers(10**9)))

    drawn: list[int] = []
    tasks = {name: [{"question": f"{name} {number}?"} for number in range(3)] for name in ("dataset", "eval_dataset")}
    env = Draws(**tasks, sampling_args={"temperature": 0.5, "max_tokens": 9})  # type: ignore[arg-type]
    policy = Policy(lambda turn: "yes")
    sampling = {"temperature": 0.0}
    played = asyncio.run(play_rollout(env, policy, "mine", example_id=2, sampling_args=sampling, **arguments))
    asked = "eval_dataset 2?" if "split" in arguments else "dataset 2?"
    assert (played.state["prompt"][-1].content, played.state["example_id"]) == (asked, 2)
    assert policy.asked == [("mine", {"temperature": 0.0, "max_tokens": 9}, None)]
    assert (sampling, policy.is_closed) == ({"temperature": 0.0}, False)
    asyncio.run(play_rollout(env, policy, "mine", example_id=2, **{**arguments, "seed": seed}))
    asyncio.run(play_rollout(env, policy, "mine", example_id=2, **{**arguments, "seed": 3 if seed == 2 else 2}))
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_rollout_that_failed_counts_as_its_environment_declares_in_a_group() -> None:
    def fail(turn: int) -> Exception:
        return vfgym.errors.InvalidModelResponseError("it says nothing")

    group = vfgym.EnvGroup(
        [environments.make_guess(failure_reward=-2.0), environments.make_guess()], env_names=["declared", "silent"], failure_reward=-7.0
    )
    counted = [asyncio.run(play_rollout(group, Policy(fail), "m", example_id=example_id)).reward for example_id in (0, 3)]
    assert counted == [-2.0, -7.0]


def test_a_server_is_asked_for_its_model_with_its_key() -> None:
    async def play() -> float:
        async with ModelServer({"theirs": lambda request: "3"}) as server:
            reward = await play_episode(
                environments.make_guess(), server.openai_url, model="theirs", api_key="secret", example_id=1, sampling_args={"top_p": 0.5}
            )
        [request] = server.requests
        assert (request.body["model"], request.body["top_p"], request.headers["Authorization"]) == ("theirs", 0.5, "Bearer secret")
        assert request.body["messages"][-1]["content"] == "1 + 2?"
        return reward

    assert asyncio.run(play()) == 1.0


def test_self_play_has_no_one_reward() -> None:
    env = vfgym.to_chat("classic/tictactoe_v3", opponents="self")
    with pytest.raises(ConfigurationError, match="several seats, each with rewards of its own"):
        asyncio.run(play_rollout(env, Policy(lambda turn: f"<action>{turn}</action>"), "m", example_id=0))


def test_a_row_says_its_task() -> None:
    assert read_task({"example_id": "3", "split": "eval", "seed": None, "question": "?"}) == {"example_id": 3, "split": "eval"}
    with pytest.raises(ConfigurationError, match="must say which task"):
        read_task({"example_id": None})
