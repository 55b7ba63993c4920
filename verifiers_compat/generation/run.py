"""One run of `generate`, on the engine of all runs: clients are asked, and the documented callbacks are called."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
from typing import TYPE_CHECKING

from verifiers_compat.generation.players import Players
from verifiers_compat.generation.reporting import RunReporter
from verifiers_compat.generation.settings import GenerateSettings
from vfgym.results import GenerateOutputs, Run
from vfgym.runs.engine import Engine, GroupJob
from vfgym.runs.playing import play_run
from vfgym.runs.recorder import Recorder
from vfgym.runs.remaining import task_fingerprint
from vfgym.runs.spending import Budget, RunSpending

if TYPE_CHECKING:
    from vfgym.runs.executors.travelling import TravellingRun


async def generate(
    players: Players,
    settings: GenerateSettings,
    run: Run,
    groups: list[GroupJob],
    reporter: RunReporter,
    executor: str | concurrent.futures.Executor = "local",
    travelling: TravellingRun | None = None,
) -> GenerateOutputs:
    """Play all inputs, and return their rows with the run's metadata.

    What was finished is on disk, where results are saved, whatever ends the run.

    Args:
        players: Who plays, and what.
        settings: How it goes.
        run: What is written about it.
        groups: What is played of the inputs.
        reporter: Reports how far it is.
        executor: Where rollouts play.
        travelling: The run as the workers of an executor are told it; None where rollouts play in this process.

    Raises:
        ConfigurationError: If the results of another run are in the way.
        vfgym.results.ResultsError: If results cannot be written; its ``outputs`` are what was finished.
    """
    inputs, in_groups, types = players.config.inputs, players.config.in_groups, players.config.definition.message_types
    together = inputs.rollouts_per_example if players.plays_groups else 1
    most = settings.max_concurrent if settings.max_concurrent <= 0 else max(1, settings.max_concurrent // together)

    async def play(groups: list[GroupJob], at_once: int, recorder: Recorder, spending: RunSpending) -> None:
        jobs = players.jobs(groups)
        left = sum(len(group.numbers) for group in jobs)
        at_once = left if most <= 0 else min(most, left)
        if travelling is not None:
            from vfgym.runs.executors.playing import one_by_one, play_on_workers

            jobs = jobs if in_groups else one_by_one(jobs)
            about = {"unplayed": players.unplayed, "env_id": run.env_id, "types": types, "most_at_once": at_once}
            run_of_workers = dataclasses.replace(travelling, data={**travelling.data, "most_at_once": at_once})
            await play_on_workers(executor, run_of_workers, settings, jobs, recorder, spending, **about)  # type: ignore[arg-type]
            return
        scoring = settings.max_concurrent_scoring
        engine = Engine(players.new, in_groups=in_groups, max_concurrent_scoring=scoring, strict=settings.strict, spending=spending)
        await engine.play(jobs, at_once, recorder.add)

    outputs = await play_run(
        run,
        groups,
        play,
        functools.partial(reporter.report, inputs, in_groups=in_groups),
        budget=Budget.of(settings.limits, settings.limits_each, settings.prices, settings.cache, [settings.model]),
        most_at_once=most * together,
        in_groups=in_groups,
        fingerprint=functools.partial(task_fingerprint, inputs),
        types=types,
        model=settings.model,
        redo_errors=settings.redo_errors,
    )
    if run.path_to_save is not None:
        reporter.log(f"results saved to {run.path_to_save}")
    return outputs
