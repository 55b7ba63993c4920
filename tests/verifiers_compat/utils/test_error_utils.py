"""Errors as chains and as data, token usage, running metrics, required keys."""

from __future__ import annotations

import math
import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from verifiers_compat.types import Response, Usage
from verifiers_compat.utils import metric_utils
from verifiers_compat.utils.config_utils import MissingKeyError, ensure_keys
from verifiers_compat.utils.error_utils import (
    ErrorChain,
    error_info,
    error_info_to_exception,
    error_type_name,
    get_error_chain,
    get_vf_error_chain,
)
from verifiers_compat.utils.usage_utils import StateUsageTracker, compute_context_token_metrics, extract_usage_tokens
from vfgym.errors import Error, MissingExtra, SandboxError, ToolCallError, ToolError


def _raised() -> ToolError:
    try:
        try:
            raise KeyError("k")
        except KeyError as error:
            raise SandboxError("s") from error
    except SandboxError as error:
        outer = ToolError("t")
        outer.__cause__ = error
        return outer


def test_a_chain_follows_the_causes() -> None:
    error = _raised()
    chain = ErrorChain(error)
    assert (str(chain), repr(chain)) == ("ToolError -> SandboxError -> KeyError", "ToolError('t') -> SandboxError('s') -> KeyError('k')")
    assert SandboxError in chain
    assert ToolCallError not in chain
    assert [type(link) for link in get_vf_error_chain(error)] == [ToolError, SandboxError]
    assert get_error_chain(error, KeyError) == get_error_chain(error)[2:]
    assert get_error_chain(None) == []
    assert ErrorChain(_raised()) == chain
    assert len({ErrorChain(_raised()), chain}) == 1


def test_a_chain_that_closes_in_itself_ends() -> None:
    error = ToolError("t")
    error.__cause__ = SandboxError("s")
    error.__cause__.__cause__ = error
    assert str(ErrorChain(error)) == "ToolError -> SandboxError"


def test_errors_as_data_and_back() -> None:
    info = error_info(_raised())
    assert info["error_chain_str"] == "ToolError -> SandboxError -> KeyError"
    back = error_info_to_exception(info)
    assert type(back) is ToolError
    assert str(back) == info["error_chain_repr"]


@pytest.mark.parametrize(
    ("error", "types", "kind"),
    [
        ("KeyError('k')", None, KeyError),
        ("SomethingElse('x')", None, Error),
        ({"error": "ToolError"}, None, ToolError),
        ({"error": "ToolError"}, [SandboxError], Error),
        ({"error": "Mine"}, {"Mine": LookupError}, LookupError),
        (MissingExtra.__name__, None, Error),
    ],
)
def test_the_type_is_found_by_its_name(error: Any, types: Any, kind: type[BaseException]) -> None:
    """One that is not known, or cannot be made of a text, is an `Error`."""
    assert type(error_info_to_exception(error, types)) is kind


@pytest.mark.parametrize("error", [_raised(), error_info(_raised()), "ToolError -> KeyError", "ToolError('t') -> KeyError('k')"])
def test_the_type_name_of_any_form(error: Any) -> None:
    assert error_type_name(error) == "ToolError"


def test_no_error_has_no_name() -> None:
    assert error_type_name(None) is None


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(3, 0, 4, 7), (3, 4)),
        (SimpleNamespace(input_tokens=3, output_tokens=4), (3, 4)),
        ({"prompt_tokens": 3, "completion_tokens": 4}, (3, 4)),
        ({"prompt_tokens": None, "input_tokens": 5}, (5, 0)),
        ({"prompt_tokens": math.nan, "completion_tokens": -2}, (0, 0)),
        ({"prompt_tokens": "3", "completion_tokens": True}, (0, 0)),
        (None, (0, 0)),
    ],
)
def test_usage_of_any_response(usage: Any, expected: tuple[int, int]) -> None:
    assert extract_usage_tokens(SimpleNamespace(usage=usage)) == extract_usage_tokens({"usage": usage}) == expected


def test_the_tracker_counts() -> None:
    tracker = StateUsageTracker()
    tracker.add(3, 4)
    assert dict(tracker) == {"input_tokens": 3, "output_tokens": 4}


def test_tokens_of_the_last_context() -> None:
    """What the model wrote is counted over all turns, the rest is the last context without it."""

    def turn(prompt: int, completion: int) -> dict[str, Any]:
        usage = Usage(prompt_tokens=prompt, completion_tokens=completion)
        return {"response": Response("r", 0, "m", usage, {"content": "x"})}  # type: ignore[arg-type]

    trajectory = [turn(10, 5), turn(20, 7)]
    assert compute_context_token_metrics(trajectory) == {"final_input_tokens": 15, "final_output_tokens": 12}
    assert compute_context_token_metrics(trajectory[:1]) == {"final_input_tokens": 10, "final_output_tokens": 5}
    assert compute_context_token_metrics([]) == {"final_input_tokens": 0, "final_output_tokens": 0}


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


def test_missing_keys_are_all_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty variable counts as missing."""
    monkeypatch.setenv("THERE", "x")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("MISSING", raising=False)
    ensure_keys([])
    ensure_keys(["THERE"])
    with pytest.raises(ValueError, match="export MISSING=") as caught:
        ensure_keys(["MISSING", "THERE", "EMPTY", "MISSING"])
    assert isinstance(caught.value, MissingKeyError)
    assert caught.value.keys == ["MISSING", "EMPTY"]
    assert pickle.loads(pickle.dumps(caught.value)).keys == ["MISSING", "EMPTY"]
    with pytest.raises(TypeError, match=r"\['THERE'\]"):
        ensure_keys("THERE")
