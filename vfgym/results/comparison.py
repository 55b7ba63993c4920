"""`compare`: which of several runs is better, on the tasks that they share, and whether their numbers can tell.

Runs are compared by pairs of rollouts: those of the same task of one environment, found by its fingerprint, with the same number. What is
easy or hard about a task is then the same on both sides, and falls out of the difference. A task is one observation, however many rollouts
it has.
"""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

from vfgym.errors import ConfigurationError
from vfgym.results.counting import count_rewards, mean_of
from vfgym.results.intervals import MeanEstimate, clusters_needed, draws_needed, estimate_mean
from vfgym.results.metadata import GenerateOutputs
from vfgym.results.reading import load_results
from vfgym.results.rows import row_order

FEWEST_DIFFERENT = 6
"""Of how many tasks two runs have to differ before a difference is told. Were both alike, each task that differs would be a toss of a coin:
five of five fall on one side once in sixteen times, six of six once in thirty-two, which is less than the 5 % that an interval of 95 %
allows. With fewer, differences that happen to be of one size would have an interval of no width."""

RunLike: TypeAlias = "str | os.PathLike[str] | GenerateOutputs"
"""A run: the directory of its results, or the results."""


class ComparedRun(TypedDict):
    """One of the runs that are compared."""

    path: str | None
    """Its directory; None for results that were never saved."""
    model: str
    """The model, or the agent, that answered."""
    rollouts: int
    examples: int
    """How many tasks they are of."""
    errors: int
    """How many rollouts have an error."""
    mean: float | None
    """Mean of what the rollouts count with (`reward` in runs of older versions); None where one has no number to count with."""
    interval: list[float] | None
    """The 95 % interval of the mean, tasks as observations; None without a mean, and where there is one task."""


class ComparedPair(TypedDict):
    """What two of the runs say of each other."""

    a: int
    """Place of the first run in ``runs``."""
    b: int
    """Place of the other one."""
    difference: float | None
    """Mean of what `b` earned more than `a`, over the paired rollouts; None where one of these has no number to count with."""
    interval: list[float] | None
    """The 95 % interval of the difference: Student's t, tasks as observations. None without a difference, and where there is one task."""
    examples: int
    """Tasks that both have."""
    rollouts: int
    """Pairs of rollouts."""
    unpaired: list[int]
    """How many rollouts of `a`, and how many of `b`, the other run has no rollout for."""
    better: int
    """Tasks of which `b` earned more; counted where all their rollouts have numbers, as the next two."""
    worse: int
    """Tasks of which `b` earned less."""
    equal: int
    """Tasks of which both earned the same."""
    distinguishable: bool
    """Whether the interval is without zero, and at least `FEWEST_DIFFERENT` tasks are better or worse."""
    needed: int | None
    """With how many tasks a difference of this size would be told, four times out of five; None where it is told already, or no such number
    can be given."""
    verdict: str
    """All this in a sentence."""


class Comparison(TypedDict):
    """What `compare` returns."""

    runs: list[ComparedRun]
    """The runs, in the order in which they were given."""
    pairs: list[ComparedPair]
    """Each later run beside the first."""


_Task: TypeAlias = Hashable
_Slot: TypeAlias = "tuple[_Task, int, int]"
"""A rollout: its task, its number, and which of several tasks that are alike it is of."""


@dataclass(frozen=True, slots=True)
class _Run:
    """A run as it is compared."""

    path: str | None
    model: str
    errors: int
    counted: Mapping[_Slot, float | None]
    """What each rollout counts with."""


def compare(*runs: RunLike) -> Comparison:
    """Compare runs: each with its mean, and each later one beside the first.

    The order of their rows changes nothing.

    Args:
        *runs: Directories of runs, or the results of `vfgym.evaluate`; two or more.

    Raises:
        ConfigurationError: If there are fewer than two, one has no rollouts, or one shares no rollout of a task with the first.
        vfgym.results.ResultsError: If results cannot be read.
    """
    if len(runs) < 2:
        raise ConfigurationError(f"a comparison needs two runs or more, got {len(runs)}")
    read = [_read_run(run, place) for place, run in enumerate(runs, start=1)]
    names = _names(read)
    pairs = [_compare_pair(read, place, names) for place in range(1, len(read))]
    return {"runs": [_describe_run(run) for run in read], "pairs": pairs}


def _read_run(run: RunLike, place: int) -> _Run:
    results = load_results(Path(run)) if isinstance(run, str | os.PathLike) else run
    if not isinstance(results, Mapping) or not {"outputs", "metadata"} <= results.keys():
        raise ConfigurationError(f"run {place} must be the directory of a run or what vfgym.evaluate returned, got {type(run).__name__}")
    rows, metadata = results["outputs"], results["metadata"]
    path = metadata.get("path_to_save")
    if not rows:
        raise ConfigurationError(f"run {place}{'' if path is None else f' ({path})'} has no rollouts to compare")
    numbers = count_rewards(rows) if mean_of(rows) == "counted_reward" else [row["reward"] for row in rows]
    by_row = sorted(zip(rows, numbers, strict=True), key=lambda item: row_order(item[0]))
    slots = _slots([row for row, _ in by_row], str(metadata.get("env_id")))
    return _Run(
        path=None if path is None else str(path),
        model=str(metadata.get("model")),
        errors=sum(row["error"] is not None for row in rows),
        counted=dict(zip(slots, (number for _, number in by_row), strict=True)),
    )


def _slots(rows: Sequence[Mapping[str, Any]], env_id: str) -> Iterator[_Slot]:
    """Give what finds each of the rows in another run.

    It has the environment in it, since games of all kinds have the same seeds for tasks. A row of another writer has no fingerprint: its
    example stands for its task.
    """
    alike: Counter[tuple[_Task, int]] = Counter()
    for row in rows:
        task, number = (env_id, row.get("fingerprint") or row["example_id"]), row.get("rollout") or 0
        yield task, number, alike[task, number]
        alike[task, number] += 1


def _by_task(counted: Mapping[_Slot, Any]) -> dict[_Task, list[Any]]:
    tasks: defaultdict[_Task, list[Any]] = defaultdict(list)
    for (task, _, _), number in counted.items():
        tasks[task].append(number)
    return tasks


def _describe_run(run: _Run) -> ComparedRun:
    tasks = _by_task(run.counted)
    estimate = None if _why_no_mean(run.counted.values()) else estimate_mean(tasks)
    return {
        "path": run.path,
        "model": run.model,
        "rollouts": len(run.counted),
        "examples": len(tasks),
        "errors": run.errors,
        "mean": None if estimate is None else estimate.mean,
        "interval": _as_list(estimate),
    }


def _as_list(estimate: MeanEstimate | None) -> list[float] | None:
    interval = None if estimate is None else estimate.interval
    return None if interval is None else list(interval)


def _why_no_mean(numbers: Any) -> str:
    """Return why numbers have no mean, in words; empty where they have one."""
    missing = sum(number is None for number in numbers)
    if missing:
        return f"{_count(missing, 'failed rollout')} with nothing to count with (make the environment with failure_reward=...)"
    endless = sum(not math.isfinite(number) for number in numbers)
    return f"{_count(endless, 'rollout')} with a reward that is not a finite number" if endless else ""


def _compare_pair(runs: Sequence[_Run], place: int, names: Sequence[str]) -> ComparedPair:
    a, b = runs[0].counted, runs[place].counted
    shared = [slot for slot in a if slot in b]
    if not shared:
        raise ConfigurationError(
            f"{names[place]} and {names[0]} share no task: runs can be compared that played the same tasks"
            " (of one environment, with the same arguments and split)"
        )
    reasons = [
        f"{names[which]} has {reason}"
        for which, counted in ((0, a), (place, b))
        if (reason := _why_no_mean([counted[slot] for slot in shared]))
    ]
    numbers = {slot: (a[slot], b[slot]) for slot in shared}
    by_task = _by_task(numbers)
    differences = [_difference(pairs) for pairs in by_task.values()]
    estimate = None if reasons else estimate_mean({task: [of_b - of_a for of_a, of_b in pairs] for task, pairs in by_task.items()})
    interval = _as_list(estimate)
    better = sum(difference > 0 for difference in differences if difference is not None)
    worse = sum(difference < 0 for difference in differences if difference is not None)
    distinguishable = _is_without_zero(estimate) and better + worse >= FEWEST_DIFFERENT
    needed = None if estimate is None or distinguishable else _tasks_needed(estimate, better + worse)
    return {
        "a": 0,
        "b": place,
        "difference": None if estimate is None else estimate.mean,
        "interval": interval,
        "examples": len(by_task),
        "rollouts": len(shared),
        "unpaired": [len(a) - len(shared), len(b) - len(shared)],
        "better": better,
        "worse": worse,
        "equal": sum(difference == 0 for difference in differences if difference is not None),
        "distinguishable": distinguishable,
        "needed": needed,
        "verdict": _verdict(estimate, better + worse, needed, names[place], names[0]) if estimate else _no_verdict(reasons),
    }


def _difference(pairs: Sequence[tuple[float | None, float | None]]) -> float | None:
    """Return how much more the second run earned of a task; None where that is not known."""
    numbers = [number for pair in pairs for number in pair]
    if _why_no_mean(numbers):
        return None
    return math.fsum(of_b for _, of_b in pairs) - math.fsum(of_a for of_a, _ in pairs)  # type: ignore[misc]


def _is_without_zero(estimate: MeanEstimate | None) -> bool:
    interval = None if estimate is None else estimate.interval
    return interval is not None and not interval[0] <= 0.0 <= interval[1]


def _tasks_needed(estimate: MeanEstimate, num_different: int) -> int | None:
    """Return with how many tasks like these both would hold that tell a difference: an interval without zero, and enough that differ."""
    if estimate.interval is None or not num_different:
        return None
    for_interval = clusters_needed(estimate)
    if for_interval is None and not _is_without_zero(estimate):
        return None
    for_tasks = draws_needed(FEWEST_DIFFERENT, num_different / estimate.num_clusters)
    return None if for_tasks is None else max(for_interval or 0, for_tasks)


def _verdict(estimate: MeanEstimate, num_different: int, needed: int | None, name: str, other: str) -> str:
    """Return what a difference says, for somebody who never heard of intervals."""
    tasks = _count(estimate.num_clusters, "task")
    interval, size = estimate.interval, _size(estimate.mean)
    if interval is None:
        return f"not distinguishable with {tasks}: what one task says is no more than chance, play more of them"
    if estimate.mean == 0.0 and not estimate.standard_error:
        return f"no difference: {name} and {other} earned the same in each of {tasks}"
    would_tell = f"about {_rounded(needed or 0)} would tell, if {name} really differs from {other} by {size}"
    if not _is_without_zero(estimate):
        if needed is None:
            return f"not distinguishable with {tasks}: if there is a difference, it is too small to be found"
        return f"not distinguishable with {tasks}; {would_tell}"
    if num_different < FEWEST_DIFFERENT:
        few = f"only {num_different} of them differ, and it takes {FEWEST_DIFFERENT} to rule out chance"
        return f"not distinguishable with {tasks}: {few}; {would_tell}"
    low, high = map(_size, sorted(interval, key=abs))
    relation = "better" if estimate.mean > 0 else "worse"
    return f"{name} is {relation} than {other} by {size} (95 % interval: {low} to {high}) with {tasks}"


def _no_verdict(reasons: Sequence[str]) -> str:
    return f"no difference can be given: {' and '.join(reasons)}"


def _size(number: float) -> str:
    size = abs(number)
    return f"{size:.3g}" if size < 1000 else f"{size:.0f}"


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _rounded(count: int) -> int:
    """Return a number with two digits that say something, rounded up."""
    unit = int(10 ** max(0, len(str(count)) - 2))
    return -(-count // unit) * unit


def _names(runs: Sequence[_Run]) -> list[str]:
    """Return what the runs are called: by their models, with their directories (or places) where several have one model."""
    times = Counter(run.model for run in runs)
    return [
        run.model if times[run.model] == 1 else f"{run.model} ({f'run {place}' if run.path is None else Path(run.path).name})"
        for place, run in enumerate(runs, start=1)
    ]
