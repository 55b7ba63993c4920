"""The handlers of all that takes part in a rollout, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from vfgym.errors import ConfigurationError
from vfgym.testing import ScriptedClient


def get(key: str) -> str:
    """Return a value."""
    return f"value of {key}"


def fail() -> str:
    """Raise an error."""
    raise LookupError("no such thing")


def harness(*answers: Any, **kwargs: Any) -> vf.Harness:
    return vf.Harness(client=ScriptedClient(answers), model="m", **kwargs)


def contents(state: vf.State, role: str) -> list[Any]:
    return [message["content"] for message in state["completion"] if message["role"] == role]


async def test_priority_then_name_orders_handlers() -> None:
    log: list[str] = []

    def b(task: Any, state: Any) -> None:
        log.append("b")

    def a(task: Any, state: Any) -> None:
        log.append("a")

    def late(task: Any, state: Any) -> None:
        log.append("late")

    await harness("x", setups=[b, {"fn": late, "priority": -1}, a, a]).run({"prompt": "go"})
    assert log == ["a", "b", "late"]


def test_two_signals_of_one_name_are_refused() -> None:
    def score(task: Any, state: Any) -> float:
        return 1.0

    def other() -> Callable[..., float]:
        def score(task: Any, state: Any) -> float:
            return 2.0

        return score

    with pytest.raises(ValueError, match="score"):
        vf.Env(vf.Taskset([{"question": "?"}], rewards=[score]), vf.Harness(metrics=[other()]))


@pytest.mark.parametrize(
    ("scoring", "reward"), [({"score": {"weight": 3.0}}, 3.0), ({"score": {"skip": True}}, 0.0), ({"score": {"priority": 5}}, 1.0)]
)
async def test_a_run_may_change_its_signals(scoring: Any, reward: float) -> None:
    def score(task: Any, state: Any) -> float:
        return 1.0

    state = await harness("x", rewards=[score], config={"scoring": scoring}).run({"prompt": "go"})
    assert state["reward"] == reward


def test_scoring_that_names_no_signal_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="scor"):
        _ = vf.Harness(config={"scoring": {"nope": {"skip": True}}}).all_handlers
    with pytest.raises(ValueError, match="wait"):
        vf.Harness(config={"scoring": {"nope": {"wait": 1.0}}})
