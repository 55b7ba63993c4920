"""What is bound to arguments, and the objects that live as long as a rollout, a group or a harness."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import gc
import os
from types import SimpleNamespace
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.models import calling
from tests.verifiers_compat.v1.playing import Counter, add, contents, count, counting, harness, read_of
from verifiers_compat.v1.bindings import Bindings, Scope, follow
from vfgym.errors import ConfigurationError


def secret(text: str, key: str, task: vf.Task, state: vf.State, runtime: dict[str, Any]) -> str:
    """Tell what was filled in."""
    return f"{text} {key} {task['answer']} {state['info']['level']} {runtime['max_turns']}"


@pytest.mark.parametrize(
    ("source", "value"),
    [
        *[("task.info.name", "n"), ({"task": "info.names.1"}, "b"), ("state.info.name", "n"), ("runtime.max_turns", "10")],
        *[
            ("plain text", "plain text"),
            ("v1.5", "v1.5"),
            ("task", "task"),
            (7, "7"),
            *[(0, "0"), (False, "False"), (None, "None"), ("", ""), ("task.", "task."), (int, str(int)), ({"a": 1}, "{'a': 1}")],
            *[({"task": "a", "state": "b"}, "{'task': 'a', 'state': 'b'}"), ({"state": "info.names.-1"}, "b")],
            ({"runtime": "max_turns"}, "10"),
            ({"objects": "place.imag"}, "2.0"),
            ("objects.place.real", "0.0"),
            (lambda task: task["answer"] * 2, "4242"),
            ({"fn": "os:getcwd"}, os.getcwd()),
        ],
    ],
)
async def test_hidden_arguments_are_filled_in(source: Any, value: str) -> None:
    task = {"answer": "42", "info": {"level": 3, "name": "n", "names": ["a", "b"]}}
    toolset = vf.Toolset([secret], bindings={"secret.key": source}, objects={"place": lambda: 2j})
    assert await read_of([toolset], ("secret", {"text": "hi"}), task=task) == [f"hi {value} 42 3 10"]


async def test_a_tool_may_call_another() -> None:
    async def twice(a: int, other: Any) -> int:
        """Add a number to itself."""
        return int(await other(a=a, b=a))

    assert await read_of([vf.Toolset([add, twice], bindings={"twice.other": "tools.add"})], ("twice", {"a": 4})) == ["8"]


@pytest.mark.parametrize(("scope", "second", "made"), [("rollout", ["1", "2"], 2), ("global", ["3", "4"], 1), (None, ["1", "2"], 2)])
async def test_objects_live_as_long_as_their_scope(scope: Any, second: list[str], made: int) -> None:
    player = harness(calling(("count", {}), ("count", {})), "done", toolsets=[counting(scope)])
    for expected in (["1", "2"], second):
        assert contents(await player.run({"prompt": "go"})) == expected
        assert all(counter.is_closed for counter in Counter.made) == (scope != "global")
    await player.teardown()
    assert [counter.is_closed for counter in Counter.made] == [True] * made


async def test_signals_of_a_toolset_have_bindings_too() -> None:
    def used(state: Any, counter: Counter, scale: int) -> float:
        return float(counter.count * scale)

    bindings = {"count.counter": "objects.counter", "used.counter": "objects.counter", "used.scale": 10}
    toolset = vf.Toolset([count], rewards=[used], bindings=bindings, objects={"counter": Counter})
    state = await harness(calling(("count", {}), ("count", {})), "done", toolsets=[toolset]).run({"prompt": "go"})
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

    async def never() -> None:
        await asyncio.Event().wait()

    scope = Scope()
    together = await asyncio.gather(*(scope.object(scope, "db", connect) for _ in range(2)), return_exceptions=True)
    assert [str(error) for error in together] == ["refused", "refused"]
    assert [await scope.object(scope, "db", connect) for _ in range(2)] == ["connected"] * 2
    assert len(tries) == 2
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(scope.object(scope, "other", never), 0.01)
    assert await scope.object(scope, "other", lambda: 3) == 3, "a cancelled one, too"


async def test_a_failed_factory_is_told_to_who_asks_alone() -> None:
    """And not by the event loop, as an exception that nobody has seen."""
    told: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context))

    def fails() -> None:
        raise OSError("refused")

    scope = Scope()
    with pytest.raises(OSError, match="refused"):
        await scope.object(scope, "db", fails)
    del scope
    gc.collect()
    assert told == []


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
    for _ in range(2):
        await scope.release()
        assert closed == ["d", "c", "b", "a"]
    assert "the object b could not be closed" in caplog.text


@pytest.mark.parametrize("names", [("aclose",), ("close",), ("delete",), ("teardown",), ("close", "delete"), ("teardown", "aclose")])
async def test_an_object_is_closed_by_the_first_way_that_it_has(names: tuple[str, ...]) -> None:
    called: list[str] = []
    made = type("Made", (), {name: lambda self, name=name: called.append(name) for name in names})()
    scope = Scope()
    await scope.object(scope, "made", lambda: made)
    await scope.release()
    assert called == [next(name for name in ("aclose", "close", "delete", "teardown") if name in names)]


async def test_bindings_that_lead_nowhere_are_refused() -> None:
    for key, value, says in (
        ("add", "x", "function.argument"),
        ("ad.a", "x", "ad"),
        ("add.c", "x", "argument"),
        ("add.a", "objects.x", "object"),
    ):
        with pytest.raises(ConfigurationError, match=says):
            vf.Toolset([add], bindings={key: value})
    [text] = await read_of([vf.Toolset([add], bindings={"add.a": "task.info.nope"})], ("add", {"b": 1}))
    assert "task.info.nope" in text


async def test_a_whole_root_is_bound_by_a_path_without_parts() -> None:
    def ask(task: Any, state: Any, runtime: Any, tools: Any, added: Any) -> list[Any]:
        """Tell what came."""
        return [task["answer"], state["info"]["level"], runtime["max_turns"], sorted(tools), added is not None]

    bound: dict[str, Any] = {name: {name: ""} for name in ("task", "state", "runtime", "tools")}
    toolset = vf.Toolset([ask, add], bindings={f"ask.{name}": value for name, value in {**bound, "added": {"tools": "add"}}.items()})
    [told] = await read_of([toolset], ("ask", {}), task={"answer": "42", "info": {"level": 0}})
    assert ast.literal_eval(told) == ["42", 0, 10, ["add", "ask"], True]


async def test_each_owner_has_an_object_of_each_name() -> None:
    scope, made = Scope(), iter(range(9))
    one, other = object(), object()
    asked = [(one, "a"), (one, "b"), (other, "a"), (one, "a"), (other, "a")]
    assert [await scope.object(owner, name, lambda: next(made)) for owner, name in asked] == [0, 1, 2, 0, 2]
    await scope.release()
    assert await scope.object(one, "a", lambda: next(made)) == 3


async def test_who_no_longer_waits_for_an_object_leaves_it_to_the_others() -> None:
    """Where the one that makes it is cancelled, so are those that wait; what is not made is not closed."""
    ready = asyncio.Event()

    async def make() -> str:
        await ready.wait()
        return "made"

    scope = Scope()
    maker, leaving, waiting = (asyncio.create_task(scope.object(scope, "a", make)) for _ in range(3))
    await asyncio.sleep(0)
    leaving.cancel()
    ready.set()
    assert await asyncio.gather(maker, waiting) == ["made", "made"]
    assert leaving.cancelled()
    ready.clear()
    maker, waiting = (asyncio.create_task(scope.object(scope, "b", make)) for _ in range(2))
    await asyncio.sleep(0)
    maker.cancel()
    assert [type(each) for each in await asyncio.gather(maker, waiting, return_exceptions=True)] == [asyncio.CancelledError] * 2
    maker = asyncio.create_task(scope.object(scope, "c", make))
    await asyncio.sleep(0)
    await scope.release()
    ready.set()
    assert await maker == "made"


@pytest.mark.parametrize(("error", "gets_out"), [(KeyboardInterrupt, True), (asyncio.CancelledError, False), (SystemExit, False)])
async def test_what_ends_a_run_gets_out_of_closing_and_the_rest_is_closed_next(error: type[BaseException], gets_out: bool) -> None:
    closed: list[str] = []

    def made(name: str) -> Any:
        def close() -> None:
            closed.append(name)
            if name == "b":
                raise error

        return SimpleNamespace(close=close)

    scope = Scope()
    for name in "ab":
        await scope.object(scope, name, lambda name=name: made(name))
    with pytest.raises(error) if gets_out else contextlib.nullcontext():
        await scope.release()
    assert closed == (["b"] if gets_out else ["b", "a"])
    await scope.release()
    assert closed == ["b", "a"]


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("info.nope", "there is no 'nope' in task.info, which 'task.info.nope' is bound to"),
        ("names.2", "there is no '2' in task.names, which 'task.names.2' is bound to"),
        ("names.first", "there is no 'first' in task.names, which 'task.names.first' is bound to"),
        ("names.0.nope.more", "there is no 'nope' in task.names.0, which 'task.names.0.nope.more' is bound to"),
    ],
)
def test_where_a_path_ends_is_said(path: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        follow({"info": {}, "names": ("a", "b")}, tuple(path.split(".")), "task")
    assert str(caught.value) == told


def test_what_is_bound_is_known_and_checked() -> None:
    bindings = Bindings(None, {"a.b.x": 0, "f.x": 1, "f.y": "objects.db"}, {"db": list})
    assert [bindings.bound_arguments(name) for name in ("a.b", "f", "g")] == [{"x"}, {"x", "y"}, set()]
    bindings.check(iter(["f", "a.b", "g"]))
    for known, told in ((["f"], "there is a binding for 'a.b', and no such function; there are: f."), ([], "there are: none.")):
        with pytest.raises(ConfigurationError, match=told):
            bindings.check(known)
    for key in ("f", "f.", ".x"):
        with pytest.raises(ConfigurationError, match=r"a binding is named 'function\.argument', got"):
            Bindings(None, {key: 1})
    for value, told in (({"objects": ""}, "the object ''; there are: db, dc"), ("objects.dd", "the object 'dd'; there are: db, dc")):
        with pytest.raises(ConfigurationError, match=told):
            Bindings(None, {"f.x": value}, {"db": list, "dc": list})


async def test_a_sandbox_lives_as_long_as_an_object_unless_it_says_otherwise() -> None:
    configs: list[Any] = [None, vf.SandboxConfig(), vf.SandboxConfig(scope="rollout")]
    found = [Bindings(None, scope="group", sandbox=config).sandbox for config in configs]
    assert [None if each is None else each.scope for each in found] == [None, "group", "rollout"]
    assert configs[1].model_fields_set == set()
