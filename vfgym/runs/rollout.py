"""`rollout`: groups of rollouts for training, as they finish.

The rollouts of a group begin alike, from one task and one seed; what makes them differ is who answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
from collections import Counter, deque
from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from vfgym.agents.base import Agent, Answering, EpisodeAgent, per_episode
from vfgym.agents.loading import as_agent
from vfgym.agents.model import ModelAgent
from vfgym.aio.bridge import bridge
from vfgym.calls import is_awaitable, maybe_await
from vfgym.endings import Ending, ending_of
from vfgym.envs.chat import ChatEnv
from vfgym.episode import BaseEpisode
from vfgym.errors import ConfigurationError, Error, FailureCause
from vfgym.lifecycle import is_blocking
from vfgym.limits import RolloutMeter
from vfgym.messages import Message
from vfgym.results.credit import check_word, is_dropped
from vfgym.results.samples import group_advantages, group_rewards, last_ids_of, last_observation_of
from vfgym.runs import engine
from vfgym.runs.failure_rewards import FailureRewards
from vfgym.runs.inputs import Example, Seeds
from vfgym.runs.replicas import EnvLike, Replica, Replicas
from vfgym.runs.retries import seconds_before_retry
from vfgym.runs.spec import check_integer
from vfgym.runs.step_player import StepPlayer, StepPlayerConfig, ask_in_time
from vfgym.runs.updates import OnUpdate, PlayedVersions, PolicyUpdates, Superseded
from vfgym.state import State
from vfgym.tasks import TaskStream
from vfgym.wrappers.games.turns import GameTurnsEnv

logger = logging.getLogger(__name__)

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
    rewards: list[float | None]
    """What each counts with: its reward; one that failed or was cut counts with what failing earns (see `vfgym.training.samples`). None for
    what infrastructure or the environment broke, its replacements included: it says nothing of the policy."""
    advantages: list[float]
    """The rubric's own where it has some, else each reward minus the group's mean; 0.0 where there is no reward."""
    errors: list[BaseException | None]
    """What ended a rollout that failed."""

    @property
    def endings(self) -> list[Ending]:
        """How each ended."""
        return [ending_of(state) for state in self.states]

    @property
    def terminated(self) -> list[bool]:
        """Whether the task was over."""
        return [ending is Ending.TERMINATED for ending in self.endings]

    @property
    def truncated(self) -> list[bool]:
        """Whether a limit that belongs to the task ended it."""
        return [ending is Ending.TRUNCATED for ending in self.endings]

    @property
    def cut(self) -> list[bool]:
        """Whether a limit of whoever runs it, or of resources, ended it."""
        return [ending is Ending.CUT for ending in self.endings]

    @property
    def failed(self) -> list[bool]:
        """Whether it failed."""
        return [ending.failed for ending in self.endings]

    @property
    def cause(self) -> list[FailureCause | None]:
        """By whose doing it failed; None where it did not."""
        return [ending.cause for ending in self.endings]

    @property
    def attempt(self) -> list[int]:
        """Which attempt each is, from 1: others were broken before, or became too old."""
        return [state["attempt"] for state in self.states]


class RolloutStream(AsyncGenerator[Group, None]):
    """The groups of a run, in the order in which they finish: an async generator that can be paused while the policy is updated."""

    def __init__(self, groups: AsyncGenerator[Group, None], updates: PolicyUpdates) -> None:
        """Give groups that are played as these updates of the policy ask for."""
        self._groups, self._updates = groups, updates

    @property
    def replayed(self) -> Counter[str]:
        """How many rollouts were played again, and why.

        ``"infrastructure"`` and ``"environment"``: that broke them. ``"updated"``: the policy was updated meanwhile. ``"stale"``: their
        group was older than `max_staleness` when it would have been delivered.
        """
        return self._updates.replayed.copy()

    async def pause(self) -> None:
        """Wait until the policy may be changed: nobody is asked any more, and nothing begins until `resume`.

        What is under way is finished first with ``on_update="finish"``, waits before its next turn with ``"continue"``, and is given up,
        to be played again, with ``"drop"``. It may be called while another task waits for a group. A second call waits, too.
        """
        await self._updates.pause()

    def resume(self) -> None:
        """Go on, with the policy as it is now. Without a pause this does nothing."""
        self._updates.resume()

    async def asend(self, value: None) -> Group:
        """Return the next group."""
        return await self._groups.asend(value)

    async def athrow(self, *error: Any) -> Group:
        """End with an error."""
        return await self._groups.athrow(*error)

    async def aclose(self) -> None:
        """End what is running, and clean up. A second call does nothing."""
        await self._groups.aclose()


def rollout(
    env: EnvLike,
    agent_or_client: Any,
    *,
    model: str = "",
    split: Literal["train", "eval"] = "train",
    example_ids: Iterable[int] | None = None,
    group_size: int = 1,
    seed: int = 0,
    max_concurrent: int = 64,
    replace: int = 2,
    max_staleness: int | None = None,
    on_update: OnUpdate = "continue",
) -> RolloutStream:
    """Give groups of rollouts in the order in which they finish, for as long as they are taken.

    The same seed gives the same group at each index, whatever the order of answers. While nobody takes a group, at most ``4 *
    max_concurrent`` rollouts begin (or one group, where that is more). After ``aclose()`` no task is left, and every episode that began
    is cleaned up. One rollout that fails counts as what it is (`Group.errors`), and ends no other; a refused key ends the run.

    A learner that updates the policy between groups gets some that were played with older versions of it. Without `max_staleness` these
    are as old as the rollouts that run ahead make them: at most ``ceil(4 * max_concurrent / rollouts an update)`` versions or so, and more
    for long episodes.

    Args:
        env: What is played (see `vfgym.evaluate`).
        agent_or_client: Who answers: an agent or its name, or a `Client` or `ClientConfig`, with `model`. The attribute ``policy_version``
            that an agent or client has when it is asked is kept as ``step["extras"]["policy_version"]``.
        model: Name of the model that a client is asked for.
        split: Play these tasks.
        example_ids: Play the tasks with these ids, once and in this order. None plays all tasks, in a shuffled order without repeats, and
            then again in another one, without end.
        group_size: Rollouts of each task.
        seed: Seed of the run: from 0.
        max_concurrent: Most rollouts at once.
        replace: How often a rollout that infrastructure or the environment broke is played again, alike, before its group is given.
        max_staleness: Most versions of the policy between the oldest turn of a group and its delivery: 0 is on-policy. What is older is
            played again. Groups begin no earlier than needed then: as many as were taken for the last update, for each version that may
            pass. Who answers must have an integer ``policy_version``, which is raised at each update. None for any number.
        on_update: What becomes of rollouts that are under way when the policy changes. ``"continue"``: they go on under the new version.
            ``"finish"``: `RolloutStream.pause` waits for them. ``"drop"``: they are given up, and played again.

    Returns:
        The groups: an async generator, with `RolloutStream.pause` and `RolloutStream.resume`.

    Raises:
        ConfigurationError: If an argument or who answers cannot work; as the first group is taken, if the environment cannot.
    """
    group_size = check_integer("group_size", group_size, "a positive integer", least=1)
    max_concurrent = check_integer("max_concurrent", max_concurrent, "a positive integer", least=1)
    seed = check_integer("seed", seed, "an integer from 0", least=0)
    replace = check_integer("replace", replace, "an integer from 0", least=0)
    if max_staleness is not None:
        max_staleness = check_integer("max_staleness", max_staleness, "an integer from 0, or None for any number", least=0)
    check_word("on_update", on_update, get_args(OnUpdate))
    agent = _who_answers(agent_or_client, model)
    updates = PolicyUpdates(agent, max_staleness, on_update)
    return RolloutStream(_play(env, agent, updates, split, example_ids, group_size, seed, max_concurrent, replace), updates)


async def _play(
    env: EnvLike,
    agent: Agent,
    updates: PolicyUpdates,
    split: Literal["train", "eval"],
    example_ids: Iterable[int] | None,
    group_size: int,
    seed: int,
    max_concurrent: int,
    replace: int,
) -> AsyncGenerator[Group, None]:
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
        jobs = _Jobs(examples, group_size)
        run = _Run(agent, updates, replace, asyncio.Semaphore(max(_AHEAD * max_concurrent, group_size)))

        async def new_player() -> _GatedPlayer:
            if run.idle:
                return run.idle.pop()
            return _GatedPlayer(run, config, await bridge(replicas.take, defers_scoring=True))

        num_workers = replicas.limit_workers(max_concurrent)
        playing = engine.Engine(new_player, in_groups=True)
        updates.start_taking()
        while jobs.has_more():
            async with contextlib.aclosing(playing.finished(jobs, num_workers, most_waiting=_AHEAD * max_concurrent)) as done:
                async for job in done:
                    for _ in job.numbers:
                        run.gate.release()
                    group = _as_group(job, run.id, declared)
                    why = run.why_again(group)
                    if why is not None:
                        updates.replayed[why] += group_size
                        updates.give_up(group.index)
                        jobs.begin_again(job, group.attempt)
                        continue
                    updates.stop_taking(group.index)
                    yield group
                    del group, job  # its states are let go while the next one is waited for
                    updates.start_taking()
    finally:
        await bridge(replicas.close)


@dataclass(slots=True)
class _Run:
    """What the workers of a run share."""

    agent: Agent
    updates: PolicyUpdates
    replace: int
    gate: asyncio.Semaphore
    """Lets rollouts begin, no more than are taken."""
    id: str = dataclasses.field(default_factory=lambda: os.urandom(8).hex())
    idle: list[_GatedPlayer] = dataclasses.field(default_factory=list)
    """Players that no worker has."""
    broken: set[tuple[int, int]] = dataclasses.field(default_factory=set)
    """Rollouts that no replacement could play to their end: the place of their group, and their number."""
    replaced: Counter[int] = dataclasses.field(default_factory=Counter)
    """How often a whole group was replaced, by its place."""

    def why_again(self, group: Group) -> str | None:
        """Return why a group that is done has to begin again (it is stale, or a reward function failed); None where it can be given."""
        place = group.index
        unscored = [
            cause
            for number, (reward, cause) in enumerate(zip(group.rewards, group.cause, strict=True))
            if reward is None and (place, number) not in self.broken
        ]
        self.broken -= {(place, number) for number in range(len(group.states))}
        if self.updates.is_stale(state["trajectory"] for state in group.states):
            return "stale"
        if unscored and self.replaced[place] < self.replace:
            self.replaced[place] += 1
            return unscored[0]
        del self.replaced[place]
        return None


class _Jobs:
    """The groups to be played: those that have to begin again, and then those of further examples. More may come after the last."""

    def __init__(self, examples: Iterator[Example], group_size: int) -> None:
        self._examples, self._numbers = examples, range(group_size)
        self._again: deque[_Job] = deque()
        self._is_new = True

    def __iter__(self) -> Iterator[engine.GroupJob]:
        return self

    def __next__(self) -> engine.GroupJob:
        self._is_new = False
        return self._again.popleft() if self._again else _Job(next(self._examples), self._numbers)

    def begin_again(self, job: engine.GroupJob, attempts: list[int]) -> None:
        """Let a group that was played begin again, after so many attempts at each of its rollouts."""
        self._again.append(_Job(job.example, job.numbers, attempts=attempts))

    def has_more(self) -> bool:
        """Say whether a group is to be played that nobody has begun: none have, or some came back after the last."""
        return self._is_new or bool(self._again)


@dataclass(slots=True)
class _Job(engine.GroupJob):
    """A group to be played, perhaps once more."""

    attempts: list[int] = dataclasses.field(default_factory=list)
    """How many attempts at each of its rollouts there were before; empty for none."""


class _GatedPlayer:
    """Begins no rollout before the gate lets it, so that no more begin than are taken, and plays again what was broken or given up."""

    def __init__(self, run: _Run, config: StepPlayerConfig, replica: Replica) -> None:
        self._run, self._updates = run, run.updates
        self._player = StepPlayer(dataclasses.replace(config, ask=self._ask, asked_version=lambda: self._versions.asked), replica)
        self._versions = PlayedVersions(run.updates)

    async def play(self, group: engine.GroupJob, number: int, limit: RolloutMeter | None = None) -> engine.PlayedRollout:
        """Play a rollout, to an end that says something of the policy if replacing it helps."""
        updates, run = self._updates, self._run
        await updates.begin(group.example.place)
        await run.gate.acquire()
        attempt = group.attempts[number] if isinstance(group, _Job) and group.attempts else 0
        replaced = 0
        while True:
            await updates.resumed()
            self._versions = PlayedVersions(updates)
            attempt += 1
            with updates.playing():
                played = await self._player.play(group, number, limit)
            if isinstance(played.state.get("error"), Superseded):
                updates.replayed["updated"] += 1
                continue
            if not is_dropped(played.state, "drop"):
                break
            if replaced == run.replace:
                run.broken.add((group.example.place, number))
                break
            updates.replayed[str(ending_of(played.state).cause)] += 1
            if replaced:  # what failed once may be in order at once
                await asyncio.sleep(seconds_before_retry(replaced - 1))
            replaced += 1
        played.state["attempt"] = attempt
        if ending_of(played.state) is Ending.TRUNCATED:
            await _note_last(played, run.agent)
        return played

    async def close(self) -> None:
        """Leave the environment to the next worker."""
        self._run.idle.append(self)

    def _ask(self, answer: Answering, observation: list[Message], info: dict[str, Any], episode: BaseEpisode) -> Any:
        """Return what the agent answers, once there is no pause (see `ask_in_time`)."""
        updates = self._updates
        updates.hold(episode)
        self._versions.note_turn()
        with updates.asking():
            return ask_in_time(self._droppable(answer), observation, info, episode.deadline)

    def _droppable(self, answer: Answering) -> Answering:
        """Return what answers, so that it can be given up while it is awaited."""
        if self._updates.on_update != "drop" or is_blocking(answer):
            return answer

        def ask(observation: list[Message], info: dict[str, Any]) -> Any:
            answered = answer(observation, info)
            return self._updates.unless_dropped(answered) if is_awaitable(answered) else answered

        return ask


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


def _note_error(played: engine.PlayedRollout) -> None:
    """Let a state tell of what broke its rollout off."""
    if played.failure is not None and played.state["error"] is None:
        played.state["error"] = as_error(played.failure)


async def _note_last(played: engine.PlayedRollout, agent: Agent) -> None:
    """Note in a truncated state what bootstrapping needs, where its conversation and the tokens of its turns do not tell it."""
    state = played.state
    if not state["trajectory"] or state["trajectory"][-1]["extras"].get("self_play"):
        return
    if isinstance(played.env, GameTurnsEnv) and state.get("prompt_history") is not None:
        state["last_observation"] = list(await maybe_await(GameTurnsEnv.get_prompt_messages, played.env, state))
    prompt_ids = getattr(agent, "prompt_ids", None)
    if prompt_ids is not None and state["trajectory"][-1]["tokens"] is not None and last_ids_of(state) is None:
        try:
            state["last_ids"] = await prompt_ids(last_observation_of(state), state)
        except Exception as error:  # the rollout is whole without them
            logger.warning("the last observation of example %s could not be tokenised: %r", state["example_id"], error)


def _as_group(group: engine.GroupJob, run: str, declared: FailureRewards) -> Group:
    example = group.example
    states = [played.state for played in group.played]
    for played in group.played:
        _note_error(played)
        state = played.state
        state["group"] = f"{run}/{example.place}"
        if not ending_of(state).counts_with_return:
            state.failure_reward = declared.failure_reward(example.example_id)
    errors = [played.failure or played.state["error"] for played in group.played]
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
