"""What is printed about the results of a run: plain text, in sections."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from verifiers_compat.utils.async_utils import EventLoopLagStats
from verifiers_compat.utils.logging_utils import print_prompt_completions_sample, print_time
from vfgym.cli.table import wrap_text
from vfgym.output.terminal import echo

MAX_VALUES = 100
"""How many single values a line shows."""

_SPANS = ("total", "setup", "generation", "model", "env", "scoring", "overhead")


def to_col_order(list_of_dicts: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return rows as columns. A row that has not all keys has None there.

    >>> to_col_order([{"a": 1, "b": 2}, {"a": 3}])
    {'a': [1, 3], 'b': [2, None]}
    """
    rows = list(list_of_dicts)
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def output_env_id(output: Mapping[str, Any]) -> str | None:
    """Return the name by which an `EnvGroup` routed an output (the outermost group's), or None."""
    info = output.get("info")
    route = info.get("env_id") if isinstance(info, Mapping) else None
    if isinstance(route, Sequence) and not isinstance(route, str):
        route = route[0] if route else None
    return None if route is None else str(route)


def get_env_outputs(results: Mapping[str, Any], env_id: str) -> list[Mapping[str, Any]]:
    """Return the outputs of a run that belong to one environment of a group."""
    return [output for output in results["outputs"] if output_env_id(output) == env_id]


def print_results(
    results: Mapping[str, Any],
    num_samples: int = 1,
    *,
    is_abbreviated: bool = False,
    event_loop_lag: EventLoopLagStats | None = None,
) -> None:
    """Print what came out of a run.

    Args:
        results: What `generate` or `evaluate` gave.
        num_samples: How many rollouts are shown in full.
        is_abbreviated: Print the means only.
        event_loop_lag: How late the event loop was, where it was measured.
    """
    metadata = results["metadata"]
    _echo("--- Evaluation ---")
    _echo(f"Environment: {metadata['env_id']}")
    if metadata["env_args"]:
        _echo(f"Arguments: {', '.join(f'{name}={value!r}' for name, value in metadata['env_args'].items())}")
    _echo(f"Model: {metadata['model']}")
    _echo(f"Provider: {metadata['base_url']}")
    _echo(f"Examples: {metadata['num_examples']}")
    _echo(f"Rollouts per example: {metadata['rollouts_per_example']}")
    if not is_abbreviated and results["outputs"] and num_samples > 0:
        _echo("--- Example ---")
        print_prompt_completions_sample(outputs=results, n=num_samples)
    _echo("--- All ---")
    print_rewards(results, shows_values=not is_abbreviated)
    print_info(results)
    if not is_abbreviated:
        print_timing(results)
    print_usage(results)
    _print_spending(metadata)
    _print_environments(results)
    if event_loop_lag is not None and event_loop_lag.count and not is_abbreviated:
        lag = event_loop_lag
        _echo(f"Event loop lag: mean {print_time(lag.mean)}, p99 {print_time(lag.p99)}, max {print_time(lag.max)}")


def _print_spending(metadata: Mapping[str, Any]) -> None:
    """Print what a run cost, and which limit ended it."""
    if metadata.get("cost") is not None:
        _echo(f"Cost: {metadata['cost']:.4g}")
    stopped_by = metadata.get("stopped_by")
    if stopped_by is not None:
        _echo(f"Stopped: the limit on {stopped_by['limit']} is used up ({stopped_by['used']:.6g} of {stopped_by['allowed']:.6g})")


def print_rewards(results: Mapping[str, Any], *, shows_values: bool = True) -> None:
    """Print the rewards and metrics of a run: mean, standard deviation, pass@k, and the values of each rollout.

    Args:
        results: What `generate` or `evaluate` gave.
        shows_values: Whether single values are printed, in a line for each rollout of an example: ``r1`` for the first ones.
    """
    outputs, metadata = results["outputs"], results["metadata"]
    _echo("Rewards:")
    _print_numbers("reward", [(output, output["reward"]) for output in outputs], shows_values)
    for mark, name in (("@", "pass_at_k"), ("^", "pass_all_k")):
        if metadata.get(name):
            _echo(", ".join(f"pass{mark}{k}: {_round(value)}" for k, value in metadata[name].items()))
    for metric in dict.fromkeys(name for output in outputs for name in output["metrics"]):
        numbers = [(output, output["metrics"][metric]) for output in outputs if metric in output["metrics"]]
        _print_numbers(metric, numbers, shows_values)


def print_info(results: Mapping[str, Any]) -> None:
    """Print how the rollouts of a run ended: truncated, by which stop conditions, and with which errors."""
    outputs = results["outputs"]
    if not outputs:
        return
    _echo("Info:")
    _echo(f"is_truncated: {_round(statistics.fmean(bool(output['is_truncated']) for output in outputs))}")
    stops = Counter(str(output.get("stop_condition")) for output in outputs)
    _echo(f"stop_conditions: {', '.join(f'{name}: {_round(count / len(outputs))}' for name, count in stops.most_common())}")
    errors: defaultdict[str, list[Any]] = defaultdict(list)
    failures: defaultdict[str, list[str]] = defaultdict(list)
    for output in outputs:
        if output["error"] is not None:
            errors[output.get("long_error_chain") or str(output["error"])].append(output["error"])
        for name, text in output.get("metrics_errors", {}).items():
            failures[name].append(text)
    _echo(f"errors: {_round(sum(map(len, errors.values())) / len(outputs))}")
    for chain, each in sorted(errors.items(), key=lambda item: -len(item[1])):
        _echo(f"  {chain}: {len(each)} of {len(outputs)}, the first is {each[0]}")
    for name, texts in sorted(failures.items(), key=lambda item: -len(item[1])):
        _echo(f"  reward function {name} failed in {len(texts)} of {len(outputs)} rollouts: {texts[0]}")


def print_timing(results: Mapping[str, Any]) -> None:
    """Print where the time of the rollouts went: shortest, mean and longest, for each part of a rollout."""
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    for output in results["outputs"]:
        timing = output.get("timing") or {}
        for name in _SPANS:
            value = timing.get(name)
            value = value.get("duration") if isinstance(value, Mapping) else value
            if isinstance(value, int | float):
                seconds[name].append(value)
    if not seconds:
        return
    _echo("Timing:")
    for name in _SPANS:
        if seconds[name]:
            each = seconds[name]
            shortest, mean, longest = (print_time(value) for value in (min(each), statistics.fmean(each), max(each)))
            _echo(f"{name}: min - {shortest}, mean - {mean}, max - {longest}")


def print_usage(results: Mapping[str, Any]) -> None:
    """Print the mean tokens of a rollout, where any were reported."""
    usage = results["metadata"].get("usage")
    if usage:
        _echo("Usage:")
        for name, value in usage.items():
            _echo(f"{name} (avg): {value:.1f}")


def _print_environments(results: Mapping[str, Any]) -> None:
    names = list(dict.fromkeys(name for name in map(output_env_id, results["outputs"]) if name is not None))
    if len(names) < 2:
        return
    _echo("Environments:")
    for name in names:
        outputs = get_env_outputs(results, name)
        errors = sum(output["error"] is not None for output in outputs)
        rewards = [output["reward"] for output in outputs]
        _echo(f"{name}: avg - {_mean(rewards)}, std - {_spread(rewards)}, rollouts - {len(outputs)}, errors - {errors}")


def _print_numbers(name: str, numbers: Sequence[tuple[Mapping[str, Any], float]], shows_values: bool) -> None:
    values = [value for _, value in numbers]
    _echo(f"{name}: avg - {_mean(values)}, std - {_spread(values)}")
    if not shows_values:
        return
    by_rollout: defaultdict[int, list[float]] = defaultdict(list)
    seen: Counter[Any] = Counter()
    for output, value in numbers:
        by_rollout[output.get("rollout", seen[output["example_id"]])].append(value)
        seen[output["example_id"]] += 1
    for rollout, each in sorted(by_rollout.items()):
        shown = ", ".join(str(_round(value)) for value in each[:MAX_VALUES])
        more = f", ... ({len(each)} in all)" if len(each) > MAX_VALUES else ""
        _echo(f"r{rollout + 1}: [{shown}{more}]")


def _mean(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.3f}" if values else "none"


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.pstdev(values):.3f}" if values and all(map(math.isfinite, values)) else "none"


def _round(value: float) -> float:
    return round(float(value), 3)


def _echo(text: str) -> None:
    """Print a line, which is broken between words where it is too long."""
    echo(wrap_text(text))
