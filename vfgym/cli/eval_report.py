"""What ``vfgym eval`` prints of its runs: a table, how each compares with the first one, a plot, or JSON."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vfgym.cli.conventions import print_json
from vfgym.cli.sweeps import PlannedRun, as_text
from vfgym.cli.table import print_table, wrap_text
from vfgym.endings import UNREADABLE, Ending, ending_of
from vfgym.errors import ConfigurationError, MissingExtra
from vfgym.output.terminal import echo
from vfgym.results import ErrorInfo, GenerateMetadata, GenerateOutputs
from vfgym.results.comparison import ComparedPair, compare_places
from vfgym.results.files import metadata_as_written
from vfgym.results.intervals import format_estimate
from vfgym.results.reducing import reduce_rollouts
from vfgym.results.statistics import planned_rollouts
from vfgym.runs.planning import Plan


class FinishedRun(NamedTuple):
    """A run that was played."""

    plan: PlannedRun
    results: GenerateOutputs


# What would be played


def print_plan(runs: Sequence[PlannedRun], inputs: Sequence[Plan], *, as_json: bool) -> None:
    """Print what runs would play."""
    rollouts = sum(each.num_rollouts for each in inputs)
    if as_json:
        print_json({"runs": [_planned(run, each) for run, each in zip(runs, inputs, strict=True)], "rollouts": rollouts})
        return
    names = _varied_names(runs)
    print_table(
        ["environment", *names, "agent", "tasks", "rollouts"],
        [
            [run.spec.env_id, *_varied_cells(run, names), run.contestant.label, str(each.num_examples), str(each.num_rollouts)]
            for run, each in zip(runs, inputs, strict=True)
        ],
    )
    echo(wrap_text(f"{len(runs)} run(s), {rollouts} rollout(s) would be played; nothing was asked or written"))


def _planned(run: PlannedRun, inputs: Plan) -> dict[str, Any]:
    return {
        "title": run.title,
        "env_id": run.spec.env_id,
        "env_args": run.spec.env_args,
        "model": run.contestant.name,
        "is_model": run.contestant.config is not None,
        "examples": inputs.num_examples,
        "rollouts": inputs.num_rollouts,
    }


def _varied_names(runs: Sequence[PlannedRun]) -> list[str]:
    return list(dict.fromkeys(name for run in runs for name in run.varied))


def _varied_cells(run: PlannedRun, names: Sequence[str]) -> list[str]:
    return [as_text(run.varied[name]) if name in run.varied else "-" for name in names]


# What came out


def print_runs(runs: Sequence[FinishedRun], *, as_json: bool, reducers: Sequence[str] = ()) -> None:
    """Print what came of runs, and how each compares with the first one of its environment.

    Args:
        runs: The runs.
        as_json: Whether they are printed as JSON.
        reducers: What the rollouts of each task are reduced to, too (see `vfgym.results.reducing`).
    """
    pairs = _compare_runs(runs)
    if as_json:
        print_json({"runs": [_as_json(run, reducers) for run in runs], "pairs": pairs})
    elif runs:
        in_order = sorted(range(len(runs)), key=lambda place: runs[place].results["metadata"]["avg_reward"] is None)
        if len({run.plan.played for run in runs}) == 1:
            print_rewards({run.plan.label: run.results for run in runs}, reducers)
        else:
            _print_sweep([runs[place] for place in in_order], {pair["b"]: pair for pair in pairs}, in_order, reducers)
        for place in in_order:
            for line in _remarks(runs[place].results):
                echo(f"{runs[place].plan.title}: {line}")
        for pair in pairs:
            echo(wrap_text(f"{runs[pair['b']].plan.title}: {pair['verdict']}"))


def _as_json(run: FinishedRun, reducers: Sequence[str]) -> dict[str, Any]:
    path = run.results["metadata"]["path_to_save"]
    return {
        "title": run.plan.title,
        "path": None if path is None else str(path),
        "rollouts": len(run.results["outputs"]),
        **({"reduced": {name: reduce_rollouts(run.results, name)._asdict() for name in reducers}} if reducers else {}),
        **metadata_as_written(run.results["metadata"]),
    }


def _compare_runs(runs: Sequence[FinishedRun]) -> list[ComparedPair]:
    """Return how each run compares with the first one of its environment."""
    first: dict[str, int] = {}
    places = [(first.setdefault(run.plan.spec.env_id, place), place) for place, run in enumerate(runs)]
    return compare_places([_named(run) for run in runs], [(a, b) for a, b in places if a != b])


def _named(run: FinishedRun) -> GenerateOutputs:
    """Return the results under the name that the run has among its like, for verdicts."""
    return {"outputs": run.results["outputs"], "metadata": {**run.results["metadata"], "model": run.plan.label}}


def _print_sweep(runs: Sequence[FinishedRun], pairs: dict[int, ComparedPair], places: Sequence[int], reducers: Sequence[str]) -> None:
    """Print a table of runs that did not all play the same, those of an environment beside each other."""
    names = _varied_names([run.plan for run in runs])
    environments = list(dict.fromkeys(run.plan.spec.env_id for run in runs))
    each = [run.results["metadata"] for run in runs]
    endings, amounts = _ending_columns(each), _amount_columns(each, ("turns", "tokens", "cost"))
    rows = []
    for place, (plan, result) in sorted(zip(places, runs, strict=True), key=lambda item: environments.index(item[1].plan.spec.env_id)):
        difference = format_estimate(pairs[place]["difference"], pairs[place]["interval"], sign="+") if place in pairs else ""
        numbers = [*(_reduced(result, name) for name in reducers), *(_AMOUNTS[name](result["metadata"]) for name in amounts)]
        cells = [plan.contestant.label, _mean(result), difference, *numbers, *(_share(result, name) for name in endings)]
        rows.append([plan.spec.env_id, *_varied_cells(plan, names), *cells])
    reduced = [f"{name} (95 %)" for name in reducers]
    print_table(["environment", *names, "agent", "reward (95 %)", "difference (95 %)", *reduced, *amounts, *endings], rows)


def print_rewards(results: Mapping[str, GenerateOutputs], reducers: Sequence[str] = ()) -> None:
    """Print a table of runs that played the same, by who played; those without a mean stand last."""
    in_order = dict(sorted(results.items(), key=lambda item: item[1]["metadata"]["avg_reward"] is None))
    each = [result["metadata"] for result in results.values()]
    metrics = list(dict.fromkeys(name for metadata in each for name in (*metadata["avg_metrics"], *metadata["metrics_errors"])))
    ks = list(each[0]["pass_at_k"])
    endings, amounts = _ending_columns(each), _amount_columns(each, ("tokens", "cost"))
    passes = [*(f"pass@{k}" for k in ks), *(f"pass^{k}" for k in ks)]
    reduced = [f"{name} (95 %)" for name in reducers]
    columns = ["agent", "reward (95 %)", *reduced, *metrics, *passes, *amounts, *endings, "seconds"]
    rows = []
    for label, result in in_order.items():
        metadata = result["metadata"]
        means = metadata["avg_metrics"]
        rows.append(
            [
                label,
                _mean(result),
                *(_reduced(result, name) for name in reducers),
                *(f"{means[metric]:.3f}" if metric in means else "-" for metric in metrics),
                *(f"{passes[k]:.3f}" for passes in (metadata["pass_at_k"], metadata["pass_all_k"]) for k in ks),
                *(_AMOUNTS[name](metadata) for name in amounts),
                *(_share(result, name) for name in endings),
                f"{metadata['time']:.2f}",
            ]
        )
    print_table(columns, rows)


def _reduced(result: GenerateOutputs, reducer: str) -> str:
    reduced = reduce_rollouts(result, reducer)
    return format_estimate(reduced.value, reduced.interval)


def _turns(metadata: GenerateMetadata) -> str:
    turns = metadata["avg_metrics"].get("num_turns")
    return "-" if turns is None else f"{turns:.1f}"


def _tokens(metadata: GenerateMetadata) -> str:
    usage = metadata["usage"]
    return "-" if usage is None else f"{usage['input_tokens'] + usage['output_tokens']:,.0f}"


def _cost(metadata: GenerateMetadata) -> str:
    return "-" if metadata["cost"] is None else f"{metadata['cost']:.4g}"


_AMOUNTS: Mapping[str, Callable[[GenerateMetadata], str]] = {"turns": _turns, "tokens": _tokens, "cost": _cost}
"""What was used: turns and tokens of a rollout, and what the whole run cost. A line stands for what is not known."""


def _amount_columns(each: Sequence[GenerateMetadata], names: Sequence[str]) -> list[str]:
    """Return those columns of what was used that say something of any run."""
    return [name for name in names if any(_AMOUNTS[name](metadata) != "-" for metadata in each)]


def _ending_columns(each: Sequence[GenerateMetadata]) -> list[str]:
    """Return the columns that tell how rollouts ended: what was cut, and what is missing, where any was."""
    return ["failed", *(name for name in ("cut", "missing") if any(metadata[f"num_{name}"] for metadata in each))]  # type: ignore[literal-required]


def _share(result: GenerateOutputs, name: str) -> str:
    return f"{result['metadata'][f'num_{name}']}/{len(result['outputs'])}"  # type: ignore[literal-required]


def _mean(result: GenerateOutputs) -> str:
    """Return the headline of a run: its mean, or how far it is where it has not played all of its rollouts."""
    metadata, played = result["metadata"], len(result["outputs"])
    planned = planned_rollouts(metadata)
    if metadata["mean_of"] == "counted_reward" and planned is not None and played < planned:
        return f"{played} of {planned}"
    return format_estimate(metadata["avg_reward"], metadata["interval"])


def _remarks(result: GenerateOutputs) -> Iterator[str]:
    """Give what there is to say of a run besides its numbers: what failed in it, and where it is."""
    rows, metadata = result["outputs"], result["metadata"]
    first_error = next((row["error"] for row in rows if row["error"] is not None), None)
    if first_error is not None:
        yield f"the first error is {first_error.one_line() if isinstance(first_error, ErrorInfo) else first_error}"
    unread = sum(row["stop_condition"] == UNREADABLE for row in rows)
    if unread:
        yield f"the answers of {unread} of {len(rows)} rollouts could not be read"
    for function, count in metadata["metrics_errors"].items():
        first = next(row["metrics_errors"][function] for row in rows if function in (row.get("metrics_errors") or ()))
        yield f"reward function `{function}` failed in {count} of {len(rows)} rollouts: {first}"
    by_environment = metadata["endings"].get(Ending.ENVIRONMENT_FAILED, 0)
    if by_environment:
        yield f"a hook, a tool or a reward function of the environment failed in {by_environment} of {len(rows)} rollouts: mend it first"
    lowered = [row["counted_reward"] for row in rows if not (ending_of(row).counts_with_return or ending_of(row).is_missing)]
    if lowered:
        yield _what_failures_count_with(metadata, lowered)
    if metadata["num_missing"]:
        if_failed = metadata["avg_reward_missing_failed"]
        says = "" if if_failed is None else f"; with them as failures it would be {if_failed:.3f}"
        missing = f"{metadata['num_missing']} of {len(rows)} rollouts are missing"
        yield f"{missing}, since the infrastructure failed: the mean is of the others{says}"
    if metadata["cost"] is not None:
        abandoned = metadata.get("abandoned_requests", 0)
        at_least = f" at least, since nobody tells what the {abandoned} request(s) cost that were given up under way" if abandoned else ""
        yield f"it cost {metadata['cost']:.4g}{at_least}"
    stopped_by = metadata["stopped_by"]
    if stopped_by is not None:
        total = metadata["num_examples"] * metadata["rollouts_per_example"]
        yield (
            f"stopped after {len(rows)} of {total} rollouts: the limit on {stopped_by['limit']} is used up"
            f" ({stopped_by['used']:.6g} of {stopped_by['allowed']:.6g})"
        )
    if metadata["path_to_save"] is not None:
        yield f"results in {metadata['path_to_save']}"


def _what_failures_count_with(metadata: GenerateMetadata, counted: Sequence[float | None]) -> str:
    if metadata["avg_reward"] is not None:
        numbers = sorted({f"{number:g}" for number in counted}, key=float)
        listed = ", ".join(numbers) if len(numbers) <= _MOST_LISTED else f"{numbers[0]} to {numbers[-1]}"
        return f"what failed or was cut counts with {listed}"
    finished = metadata["avg_reward_finished"]
    others = "" if finished is None else f" (that of the others is {finished:.3f})"
    if None not in counted:  # it has not played all of its rollouts
        return f"what failed or was cut counts with at most {max(number for number in counted if number is not None):g}"
    return f"no mean{others}, since nothing says what a rollout counts with that failed or was cut: give the environment failure_reward=..."


_MOST_LISTED = 4
"""Different numbers that are listed one by one."""


# Plots


def check_plot(file: Path) -> None:
    """Refuse a picture that could not be written, before anything is played for it.

    Raises:
        ConfigurationError: If it could not.
        MissingExtra: If there is nothing to draw it with.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtra("plot", "--plot")
    from matplotlib.figure import Figure

    suffixes = Figure().canvas.get_supported_filetypes()
    if file.suffix.removeprefix(".").lower() not in suffixes:
        raise ConfigurationError(f"--plot cannot tell what kind of picture {file} is: give it one of the suffixes {', '.join(suffixes)}")
    if not os.access(file.parent, os.W_OK):
        raise ConfigurationError(f"--plot cannot write {file}: {file.parent} is not a directory that can be written")


def draw(runs: Sequence[FinishedRun], file: Path) -> list[str]:
    """Draw the means as bars, and return the titles of the runs without a mean. They have no bar, and the picture says so."""
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    axes = figure.subplots()
    drawn = {run.plan.title: run.results["metadata"] for run in runs if run.results["metadata"]["avg_reward"] is not None}
    left_out = [run.plan.title for run in runs if run.plan.title not in drawn]
    axes.bar(
        list(drawn),
        [metadata["avg_reward"] or 0.0 for metadata in drawn.values()],
        yerr=np.transpose([_bar_ends(metadata) for metadata in drawn.values()]) if drawn else None,
        capsize=4,
    )
    axes.set(title=", ".join(dict.fromkeys(run.plan.spec.env_id for run in runs)), ylabel="mean reward, 95 % interval")
    if left_out:
        axes.set_xlabel(f"without a mean: {', '.join(left_out)}")
    figure.savefig(file)
    return left_out


def _bar_ends(metadata: GenerateMetadata) -> tuple[float, float]:
    """Return how far the interval of a mean reaches below and above it; nothing where there is none."""
    mean, interval = metadata["avg_reward"] or 0.0, metadata["interval"]
    return (0.0, 0.0) if interval is None else (mean - interval[0], interval[1] - mean)
