"""The handlers of all that takes part in a rollout, in the order in which they run."""

from __future__ import annotations

import pytest

import verifiers_compat.v1 as vf
from tests.verifiers_compat.v1.playing import harness, noting
from vfgym.errors import ConfigurationError


async def test_priority_then_name_orders_handlers() -> None:
    log: list[str] = []
    a = noting(log, "a")
    await harness("x", setups=[noting(log, "b"), {"fn": noting(log, "late"), "priority": -1}, a, a]).run({"prompt": "go"})
    assert log == ["a", "b", "late"]


def test_two_signals_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="score"):
        vf.Env(vf.Taskset([{"question": "?"}], rewards=[noting([], "score", 1.0)]), vf.Harness(metrics=[noting([], "score", 2.0)]))


def test_scoring_that_names_no_signal_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="scor"):
        _ = vf.Harness(config={"scoring": {"nope": {"skip": True}}}).all_handlers
    with pytest.raises(ValueError, match="wait"):
        vf.Harness(config={"scoring": {"nope": {"wait": 1.0}}})
