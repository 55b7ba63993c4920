"""What several runs say together: what each is called, which is better, on which scale they are drawn, and their numbers in a table.

Runs are compared as `vfgym eval` does it: each with the first one of its environment (`vfgym.results.comparison.compare_places`).
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from vfgym.results import GenerateOutputs
from vfgym.results.comparison import ComparedPair, compare_places
from vfgym.results.intervals import format_estimate
from vfgym.results.plain_json import NotPlain, as_json
from vfgym.view.run_report import RunReport
from vfgym.view.scales import scale_of

_LONGEST_SETTINGS = 60
"""Characters of the settings by which runs of one agent are told apart; their directories do it where that is too little."""
_WIDEST_RANGE = 10
"""How many times as wide as what was found the range of rewards may be, to be shown as a whole."""


@dataclass(frozen=True)
class EnvironmentFindings:
    """What the runs of one environment say."""

    env_id: str
    runs: list[int]
    """Which they are, by their places."""
    headlines: list[str]
    """What was found, in a few words: a line for each pair, or one for a run that stands alone."""
    pairs: list[ComparedPair]
    """Each later run beside the first."""
    mean_scale: list[float] | None
    """Ticks of the scale of the means; None where there is none."""
    difference_scale: list[float] | None
    """Ticks of the scale of the differences, with zero among them."""
    reward_scale: list[float] | None
    """Ticks of the scale of the rewards of single rollouts."""
    tasks: list[TaskRow]


@dataclass(frozen=True)
class TaskRow:
    """What the runs of one environment earned of a task."""

    example_id: int
    """In the first run that has it."""
    means: list[float | None]
    """What each run earned; None where it does not have the task, or one of its rollouts has no number."""
    rollouts: list[int | None]
    """The first rollout of each run, by its place among the rows."""

    @property
    def spread(self) -> float:
        """The largest difference between runs."""
        known = [mean for mean in self.means if mean is not None and math.isfinite(mean)]
        return max(known) - min(known) if known else 0.0


@dataclass(frozen=True)
class Findings:
    """What runs say together."""

    labels: list[str]
    """What each run is called: no two runs of one environment are called the same."""
    environments: list[EnvironmentFindings]


def find(reports: Sequence[RunReport]) -> Findings:
    """Return what runs say together.

    Args:
        reports: The runs, in the order in which they are shown.
    """
    labels = labels_of([report.metadata for report in reports])
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for place, report in enumerate(reports):
        groups[_env_id(report.metadata)].append(place)
    named: list[GenerateOutputs] = [
        {"outputs": report.outputs["outputs"], "metadata": {**report.outputs["metadata"], "model": label}}
        for report, label in zip(reports, labels, strict=True)
    ]
    pairs = compare_places(named, [(places[0], other) for places in groups.values() for other in places[1:]])
    return Findings(
        labels,
        [
            _environment(env_id, places, reports, labels, [pair for pair in pairs if pair["a"] == places[0]])
            for env_id, places in groups.items()
        ],
    )


def _environment(
    env_id: str, places: list[int], reports: Sequence[RunReport], labels: Sequence[str], pairs: list[ComparedPair]
) -> EnvironmentFindings:
    own = [reports[place] for place in places]
    means = [end for report in own if report.reward.value is not None for end in (report.reward.value, *(report.reward.interval or ()))]
    differences = [end for pair in pairs if pair["difference"] is not None for end in (pair["difference"], *(pair["interval"] or ()))]
    ranges = [report.metadata.get("reward_range") for report in own]
    return EnvironmentFindings(
        env_id,
        places,
        headlines=[_pair_headline(pair, labels) for pair in pairs] or [_run_headline(own[0], labels[places[0]])],
        pairs=pairs,
        mean_scale=scale_of(_with_range(means, ranges)),
        difference_scale=scale_of([*differences, 0.0]) if differences else None,
        reward_scale=scale_of(_with_range([number for report in own for number in report.counted if number is not None], ranges)),
        tasks=_task_rows(own),
    )


def _with_range(means: list[float], ranges: Iterable[Sequence[float] | None]) -> list[float]:
    known = [end for each in ranges for end in each or (math.nan,)]
    finite = [mean for mean in means if math.isfinite(mean)]
    if not finite or not all(map(math.isfinite, known)):
        return finite
    width = max(finite) - min(finite)
    return [*finite, *known] if not width or max(known) - min(known) <= _WIDEST_RANGE * width else finite


def _run_headline(report: RunReport, label: str) -> str:
    mean, tasks = report.reward, f"{len(report.tasks):,} {'task' if len(report.tasks) == 1 else 'tasks'}"
    if mean.value is None or not report.rows:
        return f"{label}: {report.progress} rollouts, no mean yet" if not report.concerns else f"{label}: no mean"
    if mean.interval is None:
        why = (
            "an interval needs two tasks" if len(report.tasks) < 2 else "no interval, since nothing varies and no range of rewards is known"
        )
        return f"{label} earns {mean.value:.3f} on average over {tasks} ({why})"
    return f"{label} earns {mean.value:.3f} on average over {tasks} (95 % interval: {mean.interval[0]:.3f} to {mean.interval[1]:.3f})"


def _pair_headline(pair: ComparedPair, labels: Sequence[str]) -> str:
    first, other = labels[pair["a"]], labels[pair["b"]]
    if pair["difference"] is None:
        return f"{other} cannot be compared with {first}"
    if not pair["distinguishable"]:
        return f"{other} and {first} cannot be told apart"
    return f"{other} is {'better' if pair['difference'] > 0 else 'worse'} than {first}"


def _task_rows(reports: Sequence[RunReport]) -> list[TaskRow]:
    """Return the tasks of runs of one environment: where they differ most first, or for one run where least was earned."""
    rows: dict[Hashable, TaskRow] = {}
    for place, report in enumerate(reports):
        for task in report.tasks:
            key = report.rows[task.rollouts[0]].get("fingerprint") or task.example_id
            row = rows.setdefault(key, TaskRow(task.example_id, [None] * len(reports), [None] * len(reports)))
            row.means[place], row.rollouts[place] = task.reward, task.rollouts[0]
    if len(reports) > 1:
        return sorted(rows.values(), key=lambda row: -row.spread)
    return sorted(rows.values(), key=lambda row: -math.inf if row.means[0] is None or math.isnan(row.means[0]) else row.means[0])


# What runs are called


def labels_of(each: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what runs are called: by their models, with what tells them apart where several of one environment have one model.

    That is in which settings they differ, or the names of their directories, or their places.

    Args:
        each: The metadata of each run.
    """
    labels = [str(metadata.get("model") or "an agent") for metadata in each]
    for describe in (_settings, _directories, _places):
        groups: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place, metadata in enumerate(each):
            groups[_env_id(metadata), labels[place]].append(place)
        for places in groups.values():
            told = describe([each[place] for place in places]) if len(places) > 1 else []
            for place, text in zip(places, told, strict=False):
                labels[place] = f"{labels[place]} ({text or place + 1})"
    return labels


def _settings(each: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the settings in which runs differ from each other; nothing where these don't tell all of them apart in a few words."""
    all_settings = [dict(_flat({name: metadata.get(name) for name in ("env_args", "sampling_args", "limits_each")})) for metadata in each]
    names = dict.fromkeys(name for settings in all_settings for name in settings)
    varied = [name for name in names if len({settings.get(name, "-") for settings in all_settings}) > 1]
    told = [", ".join(f"{name} {settings.get(name, '-')}" for name in varied) for settings in all_settings]
    return told if len(set(told)) == len(told) and all(len(text) <= _LONGEST_SETTINGS for text in told) else []


def _flat(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for values in settings.values():
        for name, value in values.items() if isinstance(values, Mapping) else ():
            try:
                text = value if isinstance(value, str) else json.dumps(as_json(value, fallback=repr))
            except NotPlain as error:
                text = str(error)
            yield str(name), text


def _directories(each: Sequence[Mapping[str, Any]]) -> list[str]:
    paths = [metadata.get("path_to_save") for metadata in each]
    return [Path(path).absolute().name for path in paths if path] if all(paths) else []


def _places(each: Sequence[Mapping[str, Any]]) -> list[str]:
    return [f"run {place + 1}" for place in range(len(each))]


def _env_id(metadata: Mapping[str, Any]) -> str:
    return str(metadata.get("env_id") or "an environment")


# Numbers

NumberRow: TypeAlias = "tuple[str, list[str]]"
"""What a number is, and its text for each run."""


def number_rows(reports: Sequence[RunReport]) -> list[NumberRow]:
    """Return the numbers of runs as a table: those that any of them has."""
    rows: list[NumberRow] = []

    def add(name: str, text_of: Callable[[RunReport], str | None]) -> None:
        texts = [text_of(report) for report in reports]
        if any(texts):
            rows.append((name, [text or "-" for text in texts]))

    add("mean reward (95 %)", lambda report: str(report.reward))
    add("mean of those that ended by themselves", _mean_of_finished)
    add("rollouts", lambda report: report.progress)
    add("tasks", lambda report: f"{len(report.tasks):,}")
    for name in ("failed", "cut", "missing"):
        add(name, lambda report, key=f"num_{name}": f"{report.summary[key]:,}" if report.summary[key] else None)  # type: ignore[misc]
    for key, name in (("pass_at_k", "pass@{}"), ("pass_all_k", "pass^{}")):
        for k in dict.fromkeys(k for report in reports for k in report.summary[key]):  # type: ignore[literal-required]
            add(name.format(k), lambda report, key=key, k=k: f"{report.summary[key][k]:.3f}" if k in report.summary[key] else None)  # type: ignore[misc]
    for name in dict.fromkeys(name for report in reports for name in report.metrics):
        add(name, lambda report, name=name: str(report.metrics[name]) if name in report.metrics else None)  # type: ignore[misc]
    for kind in dict.fromkeys(kind for report in reports for kind in report.tokens):
        add(f"{kind.replace('_', ' ')} of a rollout", lambda report, kind=kind: _each(report, report.tokens.get(kind)))  # type: ignore[misc]
    add("cost", lambda report: None if report.metadata.get("cost") is None else f"{report.metadata['cost']:.4g}")
    add("seconds of a rollout", lambda report: f"{report.rollout_seconds:.2f}" if report.rollout_seconds else None)
    add("seconds of the run", lambda report: f"{report.metadata['time']:.2f}" if report.metadata.get("time") else None)
    return rows


def _mean_of_finished(report: RunReport) -> str | None:
    summary = report.summary
    return format_estimate(summary["avg_reward_finished"], None) if summary["num_failed"] or summary["num_cut"] else None


def _each(report: RunReport, total: float | None) -> str | None:
    return None if total is None else f"{total / len(report.rows):,.0f}"


def note_on(report: RunReport) -> str:
    """Return in a line what a run is beside its mean: ``"120 rollouts of 30 tasks, 7 failed, 5.3 turns each, 240 tokens each"``."""
    summary, turns = report.summary, report.metrics.get("num_turns")
    counts = [(summary["num_failed"] - summary["num_missing"], "failed"), (summary["num_cut"], "cut"), (summary["num_missing"], "missing")]
    tokens = [report.tokens[kind] for kind in ("input_tokens", "output_tokens") if kind in report.tokens]
    cost = report.metadata.get("cost")
    parts = [
        f"{report.progress} rollouts of {len(report.tasks):,} {'task' if len(report.tasks) == 1 else 'tasks'}",
        *(f"{count:,} {name}" for count, name in counts if count),
        *([] if turns is None or turns.value is None else [f"{turns.value:.1f} turns each"]),
        *([f"{sum(tokens) / len(report.rows):,.0f} tokens each"] if tokens and report.rows else []),
        *([] if cost is None else [f"cost {cost:.4g}"]),
    ]
    return ", ".join(parts)
