"""What a run's rows say together: means, standard error, pass@k."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from vfgym.state import TokenUsage


class Summary(TypedDict):
    """The statistics of a run."""

    avg_reward: float
    """Mean over the rollouts."""
    avg_return: float
    """Mean of the sums of rewards as seen through wrappers."""
    std_error: float | None
    """Standard error of the mean reward over examples, each standing for the mean of its rollouts; None below two examples."""
    avg_metrics: dict[str, float]
    """For each metric, its mean over the rollouts that have it."""
    avg_error: float
    """Share of rollouts with an error."""
    metrics_errors: dict[str, int]
    """For each reward function that failed, in how many rollouts it did: it scored 0.0 there."""
    pass_at_k: dict[str, float]
    """For k = 1, 2, 4, ...: the chance that one of k rollouts of an example passes. Empty with one rollout an example."""
    pass_all_k: dict[str, float]
    """For k = 1, 2, 4, ...: the chance that all of k rollouts of an example pass."""
    usage: TokenUsage | None
    """Mean tokens of the rollouts that report them."""
    tools: list[dict[str, Any]] | None
    """The tools, where all rollouts had the same ones."""


def with_statistics(metadata: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return metadata with each mean, and the standard error, as `change` returns it (given anything, where others wrote them)."""
    changed = {name: change(metadata[name]) for name in ("avg_reward", "avg_return", "std_error") if name in metadata}
    metrics = metadata.get("avg_metrics")
    if isinstance(metrics, Mapping):
        changed["avg_metrics"] = {name: change(value) for name, value in metrics.items()}
    return {**metadata, **changed}


def summarize(outputs: Sequence[Mapping[str, Any]], rollouts_per_example: int, pass_threshold: float) -> Summary:
    """Return the statistics of the rows of a run.

    Args:
        outputs: The rows.
        rollouts_per_example: How many rows a complete example has; pass@k counts complete examples only.
        pass_threshold: Reward from which a rollout passes.
    """
    metrics: defaultdict[str, list[float]] = defaultdict(list)
    by_example: defaultdict[int, list[float]] = defaultdict(list)
    for row in outputs:
        by_example[row["example_id"]].append(row["reward"])
        for name, value in row["metrics"].items():
            metrics[name].append(value)
    passed = [
        sum(reward >= pass_threshold for reward in rewards) for rewards in by_example.values() if len(rewards) == rollouts_per_example
    ]
    ks = _powers_of_two(rollouts_per_example) if rollouts_per_example > 1 and passed else []
    return {
        "avg_reward": _mean([row["reward"] for row in outputs]),
        "avg_return": _mean([row.get("return", row["reward"]) for row in outputs]),
        "std_error": _standard_error([_mean(rewards) for rewards in by_example.values()]),
        "avg_metrics": {name: _mean(values) for name, values in metrics.items()},
        "avg_error": _mean([float(row["error"] is not None) for row in outputs]),
        "metrics_errors": dict(Counter(name for row in outputs for name in row.get("metrics_errors", ()))),
        "pass_at_k": {str(k): _mean([pass_at(k, count, rollouts_per_example) for count in passed]) for k in ks},
        "pass_all_k": {str(k): _mean([pass_all(k, count, rollouts_per_example) for count in passed]) for k in ks},
        "usage": _mean_usage([row["token_usage"] for row in outputs if row.get("token_usage")]),
        "tools": _common_tools([row.get("tool_defs") or [] for row in outputs]),
    }


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
