"""Toolsets: what the model is shown, tables that make them, and what their arguments win over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.verifiers_compat.v1.playing import add, read_of, sub
from vfgym.errors import ConfigurationError


async def shown(toolsets: Any, task: dict[str, Any] | None = None) -> list[str]:
    """Return the names of the tools that a rollout may use."""
    names: list[str] = []

    def look(task: Any, state: vf.State) -> None:
        names.extend(state.get_tools())

    await vf.Harness(program=look, toolsets=toolsets).run({"prompt": "go", **(task or {})})
    return names


NAMED = {"plus": [add], "minus": [sub]}


@pytest.mark.parametrize(
    ("toolsets", "task", "names"),
    [
        ([add, sub], {}, ["add", "sub"]),
        ([vf.Toolset([add, sub], show=["sub"])], {}, ["sub"]),
        ([vf.Toolset([add, sub], hide=["sub"])], {}, ["add"]),
        ([vf.Toolset([add, vf.Toolset([sub])], hide=["sub"])], {}, ["add"]),
        ([add, sub], {"tools": {"show": ["sub"]}}, ["sub"]),
        ([add, sub], {"tools": {"hide": ["sub"]}}, ["add"]),
        (NAMED, {}, ["add", "sub"]),
        (NAMED, {"toolsets": {"show": ["minus"]}}, ["sub"]),
        (NAMED, {"toolsets": {"hide": ["minus"]}}, ["add"]),
    ],
)
async def test_visibility(toolsets: Any, task: dict[str, Any], names: list[str]) -> None:
    assert await shown(toolsets, task) == names


async def test_a_task_may_bring_a_toolset_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "v1_tools.py").write_text("def half(a: int) -> float:\n    return a / 2\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    more = {"toolsets": {"more": {"tools": ["v1_tools:half"]}}}
    assert await shown({"plus": [add]}, more) == ["add", "half"]
    assert await read_of({"plus": [add]}, ("half", {"a": 3}), task=more) == ["1.5"]


async def test_names_must_exist_and_be_unique() -> None:
    with pytest.raises(ConfigurationError, match="not both"):
        vf.Toolset([add], show=["add"], hide=["add"])
    with pytest.raises(ConfigurationError, match="ad"):
        vf.Toolset([add], show=["ad"])
    with pytest.raises(ConfigurationError, match="add"):
        await shown([add, vf.Toolset([add])])
    with pytest.raises(ConfigurationError, match="nope"):
        await shown([add], {"tools": {"show": ["nope"]}})
    with pytest.raises(ConfigurationError, match="nope"):
        await shown({"plus": [add]}, {"toolsets": {"hide": ["nope"]}})


async def test_handlers_of_a_toolset_take_part() -> None:
    log: list[str] = []

    class Logged(vf.Toolset):
        @vf.setup
        def begin(self, task: Any, state: Any) -> None:
            log.append("setup")

        @vf.teardown
        def leave(self) -> None:
            log.append("teardown")

    assert (await read_of([Logged([add])], ("add", {"a": 1, "b": 2})), log) == (["3"], ["setup", "teardown"])


def test_each_list_of_handlers_is_taken_from_arguments_and_config_and_from_toolsets_inside() -> None:
    names = ("stops", "setups", "updates", "metrics", "rewards", "advantages", "cleanups", "teardowns")

    def function(name: str, arguments: tuple[str, ...]) -> Any:
        made = eval(f"lambda {', '.join(arguments)}: None")
        made.__name__ = name
        return made

    takes = {"advantages": ("tasks", "states"), "teardowns": ()}
    given, configured = (
        {name: [function(f"{name}_{source}", takes.get(name, ("task", "state")))] for name in names} for source in ("given", "configured")
    )
    outer = vf.Toolset([vf.Toolset([add], **given, config=configured)], setups=[function("own", ("task", "state"))])
    expected = [f"{name}_{source}" for name in names for source in ("given", "configured")]
    assert sorted(handler.name for handler in outer.handlers) == sorted(["own", *expected])


def calculator(prefix: str = "", tools: Any = (add,)) -> vf.Toolset:
    """Return a toolset whose tools have a prefix."""
    made = [lambda a, b, tool=tool: tool(a, b) for tool in tools]
    for function, tool in zip(made, tools, strict=True):
        function.__name__ = prefix + tool.__name__
    return vf.Toolset(list(made), show=[prefix + tool.__name__ for tool in tools])


async def later() -> vf.Toolset:
    return vf.Toolset([add])


def test_a_factory_is_called_with_what_stands_beside_it_in_the_table() -> None:
    table = {"fn": calculator, "prefix": "my_", "tools": [sub]}
    for toolsets in ([table], {"calc": table}, [vf.Toolset([table])], vf.Toolset([table])):
        taskset = vf.Taskset(toolsets=toolsets)
        [toolset] = [*taskset.toolsets, *taskset.named_toolsets.values()]
        assert toolset.tool_names == ["my_sub"]
    assert vf.Taskset(toolsets={"calc": calculator}).named_toolsets["calc"].tool_names == ["add"], "under a name a function is a factory"
    assert vf.Taskset(toolsets=[{"fn": lambda: [add, sub]}]).toolsets[0].tool_names == ["add", "sub"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"fn": calculator, "prefx": "a"}, r"the toolset 'calc' is made by calculator, which cannot be called with prefx: .*prefx"),
        ({"fn": add}, r"made by add, which cannot be called with no arguments: .*'a'.*a tool by itself stands in a list"),
        (add, "made by add, which cannot be called"),
        ({"fn": lambda: None}, "must return a toolset and not be async, got NoneType"),
        ({"fn": later}, "must return a toolset and not be async, got coroutine"),
        ({"fn": "os:no_such_function"}, "no_such_function"),
        (3, "a toolset is a Toolset, its configuration, a list of tools or one tool, got int: 3"),
    ],
)
def test_a_table_that_makes_no_toolset_is_refused(table: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        vf.Taskset(toolsets={"calc": table})


def test_an_argument_of_a_toolset_wins_whatever_its_value_is() -> None:
    config = {"write": True, "scope": "global", "show": ["add"], "bindings": {"add.a": 1}}
    toolset = vf.Toolset([add, sub], show=(), write=False, scope="rollout", bindings={"add.b": 2}, config=config)
    assert (toolset.write, toolset.scope, toolset.show) == (False, "rollout", [])
    assert toolset.bindings.bound_arguments("add") == {"a", "b"}
    with pytest.raises(ConfigurationError, match="an argument does not fit ToolsetConfig: scope: Input should be 'rollout', 'group' or"):
        vf.Toolset(scope="session")  # type: ignore[arg-type]


def test_the_documented_default_wins_over_config_only_where_it_is_given() -> None:
    """By name or by position."""
    config = {"write": True, "scope": "global"}
    assert [(each.write, each.scope) for each in (vf.Toolset(), vf.Toolset(config=config))] == [(False, "rollout"), (True, "global")]
    by_position = vf.Toolset([add], None, None, None, None, False, "rollout", config=config)
    assert (by_position.write, by_position.scope) == (False, "rollout")
    of_user = {"fn": lambda transcript: None, "scope": "group"}
    assert [vf.User(config=of_user, **given).bindings.scope for given in ({}, {"scope": "rollout"})] == ["group", "rollout"]
    with pytest.raises(TypeError, match=r"Toolset.__init__\(\) got an unexpected keyword argument 'writes'"):
        vf.Toolset(writes=True)  # type: ignore[call-arg]
