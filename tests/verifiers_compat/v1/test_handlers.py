"""Handlers and signals: which functions can be one, what they are given, and what becomes of those that fail."""

from __future__ import annotations

from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.verifiers_compat.v1.playing import harness, noting, noting_groups
from verifiers_compat.v1.bindings import Bindings
from verifiers_compat.v1.handlers import make_listed, run_all
from vfgym.errors import ConfigurationError


@pytest.mark.parametrize(
    ("lists", "says"),
    [
        ({"rewards": [lambda task, state, nope: 0.0]}, "nope"),
        ({"stops": [3]}, "function"),
        ({"metrics": [{"fn": lambda task, state: 0.0, "weight": 1.0}]}, "weight"),
        ({"stops": [{"fn": lambda tasks, states: True, "stage": "group"}]}, "group"),
        ({"rewards": ["no_such_module_here:f"]}, "no_such_module_here"),
    ],
)
def test_functions_that_cannot_be_handlers_are_refused(lists: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        vf.Harness(**lists)


async def test_a_failing_cleanup_is_recorded_and_stops_nothing() -> None:
    log: list[str] = []

    def a(task: Any, state: Any) -> None:
        raise ZeroDivisionError

    state = await harness("x", cleanups=[a, noting(log, "b")]).run({"prompt": "go"})
    assert (log, state["cleanup_errors"]["a"]) == (["b"], "ZeroDivisionError()")


def test_the_names_of_a_group_make_a_handler_of_groups() -> None:
    """Where it is not marked, and has exactly those."""

    group, rollout = noting_groups([], "group", 0.0), noting([], "rollout", 0.0)

    def both(tasks: Any, states: Any, task: Any = None) -> float:
        return 0.0

    stages = {func.__name__: make_listed(func, "rewards", Bindings(None)).stage for func in (group, rollout, both)}
    assert stages == {"group": "group", "rollout": "rollout", "both": "rollout"}
    assert make_listed({"fn": both, "stage": "group", "weight": 0.0, "priority": 0}, "rewards", Bindings(None)).weight == 0.0
    assert make_listed(group, "advantages", Bindings(None)).stage == "group"
    with pytest.raises(ConfigurationError, match="group is a metric, which has no weight"):
        make_listed({"fn": group, "weight": 0.0}, "metrics", Bindings(None))


marked = vf.reward(weight=2.0, priority=3)(noting([], "marked", 0.0))


def test_a_mark_of_another_kind_is_refused_and_changes_win_over_a_mark() -> None:
    handler = make_listed(marked, "rewards", Bindings(None))
    assert (handler.weight, handler.priority) == (2.0, 3)
    changed = handler.with_changes(vf.ScoringConfig(weight=0.0, priority=0, stage="group"))
    assert (changed.weight, changed.priority, changed.stage, changed.name) == (0.0, 0, "group", "marked")
    assert handler.with_changes(vf.ScoringConfig()) == handler
    with pytest.raises(ConfigurationError, match="marked is marked as a reward, so it cannot be an item of stops"):
        make_listed(marked, "stops", Bindings(None))


async def test_what_ends_the_run_is_raised_when_all_cleanup_handlers_have_run() -> None:
    ran: list[str] = []

    def interrupted() -> None:
        raise KeyboardInterrupt

    def last() -> None:
        ran.append("last")

    handlers = [make_listed(func, "cleanups", Bindings(None)) for func in (interrupted, last)]
    with pytest.raises(KeyboardInterrupt):
        await run_all(handlers, {})
    assert ran == ["last"]
