"""`reduce_rollouts`: the rollouts of each task as one number, and the mean of these over tasks with its interval."""

from __future__ import annotations

import math
import os
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vfgym.endings import ending_of
from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.results.counting import count_rewards, mean_of
from vfgym.results.intervals import interval_of
from vfgym.results.metadata import GenerateOutputs
from vfgym.results.reading import load_results
from vfgym.results.statistics import planned_rollouts

_REDUCERS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda numbers: math.fsum(numbers) / len(numbers),
    "median": statistics.median,
    "max": max,
}
_AT_LEAST = re.compile(r"at_least_(\d{1,9})")
_NAMES = (*_REDUCERS, "at_least_K")


class Reduced(NamedTuple):
    """A mean over tasks, each of which is one number."""

    value: float | None
    """The mean; None where it is not known what a rollout counts with that was cut or failed, and where not all were played."""
    interval: list[float] | None
    """Its 95 % interval (see `vfgym.results.intervals`); None below two tasks, and where nothing is known of other values."""
    num_tasks: int
    """Tasks that it is of: all but those of which a rollout is missing, since the infrastructure failed."""


def check_reducer(name: str) -> None:
    """Check the name of a reducer.

    Raises:
        ConfigurationError: If there is none of that name.
    """
    found = _AT_LEAST.fullmatch(name) if isinstance(name, str) else None
    if (found is None or not int(found[1])) and name not in _REDUCERS:
        example = "at_least_2 for the share of tasks of which at least 2 rollouts pass"
        raise ConfigurationError(f"a reducer is one of {', '.join(_NAMES)} ({example}), got {name!r}.{did_you_mean(str(name), _NAMES)}")


def reduce_rollouts(run: str | os.PathLike[str] | GenerateOutputs, reducer: str) -> Reduced:
    """Reduce what the rollouts of each task count with to one number, and return the mean over tasks.

    Tasks are the observations, so each counts once, however often it was played.

    Args:
        run: The directory of a run, or what `vfgym.evaluate` returned.
        reducer: ``"mean"``, ``"median"``, ``"max"``, or ``"at_least_K"``: 1 for a task of which at least K rollouts count with the run's
            ``pass_threshold`` or more, else 0.

    Raises:
        ConfigurationError: If there is no such reducer.
        ResultsError: If the run cannot be read.
    """
    check_reducer(reducer)
    results = load_results(Path(run)) if isinstance(run, str | os.PathLike) else run
    metadata = results["metadata"]
    tasks = _numbers_of_tasks(results["outputs"], metadata)
    if not tasks:
        return Reduced(None, None, 0)
    least = _AT_LEAST.fullmatch(reducer)
    reduced: dict[Hashable, list[float]]
    value_range = metadata.get("reward_range")
    if least is None:
        reduced = {task: [_REDUCERS[reducer](numbers)] for task, numbers in tasks.items()}
    else:
        threshold, count = metadata["pass_threshold"], int(least[1])
        reduced = {task: [float(sum(number >= threshold for number in numbers) >= count)] for task, numbers in tasks.items()}
        value_range = [0.0, 1.0]
    value = math.fsum(value for (value,) in reduced.values()) / len(reduced)
    return Reduced(value, interval_of(reduced, value_range), len(reduced))


def _numbers_of_tasks(rows: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any]) -> dict[Hashable, list[float]]:
    """Return what the rollouts of each task count with; nothing where that is not known of all that are not missing."""
    planned = planned_rollouts(metadata)
    is_counted = mean_of(rows) == "counted_reward" == metadata.get("mean_of", "counted_reward")
    missing = {row["example_id"] for row in rows if is_counted and ending_of(row).is_missing}
    numbers: defaultdict[Hashable, list[float]] = defaultdict(list)
    for row, number in zip(rows, count_rewards(rows) if is_counted else [row["reward"] for row in rows], strict=True):
        if row["example_id"] in missing:
            continue
        if number is None or (is_counted and planned is not None and len(rows) < planned):
            return {}
        numbers[row["example_id"]].append(number)
    return numbers
