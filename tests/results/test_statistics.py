"""What rows say together: means, standard error, pass@k."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vfgym.endings import Ending
from vfgym.results import ErrorInfo, RolloutOutput, summarize
from vfgym.results.intervals import interval_of
from vfgym.results.statistics import pass_all, pass_at, planned_rollouts, statistics_of, with_statistics


def row(example_id: int, reward: float, **fields: Any) -> RolloutOutput:
    return RolloutOutput({"example_id": example_id, "reward": reward, "error": None, "metrics": {}, "return": reward, **fields})


def test_pass_at_k_is_over_complete_examples() -> None:
    rows = [row(0, 1.0), row(0, 0.0), row(1, 0.6), row(1, 0.4)]
    summary = summarize(rows, rollouts_per_example=2, pass_threshold=0.5)
    assert summary["pass_at_k"] == {"1": 0.5, "2": 1.0}
    assert summary["pass_all_k"] == {"1": 0.5, "2": 0.0}
    rows = [row(0, 1.0), row(0, 1.0), row(1, 0.0)]
    assert summarize(rows, rollouts_per_example=2, pass_threshold=0.5)["pass_at_k"] == {"1": 1.0, "2": 1.0}
    assert summarize(rows[:1], rollouts_per_example=1, pass_threshold=0.5)["pass_at_k"] == {}
    assert summarize([], rollouts_per_example=2, pass_threshold=0.5)["pass_at_k"] == {}


@settings(max_examples=25)
@given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_all_choices(drawn: tuple[int, int, int]) -> None:
    from itertools import combinations

    rollouts, passed, k = drawn
    choices = list(combinations([1] * passed + [0] * (rollouts - passed), k))
    assert pass_at(k, passed, rollouts) == pytest.approx(sum(any(choice) for choice in choices) / len(choices))
    assert pass_all(k, passed, rollouts) == pytest.approx(sum(all(choice) for choice in choices) / len(choices))


def test_the_standard_error_is_over_the_means_of_examples() -> None:
    rows = [row(0, 1.0), row(0, 0.0), row(1, 1.0), row(1, 1.0), row(2, 0.0), row(2, 0.0)]
    summary = summarize(rows, rollouts_per_example=2, pass_threshold=0.5)
    assert summary["avg_reward"] == 0.5
    assert summary["std_error"] == pytest.approx(np.std([0.5, 1.0, 0.0], ddof=1) / np.sqrt(3))
    assert summarize(rows[:2], rollouts_per_example=2, pass_threshold=0.5)["std_error"] is None


@pytest.mark.parametrize(
    ("rewards", "mean", "error"),
    [
        ([math.nan, 1.0], math.nan, math.nan),
        ([math.inf, 1.0], math.inf, math.nan),
        ([math.inf, -math.inf], math.nan, math.nan),
        ([1e200, -1e200], 0.0, math.inf),
        ([1.7e308, 1.7e308], math.inf, math.inf),
    ],
)
def test_numbers_beyond_all_bounds_have_means_too(rewards: list[float], mean: float, error: float) -> None:
    rows = [row(number, reward, metrics={"m": reward}) for number, reward in enumerate(rewards)]
    summary = summarize(rows, rollouts_per_example=1, pass_threshold=0.5)
    means = [summary["avg_reward"], summary["avg_return"], summary["avg_metrics"]["m"]]
    assert means == pytest.approx([mean] * 3, nan_ok=True)
    assert summary["std_error"] == pytest.approx(error, nan_ok=True)


def test_means_are_over_the_rows_that_have_a_value() -> None:
    tools = [{"name": "add"}]
    rows = [
        row(0, 1.0, metrics={"a": 1.0, "b": 4.0}, token_usage={"input_tokens": 4.0, "output_tokens": 2.0}, tool_defs=tools),
        row(1, 0.0, metrics={"a": 0.0}, error=ErrorInfo.of(ValueError()), tool_defs=tools),
    ]
    summary = summarize(rows, rollouts_per_example=1, pass_threshold=0.5)
    assert summary["avg_metrics"] == {"a": 0.5, "b": 4.0}
    assert summary["avg_error"] == 0.5
    assert summary["usage"] == {"input_tokens": 4.0, "output_tokens": 2.0}
    assert summary["tools"] == tools
    rows.append(row(2, 0.0, tool_defs=[{"name": "other"}]))
    assert summarize(rows, rollouts_per_example=1, pass_threshold=0.5)["tools"] is None


@pytest.mark.parametrize(
    ("metadata", "planned"),
    [
        ({"num_rollouts": 0, "num_examples": 2, "rollouts_per_example": 3}, 0),
        ({"num_rollouts": None, "num_examples": 2, "rollouts_per_example": 3}, 6),
        ({"num_examples": 0, "rollouts_per_example": 3}, 0),
        ({"num_examples": -1, "rollouts_per_example": 3}, None),
        ({"num_examples": 2}, None),
        ({"rollouts_per_example": 2}, None),
    ],
)
def test_how_many_rollouts_a_run_has(metadata: dict[str, Any], planned: int | None) -> None:
    assert planned_rollouts(metadata) == planned


def test_each_mean_is_changed_and_nothing_else() -> None:
    means = dict.fromkeys(("avg_reward", "avg_reward_finished", "avg_reward_missing_failed", "avg_return", "std_error"), 1.0)
    changed = with_statistics({**means, "avg_metrics": {"a": 2.0}, "seed": 1.0}, str)
    assert changed == {**dict.fromkeys(means, "1.0"), "avg_metrics": {"a": "2.0"}, "seed": 1.0}
    assert with_statistics({"avg_metrics": None}, str) == {"avg_metrics": None}


def counted(example_id: int, reward: float, ending: Ending = Ending.TERMINATED, **fields: Any) -> dict[str, Any]:
    number = reward if ending.counts_with_return else fields.get("failure_reward")
    return {**row(example_id, reward), "ending": ending, "failed": ending.failed, "counted_reward": number, **fields}


def test_each_ending_is_counted_and_counts_as_it_should() -> None:
    rows = [counted(number, 1.0, ending, metrics={"m": float(number)}, failure_reward=-1.0) for number, ending in enumerate(Ending)]
    summary = statistics_of(rows, 1, 0.5)
    assert summary["endings"] == dict.fromkeys(map(str, Ending), 1)
    assert (summary["num_failed"], summary["num_cut"], summary["num_missing"]) == (3, 1, 1)
    assert summary["avg_reward"] == pytest.approx((1 + 1 - 1 - 1 - 1) / 5)
    assert summary["avg_reward_missing_failed"] == pytest.approx((1 + 1 - 1 - 1 - 1 - 1) / 6)
    assert (summary["avg_reward_finished"], summary["avg_return"], summary["avg_metrics"]) == (1.0, None, {"m": 1.0})
    older = statistics_of(rows, 1, 0.5, of="reward")
    assert (older["avg_reward"], older["avg_return"], older["avg_metrics"], older["mean_of"]) == (1.0, 1.0, {"m": 2.5}, "reward")


def test_without_a_number_to_count_with_there_is_no_headline() -> None:
    cases = [[counted(0, 1.0), counted(1, 1.0, Ending.CUT)], [counted(0, 1.0, Ending.INFRASTRUCTURE_FAILED)]]
    for rows in cases:
        summary = statistics_of(rows, 1, 0.5)
        assert (summary["avg_reward"], summary["std_error"], summary["interval"]) == (None, None, None)
    assert statistics_of(cases[1], 1, 0.5)["avg_reward_finished"] is None
    assert statistics_of([], 1, 0.5)["avg_reward"] == 0.0


@pytest.mark.parametrize(("planned", "is_done"), [(None, True), (0, True), (2, True), (3, False)])
def test_a_run_that_is_not_done_has_no_headline(planned: int | None, is_done: bool) -> None:
    summary = statistics_of([counted(0, 1.0), counted(1, 0.0)], 1, 0.5, num_planned=planned)
    keys = ("avg_reward", "avg_reward_missing_failed", "avg_return", "std_error", "interval")
    assert {summary[key] is not None for key in keys} == {is_done}  # type: ignore[literal-required]
    assert summary["avg_reward_finished"] == 0.5


def test_examples_with_a_missing_rollout_are_not_among_the_passes() -> None:
    missing = counted(0, 1.0, Ending.INFRASTRUCTURE_FAILED)
    rows = [counted(0, 1.0), missing, *(counted(1, reward, metrics_errors={"m": "E"}, metrics={"m": 0.0}) for reward in (0.0, 1.0))]
    summary = statistics_of(rows, 2, 1.0)
    assert (summary["pass_at_k"], summary["pass_all_k"]) == ({"1": 0.5, "2": 1.0}, {"1": 0.5, "2": 0.0})
    assert (summary["metrics_errors"], summary["avg_metrics"]) == ({"m": 2}, {})
    assert list(statistics_of([counted(0, 0.0)] * 5, 5, 0.0)["pass_at_k"]) == ["1", "2", "4"]


def test_usage_tools_returns_and_the_range_are_those_of_the_rows() -> None:
    first = {"token_usage": {"input_tokens": 4.0, "judge_requests": 2.0}, "tool_defs": [{"name": "a"}, {"name": "b"}]}
    second = {"token_usage": {"input_tokens": 0.0, "output_tokens": 6.0}, "tool_defs": [{"name": "b"}, {"name": "a"}], "return": 5.0}
    rows = [counted(0, 1.0, **first), counted(1, 1.0, **second)]
    summary = statistics_of(rows, 1, 0.5, reward_range=(-1.0, 3.0))
    assert summary["usage"] == {"input_tokens": 2.0, "judge_requests": 1.0, "output_tokens": 3.0}
    assert (summary["tools"], summary["avg_reward"], summary["avg_return"]) == (first["tool_defs"], 1.0, 3.0)
    assert summary["interval"] == interval_of({0: [1.0], 1: [1.0]}, (-1.0, 3.0)) != statistics_of(rows, 1, 0.5)["interval"]
    for each in rows:
        each |= {"token_usage": None, "tool_defs": None}
    del rows[1]["return"]
    summary = statistics_of(rows, 1, 0.5)
    assert (summary["usage"], summary["tools"], summary["avg_return"]) == (None, None, 1.0)
    assert statistics_of([counted(0, 1.0), counted(1, 1.0, **first)], 1, 0.5)["tools"] is None
