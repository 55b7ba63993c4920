"""What a run's rows say together: means, standard error, pass@k."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypedDict

from vfgym.endings import Ending, ending_of
from vfgym.results.counting import MeanOf, count_rewards, mean_of
from vfgym.results.intervals import interval_of
from vfgym.state import TokenUsage


class Summary(TypedDict):
    """The statistics of a run."""

    avg_reward: float | None
    """Mean of what the rollouts count with (see `vfgym.results.counting`), without those that are missing. None where one has no number to
    count with, all are missing, or the run has not played all of its rollouts: those that end early say nothing of the others."""
    avg_reward_finished: float | None
    """Mean reward of the rollouts whose task came to an end; None where there are none."""
    avg_reward_missing_failed: float | None
    """What `avg_reward` would be if the rollouts that are missing counted as if the policy had failed."""
    endings: dict[str, int]
    """How many rollouts ended in which way (see `vfgym.endings.Ending`), for each way in which any did."""
    num_failed: int
    """How many rollouts failed, for any cause."""
    num_cut: int
    """How many rollouts were cut by a limit of whoever ran them."""
    num_missing: int
    """How many rollouts the infrastructure failed: they count with nothing."""
    mean_of: MeanOf
    """Which number of the rows `avg_reward`, `std_error` and the passes are of: ``"counted_reward"``; or ``"reward"``, whether a rollout
    failed or not, in the results of `verifiers_compat` and of older versions. The means below are of all rollouts then."""
    avg_return: float | None
    """Mean of the sums of rewards as seen through wrappers, without those that are missing; None where a rollout was cut or failed, since
    nobody declares what that is worth there."""
    std_error: float | None
    """Standard error of `avg_reward` over examples, each standing for the mean of its rollouts; None below two examples and where there
    is no mean."""
    interval: list[float] | None
    """The 95 % interval of `avg_reward`, tasks as observations (see `vfgym.results.intervals`); None where there is no standard error, and
    where all rollouts count with one number and nothing says which others there could be."""
    avg_metrics: dict[str, float]
    """For each metric, its mean over the rollouts that did not fail and where its function did not."""
    avg_error: float
    """Share of rollouts with an error."""
    metrics_errors: dict[str, int]
    """For each reward function that failed, in how many rollouts it did: it scored 0.0 there."""
    pass_at_k: dict[str, float]
    """For k = 1, 2, 4, ...: the chance that one of k rollouts of an example passes, over the examples of which no rollout is missing. Empty
    with one rollout an example. A rollout passes with what it counts with."""
    pass_all_k: dict[str, float]
    """For k = 1, 2, 4, ...: the chance that all of k rollouts of an example pass."""
    usage: TokenUsage | None
    """Mean tokens of the rollouts that report them."""
    tools: list[dict[str, Any]] | None
    """The tools, where all rollouts had the same ones."""


_MEANS = ("avg_reward", "avg_reward_finished", "avg_reward_missing_failed", "avg_return", "std_error")


def with_statistics(metadata: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return metadata with each mean, and the standard error, as `change` returns it (given anything, where others wrote them)."""
    changed = {name: change(metadata[name]) for name in _MEANS if name in metadata}
    metrics = metadata.get("avg_metrics")
    if isinstance(metrics, Mapping):
        changed["avg_metrics"] = {name: change(value) for name, value in metrics.items()}
    return {**metadata, **changed}


def statistics_of(
    rows: Sequence[Mapping[str, Any]],
    rollouts_per_example: int,
    pass_threshold: float,
    *,
    of: MeanOf = "counted_reward",
    num_planned: int | None = None,
    reward_range: Sequence[float] | None = None,
) -> Summary:
    """Return the statistics of the rows of a run.

    Args:
        rows: The rows.
        rollouts_per_example: How many rows a complete example has; pass@k counts complete examples only.
        pass_threshold: Reward from which a rollout passes.
        of: Which number of the rows the means are of. It is ``"reward"`` for rows of which any has no other.
        num_planned: How many rows the run has when it is done; None where that is not known. With fewer it has no headline.
        reward_range: The lowest and the highest number that a rollout can count with, where that is known.
    """
    of = "reward" if mean_of(rows) == "reward" else of
    is_counted = of == "counted_reward"
    endings = [ending_of(row) for row in rows]
    counted = count_rewards(rows) if is_counted else [row["reward"] for row in rows]
    valid = [place for place, ending in enumerate(endings) if not (is_counted and ending.is_missing)]
    finished = [row["reward"] for row, ending in zip(rows, endings, strict=True) if ending.counts_with_return]
    metrics: defaultdict[str, list[float]] = defaultdict(list)
    for row, ending in zip(rows, endings, strict=True):
        if is_counted and ending.failed:
            continue
        failures = row.get("metrics_errors") or () if is_counted else ()
        for name, value in row["metrics"].items():
            if name not in failures:
                metrics[name].append(value)
    by_example: defaultdict[Hashable, list[float | None]] = defaultdict(list)
    for place in valid:
        by_example[rows[place]["example_id"]].append(counted[place])
    complete = [numbers for numbers in by_example.values() if len(numbers) == rollouts_per_example]
    passed = [sum(number is not None and number >= pass_threshold for number in numbers) for numbers in complete]
    ks = _powers_of_two(rollouts_per_example) if rollouts_per_example > 1 and passed else []
    means = [_mean_if_known(numbers) for numbers in by_example.values()]
    known_means = [mean for mean in means if mean is not None]
    known = {example: [number for number in numbers if number is not None] for example, numbers in by_example.items()}
    if_failed = count_rewards(rows, missing_failed=True) if is_counted and len(valid) < len(rows) else counted
    has_returns = not is_counted or all(endings[place].counts_with_return for place in valid)
    is_done = not is_counted or num_planned is None or len(rows) >= num_planned  # short rollouts finish first, and say nothing of others
    return {
        "avg_reward": _mean_if_known([counted[place] for place in valid]) if is_done and (valid or not rows) else None,
        "avg_reward_finished": _mean(finished) if finished else None,
        "avg_reward_missing_failed": _mean_if_known(if_failed) if is_done else None,
        "endings": {str(ending): count for ending, count in Counter(endings).items()},
        "num_failed": sum(ending.failed for ending in endings),
        "num_cut": endings.count(Ending.CUT),
        "num_missing": endings.count(Ending.INFRASTRUCTURE_FAILED),
        "mean_of": of,
        "avg_return": _mean([rows[place].get("return", rows[place]["reward"]) for place in valid]) if is_done and has_returns else None,
        "std_error": _standard_error(known_means) if is_done and len(known_means) == len(means) else None,
        "interval": interval_of(known, reward_range) if is_done and len(known_means) == len(means) else None,
        "avg_metrics": {name: _mean(values) for name, values in metrics.items()},
        "avg_error": _mean([float(row["error"] is not None) for row in rows]),
        "metrics_errors": dict(Counter(name for row in rows for name in row.get("metrics_errors") or ())),
        "pass_at_k": {str(k): _mean([pass_at(k, count, rollouts_per_example) for count in passed]) for k in ks},
        "pass_all_k": {str(k): _mean([pass_all(k, count, rollouts_per_example) for count in passed]) for k in ks},
        "usage": _mean_usage([row["token_usage"] for row in rows if row.get("token_usage")]),
        "tools": _common_tools([row.get("tool_defs") or [] for row in rows]),
    }


def planned_rollouts(metadata: Mapping[str, Any]) -> int | None:
    """Return how many rollouts a run has when it is done, as its metadata say; None where they do not."""
    planned = metadata.get("num_rollouts")
    if isinstance(planned, int):
        return planned
    examples, rollouts = metadata.get("num_examples"), metadata.get("rollouts_per_example")
    return examples * rollouts if isinstance(examples, int) and isinstance(rollouts, int) and examples >= 0 else None


def pass_at(k: int, passed: int, rollouts: int) -> float:
    """Return the chance that at least one of `k` rollouts, drawn without replacement, is one of those that passed.

    The unbiased estimator of Chen et al., 2021 (arXiv:2107.03374).

    >>> pass_at(1, passed=1, rollouts=2), pass_at(2, passed=1, rollouts=2)
    (0.5, 1.0)
    """
    return 1.0 - math.comb(rollouts - passed, k) / math.comb(rollouts, k)


def pass_all(k: int, passed: int, rollouts: int) -> float:
    """Return the chance that all of `k` rollouts, drawn without replacement, are among those that passed.

    >>> pass_all(1, passed=1, rollouts=2), pass_all(2, passed=1, rollouts=2)
    (0.5, 0.0)
    """
    return math.comb(passed, k) / math.comb(rollouts, k)


def _powers_of_two(limit: int) -> list[int]:
    return [2**exponent for exponent in range(limit.bit_length())]


def _mean_if_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _mean(known) if len(known) == len(values) else None


def _mean(values: Sequence[float]) -> float:
    return _sum(values) / len(values) if values else 0.0


def _sum(values: Sequence[float]) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # where adding gives infinity or, of infinities with both signs, no number
        return sum(values)


def _standard_error(means: Sequence[float]) -> float | None:
    if len(means) < 2:
        return None
    centre = _mean(means)
    variance = _sum([(mean - centre) * (mean - centre) for mean in means]) / (len(means) - 1)  # a power would raise if it is too large
    return math.sqrt(variance / len(means))


def _mean_usage(usages: Sequence[TokenUsage]) -> TokenUsage | None:
    if not usages:
        return None
    keys = dict.fromkeys(key for usage in usages for key in usage)
    return {key: _mean([usage.get(key, 0.0) for usage in usages]) for key in keys}  # type: ignore[return-value, misc]


def _common_tools(each: Sequence[list[dict[str, Any]]]) -> list[dict[str, Any]] | None:
    if not each or not each[0]:
        return None
    names = sorted(tool["name"] for tool in each[0])
    return each[0] if all(sorted(tool["name"] for tool in tools) == names for tools in each) else None
