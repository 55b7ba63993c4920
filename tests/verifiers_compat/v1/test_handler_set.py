"""The handlers of all that takes part in a rollout, in the order in which they run."""

from __future__ import annotations

from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.verifiers_compat.v1.playing import harness
from vfgym.errors import ConfigurationError


async def test_priority_then_name_orders_handlers() -> None:
    log: list[str] = []

    def logging(name: str) -> Any:
        def handler(task: Any, state: Any) -> None:
            log.append(name)

        handler.__name__ = name
        return handler

    a = logging("a")
    await harness("x", setups=[logging("b"), {"fn": logging("late"), "priority": -1}, a, a]).run({"prompt": "go"})
    assert log == ["a", "b", "late"]


def score(task: Any, state: Any) -> float:
    return 1.0


def test_two_signals_of_one_name_are_refused() -> None:
    def other(task: Any, state: Any) -> float:
        return 2.0

    other.__name__ = "score"
    with pytest.raises(ValueError, match="score"):
        vf.Env(vf.Taskset([{"question": "?"}], rewards=[score]), vf.Harness(metrics=[other]))


def test_scoring_that_names_no_signal_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="scor"):
        _ = vf.Harness(config={"scoring": {"nope": {"skip": True}}}).all_handlers
    with pytest.raises(ValueError, match="wait"):
        vf.Harness(config={"scoring": {"nope": {"wait": 1.0}}})
