"""Tokens: what a response reports, what an episode has used, and how long its last context is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from vfgym.results.rows import token_usage
from vfgym.state import State, TokenUsage, UsageTracker

__all__ = ["StateUsageTracker", "compute_context_token_metrics", "extract_usage_tokens"]

StateUsageTracker = UsageTracker

_INPUT = ("prompt_tokens", "input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens")


def get_usage_field(usage: Any, key: str) -> Any:
    """Return a field of a usage, given as an object or as a dict; None where it has none."""
    return usage.get(key) if isinstance(usage, Mapping) else getattr(usage, key, None)


def extract_usage_tokens(response: object) -> tuple[int, int]:
    """Return the input and output tokens that a response reports, this library's, an SDK's, or as a dict.

    What is missing, negative or no number counts as 0.
    """
    usage = get_usage_field(response, "usage")
    return _count(usage, _INPUT), _count(usage, _OUTPUT)


def compute_context_token_metrics(trajectory: Sequence[Mapping[str, Any]]) -> TokenUsage:
    """Return ``final_input_tokens`` and ``final_output_tokens`` of a trajectory; 0 where no turn reports its usage.

    They are the tokens of the last turn's context that the model did not write, and that it wrote. They are exact where the
    conversation only grew.
    """
    usage = token_usage(State(trajectory=list(trajectory))) or {}
    return {key: usage.get(key, 0) for key in ("final_input_tokens", "final_output_tokens")}  # type: ignore[return-value]


def _count(usage: object, names: Sequence[str]) -> int:
    for name in names:
        count = get_usage_field(usage, name)
        if isinstance(count, int | float) and not isinstance(count, bool) and math.isfinite(count):
            return max(0, int(count))
    return 0
