"""Tokens: what a response reports, and what the last context of a trajectory holds."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from verifiers_compat.types import Response, Usage
from verifiers_compat.utils.usage_utils import StateUsageTracker, compute_context_token_metrics, extract_usage_tokens


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


def test_tokens_are_counted_and_those_of_the_last_context_told() -> None:
    tracker = StateUsageTracker()
    tracker.add(3, 4)
    assert dict(tracker) == {"input_tokens": 3, "output_tokens": 4}

    def turn(prompt: int, completion: int) -> dict[str, Any]:
        usage = Usage(prompt_tokens=prompt, completion_tokens=completion)
        return {"response": Response("r", 0, "m", usage, {"content": "x"})}  # type: ignore[arg-type]

    trajectory = [turn(10, 5), turn(20, 7)]
    assert compute_context_token_metrics(trajectory) == {"final_input_tokens": 15, "final_output_tokens": 12}
    assert compute_context_token_metrics(trajectory[:1]) == {"final_input_tokens": 10, "final_output_tokens": 5}
    assert compute_context_token_metrics([]) == {"final_input_tokens": 0, "final_output_tokens": 0}
