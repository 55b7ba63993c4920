"""What the reader of a run should know before believing its numbers: what failed, was cut, is missing, was not scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from vfgym.endings import Ending, ending_of
from vfgym.results.counting import MeanOf
from vfgym.results.statistics import Summary, planned_rollouts
from vfgym.view.rollouts import failure_reason

ConcernKind: TypeAlias = Literal["failed", "missing", "cut", "unscored", "shortened", "cleanup"]


@dataclass(frozen=True)
class Concern:
    """Rollouts with the same trouble."""

    kind: ConcernKind
    reason: str
    """The type of the error, the stop condition, or the name of what raised."""
    title: str
    """What happened, in a few words."""
    message: str
    """What the first of them says of it; empty where it says nothing."""
    rollouts: list[int] = field(default_factory=list)
    """Which they are, by their place among the rows."""


_FAILED_BY = {
    Ending.POLICY_FAILED: "the agent failed",
    Ending.ENVIRONMENT_FAILED: "the environment failed",
    Ending.INFRASTRUCTURE_FAILED: "the infrastructure failed, so it is missing",
}


def concerns_of(rows: Sequence[Mapping[str, Any]]) -> list[Concern]:
    """Return what is wrong with rollouts of a run; failures first, then the most frequent first.

    A rollout that failed is in one concern, others in as many as they have troubles.
    """
    found: dict[tuple[ConcernKind, str, str], Concern] = {}
    for place, row in enumerate(rows):
        for concern in _of_row(row):
            found.setdefault((concern.kind, concern.reason, concern.title), concern).rollouts.append(place)
    return sorted(found.values(), key=lambda concern: (concern.kind not in ("failed", "missing"), -len(concern.rollouts)))


def _of_row(row: Mapping[str, Any]) -> Iterator[Concern]:
    ending = ending_of(row)
    if ending.failed:
        reason, message = failure_reason(row)
        yield Concern("missing" if ending.is_missing else "failed", reason, f"{_FAILED_BY[ending]}: {reason}", message)
        return
    if ending is Ending.CUT:
        reason = str(row.get("stop_condition") or "a limit")
        yield Concern("cut", reason, f"cut by a limit of the run: {reason}", "")
    for name, message in (row.get("metrics_errors") or {}).items():
        yield Concern("unscored", str(name), f"reward function {name} raised, and scored 0", str(message))
    if row.get("is_truncated"):
        yield Concern("shortened", "is_truncated", "an answer of the model was cut off", "")
    for name, message in (row.get("cleanup_errors") or {}).items():
        yield Concern("cleanup", str(name), f"cleaning up failed: {name}", str(message))


def remarks_on(
    summary: Summary, metadata: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], counted: Sequence[float | None]
) -> list[str]:
    """Return sentences on what the mean of a run is of, where it is not simply that of all rollouts.

    Args:
        summary: The run's statistics.
        metadata: The run's metadata.
        rows: Its rows.
        counted: What each of them counts with.
    """
    remarks, planned = [], planned_rollouts(metadata)
    if planned is not None and len(rows) < planned:
        stopped_by = metadata.get("stopped_by") or {}
        why = f" (its limit on {stopped_by['limit']} is used up)" if stopped_by.get("limit") else ""
        of: MeanOf = summary["mean_of"]
        says = ": there is no mean yet, since rollouts that end early say nothing of the others" if of == "counted_reward" else ""
        remarks.append(f"{len(rows)} of {planned} rollouts are played{why}{says}")
    lowered = (
        [number for row, number in zip(rows, counted, strict=True) if _is_lowered(row)] if summary["mean_of"] == "counted_reward" else []
    )
    if None in lowered:
        finished = summary["avg_reward_finished"]
        others = "" if finished is None else f"; that of the others is {finished:.3f}"
        which = f"{lowered.count(None)} of {len(rows)} rollouts that failed or were cut"
        remarks.append(f"there is no mean, since nothing says with what to count {which}{others} (give the environment failure_reward=...)")
    elif lowered:
        lowest, highest = (f"{end(number for number in lowered if number is not None):g}" for end in (min, max))
        with_what = lowest if lowest == highest else f"{lowest} to {highest}"
        remarks.append(f"what failed or was cut counts with {with_what} in the mean")
    if summary["num_missing"] and summary["mean_of"] == "counted_reward":
        if_failed = summary["avg_reward_missing_failed"]
        would_be = "" if if_failed is None else f"; with them as failures it would be {if_failed:.3f}"
        remarks.append(f"{summary['num_missing']} of {len(rows)} rollouts are missing: the mean is of the others{would_be}")
    return remarks


def _is_lowered(row: Mapping[str, Any]) -> bool:
    ending = ending_of(row)
    return not (ending.counts_with_return or ending.is_missing)
