"""The engine of every run: workers take rollouts from one iterator, players play them, and the last of a group to finish scores it.

So the number of rollouts at once is what was asked for, however large groups are, and a group that is done is scored while others
still play.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from vfgym.aio.collector import seldom_collecting
from vfgym.aio.loop_watch import watch_loop
from vfgym.aio.steps import Steps, all_of, begin
from vfgym.calls import rollout_failure
from vfgym.clients import is_permanent_refusal
from vfgym.envs.chat import ChatEnv
from vfgym.episode.endings import fail_ending
from vfgym.episode.scoring import score_alone, score_together
from vfgym.errors import ConfigurationError
from vfgym.limits import RolloutMeter, Spending
from vfgym.results import RolloutOutput
from vfgym.rubrics.scoring import apply_advantages
from vfgym.runs.failures import FailureLog
from vfgym.runs.inputs import Example
from vfgym.runs.spending import Budget, RunSpending
from vfgym.state import State

logger = logging.getLogger(__name__)

_SECONDS_A_TURN = 0.005
"""For how long a worker plays at most, where nothing is waited for, until the others and a cancellation get their turn."""


@dataclass(slots=True)
class PlayedRollout:
    """A rollout that was played, as far as it went."""

    number: int
    """Which rollout of its example it is, from 0."""
    env: ChatEnv
    """The environment that played it: one of a group's, where the environment is a group."""
    state: State
    failure: Exception | None = None
    """What broke it off, where that is not in the state."""
    seen_return: float | None = None
    """Sum of the rewards as wrappers passed them on; None where there are none."""
    route: Sequence[str] = ()
    """Names by which an `EnvGroup` found that environment."""
    fingerprint: str | None = None
    """That of its task (see `vfgym.results.fingerprint_of`)."""
    seed: int | None = None
    """With which its episode was reset."""
    pair: Mapping[str, Any] = field(default_factory=dict)
    """Its ``player`` and its ``pair``, where each game is played from both seats."""
    rows: Sequence[RolloutOutput] | None = None
    """The rows of it, where an author's own method made them: they are scored, and kept as they are."""
    is_scored: bool = False
    """Whether it was scored: a stepped episode is as it is played, in its last step, unless that is deferred."""
    spent: Spending | None = None
    """What was asked of models for it; None where nobody wants to know."""

    def __post_init__(self) -> None:
        if self.failure is not None:
            self.fail(self.failure)

    def fail(self, failure: BaseException) -> None:
        """Note what broke it off, and that it ended so."""
        self.failure = fail_ending(self.env, self.state, failure)


@dataclass(slots=True)
class GroupJob:
    """The rollouts of one example that are played in this run."""

    example: Example
    numbers: Sequence[int]
    played: list[PlayedRollout] = field(default_factory=list)
    client: Any = None
    """Who is asked, where a client is asked for whole groups."""


class Player(Protocol):
    """Plays one rollout after another, for one worker."""

    async def play(self, group: GroupJob, number: int, limit: RolloutMeter | None = None) -> PlayedRollout:
        """Play one rollout to its end, within what it may spend. What is raised ends the run."""
        ...

    async def close(self) -> None:
        """Release what was kept between rollouts."""
        ...


class _InOrder:
    """The rollouts of groups, one after the other, whoever asks for the next one."""

    def __init__(self, groups: Iterable[GroupJob]) -> None:
        self._rollouts = ((group, number) for group in groups for number in group.numbers)

    def __aiter__(self) -> AsyncIterator[tuple[GroupJob, int]]:
        return self

    async def __anext__(self) -> tuple[GroupJob, int]:
        for rollout in self._rollouts:
            return rollout
        raise StopAsyncIteration


class Engine:
    """Plays and scores groups of rollouts, a number of them at once."""

    def __init__(
        self,
        new_player: Callable[[], Awaitable[Player]],
        *,
        in_groups: bool,
        max_concurrent_scoring: int = -1,
        strict: bool = False,
        spending: RunSpending | None = None,
    ) -> None:
        """Prepare a run.

        Args:
            new_player: Makes the player of each worker.
            in_groups: Whether the rollouts of an example are scored together, with advantages; else each alone, as soon as it is over.
            max_concurrent_scoring: How many groups (or rollouts) are scored at once; no limit where it is not positive.
            strict: Whether the first exception that breaks a rollout off ends the run.
            spending: What the run may spend.
        """
        self._new_player = new_player
        self._in_groups = in_groups
        self._scoring_limit = asyncio.Semaphore(max_concurrent_scoring) if max_concurrent_scoring > 0 else None
        self._strict = strict
        self._spending = spending or RunSpending(Budget(), most_at_once=0)
        self._failures = FailureLog()

    async def play(
        self,
        groups: Iterable[GroupJob] | AsyncIterator[tuple[GroupJob, int]],
        num_workers: int,
        finish: Callable[[GroupJob], Awaitable[None] | None],
    ) -> None:
        """Play and score all rollouts of all groups.

        Args:
            groups: The groups; they are taken as workers get to them, and may have no end. Or their rollouts, which may have to be
                waited for.
            num_workers: Most rollouts at once.
            finish: Called with each group that is done (each rollout, where they are scored alone); ``group.played`` has what was
                played. Where it has to be awaited, its worker waits.
        """
        rollouts = groups if isinstance(groups, AsyncIterator) else _InOrder(groups)
        with watch_loop(), seldom_collecting():
            await all_of([self._work(rollouts, finish) for _ in range(num_workers)])

    async def finished(self, groups: Iterable[GroupJob], num_workers: int, most_waiting: int = 1) -> AsyncGenerator[GroupJob, None]:
        """Play and score groups, and give each as soon as it is done.

        Args:
            groups: The groups; they may have no end.
            num_workers: Most rollouts at once.
            most_waiting: How many groups may be done and not taken yet: with more, workers wait.
        """
        done: asyncio.Queue[GroupJob] = asyncio.Queue(most_waiting)
        playing = asyncio.ensure_future(self.play(groups, num_workers, done.put))
        taking: asyncio.Future[GroupJob] | None = None
        try:
            while not (playing.done() and done.empty()):
                taking = asyncio.ensure_future(done.get())
                await asyncio.wait({taking, playing}, return_when=asyncio.FIRST_COMPLETED)
                if taking.done():
                    yield taking.result()
            playing.result()
        finally:
            if taking is not None:
                taking.cancel()
            playing.cancel()
            await asyncio.wait({playing})

    async def _work(self, rollouts: AsyncIterator[tuple[GroupJob, int]], finish: Callable[[GroupJob], Awaitable[None] | None]) -> None:
        player = await self._new_player()
        try:
            turn_began = time.monotonic()
            async for group, number in rollouts:
                self._spending.check_may_begin()
                played = await self._play_one(player, group, number)
                group.played.append(played)
                del played  # nothing but the group holds on to it while the next one is played
                if not self._in_groups or len(group.played) == len(group.numbers):
                    done = GroupJob(group.example, group.numbers, sorted(group.played, key=lambda each: each.number))
                    group.played = []
                    await self._score(done)
                    self._spending.check_goes_on()
                    finishing = finish(done)
                    del done  # its states are let go before the next rollout is played
                    if finishing is not None:
                        await finishing
                now = time.monotonic()
                if now - turn_began > _SECONDS_A_TURN:
                    await asyncio.sleep(0)
                    turn_began = now
        finally:
            await player.close()

    async def _play_one(self, player: Player, group: GroupJob, number: int) -> PlayedRollout:
        with self._spending.of_rollout(number) as meter:
            played = await player.play(group, number, meter)
        played.spent = None if meter is None or self._spending.meter is None else meter.spent
        self._spending.check_goes_on()
        failure = played.failure
        if failure is not None and (self._strict or is_permanent_refusal(failure)):
            raise failure from failure.__cause__
        error = failure or played.state.get("error")
        if error is not None:
            self._failures.note(group.example.example_id, number, error)
        return played

    async def _score(self, group: GroupJob) -> None:
        """Score the rollouts that were played to their end; one whose scoring fails is a failed one."""
        whole = [played for played in group.played if played.failure is None and played.rows is None]
        if not whole:
            return
        example_id = group.example.example_id
        try:
            async with self._scoring_limit or contextlib.nullcontext():
                with self._spending.of_scoring(whole[0].number) as meter:
                    try:
                        failures = await begin(self._scoring(example_id, whole))
                    finally:
                        if meter is not None:
                            _share(meter.spent, whole)
        except BaseException as raised:
            error = rollout_failure(raised)
            if self._strict:
                raise error from error.__cause__
            logger.exception("scoring the rollouts of example %s failed", example_id)
            for played in whole:
                played.fail(error)
            return
        for played in whole:
            played.is_scored = True
        for played, failure in zip(whole, failures, strict=False):
            if failure is not None:
                if self._strict:
                    raise failure
                self._failures.note(example_id, played.number, failure)
                played.fail(failure)

    def _scoring(self, example_id: int, members: list[PlayedRollout]) -> Steps[list[Exception | None]]:
        """Score rollouts that were played to their end. Return whose scoring ended its rollout (see `score_together`).

        Each may have been played in an environment of its own: those with one route are made alike, and the first one's rubric scores all.
        """
        first = members[0]
        if not self._in_groups:
            if not first.is_scored:
                yield from score_alone(first.env, first.state)
            return []
        if any(played.route != first.route for played in members):
            raise ConfigurationError(f"the rollouts of example {example_id} belong to different environments of the group")
        states = [played.state for played in members]
        if not first.is_scored:
            return (yield from score_together(first.env, states))
        apply_advantages(states)
        return []


def _share(spent: Spending, members: Sequence[PlayedRollout]) -> None:
    """Add what scoring spent to what the rollouts that were scored did: in equal shares, and whole requests to the first."""
    for number, played in enumerate(members):
        if played.spent is not None:
            played.spent.add(spent, 1 / len(members), requests=spent.requests if number == 0 else 0)
