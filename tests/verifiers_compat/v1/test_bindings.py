"""What is bound to arguments, and the objects that live as long as a rollout, a group or a harness."""

from __future__ import annotations

import asyncio
import gc
import os
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


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


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


@pytest.mark.parametrize("names", [("aclose",), ("close",), ("delete",), ("teardown",), ("close", "delete"), ("teardown", "aclose")])
async def test_an_object_is_closed_by_the_first_way_that_it_has(names: tuple[str, ...]) -> None:
    called: list[str] = []
    made = type("Made", (), {name: lambda self, name=name: called.append(name) for name in names})()
    scope = Scope()
    await scope.object(scope, "made", lambda: made)
    await scope.release()
    assert called == [next(name for name in ("aclose", "close", "delete", "teardown") if name in names)]


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
