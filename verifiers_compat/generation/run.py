"""One run of `generate`, on the engine of all runs: clients are asked, and the documented callbacks are called."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from verifiers_compat.generation.authored_player import AuthoredPlayer
from verifiers_compat.generation.reporting import RunReporter
from verifiers_compat.generation.settings import GenerateSettings
from vfgym.clients import Client
from vfgym.envs.chat import ChatEnv
from vfgym.results import GenerateOutputs, Run
from vfgym.runs.client_player import ClientPlayer, ClientPlayerConfig
from vfgym.runs.engine import Engine, GroupJob, Player
from vfgym.runs.inputs import Inputs, Seeds
from vfgym.runs.playing import play_run
from vfgym.runs.recorder import Recorder
from vfgym.runs.remaining import task_fingerprint
from vfgym.runs.spending import Budget, RunSpending


async def generate(
    definition: ChatEnv,
    inputs: Inputs,
    clients: Sequence[Client],
    settings: GenerateSettings,
    run: Run,
    groups: list[GroupJob],
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
        groups: What is played of the inputs.
        reporter: Reports how far it is.
        authors_method: The author's own `run_group` (`run_rollout`, where rollouts are scored alone), which plays then.

    Raises:
        ConfigurationError: If the results of another run are in the way.
        vfgym.results.ResultsError: If results cannot be written; its ``outputs`` are what was finished.
    """
    in_groups = not settings.independent_scoring
    config = ClientPlayerConfig(
        definition,
        inputs,
        clients,
        settings.model,
        settings.sampling_args,
        in_groups=in_groups,
        max_retries=settings.max_retries,
        strict=settings.strict,
        is_saved=run.path_to_save is not None,
        seeds=None if settings.seed is None else Seeds(settings.seed),
    )

    async def new_player() -> Player:
        if authors_method is not None:
            return AuthoredPlayer(authors_method, config, settings.state_columns)
        return ClientPlayer(config)

    # An author's method that plays a group at once may ask for all its rollouts at once.
    plays_groups = authors_method is not None and in_groups
    together = inputs.rollouts_per_example if plays_groups else 1
    most = settings.max_concurrent if settings.max_concurrent <= 0 else max(1, settings.max_concurrent // together)

    async def play(groups: list[GroupJob], at_once: int, recorder: Recorder, spending: RunSpending) -> None:
        jobs = [GroupJob(group.example, group.numbers[:1]) for group in groups] if plays_groups else groups
        engine = Engine(
            new_player,
            in_groups=in_groups,
            max_concurrent_scoring=settings.max_concurrent_scoring,
            strict=settings.strict,
            spending=spending,
        )
        left = sum(len(group.numbers) for group in jobs)
        await engine.play(jobs, left if most <= 0 else min(most, left), recorder.add)

    outputs = await play_run(
        run,
        groups,
        play,
        functools.partial(reporter.report, inputs, in_groups=in_groups),
        budget=Budget.of(settings.limits, settings.limits_each, settings.prices, settings.cache, [settings.model]),
        most_at_once=most * together,
        in_groups=in_groups,
        fingerprint=functools.partial(task_fingerprint, inputs),
        types=definition.message_types,
        model=settings.model,
        redo_errors=settings.redo_errors,
    )
    if run.path_to_save is not None:
        reporter.log(f"results saved to {run.path_to_save}")
    return outputs
