"""`compare`: which of several runs is better, on the tasks that they share, and whether their numbers can tell.

Runs are compared by pairs of rollouts: those of the same task of one environment, found by its fingerprint, with the same number. What is
easy or hard about a task is then the same on both sides, and falls out of the difference. A task is one observation, however many rollouts
it has. A rollout that is missing on either side (see `vfgym.endings`) is in no pair.
"""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypedDict

from vfgym.endings import Ending, ending_of
from vfgym.errors import ConfigurationError
from vfgym.results.counting import count_rewards, mean_of
from vfgym.results.intervals import (
    COVERAGE,
    MeanEstimate,
    clusters_needed,
    draws_needed,
    estimate_mean,
    interval_of,
    range_of,
    sign_p_value,
)
from vfgym.results.metadata import GenerateOutputs
from vfgym.results.reading import load_results
from vfgym.results.rows import row_order
from vfgym.results.statistics import planned_rollouts

FEWEST_DIFFERENT = 6
"""Of how many tasks two runs have to differ before a difference is told. Were both alike, each task that differs would be a toss of a coin:
five of five fall on one side once in sixteen times, six of six once in thirty-two, which is less than the 5 % that an interval of 95 %
allows."""

_LEVEL = 1 - COVERAGE

RunLike: TypeAlias = "str | os.PathLike[str] | GenerateOutputs"
"""A run: the directory of its results, or the results."""


class ComparedRun(TypedDict):
    """One of the runs that are compared."""

    path: str | None
    """Its directory; None for results that were never saved."""
    model: str
    """The model, or the agent, that answered."""
    rollouts: int
    planned: int | None
    """How many it has when it is done; None where its metadata do not say."""
    examples: int
    """How many tasks they are of."""
    errors: int
    """How many rollouts have an error."""
    endings: dict[str, int]
    """How many rollouts ended in which way (see `vfgym.endings.Ending`), for each way in which any did."""
    limits: dict[str, float]
    """The limits of each rollout, by their names."""
    mean: float | None
    """Mean of what the rollouts count with (`reward` in runs of older versions), without those that are missing. None where one has no
    number to count with, and where the run was stopped before it was done: short rollouts finish first."""
    interval: list[float] | None
    """The 95 % interval of the mean, tasks as observations (see `vfgym.results.intervals`). None without a mean, where there is one task,
    and where nothing varies and nothing says how it could."""


class ComparedPair(TypedDict):
    """What two of the runs say of each other."""

    a: int
    """Place of the first run in ``runs``."""
    b: int
    """Place of the other one."""
    difference: float | None
    """Mean of what `b` earned more than `a`, over the paired rollouts; None where one of these has no number to count with."""
    interval: list[float] | None
    """The 95 % interval of this difference alone, tasks as observations (see `vfgym.results.intervals`); where there are several pairs, it
    is not widened for that. None without a difference, where there is one task, and where nothing varies and nothing says how it could."""
    p_value: float | None
    """How often two runs that are alike would differ as much, by the method of the interval; where there are several pairs, corrected for
    that by Holm's method. None without a difference, and where there is one task."""
    examples: int
    """Tasks of which both have a pair."""
    rollouts: int
    """Pairs of rollouts."""
    unpaired: list[int]
    """How many rollouts of `a`, and how many of `b`, the other run has no rollout for."""
    missing: list[int]
    """How many rollouts of `a`, and of `b`, that the other run has too, are missing: the infrastructure failed them. They have no pair."""
    better: int
    """Tasks of which `b` earned more; counted where all their rollouts have numbers, as the next two."""
    worse: int
    """Tasks of which `b` earned less."""
    equal: int
    """Tasks of which both earned the same."""
    distinguishable: bool
    """Whether `p_value` is below 0.05 (with one pair: the interval is without zero), and at least `FEWEST_DIFFERENT` tasks are better or
    worse."""
    changes_if_missing_failed: bool | None
    """Whether the verdict would be another one if the missing rollouts counted as if the policy had failed. None where none is missing, and
    where nothing says what failing counts with."""
    limits_differ: bool
    """Whether the rollouts of the two runs had different limits."""
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


class _Rollout(NamedTuple):
    """What a rollout counts with."""

    counted: float | None
    if_failed: float | None
    """The same, but for one that is missing: as if the policy had failed."""
    is_missing: bool


@dataclass(frozen=True, slots=True)
class _Run:
    """A run as it is compared."""

    path: str | None
    model: str
    errors: int
    planned: int | None
    endings: Mapping[Ending, int]
    limits: Mapping[str, float]
    reward_range: Sequence[float] | None
    rollouts: Mapping[_Slot, _Rollout]

    @property
    def is_stopped(self) -> bool:
        """Whether it was stopped before it was done."""
        return self.planned is not None and len(self.rollouts) < self.planned


def compare(*runs: RunLike) -> Comparison:
    """Compare runs: each with its mean, and each later one beside the first.

    The order of their rows changes nothing. Where there are several later ones, what tells a difference is corrected for that (Holm).

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
    found = [_find_pair(read[0], run, (names[0], name)) for run, name in zip(read[1:], names[1:], strict=True)]
    pairs = [_describe_pair(0, place, finding) for place, finding in enumerate(_find_all(found), start=1)]
    return {"runs": [_describe_run(run) for run in read], "pairs": pairs}


def compare_places(runs: Sequence[GenerateOutputs], places: Sequence[tuple[int, int]]) -> list[ComparedPair]:
    """Compare some of several runs by twos, as `compare` does it. Of runs that cannot be compared, the verdict says why.

    Args:
        runs: The results of `vfgym.evaluate`.
        places: Which run is compared with which, by their places among `runs`: the first of two is what the other one stands beside.
    """
    found: dict[tuple[int, int], _Pair] = {}
    refused: dict[tuple[int, int], ComparedPair] = {}
    for a, b in places:
        try:
            one, other = (_read_run(runs[place], place + 1) for place in (a, b))
            names = _names([one, other])
            found[a, b] = _find_pair(one, other, (names[0], names[1]))
        except ConfigurationError as error:
            refused[a, b] = _no_pair(a, b, [len(runs[place]["outputs"]) for place in (a, b)], f"cannot be compared: {error}")
    findings = dict(zip(found, _find_all(list(found.values())), strict=True))
    return [refused.get((a, b)) or _describe_pair(a, b, findings[a, b]) for a, b in places]


# Runs


def _read_run(run: RunLike, place: int) -> _Run:
    results = load_results(Path(run)) if isinstance(run, str | os.PathLike) else run
    if not isinstance(results, Mapping) or not {"outputs", "metadata"} <= results.keys():
        raise ConfigurationError(f"run {place} must be the directory of a run or what vfgym.evaluate returned, got {type(run).__name__}")
    rows, metadata = results["outputs"], results["metadata"]
    path = metadata.get("path_to_save")
    if not rows:
        raise ConfigurationError(f"run {place}{'' if path is None else f' ({path})'} has no rollouts to compare")
    by_row = sorted(zip(rows, _rollouts(rows), strict=True), key=lambda item: row_order(item[0]))
    slots = _slots([row for row, _ in by_row], str(metadata.get("env_id")))
    timeout = (metadata.get("env_args") or {}).get("timeout_seconds")
    return _Run(
        path=None if path is None else str(path),
        model=str(metadata.get("model")),
        errors=sum(row["error"] is not None for row in rows),
        planned=planned_rollouts(metadata),
        endings=Counter(map(ending_of, rows)),
        limits={**(metadata.get("limits_each") or {}), **({} if timeout is None else {"timeout_seconds": timeout})},
        reward_range=metadata.get("reward_range"),
        rollouts=dict(zip(slots, (rollout for _, rollout in by_row), strict=True)),
    )


def _rollouts(rows: Sequence[Mapping[str, Any]]) -> Iterator[_Rollout]:
    if mean_of(rows) == "reward":
        yield from (_Rollout(row["reward"], row["reward"], is_missing=False) for row in rows)
        return
    for row, counted, if_failed in zip(rows, count_rewards(rows), count_rewards(rows, missing_failed=True), strict=True):
        yield _Rollout(counted, if_failed, ending_of(row).is_missing)


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


def _by_task(numbers: Iterable[tuple[_Slot, Any]]) -> dict[_Task, list[Any]]:
    tasks: defaultdict[_Task, list[Any]] = defaultdict(list)
    for (task, _, _), number in numbers:
        tasks[task].append(number)
    return tasks


def _describe_run(run: _Run) -> ComparedRun:
    tasks = _by_task((slot, rollout.counted) for slot, rollout in run.rollouts.items() if not rollout.is_missing)
    numbers = [number for task in tasks.values() for number in task]
    has_mean = bool(numbers) and not run.is_stopped and not _why_no_mean(numbers)
    return {
        "path": run.path,
        "model": run.model,
        "rollouts": len(run.rollouts),
        "planned": run.planned,
        "examples": len({task for task, _, _ in run.rollouts}),
        "errors": run.errors,
        "endings": {str(ending): count for ending, count in run.endings.items()},
        "limits": dict(run.limits),
        "mean": math.fsum(numbers) / len(numbers) if has_mean else None,
        "interval": interval_of(tasks, run.reward_range) if has_mean else None,
    }


def _why_no_mean(numbers: Iterable[Any]) -> str:
    """Return why numbers have no mean, in words; empty where they have one."""
    numbers = list(numbers)
    unknown = sum(number is None for number in numbers)
    if unknown:
        ended = f"{_count(unknown, 'rollout')} that failed or were cut"
        return f"{ended}, with nothing to count with (make the environment with failure_reward=...)"
    endless = sum(not math.isfinite(number) for number in numbers)
    return f"{_count(endless, 'rollout')} with a reward that is not a finite number" if endless else ""


# Pairs


@dataclass(frozen=True, slots=True)
class _Difference:
    """What one run earned more than another."""

    estimate: MeanEstimate | None
    """None where it is not known."""
    reasons: Sequence[str]
    """Why it is not known."""
    tasks: int
    rollouts: int
    better: int
    """Tasks of which the run earned more."""
    worse: int
    equal: int

    @property
    def p_value(self) -> float | None:
        """Not corrected for other pairs."""
        return None if self.estimate is None else self.estimate.p_value()

    def relation(self, p_value: float | None) -> int:
        """Return 1 where it is told that the run is better, -1 where that it is worse, 0 where nothing is told."""
        if self.estimate is None or p_value is None or p_value >= _LEVEL or self.better + self.worse < FEWEST_DIFFERENT:
            return 0
        return 1 if self.estimate.mean > 0 else -1


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two runs beside each other."""

    a: _Run
    b: _Run
    names: tuple[str, str]
    missing: list[int]
    unpaired: list[int]
    difference: _Difference
    if_failed: _Difference
    """The difference where missing rollouts count as if the policy had failed."""


class _Finding(NamedTuple):
    """What a pair tells where there are others beside it."""

    pair: _Pair
    p_value: float | None
    level: float
    """Below which p-value of its own the difference would be told, beside the others that are not told yet."""
    p_value_if_failed: float | None
    num_pairs: int


def _find_pair(a: _Run, b: _Run, names: tuple[str, str]) -> _Pair:
    shared = [slot for slot in a.rollouts if slot in b.rollouts]
    if not shared:
        raise ConfigurationError(
            f"{names[1]} and {names[0]} share no task: runs can be compared that played the same tasks"
            " (of one environment, with the same arguments and split)"
        )
    valid = [slot for slot in shared if not (a.rollouts[slot].is_missing or b.rollouts[slot].is_missing)]
    of_both = {slot: (a.rollouts[slot], b.rollouts[slot]) for slot in shared}
    declared = _hull(a.reward_range, b.reward_range)
    return _Pair(
        a,
        b,
        names,
        missing=[sum(run.rollouts[slot].is_missing for slot in shared) for run in (a, b)],
        unpaired=[len(run.rollouts) - len(shared) for run in (a, b)],
        difference=_difference({slot: (of_both[slot][0].counted, of_both[slot][1].counted) for slot in valid}, names, declared),
        if_failed=_difference({slot: (of_a.if_failed, of_b.if_failed) for slot, (of_a, of_b) in of_both.items()}, names, declared),
    )


def _hull(a: Sequence[float] | None, b: Sequence[float] | None) -> list[float] | None:
    return None if a is None or b is None else [min(a[0], b[0]), max(a[1], b[1])]


def _difference(
    numbers: Mapping[_Slot, tuple[float | None, float | None]], names: tuple[str, str], declared: Sequence[float] | None
) -> _Difference:
    reasons = [
        f"{name} has {reason}" for which, name in enumerate(names) if (reason := _why_no_mean(pair[which] for pair in numbers.values()))
    ]
    if not numbers:
        reasons = [f"all rollouts that {names[1]} and {names[0]} share are missing in one of them"]
    by_task = _by_task(numbers.items())
    known = [difference for pairs in by_task.values() if (difference := _difference_of_task(pairs)) is not None]
    return _Difference(
        estimate=None if reasons else _estimate(by_task, declared),
        reasons=reasons,
        tasks=len(by_task),
        rollouts=len(numbers),
        better=sum(difference > 0 for difference in known),
        worse=sum(difference < 0 for difference in known),
        equal=sum(difference == 0 for difference in known),
    )


def _estimate(by_task: Mapping[_Task, Sequence[tuple[float, float]]], declared: Sequence[float] | None) -> MeanEstimate:
    known = range_of((number for pairs in by_task.values() for pair in pairs for number in pair), declared)
    width = None if known is None else known[1] - known[0]
    differences = {task: [of_b - of_a for of_a, of_b in pairs] for task, pairs in by_task.items()}
    return estimate_mean(differences, None if width is None else (-width, width))


def _difference_of_task(pairs: Sequence[tuple[float | None, float | None]]) -> float | None:
    """Return how much more the second run earned of a task; None where that is not known."""
    if _why_no_mean(number for pair in pairs for number in pair):
        return None
    return math.fsum(of_b for _, of_b in pairs) - math.fsum(of_a for of_a, _ in pairs)  # type: ignore[misc]


def _find_all(pairs: Sequence[_Pair]) -> list[_Finding]:
    """Return what pairs tell that are looked at together."""
    corrected = _corrected([pair.difference.p_value for pair in pairs])
    if_failed = _corrected([pair.if_failed.p_value for pair in pairs])
    open_pairs = sum(p_value is not None and p_value >= _LEVEL for p_value in corrected)
    return [
        _Finding(pair, p_value, _LEVEL / max(open_pairs, 1), p_value_if_failed, len(pairs))
        for pair, p_value, p_value_if_failed in zip(pairs, corrected, if_failed, strict=True)
    ]


def _corrected(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values corrected for there being several.

    S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).
    """
    known = sorted((p_value, place) for place, p_value in enumerate(p_values) if p_value is not None)
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p_value, place) in enumerate(known):
        highest = max(highest, min(1.0, (len(known) - rank) * p_value))
        corrected[place] = highest
    return corrected


def _describe_pair(a: int, b: int, finding: _Finding) -> ComparedPair:
    pair, difference = finding.pair, finding.pair.difference
    estimate, relation = difference.estimate, difference.relation(finding.p_value)
    needed = None if estimate is None or relation else _tasks_needed(estimate, difference, finding.level)
    return {
        "a": a,
        "b": b,
        "difference": None if estimate is None else estimate.mean,
        "interval": None if estimate is None or estimate.interval is None else list(estimate.interval),
        "p_value": finding.p_value,
        "examples": difference.tasks,
        "rollouts": difference.rollouts,
        "unpaired": pair.unpaired,
        "missing": pair.missing,
        "better": difference.better,
        "worse": difference.worse,
        "equal": difference.equal,
        "distinguishable": relation != 0,
        "changes_if_missing_failed": _changes_if_failed(finding),
        "limits_differ": pair.a.limits != pair.b.limits,
        "needed": needed,
        "verdict": ". ".join([_verdict(difference, finding.p_value, needed, finding), *_remarks(finding)]),
    }


def _no_pair(a: int, b: int, rollouts: list[int], verdict: str) -> ComparedPair:
    return {
        "a": a,
        "b": b,
        "difference": None,
        "interval": None,
        "p_value": None,
        "examples": 0,
        "rollouts": 0,
        "unpaired": rollouts,
        "missing": [0, 0],
        "better": 0,
        "worse": 0,
        "equal": 0,
        "distinguishable": False,
        "changes_if_missing_failed": None,
        "limits_differ": False,
        "needed": None,
        "verdict": verdict,
    }


def _changes_if_failed(finding: _Finding) -> bool | None:
    difference, if_failed = finding.pair.difference, finding.pair.if_failed
    if not any(finding.pair.missing) or if_failed.estimate is None:
        return None
    return difference.relation(finding.p_value) != if_failed.relation(finding.p_value_if_failed)


def _tasks_needed(estimate: MeanEstimate, difference: _Difference, level: float) -> int | None:
    """Return with how many tasks like these both would hold that tell a difference: a p-value below the level, and enough that differ."""
    num_different = difference.better + difference.worse
    if estimate.standard_error is None or not num_different:
        return None
    for_p_value = clusters_needed(estimate, level)
    for_tasks = draws_needed(FEWEST_DIFFERENT, num_different / estimate.num_clusters)
    return None if for_p_value is None or for_tasks is None else max(for_p_value, for_tasks)


# In words


def _verdict(difference: _Difference, p_value: float | None, needed: int | None, finding: _Finding) -> str:
    """Return what a difference says, for somebody who never heard of intervals."""
    other, name = finding.pair.names
    estimate = difference.estimate
    if estimate is None:
        return f"no difference can be given: {' and '.join(difference.reasons)}"
    tasks, size = _count(estimate.num_clusters, "task"), _size(estimate.mean)
    if estimate.standard_error is None:
        return f"not distinguishable with {tasks}: what one task says is no more than chance, play more of them"
    if estimate.mean == 0.0 and not estimate.standard_error:
        return f"no difference: {name} and {other} earned the same in each of {tasks}"
    relation = difference.relation(p_value)
    if relation:
        better = "better" if relation > 0 else "worse"
        if estimate.interval is None:
            return f"{name} is {better} than {other} by {size} in each of {tasks}"
        low, high = map(_size, sorted(estimate.interval, key=abs))
        return f"{name} is {better} than {other} by {size} (95 % interval: {low} to {high}) with {tasks}"
    would_tell = f"about {_rounded(needed or 0)} would tell, if {name} really differs from {other} by {size}"
    num_different = difference.better + difference.worse
    alone = difference.p_value
    if num_different < FEWEST_DIFFERENT and needed is not None and alone is not None and alone < _LEVEL:
        few = f"only {num_different} of them differ, and it takes {FEWEST_DIFFERENT} to rule out chance"
        return f"not distinguishable with {tasks}: {few}; {would_tell}"
    if needed is None:
        return f"not distinguishable with {tasks}: if there is a difference, it is too small to be found"
    if alone is not None and alone < _LEVEL:
        tries = f"{finding.num_pairs} comparisons at once give chance as many tries"
        return f"not distinguishable with {tasks}: {tries}; {would_tell}"
    if sign_p_value(difference.better, difference.worse) < _LEVEL:
        often = (
            f"it earned more in {difference.better} of them and less in {difference.worse}, but so little that one task could outweigh it"
        )
        return f"not distinguishable with {tasks}: {often}; {would_tell}"
    return f"not distinguishable with {tasks}; {would_tell}"


def _remarks(finding: _Finding) -> Iterator[str]:
    """Give further sentences: what else the two runs differ in."""
    pair = finding.pair
    (other, name), runs = pair.names, (pair.b, pair.a)
    if any(pair.missing):
        of_other, of_name = pair.missing
        yield f"{_count(of_name, 'rollout')} of {name} and {of_other} of {other} are missing: {_if_failed(finding)}"
    if pair.a.limits != pair.b.limits:
        limits = [_limits(run.limits) for run in runs]
        cut = [run.endings.get(Ending.CUT, 0) for run in runs]
        which_cut = f"which cut {_count(cut[0], 'rollout')} of {name} and {cut[1]} of {other}"
        yield f"Their limits differ: {name} had {limits[0]} and {other} {limits[1]}, {which_cut}"
    for run, who in zip(runs, (name, other), strict=True):
        if run.is_stopped:
            yield f"{who} was stopped after {len(run.rollouts)} of {run.planned} rollouts: those that end early say nothing of the others"


def _if_failed(finding: _Finding) -> str:
    """Return what the verdict would be if missing rollouts counted as if the policy had failed."""
    changes, if_failed = _changes_if_failed(finding), finding.pair.if_failed
    if changes is None:
        return "nothing says what they would count with if they counted as failures"
    if not changes:
        return "if they counted as failures, the verdict would be the same"
    needed = None
    if if_failed.estimate is not None and not if_failed.relation(finding.p_value_if_failed):
        needed = _tasks_needed(if_failed.estimate, if_failed, finding.level)
    verdict = _verdict(if_failed, finding.p_value_if_failed, needed, finding)
    return f"if they counted as failures, the verdict would be another one ({verdict})"


def _limits(limits: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {limit:g}" for name, limit in sorted(limits.items())) or "none"


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
