"""How a run goes, checked once."""

from __future__ import annotations

from typing import Any

import pytest

from verifiers_compat.gepa.settings import GepaSettings
from vfgym.errors import ConfigurationError

FINE: dict[str, Any] = {
    **{"model": "m", "reflection_model": "r", "sampling_args": {}, "state_columns": (), "num_train": 1, "num_val": 1, "max_calls": 1},
    **{"minibatch_size": 1, "perfect_score": None, "max_concurrent": -1, "seed": 0},
}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        *((name, 0, f"{name} must be an integer from 1") for name in ("num_train", "num_val", "max_calls", "minibatch_size")),
        *(
            (name, value, f"{name} must be an integer")
            for name in ("num_train", "seed", "max_concurrent")
            for value in (True, 1.0, "1", None)
        ),
        ("max_concurrent", -2, "max_concurrent must be an integer from -1"),
        ("seed", -1, "seed must be an integer from 0"),
        *(("perfect_score", value, "perfect_score must be a number") for value in ("high", float("nan"), float("inf"))),
        ("state_columns", "feedback", "state_columns must be a list of names"),
        *((name, value, f"{name} must be the name of a model") for name in ("model", "reflection_model") for value in (3, None)),
    ],
)
def test_what_does_not_fit_is_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        GepaSettings(**{**FINE, name: value})


def test_a_run_may_go_on_with_a_larger_budget_and_faster() -> None:
    """These two are not what a run is about; a perfect score of 0 is a score."""
    described = GepaSettings(**{**FINE, "perfect_score": 0.0}).describe()
    assert described == {
        **{name: value for name, value in FINE.items() if name not in ("max_calls", "max_concurrent")},
        "perfect_score": 0.0,
    }
