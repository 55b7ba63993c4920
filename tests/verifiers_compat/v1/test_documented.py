"""The documented reference and examples of tasksets and harnesses, through ``import verifiers.v1 as vf``."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from verifiers_compat.alias import install, uninstall
from vfgym.testing import ScriptedClient

_PARTS = ["stops", "setups", "updates", "metrics", "rewards", "advantages", "cleanups"]


@pytest.fixture
def vf() -> Iterator[Any]:
    """The module as published packages import it."""
    install()
    yield importlib.import_module("verifiers.v1")
    uninstall()


SIGNATURES = {
    "Taskset": ["source", "eval_source", "taskset_id", "system_prompt", "user", "toolsets", *_PARTS, "config"],
    "Harness": [
        *("program", "system_prompt", "user", "sandbox", "client", "model", "sampling_args", "max_turns", "toolsets"),
        *_PARTS,
        "config",
    ],
    "Toolset": ["tools", "show", "hide", "bindings", "objects", "write", "scope", "sandbox", *_PARTS, "config"],
    "MCPTool": ["command", "args", "env", "cwd"],
    "Env": ["taskset", "harness"],
    "Taskset.rows": [],
    "Taskset.eval_rows": [],
    "Taskset.task": ["row"],
    "Taskset.to_task": ["value"],
    "Taskset.init_group": ["task", "num_rollouts"],
    "Taskset.get_dataset": [],
    "Taskset.get_eval_dataset": [],
    "Harness.run": ["task", "state"],
    "Harness.score_group": ["tasks", "states"],
    "Harness.cleanup_group": ["tasks", "states"],
    "Harness.teardown": [],
    "Task.freeze": [],
    "State.stop": ["condition"],
    "State.get_model": [],
    "State.get_client": ["api", "sync"],
    "State.get_endpoint_config": ["api"],
    "State.get_tools": [],
    "State.get_max_turns": ["default"],
    "State.finalize": [],
    "State.for_task": ["task", "borrow", "tools", "transcript"],
    "TasksetConfig.from_toml": ["path", "section"],
    "HarnessConfig.from_toml": ["path", "section"],
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_everything_takes_the_documented_arguments_in_their_order(vf: Any, name: str) -> None:
    owner, _, method = name.partition(".")
    found = getattr(getattr(vf, owner), method or "__init__")
    names = [
        each
        for each, parameter in inspect.signature(found).parameters.items()
        if each != "self" and parameter.kind is not parameter.VAR_KEYWORD
    ]
    documented = SIGNATURES[name]
    assert [each for each in names if each in documented] == documented
    assert names[: len(documented) - 1] == documented[:-1]
    is_async = (owner == "Harness" and method != "") or method == "init_group"
    assert not is_async or inspect.iscoroutinefunction(found)


def test_what_is_not_given_is_as_documented(vf: Any) -> None:
    assert vf.Toolset().scope == "rollout"
    assert (vf.HarnessConfig().max_turns, vf.HarnessConfig().sampling_args, vf.TasksetConfig().source) == (10, {}, None)
    state = vf.State.for_task({"prompt": "go", "answer": "4", "info": {"a": 1}})
    assert (state.get_max_turns(7), "answer" in state, state["info"]) == (7, False, {"a": 1})
    state.stop()
    assert (state["is_completed"], state["stop_condition"]) == (True, "state_done")
    json.dumps(state.finalize())


async def test_the_core_unit(vf: Any) -> None:
    """``state = await harness.run(task, state=None)``, alone and as an environment."""
    harness = vf.Harness(client=ScriptedClient(["4"]), model="m")
    task = vf.Task({"prompt": [{"role": "user", "content": "2 + 2?"}]}).freeze()
    state = await harness.run(task, state=None)
    assert (state["completion"], state["error"]) == ([{"role": "assistant", "content": "4"}], None)
    taskset = vf.Taskset(source=lambda: [{"question": "2 + 2?"}])
    [row] = (await vf.Env(taskset=taskset, harness=harness).evaluate(ScriptedClient(["4"]), "m"))["outputs"]
    assert row["completion"][-1]["content"] == "4"
    [row] = (await vf.Env(taskset).evaluate(ScriptedClient(["4"]), "m"))["outputs"]
    assert row["stop_condition"] == "no_tools"


def run(task: Any, state: Any) -> dict[str, Any]:
    """A program by name."""
    return {"by_name": True}


async def test_the_documented_forms_of_programs(vf: Any) -> None:
    client = ScriptedClient(["loop"])
    ran: list[str] = []

    async def function(task: Any, state: Any) -> None:
        ran.append(task["prompt"][0]["content"])

    forms: list[tuple[Any, str]] = [
        (None, "no_tools"),
        ({"base": True}, "no_tools"),
        (function, "program_completed"),
        ({"fn": f"{__name__}:run"}, "program_completed"),
        ({"command": [sys.executable, "-c", "print('cmd')"]}, "command_completed"),
    ]
    states = [await vf.Harness(program=form, client=client, model="m").run({"prompt": "go"}) for form, _ in forms]
    assert [state["stop_condition"] for state in states] == [condition for _, condition in forms]
    assert (ran, states[3]["by_name"], states[4]["completion"][0]["content"]) == (["go"], True, "cmd")
