"""Toolsets: what the model is shown, what is filled in for it, how long objects live, and real tool servers."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.models import calling
from verifiers_compat.v1.bindings import Scope
from vfgym.errors import ConfigurationError
from vfgym.testing import ScriptedClient


async def told(toolsets: Any, *calls: tuple[str, dict[str, Any]], task: dict[str, Any] | None = None) -> list[Any]:
    """Make the calls in one message and return what the model reads."""
    player = vf.Harness(client=ScriptedClient([calling(*calls), "done"]), model="m", toolsets=toolsets)
    state = await player.run({"prompt": "go", **(task or {})})
    await player.teardown()
    return [message["content"] for message in state["completion"] if message["role"] == "tool"]


async def shown(toolsets: Any, task: dict[str, Any] | None = None) -> list[str]:
    """Return the names of the tools that a rollout may use."""
    names: list[str] = []

    def look(task: Any, state: vf.State) -> None:
        names.extend(state.get_tools())

    await vf.Harness(program=look, toolsets=toolsets).run({"prompt": "go", **(task or {})})
    return names


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def sub(a: int, b: int) -> int:
    """Subtract a number."""
    return a - b


async def test_visibility() -> None:
    assert await shown([add, sub]) == ["add", "sub"]
    assert await shown([vf.Toolset([add, sub], show=["sub"])]) == ["sub"]
    assert await shown([vf.Toolset([add, sub], hide=["sub"])]) == ["add"]
    assert await shown([vf.Toolset([add, vf.Toolset([sub])], hide=["sub"])]) == ["add"]
    assert await shown([add, sub], {"tools": {"show": ["sub"]}}) == ["sub"]
    assert await shown([add, sub], {"tools": {"hide": ["sub"]}}) == ["add"]
    named = {"plus": [add], "minus": [sub]}
    assert await shown(named) == ["add", "sub"]
    assert await shown(named, {"toolsets": {"show": ["minus"]}}) == ["sub"]
    assert await shown(named, {"toolsets": {"hide": ["minus"]}}) == ["add"]


async def test_a_task_may_bring_a_toolset_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "v1_tools.py").write_text("def half(a: int) -> float:\n    return a / 2\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    more = {"toolsets": {"more": {"tools": ["v1_tools:half"]}}}
    assert await shown({"plus": [add]}, more) == ["add", "half"]
    assert await told({"plus": [add]}, ("half", {"a": 3}), task=more) == ["1.5"]


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


# Bindings


def secret(text: str, key: str, task: vf.Task, state: vf.State, runtime: dict[str, Any]) -> str:
    """Tell what was filled in."""
    return f"{text} {key} {task['answer']} {state['info']['level']} {runtime['max_turns']}"


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("task.info.name", "n"),
        ({"task": "info.names.1"}, "b"),
        ("state.info.name", "n"),
        ("runtime.max_turns", "10"),
        ("plain text", "plain text"),
        (7, "7"),
        (lambda task: task["answer"] * 2, "4242"),
        ({"fn": "os:getcwd"}, os.getcwd()),
    ],
)
async def test_hidden_arguments_are_filled_in(source: Any, value: str) -> None:
    toolset = vf.Toolset([secret], bindings={"secret.key": source})
    task = {"answer": "42", "info": {"level": 3, "name": "n", "names": ["a", "b"]}}
    assert await told([toolset], ("secret", {"text": "hi"}), task=task) == [f"hi {value} 42 3 10"]


async def test_the_model_neither_sees_nor_sets_hidden_arguments() -> None:
    toolset = vf.Toolset([secret], bindings={"secret.key": "k"})
    task = {"answer": "42", "info": {"level": 3}}
    [text] = await told([toolset], ("secret", {"text": "hi", "key": "mine"}), task=task)
    assert "unknown argument" in text
    [text] = await told([toolset], ("secret", {"text": "hi", "state": {}}), task=task)
    assert "unknown argument" in text
    definitions: list[Any] = []

    def look(state: vf.State) -> None:
        running = state.running
        assert running is not None
        definitions.append(running.tools["secret"].definition.parameters)

    await vf.Harness(program=look, toolsets=[toolset]).run({"prompt": "go"})
    assert list(definitions[0]["properties"]) == ["text"]


async def test_a_tool_may_call_another() -> None:
    async def twice(a: int, other: Any) -> int:
        """Add a number to itself."""
        return int(await other(a=a, b=a))

    toolset = vf.Toolset([add, twice], bindings={"twice.other": "tools.add"})
    assert await told([toolset], ("twice", {"a": 4})) == ["8"]


class Counter:
    """Counts, and knows whether it was closed."""

    made: list[Counter] = []

    def __init__(self) -> None:
        self.count = 0
        self.is_closed = False
        Counter.made.append(self)

    async def aclose(self) -> None:
        self.is_closed = True


def counted(scope: Any) -> vf.Toolset:
    def count(counter: Counter) -> int:
        """Count."""
        counter.count += 1
        return counter.count

    return vf.Toolset([count], bindings={"count.counter": "objects.counter"}, objects={"counter": Counter}, scope=scope)


@pytest.mark.parametrize(
    ("scope", "expected", "made"),
    [("rollout", [["1", "2"], ["1", "2"]], 2), ("global", [["1", "2"], ["3", "4"]], 1), (None, [["1", "2"], ["1", "2"]], 2)],
)
async def test_objects_live_as_long_as_their_scope(scope: Any, expected: list[list[str]], made: int) -> None:
    Counter.made = []
    player = vf.Harness(client=ScriptedClient([calling(("count", {}), ("count", {})), "done"]), model="m", toolsets=[counted(scope)])
    texts = []
    for _ in range(2):
        state = await player.run({"prompt": "go"})
        texts.append([message["content"] for message in state["completion"] if message["role"] == "tool"])
        assert all(counter.is_closed for counter in Counter.made) == (scope != "global")
    assert texts == expected
    await player.teardown()
    assert len(Counter.made) == made
    assert all(counter.is_closed for counter in Counter.made)


async def test_the_rollouts_of_a_group_share_its_objects() -> None:
    Counter.made = []

    def best(tasks: Any, states: Any) -> list[float]:
        assert not any(counter.is_closed for counter in Counter.made)
        return [0.0] * len(states)

    env = vf.Env(vf.Taskset([{"question": "a"}, {"question": "b"}], toolsets=[counted("group")], rewards=[best]))
    client = ScriptedClient([calling(("count", {})), "done"])
    outputs = await env.evaluate(client, "m", rollouts_per_example=3)
    counts = [message["content"] for row in outputs["outputs"] for message in row["completion"] if message["role"] == "tool"]
    assert sorted(counts) == ["1", "1", "2", "2", "3", "3"]
    assert [counter.is_closed for counter in Counter.made] == [True, True]


async def test_signals_of_a_toolset_have_bindings_too() -> None:
    def used(state: Any, counter: Counter, scale: int) -> float:
        return float(counter.count * scale)

    def count(counter: Counter) -> int:
        """Count."""
        counter.count += 1
        return counter.count

    bindings = {"count.counter": "objects.counter", "used.counter": "objects.counter", "used.scale": 10}
    toolset = vf.Toolset([count], rewards=[used], bindings=bindings, objects={"counter": Counter})
    client = ScriptedClient([calling(("count", {}), ("count", {})), "done"])
    state = await vf.Harness(client=client, model="m", toolsets=[toolset]).run({"prompt": "go"})
    assert (state["reward"], state["metrics"]) == (20.0, {"used": 20.0})


async def test_an_object_that_could_not_be_made_is_made_when_it_is_needed_again() -> None:
    """Whoever waits for it meanwhile is told, too, and nobody waits for ever."""
    tries: list[int] = []

    async def connect() -> str:
        tries.append(1)
        await asyncio.sleep(0)
        if len(tries) == 1:
            raise OSError("refused")
        return "connected"

    scope = Scope()
    together = await asyncio.gather(*(scope.object(scope, "db", connect) for _ in range(2)), return_exceptions=True)
    assert [str(error) for error in together] == ["refused", "refused"]
    assert [await scope.object(scope, "db", connect) for _ in range(2)] == ["connected"] * 2
    assert len(tries) == 2


async def test_a_cancelled_factory_leaves_its_object_to_be_made_anew() -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    scope = Scope()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(scope.object(scope, "db", never), 0.01)
    assert await scope.object(scope, "db", lambda: 3) == 3


async def test_objects_are_closed_newest_first_and_one_that_fails_keeps_no_other_from_it(caplog: pytest.LogCaptureFixture) -> None:
    closed: list[str] = []

    class Closes:
        def __init__(self, name: str) -> None:
            self.name = name

        def close(self) -> None:
            closed.append(self.name)
            if self.name == "b":
                raise OSError("gone")

    class TornDown:
        async def teardown(self) -> None:
            await asyncio.sleep(0)
            closed.append("d")

    scope = Scope()
    for name in "abc":
        await scope.object(scope, name, lambda name=name: Closes(name))
    await scope.object(scope, "d", TornDown)
    await scope.object(scope, "e", lambda: "needs no closing")
    await scope.release()
    assert closed == ["d", "c", "b", "a"]
    assert "the object b could not be closed" in caplog.text
    await scope.release()
    assert len(closed) == 4


def test_bindings_that_lead_nowhere_are_refused() -> None:
    for bindings, says in (
        ({"add": "x"}, "function.argument"),
        ({"ad.a": "x"}, "ad"),
        ({"add.c": "x"}, "argument"),
        ({"add.a": "objects.x"}, "object"),
    ):
        with pytest.raises(ConfigurationError, match=says):
            vf.Toolset([add], bindings=bindings)


async def test_a_path_that_leads_nowhere_is_told() -> None:
    [text] = await told([vf.Toolset([add], bindings={"add.a": "task.info.nope"})], ("add", {"b": 1}))
    assert "task.info.nope" in text


async def test_handlers_of_a_toolset_take_part() -> None:
    log: list[str] = []

    class Logged(vf.Toolset):
        @vf.setup
        def begin(self, task: Any, state: Any) -> None:
            log.append("setup")

        @vf.cleanup
        def end(self, task: Any, state: Any) -> None:
            log.append("cleanup")

        @vf.teardown
        def leave(self) -> None:
            log.append("teardown")

    assert await told([Logged([add])], ("add", {"a": 1, "b": 2})) == ["3"]
    assert log == ["setup", "cleanup", "teardown"]


async def test_a_user_has_bindings_too() -> None:
    said: list[Any] = []

    def user(state: vf.State, counter: Counter, name: str) -> Any:
        counter.count += 1
        said.append((counter.count, name))
        return "more" if counter.count < 2 else None

    simulated = vf.User(user, bindings={"counter": "objects.counter", "name": "task.answer"}, objects={"counter": Counter})
    await vf.Harness(client=ScriptedClient(["a", "b"]), model="m", user=simulated).run({"prompt": "go", "answer": "42"})
    assert said == [(1, "42"), (2, "42")]


def test_taskset_and_harness_cannot_both_have_a_user() -> None:
    with pytest.raises(ConfigurationError, match="user"):
        vf.Env(vf.Taskset([{"question": "?"}], user=lambda state: None), vf.Harness(user=lambda state: None))


# Tool servers

SERVER = """
import os
from mcp.server.mcpserver import MCPServer
server = MCPServer("test", log_level="CRITICAL")

@server.tool()
def shout(text: str) -> str:
    return text.upper() + os.environ.get("MARK", "")

@server.tool()
def whoami() -> str:
    return f"{os.getpid()}"

@server.tool()
def fail() -> str:
    raise ValueError("no")

server.run()
"""


async def test_a_tool_server(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER, encoding="utf-8")
    server = vf.MCPTool(sys.executable, [str(script)], env={"MARK": "!"})
    toolset = vf.Toolset([server, add], hide=["whoami"])
    texts = await told([toolset], ("shout", {"text": "hi"}), ("fail", {}), ("add", {"a": 1, "b": 1}), ("whoami", {}))
    assert texts[0] == "HI!"
    assert "fail" in texts[1]
    assert texts[2:] == ["2", "'whoami'"]


# Tables that make toolsets


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


def test_toolsets_of_any_form_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    taskset = vf.Taskset([])
    for toolset in (add, [sub], vf.Toolset([add]), vf.ToolsetConfig(tools=[sub]), {"named": [add]}, f"{__name__}:sub"):
        taskset.add_toolset(toolset)
    assert [each.tool_names for each in taskset.toolsets] == [["add"], ["sub"], ["add"], ["sub"], ["sub"]]
    assert list(taskset.named_toolsets) == ["named"]
    with pytest.raises(ConfigurationError, match="Taskset has two toolsets called 'named': rename one"):
        taskset.add_toolset({"named": [sub]})
    with pytest.raises(ConfigurationError, match="two toolsets called 'named'"):
        vf.Taskset(toolsets={"named": [add]}, config={"toolsets": {"named": [sub]}})


async def test_the_handlers_of_a_toolset_that_is_added_run() -> None:
    seen: list[str] = []

    def look(task: Any, state: Any) -> None:
        seen.append("looked")

    harness = vf.Harness(client=ScriptedClient(["x"]), model="m")
    await harness.run({"prompt": "?"})
    harness.add_toolset(vf.Toolset([add], setups=[look]))
    await harness.run({"prompt": "?"})
    assert seen == ["looked"]


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
