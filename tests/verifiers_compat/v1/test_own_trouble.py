"""What a handler, signal, tool, user or program of a taskset or harness raises ends its rollout alone, `SystemExit` included."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.models import calling
from tests.verifiers_compat.v1.playing import ROWS
from vfgym import aevaluate
from vfgym.testing import ScriptedClient

BAD = "2"
"""The answer of the task whose rollout has the trouble."""
CALL = calling(("use", {}))
ERRORS: list[type[BaseException]] = [SystemExit, asyncio.CancelledError]


def made(where: str, error: type[BaseException], *, is_async: bool) -> vf.Env:
    """Return an environment one part of which has the trouble."""

    def use(task: vf.Task) -> Any:
        """Use it."""
        if task["answer"] == BAD:
            raise error
        return 1.0 if where == "rewards" else None

    async def use_later(task: vf.Task) -> Any:
        """Use it."""
        await asyncio.sleep(0)
        return use(task)

    use_later.__name__ = "use"
    part = use_later if is_async else use
    taskset = vf.Taskset(ROWS, **({} if where in ("program", "init_group") else {where: part if where == "user" else [part]}))
    if where == "init_group":

        async def init_group(task: vf.Task, size: int) -> Any:
            await asyncio.sleep(0)
            use(task)
            return [task] * size, [vf.State.for_task(task) for _ in range(size)]

        taskset.init_group = init_group  # type: ignore[method-assign]
    return vf.Env(taskset, vf.Harness(program=part) if where == "program" else vf.Harness())


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("where", ["setups", "stops", "updates", "rewards", "user", "program", "init_group"])
async def test_it_is_the_error_of_its_rollout(where: str, error: type[BaseException], is_async: bool) -> None:
    evaluated = (await made(where, error, is_async=is_async).evaluate(ScriptedClient(["x", "y"]), "m"))["outputs"]
    stepped = (await aevaluate(made(where, error, is_async=is_async), lambda *_: "x", progress=False))["outputs"]
    for rows in (evaluated, stepped):
        assert [row["error"] is None for row in rows] == [True, False, True]
        assert error.__name__ in rows[1]["error"]["error_chain_repr"]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("error", ERRORS)
async def test_of_a_cleanup_handler_or_a_tool_it_stops_nothing_and_is_told(error: type[BaseException], is_async: bool) -> None:
    rows = (await made("cleanups", error, is_async=is_async).evaluate(ScriptedClient(["x"]), "m"))["outputs"]
    assert [(row["error"], bool(row.get("cleanup_errors"))) for row in rows] == [(None, False), (None, True), (None, False)]
    rows = (await made("toolsets", error, is_async=is_async).evaluate(ScriptedClient([CALL, "x"]), "m"))["outputs"]
    told = [(row["error"], error.__name__ in row["completion"][1]["content"]) for row in rows]
    assert told == [(None, False), (None, True), (None, False)]
