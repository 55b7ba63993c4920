"""One rollout at a time, for trainers that call a function for each: `play_rollout`, and `play_episode` for those that give a URL."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from vfgym.agents.base import seat_of
from vfgym.agents.model import ModelAgent
from vfgym.clients import Client, ClientConfig, SamplingArgs
from vfgym.clients.config import NO_KEY
from vfgym.endings import ending_of
from vfgym.errors import ConfigurationError
from vfgym.runs.failure_rewards import FailureRewards
from vfgym.runs.rollout import rollout
from vfgym.state import State
from vfgym.training.adapters import Env, fork_env
from vfgym.training.counting import count_reward


class CountedRollout(NamedTuple):
    """A rollout that was played."""

    state: State
    reward: float
    """What it counts with."""


def read_task(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return which task a row of a data set is of: ``example_id``, and ``split`` and ``seed`` where it has them.

    Raises:
        ConfigurationError: If it does not say.
    """
    if row.get("example_id") is None:
        raise ConfigurationError(
            f"a row of the data set must say which task it is, as example_id (see dataset); this one has {sorted(row)}"
        )
    task = {name: row[name] for name in ("example_id", "split", "seed") if row.get(name) is not None}
    return {name: value if name == "split" else int(value) for name, value in task.items()}


async def play_rollout(
    env: str | Env,
    client: Client,
    model: str,
    *,
    example_id: int,
    split: Literal["train", "eval"] = "train",
    seed: int | None = None,
    sampling_args: SamplingArgs | None = None,
) -> CountedRollout:
    """Play one rollout of a task, and return it with what it counts with (see `vfgym.training.counting`).

    Args:
        env: A chat environment, or the id of one.
        client: Who answers. It is not closed.
        model: Name of the model that it is asked for.
        example_id: The task.
        split: What it is a task of.
        seed: Seed of the rollout, so that those of one task begin alike; its `example_id` where it is None.
        sampling_args: Generation parameters, over those of the environment.

    Raises:
        vfgym.training.counting.RolloutMissing: If it failed by the doing of its environment, or of what is underneath.
        ConfigurationError: If it cannot be played, or several seats of a game were: they earn different rewards, and here is one.
    """
    first = fork_env(env)
    declared = FailureRewards(seat_of(first).definition, split)
    agent = ModelAgent(client, model, sampling_args)
    groups = rollout(first, agent, split=split, example_ids=[example_id], seed=example_id if seed is None else seed, max_concurrent=1)
    async with contextlib.aclosing(groups):
        group = await anext(groups)
    [state] = group.states
    if any((step["extras"] or {}).get("self_play") for step in state["trajectory"]):
        raise ConfigurationError(
            "this game was played from several seats, each with rewards of its own, and this trainer takes one reward a rollout: play"
            " against an opponent, or train on vfgym.training.samples of vfgym.rollout"
        )
    earned = float(state["reward"] or 0.0)
    return CountedRollout(state, count_reward(ending_of(state), earned, declared.failure_reward(example_id), group.errors[0]))


async def play_episode(
    env: str | Env,
    base_url: str,
    *,
    model: str = "default",
    api_key: str = NO_KEY,
    example_id: int = 0,
    split: Literal["train", "eval"] = "train",
    seed: int | None = None,
    sampling_args: SamplingArgs | None = None,
) -> float:
    """Play one rollout by asking an OpenAI-compatible server, and return its reward: a rollout as ``async (env, base_url) -> reward``.

    Whoever serves the URL records what is asked: a trainer's own proxy, or `vfgym.training.recording.open_recording`.

    Args:
        env: A chat environment, or the id of one.
        base_url: Where chat completions are served, as ``http://127.0.0.1:8000/v1``.
        model: Name of the model there.
        api_key: The key that the server asks for.
        example_id: The task.
        split: What it is a task of.
        seed: Seed of the rollout; its `example_id` where it is None.
        sampling_args: Generation parameters, over those of the environment.

    Raises:
        vfgym.training.counting.RolloutMissing: If it failed by the doing of its environment, or of what is underneath: no reward is low
            enough, nor high enough, for what says nothing of the policy.
    """
    async with asking(base_url, api_key) as client:
        played = await play_rollout(env, client, model, example_id=example_id, split=split, seed=seed, sampling_args=sampling_args)
    return played.reward


@contextlib.asynccontextmanager
async def asking(base_url: str, api_key: str, kind: Any = None) -> Any:
    """Give a client of a server of chat completions, and close it.

    Args:
        base_url: Where it is.
        api_key: The key that it asks for.
        kind: A class of client; that of chat completions where it is None.
    """
    from vfgym.clients.providers.openai_chat_completions import OpenAIChatCompletionsClient

    client = (kind or OpenAIChatCompletionsClient)(ClientConfig(api_base_url=base_url, api_key=api_key))
    try:
        yield client
    finally:
        await client.close()
