"""The handlers of all that takes part in a rollout, in the order in which they run."""

from __future__ import annotations

from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.verifiers_compat.v1.playing import harness, noting, noting_groups
from vfgym.errors import ConfigurationError


async def test_priority_then_name_orders_handlers() -> None:
    log: list[str] = []
    a = noting(log, "a")
    await harness("x", setups=[noting(log, "b"), {"fn": noting(log, "late"), "priority": -1}, a, a]).run({"prompt": "go"})
    assert log == ["a", "b", "late"]


def test_two_signals_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="score"):
        vf.Env(vf.Taskset([{"question": "?"}], rewards=[noting([], "score", 1.0)]), vf.Harness(metrics=[noting([], "score", 2.0)]))


@pytest.mark.parametrize(
    ("name", "handler", "needs_groups", "gives_advantages"),
    [
        ("rewards", noting([], "a"), False, False),
        ("rewards", noting_groups([], "a"), True, False),
        ("advantages", noting_groups([], "a"), True, True),
    ],
)
def test_a_set_says_whether_it_needs_groups_and_gives_advantages(
    name: Any, handler: Any, needs_groups: bool, gives_advantages: bool
) -> None:
    player = vf.Harness(**{name: [handler]})
    assert (player.requires_group_rollouts, player.provides_advantages) == (needs_groups, gives_advantages)
    player.attach(vf.Taskset([], rewards=[noting_groups([], "b")]))
    assert player.requires_group_rollouts, "also what is attached later"


def test_scoring_that_names_no_signal_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="scor"):
        _ = vf.Harness(config={"scoring": {"nope": {"skip": True}}}).all_handlers
    with pytest.raises(ValueError, match="wait"):
        vf.Harness(config={"scoring": {"nope": {"wait": 1.0}}})
