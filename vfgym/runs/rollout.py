"""`rollout`: groups of rollouts for training, as they finish.

The rollouts of a group begin alike, from one task and one seed; what makes them differ is who answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import logging
import os
from collections import Counter, deque
from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np

from vfgym.agents.base import Agent, Answering, EpisodeAgent, per_episode
from vfgym.agents.loading import as_agent
from vfgym.agents.model import ModelAgent
from vfgym.aio.bridge import bridge
from vfgym.aio.steps import run_async
from vfgym.calls import is_awaitable, maybe_await
from vfgym.endings import Ending, ending_of
from vfgym.envs.chat import ChatEnv
from vfgym.episode import BaseEpisode
from vfgym.errors import ConfigurationError, EpisodeNotPicklable, Error, FailureCause
from vfgym.lifecycle import is_blocking
from vfgym.limits import RolloutMeter
from vfgym.messages import Message
from vfgym.results.credit import check_word, is_dropped
from vfgym.results.samples import group_advantages, group_rewards, last_ids_of, last_observation_of
from vfgym.runs import engine
from vfgym.runs.failure_rewards import FailureRewards
from vfgym.runs.inputs import Example, Seeds
from vfgym.runs.kept_episodes import (
    EpisodeStart,
    check_fits,
    describe_run,
    keep_episode,
    keep_value,
    load_definitions,
    open_episode,
    read_episode,
    read_value,
)
from vfgym.runs.replicas import EnvLike, Replica, Replicas
from vfgym.runs.retries import seconds_before_retry
from vfgym.runs.spec import check_integer
from vfgym.runs.step_player import EpisodeUnderWay, StepPlayer, StepPlayerConfig, ask_in_time
from vfgym.runs.updates import OnUpdate, PlayedVersions, PolicyUpdates, Superseded
from vfgym.state import State
from vfgym.tasks import TaskStream, as_integer
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

    def __init__(self, run: _Run) -> None:
        """Give the groups of a run."""
        self._run, self._updates = run, run.updates
        self._groups = run.play()

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

    async def state_dict(self) -> dict[str, Any]:
        """Return where the run stands, as plain data that JSON, `pickle` and ``torch.save`` can write.

        In it is every group that was not delivered: what was played of it, and the episodes that are under way, as they stand before a
        turn. This waits until all of them stand there, for answers and for what environments do; then they go on. What has been delivered
        is not in it, nor is the policy.

        Raises:
            EpisodeNotPicklable: If something cannot be kept; the text says which part, and why.
            ConfigurationError: If the environment cannot work, or the run is over.
        """
        return await self._run.state_dict()

    async def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state_dict` was called, in this process or another one. Call it before the first group is taken.

        The state is loaded as a pickle is: load none that a stranger may have written.

        Args:
            state: What `state_dict` of such a run returned: of the same environment and the same arguments, and with a policy of the
                version that it had then.

        Raises:
            ConfigurationError: If it is the state of something else, or a group has been taken; the run stands as it was.
        """
        await self._run.load_state_dict(state)

    async def asend(self, value: None) -> Group:
        """Return the next group."""
        return await self._groups.asend(value)

    async def athrow(self, *error: Any) -> Group:
        """End with an error."""
        return await self._groups.athrow(*error)

    async def aclose(self) -> None:
        """End what is running, and clean up. A second call does nothing."""
        await self._groups.aclose()
        await self._run.close()


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
    ids = (
        None
        if example_ids is None
        else [example_id if (number := as_integer(example_id)) is None else number for example_id in example_ids]
    )
    settings = _Settings(split, ids, group_size, seed, max_concurrent, replace, max_staleness, on_update)
    return RolloutStream(_Run(env, agent, settings))


@dataclass(frozen=True, slots=True)
class _Settings:
    """What a run was asked for."""

    split: Literal["train", "eval"]
    example_ids: list[int] | None
    group_size: int
    seed: int
    max_concurrent: int
    replace: int
    max_staleness: int | None
    on_update: OnUpdate


class _Run:
    """A run: its groups, and what its workers share."""

    def __init__(self, env: EnvLike, agent: Agent, settings: _Settings) -> None:
        """Prepare a run; nothing is made before it is opened."""
        self._env, self.agent, self._settings = env, agent, settings
        self.updates = PolicyUpdates(agent, settings.max_staleness, settings.on_update)
        self.replace = settings.replace
        self.gate = asyncio.Semaphore(max(_AHEAD * settings.max_concurrent, settings.group_size))
        """Lets rollouts begin, no more than are taken."""
        self.id = os.urandom(8).hex()
        self.idle: list[_GatedPlayer] = []
        """Players that no worker has."""
        self._players: list[_GatedPlayer] = []
        """All players."""
        self.broken: set[tuple[int, int]] = set()
        """Rollouts that no replacement could play to their end: the place of their group, and their number."""
        self._replaced: Counter[int] = Counter()
        """How often a whole group was replaced, by its place."""
        self._replicas = Replicas()
        self._definition: ChatEnv | None = None
        """The environment; None until the run is opened."""
        self._has_begun = self._is_over = False

    async def open(self) -> ChatEnv:
        """Make the environment, unless it is there, and return it.

        Raises:
            ConfigurationError: If it cannot work, or the run is over.
        """
        if self._is_over:
            raise ConfigurationError("this run is over: call vfgym.rollout again")
        if self._definition is None:
            definition: ChatEnv = await bridge(self._replicas.open, self._env, {})
            settings, seeds = self._settings, Seeds(self._settings.seed)
            declared = FailureRewards(definition, settings.split)
            examples = await bridge(_examples, definition, settings)
            self._config = StepPlayerConfig(
                per_episode(self.agent),
                settings.split,
                lambda example, number: seeds.of(example, 0),
                declared,
                policy=self.agent,
                members_begin_alike=True,
            )
            self._jobs = _Jobs(examples, settings.group_size)
            self._definition = definition
        return self._definition

    async def close(self) -> None:
        """Close what was made. A second call does nothing."""
        self._is_over = True
        await bridge(self._replicas.close)

    async def _new_player(self) -> _GatedPlayer:
        if self.idle:
            return self.idle.pop()
        player = _GatedPlayer(self, self._config, await bridge(self._replicas.take, defers_scoring=True))
        self._players.append(player)
        return player

    async def play(self) -> AsyncGenerator[Group, None]:
        """Give the groups as they finish."""
        try:
            await self.open()
            self._has_begun = True
            jobs, updates, most = self._jobs, self.updates, _AHEAD * self._settings.max_concurrent
            num_workers = self._replicas.limit_workers(self._settings.max_concurrent)
            playing = engine.Engine(self._new_player, in_groups=True)
            updates.start_taking()
            while jobs.finished:
                group = self._delivered(jobs.finished.popleft())
                if group is not None:
                    yield group
                    del group
                    updates.start_taking()
            while jobs.has_more():
                async with contextlib.aclosing(playing.finished(jobs, num_workers, most_waiting=most)) as done:
                    async for job in done:
                        for _ in job.numbers:
                            self.gate.release()
                        group = self._delivered(job)
                        if group is not None:
                            yield group
                            del group, job  # its states are let go while the next one is waited for
                            updates.start_taking()
        finally:
            await self.close()

    def _delivered(self, job: engine.GroupJob) -> Group | None:
        """Return a group that is done, if it can be given; else it begins again."""
        group = _as_group(job, self.id, self._config.declared)
        why = self._why_again(group)
        attempts = group.attempt
        known = self._jobs.under_way.pop(group.index, None)
        if known is not None:
            known.rollouts.clear()  # a worker may still hold the group, and its states are to be let go
        if why is not None:
            self.updates.replayed[why] += len(attempts)
            self.updates.give_up(group.index)
            self._jobs.begin_again(job, attempts)
            return None
        self.updates.stop_taking(group.index)
        return group

    def _why_again(self, group: Group) -> str | None:
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
        if unscored and self._replaced[place] < self.replace:
            self._replaced[place] += 1
            return unscored[0]
        del self._replaced[place]
        return None

    # Going on in another process

    async def _describe(self) -> tuple[Replica, dict[str, Any]]:
        """Return an environment of the run, and what states of the run are of."""
        definition = await self.open()
        if not self._players:
            self.idle.append(await self._new_player())
        replica = self._players[0].replica
        num_tasks = len(definition.tasks_of(self._settings.split))
        return replica, describe_run("vfgym.rollout", replica, num_tasks=num_tasks, **dataclasses.asdict(self._settings))

    async def state_dict(self) -> dict[str, Any]:
        """See `RolloutStream.state_dict`."""
        await self.open()
        async with self.updates.standing_still():
            replica, of = await self._describe()
            jobs = sorted(self._jobs.under_way.values(), key=lambda job: job.example.place)
            return {
                "of": of,
                "run": self.id,
                "place": self._jobs.place,
                "policy": self.updates.state_dict(),
                "broken": sorted(map(list, self.broken)),
                "replaced": sorted(map(list, self._replaced.items())),
                "groups": [await job.keep(replica, self.agent) for job in jobs],
                "again": [[job.example.place, job.example.example_id, job.example.rows, job.attempts] for job in self._jobs.again],
                "environments": self._states_of_environments(),
            }

    def _states_of_environments(self) -> list[dict[str, Any]]:
        definitions = [*{id(player.replica.seat.definition): player.replica.seat.definition for player in self._players}.values()]
        states = [definition.state_dict() for definition in definitions]
        if any(states[1:]):
            raise EpisodeNotPicklable(
                f"{type(definitions[0]).__name__} cannot be kept: each of the {len(states)} environments that a function made has learned"
                " on its own: give one environment, which is played on forks"
            )
        return states[:1]

    async def load_state_dict(self, state: Any) -> None:
        """See `RolloutStream.load_state_dict`."""
        definition = await self.open()
        if self._has_begun:
            raise ConfigurationError("a state is loaded before the first group is taken: call vfgym.rollout again, and load it then")
        replica, of = await self._describe()
        check_fits(state, of, ("run", "place", "policy", "broken", "replaced", "groups", "again", "environments"))
        self.updates.check_state(state["policy"])
        size = self._settings.group_size
        restored = [_Job.restore(kept, size, replica, self.agent) for kept in state["groups"]]
        load_definitions([definition], state["environments"])
        self._jobs.go_on(state["place"], restored, [_Job.of(*each, num=size) for each in state["again"]])
        self.updates.load_state_dict(state["policy"])
        self.id = state["run"]
        self.broken, self._replaced = set(map(tuple, state["broken"])), Counter(dict(state["replaced"]))


class _Jobs:
    """The groups to be played: those that have to begin again or to go on, and then those of further examples. More may come later."""

    def __init__(self, examples: Iterator[Example], group_size: int) -> None:
        self._examples, self._numbers = examples, range(group_size)
        self.place = 0
        """The place of the next further example."""
        self.again: deque[_Job] = deque()
        """Groups that nobody has begun, or that have to begin again."""
        self.under_way: dict[int, _Job] = {}
        """The groups that were begun and not delivered, by their places."""
        self.finished: deque[engine.GroupJob] = deque()
        """Groups that were done and not delivered when the state was taken with which this run began."""
        self._is_new = True

    def __iter__(self) -> Iterator[engine.GroupJob]:
        return self

    def __next__(self) -> engine.GroupJob:
        self._is_new = False
        if self.again:
            job = self.again.popleft()
        else:
            job = _Job(next(self._examples), self._numbers)
            self.place += 1
        self.under_way[job.example.place] = job
        return job

    def begin_again(self, job: engine.GroupJob, attempts: list[int]) -> None:
        """Let a group that was played begin again, after so many attempts at each of its rollouts."""
        self.again.append(_Job(job.example, job.numbers, attempts=attempts))

    def has_more(self) -> bool:
        """Say whether a group is to be played that nobody has begun: none have, or some came back after the last."""
        return self._is_new or bool(self.again)

    def go_on(self, place: int, restored: list[_Job], again: list[_Job]) -> None:
        """Go on with groups that were kept."""
        for _ in range(place):  # what was drawn before
            next(self._examples, None)
        self.place = place
        self.finished = deque(job.as_done() for job in restored if job.is_done)
        self.again = deque([*(job for job in restored if not job.is_done), *again])
        self.under_way = {job.example.place: job for job in restored}


@dataclass(slots=True)
class _Rollout:
    """What is known of one rollout of a group that was not delivered."""

    attempt: int = 0
    """Which attempt it is at; 0 before the first."""
    replaced: int = 0
    player: _GatedPlayer | None = None
    """Who plays it, or has."""
    kept: Any = None
    """The episode to go on with, as plain data."""
    played: engine.PlayedRollout | None = None
    """What was played, once it is at its end."""


@dataclass(slots=True)
class _Job(engine.GroupJob):
    """A group to be played, perhaps once more."""

    attempts: list[int] = dataclasses.field(default_factory=list)
    """How many attempts at each of its rollouts there were before; empty for none."""
    rollouts: dict[int, _Rollout] = dataclasses.field(default_factory=dict)
    """Those that have begun, by their numbers."""

    @classmethod
    def of(cls, place: int, example_id: int, position: Any, attempts: list[int], *, num: int) -> _Job:
        """Return a group of so many rollouts."""
        return cls(Example(example_id, position, num, place), range(num), attempts=list(attempts))

    @property
    def is_done(self) -> bool:
        """Whether all were played, and scored where they can be."""
        played = [rollout.played for rollout in self.rollouts.values()]
        return len(played) == len(self.numbers) and all(
            each is not None and (each.is_scored or each.failure is not None) for each in played
        )

    def as_done(self) -> engine.GroupJob:
        """Return it with what was played."""
        played = [rollout.played for _, rollout in sorted(self.rollouts.items()) if rollout.played is not None]
        return engine.GroupJob(self.example, self.numbers, played)

    def take(self, number: int) -> _Rollout:
        """Return a rollout, which may have begun before."""
        if number not in self.rollouts:
            self.rollouts[number] = _Rollout(self.attempts[number] if self.attempts else 0)
        return self.rollouts[number]

    async def keep(self, replica: Replica, agent: Agent) -> dict[str, Any]:
        """Return what is known of it as plain data."""
        example = self.example
        kept = []
        for number, rollout in sorted(self.rollouts.items()):
            what = f"rollout {number} of group {example.place}"
            data: Any = {"number": number, "attempt": rollout.attempt, "replaced": rollout.replaced, "played": None}
            if rollout.played is not None:
                own = replica if rollout.player is None else rollout.player.replica
                data["played"] = keep_value(_without_session(rollout.played), what, own, agent)
            else:
                data["episode"] = rollout.kept if rollout.player is None else await rollout.player.keep(what)
            kept.append(data)
        return {"group": [example.place, example.example_id, example.rows, self.attempts], "rollouts": kept}

    @classmethod
    def restore(cls, kept: Any, num: int, replica: Replica, agent: Agent) -> _Job:
        """Return a group that was kept.

        Raises:
            ConfigurationError: If it is damaged, or of another environment.
        """
        job = cls.of(*kept["group"], num=num)
        for data in kept["rollouts"]:
            rollout = _Rollout(data["attempt"], data["replaced"], kept=data.get("episode"))
            if data["played"] is not None:
                rollout.played = read_value(data["played"], replica, agent)
            elif rollout.kept is not None:
                read_episode(rollout.kept, replica, agent)
            job.rollouts[data["number"]] = rollout
        return job


def _without_session(played: engine.PlayedRollout) -> engine.PlayedRollout:
    """Return what was played without the game, in which the next episode runs already."""
    state = copy.copy(played.state)
    state.session = None
    return dataclasses.replace(played, state=state)


class _GatedPlayer:
    """Begins no rollout before the gate lets it, so that no more begin than are taken, and plays again what was broken or given up."""

    def __init__(self, run: _Run, config: StepPlayerConfig, replica: Replica) -> None:
        self._run, self._updates, self._config, self.replica = run, run.updates, config, replica
        self._player = StepPlayer(dataclasses.replace(config, ask=self._ask, asked_version=lambda: self._versions.asked), replica)
        self._versions = PlayedVersions(run.updates)

    async def play(self, group: engine.GroupJob, number: int, limit: RolloutMeter | None = None) -> engine.PlayedRollout:
        """Play a rollout, to an end that says something of the policy if replacing it helps."""
        rollout = cast(_Job, group).take(number)
        await self._updates.begin(group.example.place)
        await self._run.gate.acquire()
        rollout.player = self
        if rollout.played is None:
            rollout.played = await self._play(group, number, rollout, limit)
        return rollout.played

    async def _play(self, group: engine.GroupJob, number: int, rollout: _Rollout, limit: RolloutMeter | None) -> engine.PlayedRollout:
        updates, run = self._updates, self._run
        while True:
            await updates.resumed()
            self._versions = PlayedVersions(updates)
            with updates.playing():
                if rollout.kept is None:
                    rollout.attempt += 1
                    played = await self._player.play(group, number, limit)
                else:
                    played = await self._go_on(group, number, rollout, limit)
            if isinstance(played.state.get("error"), Superseded):
                updates.replayed["updated"] += 1
                continue
            if not is_dropped(played.state, "drop"):
                break
            if rollout.replaced == run.replace:
                run.broken.add((group.example.place, number))
                break
            updates.replayed[str(ending_of(played.state).cause)] += 1
            rollout.replaced += 1
            if rollout.replaced > 1:  # what failed once may be in order at once
                await asyncio.sleep(seconds_before_retry(rollout.replaced - 2))
        played.state["attempt"] = rollout.attempt
        if ending_of(played.state) is Ending.TRUNCATED:
            with updates.playing():
                await _note_last(played, run.agent)
        return played

    async def _go_on(self, group: engine.GroupJob, number: int, rollout: _Rollout, limit: RolloutMeter | None) -> engine.PlayedRollout:
        """Play a rollout to its end whose episode was kept."""
        opened = await run_async(open_episode(rollout.kept, self.replica, self._run.agent))
        await run_async(opened.take())
        rollout.kept = None
        answer, versions, observation, info, (seen_return, num_turns) = opened.beside.values()
        self._versions.load_state(versions)
        episode = cast(BaseEpisode, self.replica.seat.episode)
        played = engine.PlayedRollout(number, cast(ChatEnv, episode.definition), episode.state, seen_return=seen_return)
        return await self._player.go_on(group, EpisodeUnderWay(played, answer, observation, info, seen_return, num_turns), limit)

    async def keep(self, what: str) -> dict[str, Any] | None:
        """Return the episode that is played as plain data; None where there is none at the moment."""
        now, seat = self._player.under_way, self.replica.seat
        if now is None:
            return None
        beside = {
            "who answers": now.answer,
            "the versions of the policy": self._versions.state(),
            "the observation": now.observation,
            "info": now.info,
            "what was earned": (now.seen_return, now.num_turns),
        }
        state = cast(State, seat.state)
        beginning = None
        if not seat.definition.can_go_back:
            example = Example(state["example_id"], 0, 1)
            beginning = EpisodeStart(seat.np_random_seed, {"example_id": example.example_id, "split": self._config.split})
        return await run_async(keep_episode(what, self.replica, beside, beginning, self._run.agent))

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


def _examples(definition: ChatEnv, settings: _Settings) -> Iterator[Example]:
    """Return the examples in the order in which their groups begin, each with its place in that order."""
    split, example_ids, group_size, seed = settings.split, settings.example_ids, settings.group_size, settings.seed
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
