"""Running metrics of a run."""

from __future__ import annotations

from typing import Any

import pytest

from verifiers_compat.utils import metric_utils

OUTPUTS: list[dict[str, Any]] = [
    {"example_id": 0, "reward": 1.0, "error": None, "metrics": {"a": 1, "b": 0.5}, "token_usage": {"input_tokens": 10, "output_tokens": 4}},
    {"example_id": 0, "reward": 0.0, "error": {"error": "ToolError"}, "metrics": {"a": 0}},
    {"example_id": 1, "reward": 0.5, "error": None, "metrics": {"a": True}, "token_usage": {"input_tokens": 20, "output_tokens": 6}},
]


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        (metric_utils.RewardMetric(), 0.5),
        (metric_utils.MeanMetric("b"), 0.5),
        (metric_utils.MeanMetric("missing"), 0.0),
        (metric_utils.ErrorRateMetric(), pytest.approx(1 / 3)),
        (metric_utils.InputTokensMetric(), 15.0),
        (metric_utils.OutputTokensMetric(), 5.0),
        (metric_utils.FinalInputTokensMetric(), 0.0),
        (metric_utils.FinalOutputTokensMetric(), 0.0),
        (metric_utils.EnvMetrics(), {"a": pytest.approx(2 / 3), "b": 0.5}),
        (metric_utils.PassAtKMetric(2), ({"1": 0.5, "2": 1.0}, {"1": 0.5, "2": 0.0})),
        (metric_utils.PassAtKMetric(1), ({}, {})),
        (metric_utils.PassAtKMetric(4), ({}, {})),
    ],
)
def test_running_metrics(metric: metric_utils.Metric[Any], value: Any) -> None:
    """Added one by one or together, they give the same; reset forgets all."""
    empty = metric.compute()
    metric.add_outputs(OUTPUTS)
    assert metric.compute() == value
    metric.reset()
    assert metric.compute() == empty
    for output in OUTPUTS:
        metric.add_output(output)
    assert metric.compute() == value


def test_numbers_are_those_of_their_names_and_0_is_one() -> None:
    mean = metric_utils.MeanMetric("m")
    mean.add_outputs([{"m": 0.0, "metrics": {"m": 9.0}}, {"metrics": {"m": 4.0}}, {"metrics": None}, {}])
    assert (mean.compute(), mean.count) == (2.0, 2)
    reward = metric_utils.RewardMetric()
    reward.add_outputs([{"reward": 1.0}, {}])
    assert (reward.compute(), reward.name) == (0.5, "reward")
    names = ("input_tokens", "output_tokens", "final_input_tokens", "final_output_tokens")
    output = {"token_usage": {name: number for number, name in enumerate(names)}}
    kinds = ("InputTokensMetric", "OutputTokensMetric", "FinalInputTokensMetric", "FinalOutputTokensMetric")
    for number, kind in enumerate(kinds):
        metric = getattr(metric_utils, kind)()
        metric.add_outputs([output, {"token_usage": None}, {}])
        assert (metric.name, metric.compute()) == (names[number], float(number))


@pytest.mark.parametrize(("threshold", "at"), [(0.0, 1.0), (0.5, 0.5), (1.0, 0.5), (1.1, 0.0)])
def test_a_rollout_passes_from_the_threshold_on(threshold: float, at: float) -> None:
    metric = metric_utils.PassAtKMetric(2, threshold)
    metric.add_outputs([{"example_id": 0, "reward": 1.0}, {"example_id": 0, "reward": None}, {"example_id": 1, "reward": 1.0}])
    assert metric.compute()[0]["1"] == at


@pytest.mark.parametrize(
    ("rewards", "at", "all_of"),
    [
        ([1, 0, 1, 0], {"1": 0.5, "2": 5 / 6, "4": 1.0}, {"1": 0.5, "2": 1 / 6, "4": 0.0}),
        ([1, 1, 0], {"1": 2 / 3, "2": 1.0}, {"1": 2 / 3, "2": 1 / 3}),
        ([1, 1], {"1": 1.0, "2": 1.0}, {"1": 1.0, "2": 1.0}),
    ],
)
def test_pass_at_the_powers_of_two_up_to_the_number_of_rollouts(rewards: list[int], at: Any, all_of: Any) -> None:
    """An example that has fewer rollouts, or more, is none that is complete."""
    metric = metric_utils.PassAtKMetric(len(rewards))
    sizes = {0: rewards, 1: [1], 2: [*rewards, 1], 3: rewards}
    metric.add_outputs({"example_id": number, "reward": reward} for number, each in sizes.items() for reward in each)
    assert metric.compute() == (pytest.approx(at), pytest.approx(all_of))


def test_an_empty_error_is_one() -> None:
    metric = metric_utils.ErrorRateMetric()
    metric.add_outputs([{"error": {}}, {"error": ""}, {"error": None}, {}])
    assert (metric.compute(), metric.count) == (0.5, 4)
