"""Simulated users: what they are given, what they say, and how long their objects live."""

from __future__ import annotations

from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.verifiers_compat.v1.playing import ROWS, Counter, contents, harness
from vfgym.errors import ConfigurationError


def test_what_a_user_cannot_have_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="the user <lambda> asks for nope; it can have state"):
        vf.User(lambda nope: None)
    with pytest.raises(ConfigurationError, match="other"):
        vf.User(reply, bindings={"counter": 1, "other.counter": 2})


def reply(transcript: list[Any], counter: Counter) -> Any:
    counter.count += 1
    return f"again {counter.count}" if len(transcript) < 5 else None


@pytest.mark.parametrize("owner", ["taskset", "harness"])
@pytest.mark.parametrize("form", ["User", "config"])
@pytest.mark.parametrize(("scope", "made"), [("rollout", 2), ("global", 1)])
async def test_a_user_has_objects_that_live_as_long_as_its_scope(owner: str, form: str, scope: Any, made: int) -> None:
    Counter.made.clear()
    fields: dict[str, Any] = {"fn": reply, "scope": scope, "bindings": {"counter": "objects.counter"}, "objects": {"counter": Counter}}
    own: dict[str, Any] = {"user": vf.User(**fields) if form == "User" else fields}
    player = harness("x", "x", "x", **(own if owner == "harness" else {}))
    player.attach(vf.Taskset(ROWS, **(own if owner == "taskset" else {})))
    said = [contents(await player.run({"prompt": "go"}), "user") for _ in range(2)]
    assert said == [["again 1", "again 2"], ["again 1", "again 2"] if made == 2 else ["again 4", "again 5"]]
    await player.teardown()
    assert [counter.is_closed for counter in Counter.made] == [True] * made
