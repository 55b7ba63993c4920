"""`rollout`: groups of rollouts for training, as they finish.

The rollouts of a group begin alike, from one task and one seed; what makes them differ is who answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from vfgym.agents.base import Agent, EpisodeAgent, per_episode
from vfgym.agents.loading import as_agent
from vfgym.agents.model import ModelAgent
from vfgym.aio.bridge import bridge
from vfgym.envs.chat import ChatEnv
from vfgym.errors import ConfigurationError, Error
from vfgym.results.samples import group_advantages, group_rewards
from vfgym.runs import engine
from vfgym.runs.evaluate import check_integer
from vfgym.runs.failure_rewards import FailureRewards
from vfgym.runs.inputs import Example, Seeds
from vfgym.runs.replicas import EnvLike, Replicas
from vfgym.runs.step_player import StepPlayer, StepPlayerConfig
from vfgym.state import State
from vfgym.tasks import TaskStream

_AHEAD = 4
"""How many rollouts begin for each one that may be played at once, while nobody takes a group."""


@dataclass(frozen=True, slots=True)
class Group:
    """Rollouts that began from one task and one seed. The lists have one entry for each, in the order of their numbers."""

    index: int
    """Its place among all groups, in the order in which they were begun, from 0."""
    example_id: int
    states: list[State]
    """What was played; ``state["group"]`` is the same text in all of them, and in no other group."""
    rewards: list[float]
    """What each counts with: its reward; a failed one counts with what failing earns (see `vfgym.training.samples`)."""
    advantages: list[float]
    """The rubric's own where it has some, else each reward minus the group's mean."""
    errors: list[BaseException | None]
    """What ended a rollout that failed."""


async def rollout(
    env: EnvLike,
    agent_or_client: Any,
    *,
    model: str = "",
    split: Literal["train", "eval"] = "train",
    example_ids: Iterable[int] | None = None,
    group_size: int = 1,
    seed: int = 0,
    max_concurrent: int = 64,
) -> AsyncGenerator[Group, None]:
    """Give groups of rollouts in the order in which they finish, for as long as they are taken.

    The same seed gives the same group at each index, whatever the order of answers. While nobody takes a group, at most ``4 *
    max_concurrent`` rollouts begin (or one group, where that is more). After ``aclose()`` no task is left, and every episode that began
    is cleaned up. One rollout that fails counts as what it is (`Group.errors`), and ends no other; a refused key ends the run.

    Args:
        env: What is played (see `vfgym.evaluate`).
        agent_or_client: Who answers: an agent or its name, or a `Client` or `ClientConfig`, with `model`. The attribute ``policy_version``
            that an agent or client has when it answers is kept as ``step["extras"]["policy_version"]``.
        model: Name of the model that a client is asked for.
        split: Play these tasks.
        example_ids: Play the tasks with these ids, once and in this order. None plays all tasks, in a shuffled order without repeats, and
            then again in another one, without end.
        group_size: Rollouts of each task.
        seed: Seed of the run: from 0.
        max_concurrent: Most rollouts at once.

    Yields:
        Groups.

    Raises:
        ConfigurationError: If the environment, who answers or an argument cannot work.
    """
    group_size = check_integer("group_size", group_size, "a positive integer", least=1)
    max_concurrent = check_integer("max_concurrent", max_concurrent, "a positive integer", least=1)
    seed = check_integer("seed", seed, "an integer from 0", least=0)
    agent = _who_answers(agent_or_client, model)
    replicas = Replicas()
    try:
        definition = await bridge(replicas.open, env, {})
        declared = FailureRewards(definition, split)
        examples = await bridge(_examples, definition, split, example_ids, group_size, seed)
        seeds = Seeds(seed)
        config = StepPlayerConfig(
            per_episode(agent),
            split,
            lambda example, number: seeds.of(example, 0),
            declared,
            policy=agent,
            members_begin_alike=True,
        )
        gate = asyncio.Semaphore(max(_AHEAD * max_concurrent, group_size))

        async def new_player() -> _GatedPlayer:
            return _GatedPlayer(StepPlayer(config, await bridge(replicas.take, defers_scoring=True)), gate)

        run = os.urandom(8).hex()
        num_workers = replicas.limit_workers(max_concurrent)
        groups = (engine.GroupJob(example, range(group_size)) for example in examples)
        finished = engine.Engine(new_player, in_groups=True).finished(groups, num_workers, most_waiting=_AHEAD * max_concurrent)
        async with contextlib.aclosing(finished) as done:
            async for group in done:
                for _ in group.numbers:
                    gate.release()
                yield _as_group(group, run, declared)
    finally:
        await bridge(replicas.close)


class _GatedPlayer:
    """Begins no rollout before the gate lets it, so that no more begin than are taken."""

    def __init__(self, player: StepPlayer, gate: asyncio.Semaphore) -> None:
        self._player, self._gate = player, gate

    async def play(self, group: engine.GroupJob, number: int) -> engine.PlayedRollout:
        await self._gate.acquire()
        return await self._player.play(group, number)

    async def close(self) -> None:
        await self._player.close()


def _who_answers(agent_or_client: Any, model: str) -> Agent:
    if isinstance(agent_or_client, str | EpisodeAgent) or callable(agent_or_client):
        if model:
            raise ConfigurationError(
                f"model={model!r} is what a client is asked for, and {agent_or_client!r:.60} is an agent: leave it out"
            )
        return as_agent(agent_or_client)
    return ModelAgent(agent_or_client, model)


def _examples(
    definition: ChatEnv, split: Literal["train", "eval"], example_ids: Iterable[int] | None, group_size: int, seed: int
) -> Iterator[Example]:
    """Return the examples in the order in which their groups begin, each with its place in that order."""
    tasks = definition.tasks_of(split)
    if example_ids is not None:
        positions: Iterator[int] = iter([tasks.index_of(example_id) for example_id in example_ids])
    else:
        stream, rng = TaskStream(tasks), np.random.default_rng(seed)
        if not len(tasks):
            raise ConfigurationError(f"{type(definition).__name__} has no tasks to play: its {split} dataset is empty")
        positions = iter(lambda: stream.draw(rng), None)
    return (Example(tasks.example_id_of(position), position, group_size, place) for place, position in enumerate(positions))


def _as_group(group: engine.GroupJob, run: str, declared: FailureRewards) -> Group:
    example = group.example
    states = [played.state for played in group.played]
    errors: list[BaseException | None] = []
    for played in group.played:
        state = played.state
        state["group"] = f"{run}/{example.place}"
        if played.failure is not None and state["error"] is None:
            state["error"] = as_error(played.failure)
        if state.has_failed:
            state.failure_reward = declared.failure_reward(example.example_id)
        errors.append(played.failure or state["error"])
    rewards = group_rewards(states)
    advantages = group_advantages(states, rewards, has_own=group.played[0].env.rubric.provides_advantages)
    return Group(example.place, example.example_id, states, rewards, advantages, errors)


def as_error(failure: BaseException) -> Error:
    """Return what states hold of an exception: an `Error`, whose cause it is."""
    if isinstance(failure, Error):
        return failure
    error = Error(f"{type(failure).__name__}: {failure}")
    error.__cause__ = failure
    return error
