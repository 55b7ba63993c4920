"""The error that ended a rollout stays its error, whatever fails after it."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.models import Failing
from tests.verifiers_compat.v1.playing import ROWS, best, noting, noting_groups
from vfgym.testing import ScriptedClient


def broken(task: vf.Task, state: vf.State) -> float:
    raise ZeroDivisionError("mine")


async def failing_program(state: vf.State) -> None:
    raise vf.ToolError("the first")


async def test_what_fails_after_the_error_of_a_rollout_is_noted_beside_it(caplog: pytest.LogCaptureFixture) -> None:
    """A metric, a reward, an update and a cleanup handler; those that do not fail are called all the same."""
    caplog.set_level(logging.DEBUG, "verifiers_compat")
    lists: dict[str, Any] = {"updates": [broken], "rewards": [broken, noting([], "fine", 1.0)], "cleanups": [broken]}
    state = await vf.Harness(failing_program, **lists).run({"prompt": "go"})
    assert (state["stop_condition"], state["error"]["error_chain_repr"]) == ("has_error", "ToolError('the first')")
    assert (state["reward"], state["metrics"]) == (1.0, {"fine": 1.0})
    assert state["metrics_errors"] == {"broken": "ZeroDivisionError('mine')"}
    assert state["cleanup_errors"] == {"broken": "ZeroDivisionError('mine')"}
    assert caplog.text.count("broken failed after the error that ended its rollout") == 2
    state = await vf.Harness(failing_program, metrics=[broken]).run({"prompt": "go"})
    assert (state["error"]["error"], state["metrics_errors"].keys()) == ("ToolError", {"broken"})


@pytest.mark.parametrize("name", ["updates", "metrics", "rewards"])
async def test_what_fails_first_is_the_error_of_its_rollout_and_of_no_other(name: str) -> None:
    """Documented: it goes through. From `Harness.run` it does; in a run of many rollouts it ends its own alone."""

    def sometimes(task: vf.Task, state: vf.State) -> float:
        return broken(task, state) if task["answer"] == "0" else 1.0

    lists: dict[str, Any] = {name: [sometimes]}
    with pytest.raises(ZeroDivisionError):
        await vf.Harness(client=ScriptedClient(["x"]), model="m", **lists).run({"prompt": "go", "answer": "0"})
    rows = (await vf.Env(vf.Taskset(ROWS[:2], **lists)).evaluate(ScriptedClient(["x"]), "m"))["outputs"]
    told = [(row["error"] and row["error"]["error"], row["completion"][-1]["content"]) for row in rows]
    assert told == [("ZeroDivisionError", "x"), (None, "x")]


async def test_an_overlong_prompt_is_no_error_so_that_of_a_signal_is_the_first() -> None:
    failing = Failing(vf.OverlongPromptError("too long"))
    [row] = (await vf.Env(vf.Taskset(ROWS[:1], rewards=[broken])).evaluate(failing, "m"))["outputs"]
    assert (row["stop_condition"], row["is_truncated"], row["error"]["error"]) == ("prompt_too_long", True, "ZeroDivisionError")


async def test_a_signal_of_a_group_that_fails_is_the_error_of_those_that_have_none() -> None:
    """The group is cleaned up all the same."""
    log: list[Any] = []

    def ranked(tasks: Any, states: Any) -> list[float]:
        raise ZeroDivisionError("of the group")

    started: list[int] = []

    async def program(state: vf.State) -> dict[str, Any]:
        started.append(1)
        if len(started) == 1:
            raise vf.ToolError("the first")
        return {"completion": [{"role": "assistant", "content": "x"}]}

    env = vf.Env(vf.Taskset(ROWS[:1], rewards=[ranked], cleanups=[noting_groups(log, "tidy")]), vf.Harness(program))
    rows = (await env.evaluate(ScriptedClient(["x"]), "m", rollouts_per_example=3, max_concurrent=1))["outputs"]
    assert sorted(row["error"]["error"] for row in rows) == ["ToolError", "ZeroDivisionError", "ZeroDivisionError"]
    [noted] = [row["metrics_errors"] for row in rows if row["error"]["error"] == "ToolError"]
    assert noted == {"score_group": "ZeroDivisionError('of the group')"}
    assert log == [("tidy", 3)]
    with pytest.raises(ZeroDivisionError):
        await env.harness.score_group([vf.Task()], [vf.State.for_task({})])


async def test_one_state_without_a_json_form_fails_alone_in_its_group() -> None:
    def mark(tasks: Any, states: Any) -> None:
        states[1]["handle"] = object()

    env = vf.Env(vf.Taskset(ROWS[:1], updates=[mark]))
    rows = (await env.evaluate(ScriptedClient(["x"]), "m", rollouts_per_example=2))["outputs"]
    assert [row["error"] and row["error"]["error"] for row in rows] == [None, "NotSerializable"]
    assert "'handle' is not" in rows[1]["error"]["error_chain_repr"]


async def test_a_failed_rollout_whose_state_has_no_json_form_keeps_its_error() -> None:
    async def program(state: vf.State) -> None:
        state["handle"] = object()
        raise vf.ToolError("the first")

    state = await vf.Harness(program).run({"prompt": "go"})
    assert (state["error"]["error"], state.running) == ("ToolError", None)
    assert "'handle' is not" in state["cleanup_errors"]["finalize"]
    grouped = vf.Env(vf.Taskset(ROWS[:1], rewards=[best]), vf.Harness(program))
    [row] = (await grouped.evaluate(ScriptedClient(["x"]), "m"))["outputs"]
    assert (row["error"]["error"], row["cleanup_errors"].keys(), row["reward"]) == ("ToolError", {"finalize"}, 1.0)
