"""Simulated users: what they are given, what they say, and how long their objects live."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.models import InOrder
from vfgym.testing import ScriptedClient


class Counter:
    """Counts, and knows whether it was closed."""

    made: list[Counter] = []

    def __init__(self) -> None:
        self.count = 0
        self.is_closed = False
        Counter.made.append(self)

    async def aclose(self) -> None:
        self.is_closed = True


async def test_a_user_has_bindings_too() -> None:
    said: list[Any] = []

    def user(state: vf.State, counter: Counter, name: str) -> Any:
        counter.count += 1
        said.append((counter.count, name))
        return "more" if counter.count < 2 else None

    simulated = vf.User(user, bindings={"counter": "objects.counter", "name": "task.answer"}, objects={"counter": Counter})
    await vf.Harness(client=ScriptedClient(["a", "b"]), model="m", user=simulated).run({"prompt": "go", "answer": "42"})
    assert said == [(1, "42"), (2, "42")]


ROWS = [{"question": "2 + 2?", "answer": "4"}]


class Shared:
    made: list[Shared] = []

    def __init__(self) -> None:
        self.calls, self.is_closed = 0, False
        Shared.made.append(self)

    def close(self) -> None:
        self.is_closed = True


class Talkative(vf.Taskset):
    """A taskset whose user is a method."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(ROWS, user=self.reply, **kwargs)

    async def reply(self, task: vf.Task, state: vf.State, transcript: list[Any]) -> Any:
        await asyncio.sleep(0)
        state["heard"] = [*state.get("heard", []), transcript[-1]["content"]]
        return [{"role": "user", "content": f"and {task['answer']}?"}] if len(transcript) < 5 else None


def reply(transcript: list[Any], shared: Shared) -> Any:
    shared.calls += 1
    return f"again {shared.calls}" if len(transcript) < 5 else None


async def test_a_user_may_be_a_method_and_speaks_until_it_has_no_more_to_say() -> None:
    env = vf.Env(Talkative(), vf.Harness())
    [row] = (await env.evaluate(InOrder("one", "two", "three"), "m", state_columns=["heard"]))["outputs"]
    assert [message["content"] for message in row["completion"]] == ["one", "and 4?", "two", "and 4?", "three"]
    assert (row["heard"], row["stop_condition"]) == (["one", "two", "three"], "no_tools")


@pytest.mark.parametrize("owner", ["taskset", "harness"])
@pytest.mark.parametrize("form", ["User", "config"])
@pytest.mark.parametrize(("scope", "made"), [("rollout", 2), ("global", 1)])
async def test_a_user_has_objects_that_live_as_long_as_its_scope(owner: str, form: str, scope: Any, made: int) -> None:
    Shared.made.clear()
    fields: dict[str, Any] = {"fn": reply, "scope": scope, "bindings": {"shared": "objects.shared"}, "objects": {"shared": Shared}}
    user = vf.User(**fields) if form == "User" else fields
    own: dict[str, Any] = {"user": user}
    harness = vf.Harness(client=ScriptedClient(["x"] * 3), model="m", **(own if owner == "harness" else {}))
    harness.attach(vf.Taskset(ROWS, **(own if owner == "taskset" else {})))
    states = [await harness.run({"prompt": "go"}) for _ in range(2)]
    said = [[message["content"] for message in state["completion"] if message["role"] == "user"] for state in states]
    assert said == [["again 1", "again 2"], ["again 1", "again 2"] if made == 2 else ["again 4", "again 5"]]
    assert len(Shared.made) == made
    await harness.teardown()
    assert all(shared.is_closed for shared in Shared.made)
