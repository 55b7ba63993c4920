"""``vfgym eval``: agents and models play the same tasks, and a table compares them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym

from vfgym.agents.human import EndOfInput
from vfgym.aio.background import run_to_end
from vfgym.cli.conventions import Exit
from vfgym.cli.eval_report import FinishedRun, check_plot, draw, print_plan, print_runs
from vfgym.cli.evaluations import EvalFields
from vfgym.cli.sweeps import PlannedRun, close_agents, parse_variations, plan_inputs, plan_runs
from vfgym.clients import EndpointClientConfig, is_permanent_refusal
from vfgym.clients.config import NO_KEY
from vfgym.clients.http.reachable import check_reachable
from vfgym.errors import ConfigurationError, Error
from vfgym.output.redaction import REDACTED
from vfgym.output.terminal import echo
from vfgym.results import GenerateOutputs, find_incomplete
from vfgym.results.files import METADATA, default_results_path
from vfgym.results.reducing import check_reducer
from vfgym.runs import evaluate
from vfgym.runs.replicas import maker_named
from vfgym.runs.spending import Budget
from vfgym.wrappers.to_chat import import_id


@dataclass(frozen=True, kw_only=True)
class EvalCommand:
    """What a command is to do with its evaluations."""

    variations: Sequence[str] = ()
    """``NAME=A,B``: arguments of the environments that are varied (see `vfgym.cli.sweeps.parse_variations`)."""
    patterns: Sequence[str] = ()
    """Which runs are chosen, by parts of their titles; all of them without any."""
    is_dry_run: bool = False
    """Whether it is only printed what would be played."""
    as_json: bool = False
    output_dir: Path | None
    """Results go to a directory of their own below it; None for no results on disk."""
    resume: bool
    """Whether runs that were stopped are gone on with."""
    resumed_path: Path | None
    """The directory of the run that is gone on with; None for the newest ones that fit."""
    redo_errors: bool
    plot: Path | None = None
    reducers: Sequence[str] = ()
    """What the rollouts of each task are reduced to in the tables, too (see `vfgym.results.reducing`)."""


def run_evaluations(evaluations: Sequence[EvalFields], command: EvalCommand) -> Exit:
    """Let each agent and each model play, and print what comes out.

    Returns:
        The exit code.

    Raises:
        ConfigurationError: If something is wrong with the evaluations: before any agent plays, where that can be seen.
        MissingExtra: If there is to be a plot, and nothing to draw it with.
        Error: If the plot cannot be drawn after all.
    """
    if command.plot is not None:
        check_plot(command.plot)
    _check_resume(command)
    for reducer in command.reducers:
        check_reducer(reducer)
    runs = plan_runs(evaluations, parse_variations(command.variations), command.patterns)
    try:
        _check_resumed_path(command, len(runs))
        for run in runs:
            spec = run.spec
            Budget.of(spec.limits, spec.limits_each, spec.prices, spec.cache, [spec.name] if spec.client is not None else [])
        if command.is_dry_run:
            print_plan(runs, plan_inputs(runs), as_json=command.as_json)
            return Exit.GOOD
        if len(runs) > 1:  # one run finds out for itself whether its environment can be made
            plan_inputs(runs)
        for config in _different(run.contestant.config for run in runs):
            run_to_end(check_reachable(config))
        return _play(runs, command)
    finally:
        close_agents(runs)


def _different(configs: Iterable[EndpointClientConfig | None]) -> list[EndpointClientConfig]:
    different: list[EndpointClientConfig] = []
    for config in configs:
        if config is not None and config not in different:
            different.append(config)
    return different


def _play(runs: Sequence[PlannedRun], command: EvalCommand) -> Exit:
    finished: list[FinishedRun] = []
    run = runs[0]
    path: Path | None = None
    try:
        for run in runs:
            path = _results_path(run, command, of_many=len(runs) > 1)
            finished.append(FinishedRun(run, _play_run(run, command, path)))
    except (KeyboardInterrupt, EndOfInput):
        print_runs(finished, as_json=command.as_json, reducers=command.reducers)
        is_kept = path is not None and (path / METADATA).is_file()
        echo(f"\nstopped: what was finished is in {path}" if is_kept else "\nstopped", to_stderr=command.as_json)
        return Exit.INTERRUPTED
    except Exception as error:
        if finished:
            print_runs(finished, as_json=command.as_json, reducers=command.reducers)
        if not is_permanent_refusal(error):
            raise
        raise ConfigurationError(_refusal(error, run.contestant.config)) from error
    print_runs(finished, as_json=command.as_json, reducers=command.reducers)
    if command.plot is not None:
        try:
            left_out = draw(finished, command.plot)
        except Exception as error:
            raise Error(f"the plot {command.plot} cannot be drawn: {error}") from error
        if left_out:
            echo(f"the plot is without {', '.join(left_out)}: there is no mean to draw", to_stderr=command.as_json)
        echo(f"plot: {command.plot}", to_stderr=command.as_json)
    if any(each.results["metadata"]["stopped_by"] is not None for each in finished):
        return Exit.LIMIT
    has_means = all(each.results["metadata"]["avg_reward"] is not None for each in finished)
    is_good = any(not row["failed"] for each in finished for row in each.results["outputs"])
    return Exit.GOOD if has_means and is_good else Exit.NOT_GOOD


def _play_run(run: PlannedRun, command: EvalCommand, path: Path | None) -> GenerateOutputs:
    return evaluate(run.spec, run.contestant.agent, results_path=path, resume=command.resume, redo_errors=command.redo_errors)


def _refusal(error: Exception, config: EndpointClientConfig | None) -> str:
    """Return what a permanent refusal is told as: who refused what, and what the provider says. Never the key, however short it is."""
    text = ". The provider says: ".join([*getattr(error, "__notes__", []), str(error)])
    key = NO_KEY if config is None else config.resolve_api_key()
    return text if key == NO_KEY else text.replace(key, REDACTED)


def _check_resume(command: EvalCommand) -> None:
    if not command.resume:
        if command.resumed_path is not None:
            raise ConfigurationError(f"{command.resumed_path} is the directory of a run: give --resume too, to go on with it")
        if command.redo_errors:
            raise ConfigurationError("--redo-errors says what a resumed run plays again: give --resume too")
    elif command.output_dir is None:
        raise ConfigurationError("--resume goes on with results on disk: leave out --no-save")


def _check_resumed_path(command: EvalCommand, num_runs: int) -> None:
    path = command.resumed_path
    if path is None:
        return
    if num_runs > 1:
        raise ConfigurationError(f"{path} holds the run of one agent: give one --agent with it, or --resume alone")
    if not (path / METADATA).is_file():
        raise ConfigurationError(f"there is no run to resume in {path}: it has no {METADATA}")


def _results_path(run: PlannedRun, command: EvalCommand, *, of_many: bool) -> Path | None:
    """Return where the results of a run go: of one that is resumed, where they are.

    A command with many runs that was stopped has finished some of them, so these are gone on with, too: nothing in them is left to play.
    """
    if command.output_dir is None:
        return None
    if command.resumed_path is not None:
        return command.resumed_path
    spec = run.spec
    path = default_results_path(spec.env_id, spec.name, command.output_dir, is_model=spec.client is not None)
    if not command.resume:
        return path
    wanted = {
        "model": spec.name,
        "is_model": spec.client is not None,
        "num_examples": len(spec.example_ids or ()) or spec.num_examples,
        "rollouts_per_example": spec.rollouts_per_example * (2 if spec.both_seats else 1),
        "both_seats": spec.both_seats,
        "shard": spec.shard and list(spec.shard),
        "env_args": spec.env_args or _registered_arguments(spec.env_id),
        "seed": spec.seed,
        "sampling_args": spec.sampling_args,
        "limits_each": spec.limits_each.given(),
    }
    found = find_incomplete(path.parent, wanted, redo_errors=command.redo_errors, or_finished=of_many)
    new = "there is no unfinished run to resume with these settings, a new one begins"
    echo(f"{run.title}: {new if found is None else f'going on with {found}'}", to_stderr=command.as_json)
    return found or path


def _registered_arguments(env_id: str) -> dict[str, Any]:
    """Return the arguments with which an id was registered: those of a run that was given no others."""
    if maker_named(env_id) is not None:
        return {}
    return dict(gym.spec(import_id(env_id)).kwargs)
