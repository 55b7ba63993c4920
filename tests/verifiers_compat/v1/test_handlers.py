"""Handlers and signals: which functions can be one, what they are given, and what becomes of those that fail."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.verifiers_compat.v1.playing import harness, noting, noting_groups
from verifiers_compat.v1.bindings import Bindings
from verifiers_compat.v1.handlers import collect_handlers, make_handler, make_listed, run_all
from vfgym.calls import CallPlan
from vfgym.errors import ConfigurationError
from vfgym.lifecycle import Mark


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


@pytest.mark.parametrize(
    ("list_name", "kind", "sees_groups"),
    [
        *[("stops", "stop", False), ("setups", "setup", False), ("updates", "update", True), ("metrics", "metric", True)],
        *[("rewards", "reward", True), ("advantages", "advantage", True), ("cleanups", "cleanup", True), ("teardowns", "teardown", False)],
    ],
)
def test_each_list_takes_one_kind_and_some_kinds_see_groups(list_name: str, kind: str, sees_groups: bool) -> None:
    def of_group(tasks: Any, states: Any) -> Any: ...

    def of_rollout(task: Any) -> Any: ...

    handler = make_listed(of_rollout, list_name, Bindings(None))
    assert (handler.kind, handler.stage) == (kind, "group" if kind == "advantage" else "rollout")
    if sees_groups:
        assert make_listed(of_group, list_name, Bindings(None)).stage == "group"
    else:
        with pytest.raises(ConfigurationError, match=f"of_group is a {kind} handler, which runs for each rollout: stage='group' is not"):
            make_listed(of_group, list_name, Bindings(None))


def asking(*names: str) -> Any:
    """Return a function that asks for these, and that may have another."""
    return eval(f"lambda {', '.join(names)}{', ' if names else ''}more=0, *args, **kwargs: None")


@pytest.mark.parametrize(
    ("kind", "stage", "names", "told"),
    [
        ("stop", "rollout", "task state a sandbox", None),
        ("stop", "rollout", "tasks b", "the rollout stop <lambda> asks for b, tasks; it can have a, sandbox, state, task"),
        ("reward", "group", "tasks states", None),
        ("reward", "group", "tasks a sandbox", "the group reward <lambda> asks for a, sandbox; it can have states, tasks"),
        ("teardown", "rollout", "a", None),
        ("teardown", "rollout", "state sandbox", "the rollout teardown <lambda> asks for sandbox, state; it can have a"),
    ],
)
def test_what_a_handler_can_have(kind: Any, stage: Any, names: str, told: str | None) -> None:
    bindings = Bindings(None, {"<lambda>.a": 1}, sandbox=vf.SandboxConfig())
    handler = make_handler("<lambda>", Mark(kind, stage=stage), CallPlan(asking(*names.split())), bindings)
    if told is None:
        handler.check_arguments()
    else:
        with pytest.raises(ConfigurationError, match=f"^{told}$"):
            handler.check_arguments()


def test_without_bindings_a_teardown_can_have_nothing() -> None:
    with pytest.raises(ConfigurationError, match=r"asks for state; it can have nothing$"):
        make_listed(asking("state"), "teardowns", Bindings(None)).check_arguments()


@pytest.mark.parametrize(
    ("stage", "names", "told"),
    [
        ("rollout", "task other", None),
        ("group", "states other", None),
        (
            "rollout",
            "task states tasks",
            "the rollout reward <lambda> sees one rollout: it asks for states, tasks, and can have task and state",
        ),
        ("group", "task states", "the group reward <lambda> sees a whole group: it asks for task, and can have tasks and states"),
    ],
)
def test_what_belongs_to_the_other_stage_is_refused(stage: str, names: str, told: str | None) -> None:
    handler = make_listed({"fn": asking(*names.split()), "stage": stage}, "rewards", Bindings(None))
    if told is None:
        handler.check_stage()
    else:
        with pytest.raises(ConfigurationError, match=f"^{told}$"):
            handler.check_stage()


def test_marked_methods_come_first_and_the_order_is_by_priority_then_name() -> None:
    class Owner:
        @vf.reward(priority=-1)
        def z(self) -> float: ...

        @vf.stop
        def y(self) -> bool: ...

    lists = {"rewards": [noting([], "x"), {"fn": noting([], "w"), "priority": 5}], "metrics": [noting([], "v")], "updates": []}
    found = collect_handlers(Owner(), lists, Bindings(None))
    assert [(each.name, each.kind, each.priority) for each in found] == [
        *[("y", "stop", 0), ("z", "reward", -1), ("x", "reward", 0), ("w", "reward", 5), ("v", "metric", 0)]
    ]
    assert [each.name for each in sorted(found, key=lambda each: each.sort_key)] == ["w", "v", "x", "y", "z"]


async def test_failures_are_recorded_in_every_state_beside_earlier_ones(caplog: pytest.LogCaptureFixture) -> None:
    def fails() -> None:
        raise OSError("gone")

    async def cancelled() -> None:
        raise asyncio.CancelledError

    states = [vf.State(cleanup_errors={"earlier": "x"}), vf.State()]
    await run_all([make_listed(func, "cleanups", Bindings(None)) for func in (fails, cancelled)], {}, states)
    recorded = {"fails": "OSError('gone')", "cancelled": "CancelledError()"}
    assert [state["cleanup_errors"] for state in states] == [{"earlier": "x", **recorded}, recorded]
    assert [record.getMessage() for record in caplog.records] == ["handler fails failed", "handler cancelled failed"]


async def test_a_handler_is_called_with_what_it_asks_for() -> None:
    async def ask(state: Any, a: Any, b: Any = 2, *, task: Any) -> Any:
        return state["n"], a, b, task["m"]

    bindings = Bindings(None, {"ask.a": "task.m", "other.b": 9})
    assert await make_listed(ask, "updates", bindings).call({"state": {"n": 0}, "task": {"m": 1}, "more": 3}) == (0, 1, 2, 1)
