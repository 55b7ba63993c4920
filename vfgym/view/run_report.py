"""What viewers show of a run besides its rollouts: means with intervals, what to worry about, tasks, tokens and time."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vfgym.endings import ending_of
from vfgym.results import GenerateOutputs
from vfgym.results.counting import count_rewards, is_failed
from vfgym.results.intervals import format_estimate, interval_of
from vfgym.results.statistics import Summary, planned_rollouts, statistics_of
from vfgym.view.concerns import Concern, concerns_of, remarks_on
from vfgym.view.rollouts import ended_by, seconds_of


@dataclass(frozen=True)
class Mean:
    """A mean, and its 95 % interval over tasks."""

    value: float | None
    """None where a failed rollout has no number to count with."""
    interval: tuple[float, float] | None
    """None below two tasks, where a number is not finite, and where all are alike and nothing says which others there could be."""

    def __str__(self) -> str:
        return format_estimate(self.value, self.interval)


@dataclass(frozen=True)
class TaskReport:
    """The rollouts of one task."""

    example_id: int
    reward: float | None
    """Mean of what its rollouts count with."""
    rollouts: list[int]
    """Which they are, by their place among the rows."""
    num_failed: int
    num_passed: int


@dataclass(frozen=True)
class RunReport:
    """A run, and what its rows say together."""

    name: str
    """What plays, who answers, and the name of the run's directory."""
    outputs: GenerateOutputs
    counted: list[float | None]
    """What each row counts with."""
    summary: Summary
    reward: Mean
    metrics: dict[str, Mean]
    concerns: list[Concern]
    """What to worry about."""
    remarks: list[str]
    """What its mean is of, where it is not simply that of all rollouts."""
    endings: dict[str, int]
    """In how many rollouts what ended them did (see `ended_by`), the most frequent one first."""
    tasks: list[TaskReport]
    tokens: dict[str, float]
    """Tokens of all rollouts that report them, by kind."""
    rollout_seconds: float
    """Mean time that a rollout took."""

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """The rows, by example and rollout."""
        return self.outputs["outputs"]

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata; those of other writers may lack anything."""
        return self.outputs["metadata"]

    @property
    def progress(self) -> str:
        """How many rollouts it has: ``"120"``, or ``"40 of 120"`` where it is not done."""
        planned = planned_rollouts(self.metadata)
        return f"{len(self.rows):,}" if planned is None or len(self.rows) >= planned else f"{len(self.rows):,} of {planned:,}"


def report_run(outputs: GenerateOutputs) -> RunReport:
    """Return what a run says together.

    Args:
        outputs: What `vfgym.evaluate` or `vfgym.results.load_results` returned.
    """
    rows, metadata = outputs["outputs"], outputs["metadata"]
    threshold, rollouts_per_example = metadata.get("pass_threshold"), metadata.get("rollouts_per_example")
    knows_passes = threshold is not None and rollouts_per_example is not None  # metadata of other writers may lack them
    summary = statistics_of(
        rows,
        int(rollouts_per_example or 1) if knows_passes else 1,
        float(threshold) if threshold is not None else math.inf,
        of=metadata.get("mean_of", "counted_reward"),
        num_planned=planned_rollouts(metadata),
        reward_range=metadata.get("reward_range"),
    )
    uses_counted = summary["mean_of"] == "counted_reward"
    counted: list[float | None] = count_rewards(rows) if uses_counted else [row["reward"] for row in rows]
    described = [row for row in rows if not (uses_counted and is_failed(row))]
    return RunReport(
        name=_name(metadata),
        outputs=outputs,
        counted=counted,
        summary=summary,
        reward=Mean(summary["avg_reward"], _as_pair(summary["interval"])),
        metrics={name: _metric(name, mean, described, uses_counted) for name, mean in summary["avg_metrics"].items()},
        concerns=concerns_of(rows),
        remarks=remarks_on(summary, metadata, rows, counted),
        endings=dict(Counter(map(ended_by, rows)).most_common()),
        tasks=_tasks(rows, counted, threshold),
        tokens=_tokens(rows),
        rollout_seconds=sum(seconds_of(row) for row in rows) / len(rows) if rows else 0.0,
    )


def _name(metadata: Mapping[str, Any]) -> str:
    path = metadata.get("path_to_save")
    parts = [str(metadata.get("env_id") or ""), str(metadata.get("model") or ""), Path(path).absolute().name if path else ""]
    return " · ".join(part for part in parts if part) or "run"


def _as_pair(interval: Sequence[float] | None) -> tuple[float, float] | None:
    return None if interval is None else (interval[0], interval[1])


def _metric(name: str, mean: float, rows: Sequence[Mapping[str, Any]], skips_errors: bool) -> Mean:
    known = [row for row in rows if name in row["metrics"] and not (skips_errors and name in (row.get("metrics_errors") or ()))]
    by_task: defaultdict[Hashable, list[float]] = defaultdict(list)
    for row in known:
        by_task[row["example_id"]].append(row["metrics"][name])
    return Mean(mean, _as_pair(interval_of(by_task)))


def _tasks(rows: Sequence[Mapping[str, Any]], counted: Sequence[float | None], threshold: float | None) -> list[TaskReport]:
    places: defaultdict[int, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        places[row["example_id"]].append(place)
    return [_task(example_id, own, rows, counted, threshold) for example_id, own in places.items()]


def _task(
    example_id: int, places: list[int], rows: Sequence[Mapping[str, Any]], counted: Sequence[float | None], threshold: float | None
) -> TaskReport:
    numbers, failed = [counted[place] for place in places], [is_failed(rows[place]) for place in places]
    known = [number for number in numbers if number is not None]
    num_passed = sum(
        threshold is not None and number is not None and number >= threshold and not fails
        for number, fails in zip(numbers, failed, strict=True)
    )
    num_missing = sum(ending_of(rows[place]).is_missing for place in places)
    mean = sum(known) / len(known) if known and len(known) >= len(places) - num_missing else None
    return TaskReport(example_id, mean, places, sum(failed), num_passed)


def _tokens(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    total: Counter[str] = Counter()
    add: Callable[[Mapping[str, float]], None] = total.update
    for row in rows:
        add({kind: count for kind, count in (row.get("token_usage") or {}).items() if not kind.startswith("final_")})
    return dict(total)
