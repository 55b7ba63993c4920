"""What rows tell of what their rollouts spent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from vfgym.limits import Spending
from vfgym.prices import Price


class SpentByRollout(TypedDict):
    """The value of ``spent`` in a row: what was asked of models for it, attempts that were repeated and judges included.

    Answers out of a cache are not among it.
    """

    requests: int
    input_tokens: float
    output_tokens: float
    cost: float | None
    """Money; None where a price is not known."""


def as_row_value(spent: Spending) -> SpentByRollout:
    """Return what a row holds of what its rollout spent."""
    return {
        "requests": spent.requests,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cost": spent.cost,
    }


def spent_by(row: Mapping[str, Any], price: Price | None = None) -> Spending:
    """Return what a row tells of what its rollout spent.

    Args:
        row: A row. One of a run without limits, prices and cache tells the tokens of its model and of its judges only.
        price: The price of the model, for such a row: where a judge was asked, the cost is not known.
    """
    has_error = row["error"] is not None
    kept = row.get("spent")
    if isinstance(kept, Mapping):
        return Spending(kept["requests"], kept["input_tokens"], kept["output_tokens"], kept["cost"], has_error)
    usage = row.get("token_usage") or {}
    read = usage.get("input_tokens", 0.0) + usage.get("judge_input_tokens", 0.0)
    written = usage.get("output_tokens", 0.0) + usage.get("judge_output_tokens", 0.0)
    cost = None if price is None or usage.get("judge_requests") else price.cost(read, written)
    return Spending(0, read, written, cost, has_error)


def cost_of(rows: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the money that the rollouts of rows cost together; None where that of any is not known."""
    total: float | None = None
    for row in rows:
        cost = (row.get("spent") or {}).get("cost")
        if cost is None:
            return None
        total = cost + (total or 0.0)
    return total
