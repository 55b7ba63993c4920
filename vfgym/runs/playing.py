"""`play_run`: what every run does, whoever plays: it goes on with an earlier one, keeps to its budget, reports, and keeps its rows."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from vfgym.aio.bridge import bridge
from vfgym.envs.chat import ChatEnv
from vfgym.errors import ConfigurationError
from vfgym.messages import MessageTypes
from vfgym.results import GenerateOutputs, RolloutOutput, Run
from vfgym.results.metadata import version_info
from vfgym.results.resume import earlier_metadata, recorded_spending
from vfgym.runs.engine import GroupJob
from vfgym.runs.failure_rewards import FailureRewards
from vfgym.runs.inputs import Example, Inputs
from vfgym.runs.preparing import groups_of
from vfgym.runs.recorder import Recorder
from vfgym.runs.remaining import find_remaining
from vfgym.runs.spec import RunSettings
from vfgym.runs.spending import Budget, RunSpending

Play: TypeAlias = Callable[[list[GroupJob], int, Recorder, RunSpending], Awaitable[None]]
"""Plays groups, so many rollouts at once, and gives what was played to the recorder."""

Report: TypeAlias = Callable[
    [Run, list[GroupJob], list[RolloutOutput]], contextlib.AbstractContextManager[Callable[[list[RolloutOutput]], None]]
]
"""Reports how far a run is. Given the run, what is left to play, and its rows (an earlier run's, to which all others are added), it returns
a context that gives what is called with the rows of each group that is finished."""


def plan_run(
    definition: ChatEnv, inputs: Inputs, how: RunSettings, *, in_groups: bool, max_concurrent: int | None = None, **own: Any
) -> tuple[Run, list[GroupJob]]:
    """Return what is written about a run, and what it plays.

    What the settings do not say is given as fields of `Run`, or otherwise than they say it (`max_concurrent`).

    Raises:
        ConfigurationError: If there is nothing to play.
    """
    groups = groups_of(inputs, how, in_groups=in_groups)
    run = Run(
        version_info=version_info(definition),
        num_examples=inputs.num_examples,
        rollouts_per_example=inputs.rollouts_per_example,
        pass_threshold=definition.pass_threshold if how.pass_threshold is None else how.pass_threshold,
        seed=how.seed,
        state_columns=how.state_columns,
        max_concurrent=how.max_concurrent if max_concurrent is None else max_concurrent,
        limits_each=how.limits_each.given(),
        both_seats=how.both_seats,
        tags=how.tags,
        shard=how.shard,
        num_rollouts=sum(len(group.numbers) for group in groups),
        **own,
    )
    return run, groups


def take_executor(settings: Any) -> concurrent.futures.Executor | None:
    """Take an executor itself out of the settings of a run (a dict); None where they only name one."""
    executor = settings.get("executor")
    if not isinstance(executor, concurrent.futures.Executor):
        return None
    del settings["executor"]
    return executor


def executor_of(how: RunSettings, given: concurrent.futures.Executor | None) -> str | concurrent.futures.Executor:
    """Return where rollouts play.

    Raises:
        ConfigurationError: If it is said how many processes play, and there is one.
    """
    executor = given or how.executor
    if executor == "local" and how.workers is not None:
        raise ConfigurationError(f"workers={how.workers} says how many processes play, and executor='local' has this one: name another one")
    return executor


async def play_run(
    run: Run,
    groups: list[GroupJob],
    play: Play,
    report: Report,
    *,
    budget: Budget,
    most_at_once: int,
    in_groups: bool,
    fingerprint: Callable[[Example, int], str | None],
    types: MessageTypes,
    model: str = "",
    resume: bool = True,
    redo_errors: bool = False,
    declared: FailureRewards | None = None,
) -> GenerateOutputs:
    """Play what is left of a run. What was finished is on disk, where results are saved, whatever ends it.

    Args:
        run: What is written about it, and where it is saved.
        groups: All of it.
        play: Who plays.
        report: Reports how far it is.
        budget: What it may spend.
        most_at_once: Most rollouts at once; no limit where it is not positive.
        in_groups: Whether the rollouts of an example are scored together.
        fingerprint: Gives that of each rollout's task.
        types: The message class for each role.
        model: Who is asked, if it is one model.
        resume: Whether a run that was begun where it is saved goes on.
        redo_errors: Whether rollouts of that run that have an error are played again.
        declared: What failed rollouts count with. Without it, means are of rewards.

    Raises:
        ConfigurationError: If the results of another run are in the way.
        vfgym.results.ResultsError: If results cannot be written; its ``outputs`` are what was finished.
    """
    path = run.path_to_save if resume else None
    begun, earlier = earlier_metadata(path), None
    run = dataclasses.replace(run, tags=list(dict.fromkeys([*begun.get("tags", ()), *run.tags])), redone=begun.get("redone", 0))
    if path is not None:
        told = {"in_groups": in_groups, "redo_errors": redo_errors, "types": types, "declared": declared}
        groups, earlier = await bridge(find_remaining, path, run, groups, fingerprint, **told)  # type: ignore[arg-type]
    if earlier is not None:
        run = dataclasses.replace(run, earlier_seconds=earlier.seconds)
    left = sum(len(group.numbers) for group in groups)
    at_once = left if most_at_once <= 0 else min(left, most_at_once)
    done = [] if earlier is None else earlier.rows
    spending = RunSpending(budget, at_once, done, run.earlier_seconds, model, recorded=recorded_spending(begun))
    run = dataclasses.replace(run, spent=spending.spent)
    stopped_by = None
    with spending.in_force(), Recorder(run, earlier, declared=declared) as recorder, report(run, groups, recorder.outputs) as on_rows:

        def finish(rows: list[RolloutOutput]) -> None:
            spending.note_errors(rows)
            on_rows(rows)

        recorder.on_rows = finish
        if groups:
            stopped_by = await spending.play(play(groups, at_once, recorder, spending))
        return recorder.finish(stopped_by)
