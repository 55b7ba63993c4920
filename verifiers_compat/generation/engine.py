"""The engine of `generate`: a fixed number of workers takes rollouts from one iterator.

Each rollout is a task of one worker; the last of a group to finish scores the group. So the number of rollouts at once is
what was asked for, however large groups are, and a group that is done is scored while others still play.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import Awaitable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from verifiers_compat.generation.inputs import Example, Inputs
from verifiers_compat.generation.retrying import play_with_retries
from verifiers_compat.generation.settings import Settings
from verifiers_compat.generation.telling import Teller
from vfgym.aio.loop_watch import watched_loop
from vfgym.aio.steps import all_of, begin
from vfgym.calls import rollout_failure
from vfgym.clients import Client
from vfgym.envs.chat import ChatEnv
from vfgym.envs.group import route_of, with_route
from vfgym.episode.scoring import score_alone, score_together
from vfgym.errors import ConfigurationError
from vfgym.evaluation.failures import FailureLog
from vfgym.results import (
    Earlier,
    GenerateOutputs,
    ResultsError,
    ResultsWriter,
    RolloutOutput,
    Run,
    Slot,
    fingerprint_of,
    rollout_output,
)
from vfgym.results.left_out import LeftOutLog
from vfgym.results.resume import has_rows
from vfgym.rollouts import Player
from vfgym.state import State, unbegun

logger = logging.getLogger(__name__)

_ROLLOUTS_A_TURN = 16


@dataclass(slots=True)
class Played:
    """A rollout that was played."""

    number: int
    """Which rollout of its example it is, from 0."""
    env: ChatEnv
    """The environment that played it."""
    route: list[str]
    """Names by which an `EnvGroup` found that environment."""
    state: State
    failure: Exception | None
    """What broke it off, where that is not in the state."""
    fingerprint: str | None = None
    """That of its task, where results are saved."""


@dataclass(slots=True)
class Group:
    """The rollouts of one example that are played in this run."""

    example: Example
    numbers: Sequence[int]
    client: Client | None = None
    played: list[Played] = field(default_factory=list)


class Generation:
    """One run."""

    def __init__(
        self,
        definition: ChatEnv,
        inputs: Inputs,
        clients: Sequence[Client],
        settings: Settings,
        run: Run,
        teller: Teller,
        writer: ResultsWriter | None,
        outputs: list[RolloutOutput],
    ) -> None:
        """Prepare a run.

        Args:
            definition: Whose rollouts.
            inputs: What is played.
            clients: Who is asked: groups (rollouts, where they are scored alone) take them in turn.
            settings: How it goes.
            run: What is written about it.
            teller: Whom it is told to.
            writer: Where rows are appended.
            outputs: Rows of an earlier run that are kept; new ones are added.
        """
        self.definition = definition
        self.inputs = inputs
        self.clients = clients
        self.settings = settings
        self.run = run
        self.teller = teller
        self.writer = writer
        self.outputs = outputs
        limit = settings.max_concurrent_scoring
        self.scoring_limit = asyncio.Semaphore(limit) if limit > 0 else None
        self._client_turns = 0
        self._failures = FailureLog()
        self._left_out = LeftOutLog()

    async def play_all(self, groups: Sequence[Group]) -> None:
        """Play and score all rollouts of `groups`."""
        total = sum(len(group.numbers) for group in groups)
        rollouts = ((group, number) for group in groups for number in group.numbers)
        limit = self.settings.max_concurrent
        with watched_loop():
            await all_of([self._work(rollouts) for _ in range(total if limit <= 0 else min(limit, total))])

    async def _work(self, rollouts: Iterator[tuple[Group, int]]) -> None:
        player = Player()
        try:
            for count, (group, number) in enumerate(rollouts, start=1):
                played = await self._play(player, group, number)
                group.played.append(played)
                del played  # nothing but the group holds on to it while the next one is played
                if self.settings.independent_scoring or len(group.played) == len(group.numbers):
                    await self._score(group)
                if count % _ROLLOUTS_A_TURN == 0:
                    await asyncio.sleep(0)  # where no model is waited for, other workers and a cancellation still get their turn
        finally:
            await player.close()

    async def _play(self, player: Player, group: Group, number: int) -> Played:
        example = group.example
        fingerprint = None
        try:
            task = self.inputs.task(example, number)
            if self.writer is not None:  # before the rollout, whose hooks may write to what it starts from
                fingerprint = fingerprint_of(task)
            route = route_of(task)
            env, task = self.definition.routed(task)
        except Exception as error:  # a row that cannot be read, or that belongs nowhere
            if self.settings.strict:
                raise
            self._failures.note(example.example_id, number, error)
            return Played(number, self.definition, [], unbegun({"example_id": example.example_id}), error, fingerprint)
        fresh: list[dict[str, Any]] = [task]

        def new_task() -> dict[str, Any]:
            return fresh.pop() if fresh else self.definition.routed(self.inputs.task(example, number))[1]

        state, failure = await play_with_retries(
            player,
            env,
            new_task,
            self._client_of(group),
            self.settings.model,
            self.settings.sampling_args,
            max_retries=self.settings.max_retries,
            strict=self.settings.strict,
        )
        if failure is not None:
            self._failures.note(example.example_id, number, failure)
        return Played(number, env, route, state, failure, fingerprint)

    def _client_of(self, group: Group) -> Client:
        if self.settings.independent_scoring or group.client is None:
            group.client = self.clients[self._client_turns % len(self.clients)]
            self._client_turns += 1
        return group.client

    async def _score(self, group: Group) -> None:
        """Score the rollouts of a group that were played to their end, and record all."""
        example = group.example
        members, group.played = sorted(group.played, key=lambda each: each.number), []
        whole = [played for played in members if played.failure is None]
        if whole:
            try:
                if self.scoring_limit is None:
                    failures = await self._scored(example, whole)
                else:
                    async with self.scoring_limit:
                        failures = await self._scored(example, whole)
            except BaseException as raised:
                error = rollout_failure(raised)
                if self.settings.strict:
                    raise error from error.__cause__
                logger.exception("scoring the rollouts of example %s failed", example.example_id)
                for played in whole:
                    played.failure = error
            else:
                for played, failure in zip(whole, failures or (), strict=False):
                    if failure is not None:
                        if self.settings.strict:
                            raise failure
                        self._failures.note(example.example_id, played.number, failure)
                        played.failure = failure
        self._record(group, members)

    def _scored(self, example: Example, members: list[Played]) -> Awaitable[list[Exception | None] | None]:
        """Begin to score rollouts that were played to their end; groups tell whose scoring ended its rollout (see `score_together`)."""
        first = members[0]
        if self.settings.independent_scoring:
            scoring: Awaitable[Any] = begin(score_alone(first.env, first.state))
            return scoring
        if len(members) > 1 and any(played.env is not first.env for played in members):
            raise ConfigurationError(f"the rollouts of example {example.example_id} belong to different environments of the group")
        scoring = begin(score_together(first.env, [played.state for played in members]))
        return scoring

    def _record(self, group: Group, members: list[Played]) -> None:
        new = []
        for played in members:
            row = rollout_output(
                played.state,
                rollout=played.number,
                error=played.failure,
                state_columns=self.settings.state_columns,
                fingerprint=played.fingerprint,
                is_counted=False,
                left_out=self._left_out,
            )
            row["example_id"] = group.example.example_id
            label = played.state["input"].get("task")
            if isinstance(label, str):
                row["task"] = label
            if played.route:
                row["info"] = with_route(row, played.route)["info"]
            new.append(row)
        self.outputs += new
        if self.writer is not None:
            for row in new:
                self.writer.append(row)
            self.writer.update_metadata(lambda: self.run.metadata(self.outputs))
        self.teller.finished(self.outputs, new, self.run)


async def generate(
    definition: ChatEnv, inputs: Inputs, clients: Sequence[Client], settings: Settings, run: Run, teller: Teller
) -> GenerateOutputs:
    """Play all inputs, and return their rows with the run's metadata.

    What was finished is on disk, where results are saved, whatever ends the run.

    Raises:
        ConfigurationError: If the results of another run are in the way.
        vfgym.results.ResultsError: If results cannot be written; its ``outputs`` are what was finished.
    """
    groups = [Group(example, range(example.num_rollouts)) for example in inputs.examples()]
    outputs: list[RolloutOutput] = []
    if run.path_to_save is None:
        with teller.started(inputs, groups, run, in_groups=not settings.independent_scoring):
            await Generation(definition, inputs, clients, settings, run, teller, None, outputs).play_all(groups)
        return run.outputs(outputs)

    path = run.path_to_save
    groups, earlier = _left_to_play(path, definition, run, inputs, groups, settings, teller)
    if earlier is not None:
        run = dataclasses.replace(run, earlier_seconds=earlier.seconds)
        outputs += earlier.rows
    with ResultsWriter(path, run.metadata(outputs), earlier=earlier) as writer:
        generation = Generation(definition, inputs, clients, settings, run, teller, writer, outputs)
        try:
            if groups:
                with teller.started(inputs, groups, run, in_groups=not settings.independent_scoring):
                    await generation.play_all(groups)
            writer.finish(run.metadata(outputs))
        except ResultsError as error:
            error.outputs = run.outputs(outputs)
            raise
        except BaseException:
            with contextlib.suppress(ResultsError):  # what ended the run is what is raised
                writer.write_metadata(run.metadata(outputs))
            raise
    teller.log(f"results saved to {path}")
    return run.outputs(outputs)


def _fingerprint(inputs: Inputs, example: Example, number: int) -> str | None:
    try:
        return fingerprint_of(inputs.task(example, number))
    except Exception:  # it is recorded when the rollout is played
        return None


def _left_to_play(
    path: Path, definition: ChatEnv, run: Run, inputs: Inputs, groups: list[Group], settings: Settings, teller: Teller
) -> tuple[list[Group], Earlier | None]:
    """Return what an earlier run into the same directory has left to play, each rollout with its task's fingerprint."""
    if not has_rows(path):
        return groups, None
    slots = [
        Slot(group.example.example_id, number, _fingerprint(inputs, group.example, number)) for group in groups for number in group.numbers
    ]
    whole_groups = not settings.independent_scoring
    types = definition.message_types
    earlier = Earlier.load(path, run, slots, redo_errors=settings.redo_errors, whole_groups=whole_groups, types=types)
    if earlier is None:
        return groups, None
    for group in groups:
        group.numbers = [number for number in group.numbers if earlier.row_of(group.example.example_id, number) is None]
    teller.log(f"resuming {path}: {len(earlier.rows)} of {len(slots)} rollouts are done")
    return [group for group in groups if group.numbers], earlier
