"""What viewers show of a run besides its rollouts: means with intervals, failures and their reasons, tasks, tokens and time."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from vfgym.endings import ending_of
from vfgym.results import GenerateOutputs
from vfgym.results.counting import count_rewards, is_failed
from vfgym.results.intervals import interval_of
from vfgym.results.statistics import Summary, planned_rollouts, statistics_of


@dataclass(frozen=True)
class Mean:
    """A mean, and its 95 % interval over tasks."""

    value: float | None
    """None where a failed rollout has no number to count with."""
    interval: tuple[float, float] | None
    """None below two tasks, where a number is not finite, and where all are alike and nothing says which others there could be."""


@dataclass(frozen=True)
class FailureKind:
    """Failed rollouts that failed for the same reason."""

    reason: str
    """The type of the error, or the stop condition."""
    example: str
    """What the first of them says of it."""
    rollouts: list[int]
    """Which they are, by their place among the rows."""


@dataclass(frozen=True)
class TaskReport:
    """The rollouts of one task."""

    example_id: int
    reward: Mean
    """Mean of what its rollouts count with; without an interval."""
    num_rollouts: int
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
    failures: list[FailureKind]
    """The most frequent one first."""
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
        failures=_failures(rows),
        endings=dict(Counter(map(ended_by, rows)).most_common()),
        tasks=_tasks(rows, counted, threshold),
        tokens=_tokens(rows),
        rollout_seconds=sum(seconds_of(row) for row in rows) / len(rows) if rows else 0.0,
    )


def seconds_of(row: Mapping[str, Any]) -> float:
    """Return how long a rollout took; 0.0 where its row does not say."""
    timing = row.get("timing")
    total = timing.get("total") if isinstance(timing, Mapping) else None
    return float(total) if isinstance(total, int | float) else 0.0


def messages_of(row: Mapping[str, Any], key: Literal["prompt", "completion"]) -> list[Mapping[str, Any]]:
    """Return the prompt or the completion of a row as messages: a text is one message."""
    messages = row.get(key) or ()
    if isinstance(messages, str):
        return [{"role": "user" if key == "prompt" else "assistant", "content": messages}]
    return list(messages)


def answers_of(row: Mapping[str, Any]) -> list[int]:
    """Return where the model's answers stand in the completion of a row."""
    return [at for at, message in enumerate(messages_of(row, "completion")) if message.get("role") == "assistant"]


def step_rewards_of(row: Mapping[str, Any]) -> dict[int, float] | None:
    """Return what turns earned, by the places of their answers in the completion; None where the row does not say, or of other turns."""
    earned, answers = row.get("step_rewards"), answers_of(row)
    if not isinstance(earned, list) or len(earned) != len(answers) or not all(isinstance(each, int | float) for each in earned):
        return None
    return dict(zip(answers, earned, strict=True))


def ended_by(row: Mapping[str, Any]) -> str:
    """Return how a rollout ended, and the stop condition that ended it where there is one: ``"cut (limit_reached)"``."""
    stop_condition = row.get("stop_condition")
    return f"{ending_of(row)} ({stop_condition})" if stop_condition else str(ending_of(row))


def failure_reason(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return why a rollout failed: in a word, by which failures are grouped, and in full."""
    error = row.get("error")
    if error is not None:
        return str(error.get("error") or "error"), str(error.get("error_chain_repr") or error)
    raised = row.get("metrics_errors")
    if raised:
        name, message = next(iter(raised.items()))
        return f"reward function {name}", str(message)
    return str(row.get("stop_condition") or "no reason given"), "its answers could not be read"


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


def _failures(rows: Sequence[Mapping[str, Any]]) -> list[FailureKind]:
    kinds: dict[str, FailureKind] = {}
    for place, row in enumerate(rows):
        if is_failed(row):
            reason, message = failure_reason(row)
            kinds.setdefault(reason, FailureKind(reason, message, [])).rollouts.append(place)
    return sorted(kinds.values(), key=lambda kind: -len(kind.rollouts))


def _tasks(rows: Sequence[Mapping[str, Any]], counted: Sequence[float | None], threshold: float | None) -> list[TaskReport]:
    places: defaultdict[int, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        places[row["example_id"]].append(place)
    return [_task(example_id, [(rows[place], counted[place]) for place in own], threshold) for example_id, own in places.items()]


def _task(example_id: int, own: Sequence[tuple[Mapping[str, Any], float | None]], threshold: float | None) -> TaskReport:
    known = [number for _, number in own if number is not None]
    failed = [is_failed(row) for row, _ in own]
    passed = [threshold is not None and number is not None and number >= threshold and not is_failed(row) for row, number in own]
    num_missing = sum(ending_of(row).is_missing for row, _ in own)
    mean = sum(known) / len(known) if known and len(known) >= len(own) - num_missing else None
    return TaskReport(example_id, Mean(mean, None), len(own), sum(failed), sum(passed))


def _tokens(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    total: Counter[str] = Counter()
    add: Callable[[Mapping[str, float]], None] = total.update
    for row in rows:
        add({kind: count for kind, count in (row.get("token_usage") or {}).items() if not kind.startswith("final_")})
    return dict(total)
