"""The documented reference and examples of tasksets and harnesses, through ``import verifiers.v1 as vf``."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.models import InOrder, calling
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


async def test_a_child_borrows_what_is_documented(vf: Any) -> None:
    """``state.for_task(child_task, borrow=["model", "sandbox"], tools="bash")``; where the program has no sandbox, it says so."""
    child_task = vf.Task(prompt=[{"role": "user", "content": "ls"}]).freeze()
    child_harness = vf.Harness()

    async def bash(command: str) -> str:
        """Run a command."""
        return f"ran {command}"

    async def program(task: Any, state: Any) -> dict[str, Any]:
        with pytest.raises(ValueError, match="there is no sandbox"):
            state.for_task(child_task, borrow=["model", "sandbox"], tools="bash")
        child_state = state.for_task(child_task, borrow=["model"], tools="bash")
        child_state = await child_harness.run(child_task, child_state)
        return {"child": [message["content"] for message in child_state["completion"]]}

    client = InOrder(calling(("bash", {"command": "ls"})), "done")
    state = await vf.Harness(program, client=client, model="m", toolsets=[bash]).run({"prompt": "go"})
    assert state["child"] == [None, "ran ls", "done"]


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


async def test_framework_fields_are_not_written(vf: Any) -> None:
    """``state.stop(...)`` and ``vf.Error`` say what would be written there."""

    async def writes(task: Any, state: Any) -> None:
        for key in ("is_completed", "stop_condition", "is_truncated", "error"):
            with pytest.raises(RuntimeError, match="written by the harness"):
                state[key] = "x"
        state.stop("enough")

    async def raises(task: Any, state: Any) -> None:
        raise vf.ToolError("broken")

    assert (await vf.Harness(writes).run({}))["stop_condition"] == "enough"
    assert (await vf.Harness(raises).run({}))["error"]["error"] == "ToolError"


async def test_the_error_that_ended_a_rollout_stays_its_error(vf: Any) -> None:
    """A reward function that then fails too is noted, in the state and in the row."""

    async def program(task: Any, state: Any) -> None:
        raise vf.InfraError("the machine is gone")

    async def quality(task: Any, state: Any) -> float:
        return float(state["completion"][-1]["content"])

    taskset = vf.Taskset([{"question": "?"}], rewards=[quality])
    [row] = (await vf.Env(taskset, vf.Harness(program)).evaluate(ScriptedClient(["x"]), "m"))["outputs"]
    assert (row["error"]["error"], row["stop_condition"], row["reward"]) == ("InfraError", "has_error", 0.0)
    assert row["metrics_errors"] == {"quality": "IndexError('list index out of range')"}


@pytest.mark.parametrize("sync", [False, True])
async def test_a_program_has_a_client_for_each_of_the_four_protocols(vf: Any, sync: bool) -> None:
    """Its requests are answered by the rollout's model, and recorded as its turns."""
    messages: Any = [{"role": "user", "content": "go"}]

    def plain_program(task: Any, state: Any) -> dict[str, Any]:
        return {"said": asks(state, sync=True)}

    def asks(state: Any, *, sync: bool) -> Any:
        name = state.get_model()
        clients = [state.get_client(api, sync=sync) for api in ("chat_completions", "completions", "responses", "messages")]
        calls = [
            lambda client: client.chat.completions.create(model=name, messages=messages),
            lambda client: client.completions.create(model=name, prompt="go"),
            lambda client: client.responses.create(model=name, input="go"),
            lambda client: client.messages.create(model=name, max_tokens=9, messages=messages),
        ]
        reads = [
            lambda answer: answer.choices[0].message.content,
            lambda answer: answer.choices[0].text,
            lambda answer: answer.output_text,
            lambda answer: answer.content[0].text,
        ]
        if sync:
            return [read(call(client)) for client, call, read in zip(clients, calls, reads, strict=True)]

        async def all_of_them() -> list[Any]:
            return [read(await call(client)) for client, call, read in zip(clients, calls, reads, strict=True)]

        return all_of_them()

    async def async_program(task: Any, state: Any) -> dict[str, Any]:
        return {"said": await asks(state, sync=False)}

    client = InOrder("one", "two", "three", "four")
    state = await vf.Harness(plain_program if sync else async_program, client=client, model="m").run({"prompt": "go"})
    assert state["said"] == ["one", "two", "three", "four"]
    assert (state["num_model_requests"], len(state["trajectory"])) == (4, 4)
