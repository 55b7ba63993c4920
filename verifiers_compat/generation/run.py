"""One run of `generate`, on the engine of all runs: clients are asked, and the documented callbacks are called."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from verifiers_compat.generation.authored_player import AuthoredPlayer
from verifiers_compat.generation.reporting import RunReporter
from verifiers_compat.generation.settings import GenerateSettings
from vfgym.clients import Client
from vfgym.envs.chat import ChatEnv
from vfgym.results import GenerateOutputs, RolloutOutput, Run
from vfgym.results.resume import earlier_metadata, recorded_spending
from vfgym.runs.client_player import ClientPlayer, ClientPlayerConfig
from vfgym.runs.engine import Engine, GroupJob, Player
from vfgym.runs.inputs import Inputs, Seeds
from vfgym.runs.recorder import Recorder
from vfgym.runs.remaining import find_remaining, task_fingerprint
from vfgym.runs.spending import RunSpending


async def generate(
    definition: ChatEnv,
    inputs: Inputs,
    clients: Sequence[Client],
    settings: GenerateSettings,
    run: Run,
    reporter: RunReporter,
    authors_method: Callable[..., Awaitable[Any]] | None = None,
) -> GenerateOutputs:
    """Play all inputs, and return their rows with the run's metadata.

    What was finished is on disk, where results are saved, whatever ends the run.

    Args:
        definition: Whose rollouts.
        inputs: What is played.
        clients: Who is asked: groups (rollouts, where they are scored alone) take them in turn.
        settings: How it goes.
        run: What is written about it.
        reporter: Reports how far it is.
        authors_method: The author's own `run_group` (`run_rollout`, where rollouts are scored alone), which plays then.

    Raises:
        ConfigurationError: If the results of another run are in the way.
        vfgym.results.ResultsError: If results cannot be written; its ``outputs`` are what was finished.
    """
    in_groups = not settings.independent_scoring
    groups = [GroupJob(example, range(example.num_rollouts)) for example in inputs.examples()]
    path, earlier = run.path_to_save, None
    if path is not None:
        groups, earlier = find_remaining(
            path,
            run,
            groups,
            lambda example, number: task_fingerprint(inputs, example, number),
            in_groups=in_groups,
            redo_errors=settings.redo_errors,
            types=definition.message_types,
        )
        if earlier is not None:
            run = dataclasses.replace(run, earlier_seconds=earlier.seconds)
            reporter.log(f"resuming {path}: {len(earlier.rows)} of {inputs.num_rollouts} rollouts are done")
    config = ClientPlayerConfig(
        definition,
        inputs,
        clients,
        settings.model,
        settings.sampling_args,
        in_groups=in_groups,
        max_retries=settings.max_retries,
        strict=settings.strict,
        is_saved=path is not None,
        seeds=None if settings.seed is None else Seeds(settings.seed),
    )

    async def new_player() -> Player:
        if authors_method is not None:
            return AuthoredPlayer(authors_method, config, settings.state_columns)
        return ClientPlayer(config)

    jobs, most = groups, settings.max_concurrent
    if authors_method is not None and in_groups:  # it plays a group at once
        jobs = [GroupJob(group.example, group.numbers[:1]) for group in groups]
        most = most if most <= 0 else max(1, most // inputs.rollouts_per_example)
    left = sum(len(group.numbers) for group in jobs)
    num_workers = left if most <= 0 else min(most, left)
    # An author's method that plays a group at once may ask for all its rollouts at once.
    at_once = num_workers if jobs is groups else num_workers * inputs.rollouts_per_example
    done = [] if earlier is None else earlier.rows
    recorded = recorded_spending(earlier_metadata(path))
    spending = RunSpending(settings.budget, at_once, done, run.earlier_seconds, settings.model, recorded=recorded)
    run = dataclasses.replace(run, spent=spending.spent)
    engine = Engine(
        new_player,
        in_groups=in_groups,
        max_concurrent_scoring=settings.max_concurrent_scoring,
        strict=settings.strict,
        spending=spending,
    )
    stopped_by = None
    with spending.in_force(), Recorder(run, earlier) as recorder:
        if groups:
            with reporter.report_start(inputs, groups, run, in_groups=in_groups):

                def report(rows: list[RolloutOutput]) -> None:
                    spending.note_errors(rows)
                    reporter.report_finished(recorder.outputs, rows, run)

                recorder.on_rows = report
                stopped_by = await spending.play(engine.play(jobs, num_workers, recorder.add))
        outputs = recorder.finish(stopped_by)
    if path is not None:
        reporter.log(f"results saved to {path}")
    return outputs
