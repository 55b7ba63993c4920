"""Programs as data: what is one, and what a task adds to it."""

from __future__ import annotations

import re
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from verifiers_compat.v1.programs import as_program
from vfgym.errors import ConfigurationError


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ({}, "exactly one"),
        ({"base": True, "command": ["x"]}, "exactly one"),
        ({"comand": ["x"]}, "comand"),
        ({"command": []}, "exactly one"),
        ({"base": True, "env": {"a": "b"}}, "no use"),
        ({"command": ["x"], "tools": "mcp"}, "sandbox"),
        ({"command": ["x"], "files": {"a": "b"}}, "needs a sandbox"),
        (
            {"command": ["x"], "sandbox": True, "artifacts": {"a": "a", "b": {"task": "where"}, "c": {"optional": True}}},
            "'c'.* must have a path",
        ),
        ({"command": ["x"], "sandbox": True, "artifacts": {"a": {"path": "a"}, "b": {"pth": "b"}}}, "'b' .* has no 'pth'"),
        (lambda task, nope: None, "nope"),
        ("no_such_module_here:f", "no_such_module_here"),
        (3, "int"),
    ],
)
def test_what_is_no_program_is_refused(program: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        vf.Harness(program)


@pytest.mark.parametrize(
    ("own", "says"),
    [({"fils": {}}, "fils"), ({"files": {"a": "b"}}, "needs a sandbox"), ({"args": ["a"]}, "no use"), ({"bindings": {"key": 1}}, "both")],
)
async def test_a_task_that_asks_too_much_of_a_program_is_refused(own: dict[str, Any], says: str) -> None:
    async def program(state: vf.State, key: Any) -> None:
        return None

    with pytest.raises(ConfigurationError, match=says):
        await vf.Harness({"fn": program, "bindings": {"key": 1}}).run({"program": own})


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (None, {}),
        ({"base": True}, {}),
        ({"command": "a 'b c'"}, {"command": ("a", "b c")}),
        ({"command": ["a", "task.answer"]}, {"command": ("a", "task.answer")}),
        ({"sandbox": {"cpu_cores": 2}}, {"sandbox": vf.SandboxConfig(cpu_cores=2)}),
        ({"command": "a", "sandbox": True, "tools": "mcp"}, {"command": ("a",), "sandbox": vf.SandboxConfig(), "tools": "mcp"}),
        ({"command": "a", "sandbox": False}, {"command": ("a",)}),
        ({"base": True, "tools": "callable"}, {}),
    ],
)
def test_each_form_of_a_program(value: Any, form: dict[str, Any]) -> None:
    program = as_program(value)
    names = ("plan", "function", "command", "sandbox", "tools")
    assert {name: getattr(program, name) for name in names} == {**dict.fromkeys(names), **form}


def test_what_a_program_says_of_its_sandbox_wins_over_its_harness() -> None:
    of_harness = vf.SandboxConfig(cpu_cores=2, memory_gb=3, environment_vars={"A": "1", "B": "1"})
    sandbox = as_program({"command": "a", "sandbox": {"cpu_cores": 4, "environment_vars": {"B": "2"}}}, of_harness).sandbox
    assert sandbox is not None
    assert (sandbox.cpu_cores, sandbox.memory_gb, sandbox.environment_vars) == (4, 3, {"A": "1", "B": "2"})
    assert as_program({"command": "a"}, of_harness).sandbox is None


def test_a_task_adds_to_the_options() -> None:
    """Lists are joined, mappings too, of which none gives what the other has; one value stands for a list of one."""
    program = as_program({"command": "a", "args": "b", "sandbox": True, "setup": ["c"], "env": {"A": "1"}, "files": {"x": "1"}})
    options = program.options_with({"args": ["d"], "setup": "e", "env": {"B": "2"}, "files": {}})
    assert options == {
        **{"args": ["b", "d"], "setup": ["c", "e"], "env": {"A": "1", "B": "2"}, "files": {"x": "1"}},
        **{"dirs": {}, "bindings": {}, "artifacts": {}},
    }
    assert program.options_with({})["args"] == ["b"]
    for name in ("env", "files"):
        with pytest.raises(ConfigurationError, match=f"both the harness and the task give the program {name} for"):
            program.options_with({name: {"A": "2", "x": "2"}})
    with pytest.raises(ConfigurationError, match="env of a task's program must be a mapping, got list"):
        program.options_with({"env": ["A"]})


@pytest.mark.parametrize(
    ("form", "allowed"),
    [
        ({"base": True}, (None, "callable")),
        ({"base": True, "sandbox": {}}, (None, "callable")),
        ({"fn": lambda task, state: None}, (None, "callable")),
        ({"command": "a"}, (None,)),
        ({"command": "a", "sandbox": {}}, (None, "mcp", {"mcp": "setup"})),
    ],
)
def test_each_form_reaches_tools_in_its_own_way(form: dict[str, Any], allowed: tuple[Any, ...]) -> None:
    ways: list[Any] = [None, "callable", "mcp", {"mcp": "setup"}, {"callable": "x"}, {}, {"mcp": 1, "more": 2}, "other", ""]
    for tools in ways:
        if tools in allowed:
            assert as_program({**form, "tools": tools}).tools == (None if tools == "callable" else tools)
        else:
            with pytest.raises(ConfigurationError, match=f"a program with {next(iter(form))} cannot have tools="):
                as_program({**form, "tools": tools})


@pytest.mark.parametrize(
    ("form", "options", "told"),
    [
        *(({"command": "a"}, {key: {"x": "task.y"}}, "needs a sandbox") for key in ("files", "dirs", "artifacts")),
        ({"command": "a"}, {"setup": "x"}, "a program has 'setup', and it needs a sandbox: sandbox=True"),
        ({"command": "a"}, {"bindings": {"x": 1}}, "a program has 'bindings', and this program has no use for that"),
        ({"base": True}, {"args": "x"}, "no use for that"),
        ({"fn": lambda task: None}, {"args": "x"}, "no use for that"),
        ({"fn": lambda task: None}, {"env": {"A": "1"}}, "no use for that"),
    ],
)
def test_an_option_without_use_is_refused_unless_it_is_empty(form: dict[str, Any], options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        as_program({**form, **options})
    [(name, value)] = options.items()
    for empty in (None, type(value)()):
        assert as_program({**form, name: empty}).options[name] in ([], {})


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"command": " "}, "the command of a program is empty"),
        ({"base": True, "fn": len, "command": "a"}, "got base and fn and command"),
        ({"base": False, "fn": None}, "got none of them. Options alone need a sandbox"),
        ({"command": "a", "sandbox": True, "artifacts": {"a": {"path": 3}}}, "the artifact 'a' of a program must have a path"),
        (
            {"command": "a", "sandbox": True, "artifacts": {"a": {"task": "x", "path": "y"}}},
            "has no 'task'; it has format, key, optional, path",
        ),
        ({"command": "a", "sandbox": True, "artifacts": {"a": {"path": "y", "format": None}}}, "must be text or json, got None"),
        (
            {"fn": lambda a, b, task: None, "bindings": {"x.b": 1}},
            "the program <lambda> asks for a; it can have state, task and what is bound",
        ),
    ],
)
def test_what_makes_no_program_is_told(value: Any, told: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(told)):
        as_program(value)


def test_what_is_read_from_elsewhere_is_not_looked_for_and_a_program_keeps_what_it_was_made_of() -> None:
    """Artifacts and folders may be named by the task, and a changed mapping changes no program."""
    artifacts: dict[str, Any] = {
        **{root: {root: "x"} for root in ("task", "state", "runtime", "tools", "objects")},
        **{"text": {"path": "a", "format": "text", "optional": True}, "json": {"path": "a", "format": "json", "key": ""}},
    }
    dirs: dict[str, Any] = {"/a": "task.folder", "/b": "/", "/c": lambda task: "x"}
    args, command = ["x"], ["a"]
    program = as_program({"command": command, "sandbox": True, "artifacts": artifacts, "dirs": dirs, "args": args})
    before = dict(artifacts)
    for given in (artifacts, dirs, args, command):
        given.clear()
    own = program.options_with({})
    own["artifacts"].clear()
    assert (program.options["artifacts"], [*program.options["dirs"]], program.options["args"]) == (before, ["/a", "/b", "/c"], ["x"])
    assert program.command == ("a",)
