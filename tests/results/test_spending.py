"""What rows tell of what their rollouts spent."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym.limits import Spending
from vfgym.prices import Price
from vfgym.results.spending import as_row_value, cost_of, spent_by

PRICE = Price(input=1_000_000.0, output=10_000_000.0)  # 1 and 10 for a token


@pytest.mark.parametrize("cost", [None, 0.0, 0.5])
def test_a_row_holds_what_its_rollout_spent(cost: float | None) -> None:
    kept = as_row_value(Spending(2, 30.0, 4.0, cost, errors=1, abandoned=1))
    assert kept == {"requests": 2, "input_tokens": 30.0, "output_tokens": 4.0, "cost": cost}
    usage = {"input_tokens": 1.0, "output_tokens": 1.0}
    assert spent_by({"error": None, "spent": kept, "token_usage": usage}, PRICE) == Spending(2, 30.0, 4.0, cost, 0)


@pytest.mark.parametrize("kept", [None, {"requests": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0}])
@pytest.mark.parametrize(("error", "errors"), [(None, 0), ({"error": "E"}, 1)])
def test_an_error_is_counted(kept: Any, error: Any, errors: int) -> None:
    assert spent_by({"error": error, "spent": kept}).errors == errors


@pytest.mark.parametrize(
    ("usage", "price", "expected"),
    [
        (None, None, Spending(0, 0.0, 0.0, None)),
        (None, PRICE, Spending(0, 0.0, 0.0, 0.0)),
        ({"input_tokens": 3.0, "output_tokens": 2.0}, None, Spending(0, 3.0, 2.0, None)),
        ({"input_tokens": 3.0, "output_tokens": 2.0}, PRICE, Spending(0, 3.0, 2.0, 23.0)),
        ({"input_tokens": 3.0, "output_tokens": 2.0, "judge_requests": 0}, PRICE, Spending(0, 3.0, 2.0, 23.0)),
        (
            {"input_tokens": 3.0, "output_tokens": 2.0, "judge_input_tokens": 5.0, "judge_output_tokens": 7.0, "judge_requests": 1},
            PRICE,
            Spending(0, 8.0, 9.0, None),
        ),
    ],
)
def test_a_row_without_it_tells_its_tokens(usage: Any, price: Price | None, expected: Spending) -> None:
    assert spent_by({"error": None, "token_usage": usage}, price) == expected


@pytest.mark.parametrize(
    ("costs", "expected"), [([], None), ([0.0], 0.0), ([0.5, 0.25], 0.75), ([0.0, 0.0], 0.0), ([0.5, None], None), ([None, 0.5], None)]
)
def test_rows_cost_what_they_cost_together_where_each_is_known(costs: list[float | None], expected: float | None) -> None:
    assert cost_of({"spent": {"cost": cost}} for cost in costs) == expected


@pytest.mark.parametrize("row", [{}, {"spent": None}, {"spent": {}}])
def test_a_row_that_does_not_say_has_no_cost(row: dict[str, Any]) -> None:
    assert cost_of([{"spent": {"cost": 1.0}}, row]) is None
