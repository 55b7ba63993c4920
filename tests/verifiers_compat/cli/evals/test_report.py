"""What is printed about results, and how rows become columns: also where rows differ, fail or are missing."""

from __future__ import annotations

from typing import Any

import pytest

from verifiers_compat.utils.async_utils import EventLoopLagStats
from verifiers_compat.utils.eval_utils import (
    get_env_outputs,
    output_env_id,
    print_info,
    print_results,
    print_rewards,
    print_timing,
    print_usage,
    to_col_order,
)
from vfgym.results import summarize


def row(example_id: int, reward: float, **fields: Any) -> dict[str, Any]:
    start = {"prompt": [{"role": "user", "content": "?"}], "completion": [], "reward": reward, "error": None, "metrics": {}}
    return {"example_id": example_id, **start, "is_truncated": False, "stop_condition": "done", **fields}


def run(*rows: dict[str, Any], rollouts: int = 1) -> dict[str, Any]:
    what = {"env_id": "e", "env_args": {"x": 1}, "model": "m", "base_url": "u", "num_examples": len(rows), "rollouts_per_example": rollouts}
    return {"outputs": list(rows), "metadata": {**what, **summarize(rows, rollouts, 0.5)}}


def test_rows_become_columns_with_none_where_a_key_is_missing() -> None:
    assert to_col_order([{"a": 1}, {"b": 2}]) == {"a": [1, None], "b": [None, 2]}
    assert to_col_order([]) == {}


@pytest.mark.parametrize(
    ("info", "env_id"), [({"env_id": "a"}, "a"), ({"env_id": ["a", "b"]}, "a"), ({"env_id": []}, None), ({}, None), (None, None)]
)
def test_the_route_of_an_output_is_its_outermost_name(info: Any, env_id: str | None) -> None:
    assert output_env_id({"info": info}) == env_id
    assert get_env_outputs({"outputs": [{"info": info}]}, "a") == ([{"info": info}] if env_id == "a" else [])


def test_rewards_of_uneven_groups(capsys: pytest.CaptureFixture[str]) -> None:
    results = run(row(0, 1.0, metrics={"m": 1.0}), row(0, 0.0), row(1, 0.1234), rollouts=2)
    print_rewards(results)
    assert capsys.readouterr().out.splitlines() == [
        "Rewards:",
        "reward: avg - 0.374, std - 0.445",
        "r1: [1.0, 0.123]",
        "r2: [0.0]",
        "pass@1: 0.5, pass@2: 1.0",
        "pass^1: 0.5, pass^2: 0.0",
        "m: avg - 1.000, std - 0.000",
        "r1: [1.0]",
    ]


def test_a_value_stands_in_the_line_of_its_rollout(capsys: pytest.CaptureFixture[str]) -> None:
    """As its row numbers it: also where rows are in another order, or the first rollout has no such metric."""
    print_rewards(run(row(0, 0.25, rollout=1, metrics={"m": 2.0}), row(0, 0.75, rollout=0), row(1, 0.5, rollout=0), rollouts=2))
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:4] == ["r1: [0.75, 0.5]", "r2: [0.25]"]
    assert lines[-2:] == ["m: avg - 2.000, std - 0.000", "r2: [2.0]"]


def test_long_lines_say_how_many_values_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_rewards(run(*(row(i, 1.0) for i in range(150))))
    assert "1.0, ... (150 in all)]" in capsys.readouterr().out


def test_errors_are_counted_by_kind_and_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    failed = {"error": "ToolError('x')", "long_error_chain": "ToolError", "stop_condition": "has_error"}
    print_info(run(row(0, 0.0, **failed), row(1, 0.0, **failed), row(2, 1.0, is_truncated=True), row(3, 1.0, metrics_errors={"f": "ouch"})))
    assert capsys.readouterr().out.splitlines() == [
        "Info:",
        "is_truncated: 0.25",
        "stop_conditions: has_error: 0.5, done: 0.5",
        "errors: 0.5",
        "  ToolError: 2 of 4, the first is ToolError('x')",
        "  reward function f failed in 1 of 4 rollouts: ouch",
    ]


def test_timing_and_usage_are_printed_where_there_are_any(capsys: pytest.CaptureFixture[str]) -> None:
    print_timing(run(row(0, 0.0)))
    print_usage(run(row(0, 0.0)))
    assert capsys.readouterr().out == ""
    timing = [{"total": seconds, "model": {"duration": seconds / 2, "spans": []}} for seconds in (1.0, 3.0)]
    results = run(*(row(i, 0.0, timing=each, token_usage={"input_tokens": 10.0 * i}) for i, each in enumerate(timing)))
    print_timing(results)
    print_usage(results)
    assert capsys.readouterr().out.splitlines() == [
        "Timing:",
        "total: min - 1.0s, mean - 2.0s, max - 3.0s",
        "model: min - 500ms, mean - 1.0s, max - 1.5s",
        "Usage:",
        "input_tokens (avg): 5.0",
    ]


def test_a_run_without_rows_and_rows_without_numbers_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_results(run())
    assert "reward: avg - none, std - none" in capsys.readouterr().out
    print_results(run(row(0, float("nan")), row(1, 1.0)))
    out = capsys.readouterr().out
    assert "reward: avg - nan, std - none" in out
    assert "Arguments: x=1" in out


@pytest.mark.parametrize("is_abbreviated", [False, True])
def test_the_whole_page_of_a_run_of_two_environments(is_abbreviated: bool, capsys: pytest.CaptureFixture[str]) -> None:
    timing = {"total": 2.0}
    results = run(
        row(0, 1.0, info={"env_id": "a"}, token_usage={"input_tokens": 4.0}, timing=timing),
        row(1, 0.0, info={"env_id": "b"}, token_usage={"input_tokens": 8.0}, timing=timing, error="E"),
    )
    results["metadata"] |= {"cost": 0.0, "stopped_by": {"limit": "requests", "used": 3, "allowed": 2}}
    lag = EventLoopLagStats(count=2, mean=0.5, p99=1.0, max=2.0, median=0.0, p90=0.0)
    print_results(results, is_abbreviated=is_abbreviated, event_loop_lag=lag)
    lines = capsys.readouterr().out.splitlines()
    sample = lines.index("--- All ---")
    assert ("--- Example ---" in lines[:sample]) is not is_abbreviated
    values = [] if is_abbreviated else ["r1: [1.0, 0.0]"]
    assert lines[:6] == ["--- Evaluation ---", "Environment: e", "Arguments: x=1", "Model: m", "Provider: u", "Examples: 2"]
    assert lines[sample:] == [
        *("--- All ---", "Rewards:", "reward: avg - 0.500, std - 0.500", *values),
        *("Info:", "is_truncated: 0.0", "stop_conditions: done: 1.0", "errors: 0.5", "  E: 1 of 2, the first is E"),
        *([] if is_abbreviated else ["Timing:", "total: min - 2.0s, mean - 2.0s, max - 2.0s"]),
        *("Usage:", "input_tokens (avg): 6.0", "Cost: 0"),
        "Stopped: the limit on requests is used up (3 of 2)",
        *(
            "Environments:",
            "a: avg - 1.000, std - 0.000, rollouts - 1, errors - 0",
            "b: avg - 0.000, std - 0.000, rollouts - 1, errors - 1",
        ),
        *([] if is_abbreviated else ["Event loop lag: mean 500ms, p99 1.0s, max 2.0s"]),
    ]
    pages = [(print_results(results, **given), capsys.readouterr().out)[1] for given in ({}, {"num_samples": 1}, {"num_samples": 2})]  # type: ignore[func-returns-value]
    assert pages[0] == pages[1] != pages[2]
