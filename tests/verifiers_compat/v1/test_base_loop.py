"""The base program: the model's turns, its tools, the user, and what ends it."""

from __future__ import annotations

import json
from typing import Any

import verifiers_compat.v1 as vf
from tests.models import calling
from vfgym.testing import ScriptedClient


def get(key: str) -> str:
    """Return a value."""
    return f"value of {key}"


def fail() -> str:
    """Raise an error."""
    raise LookupError("no such thing")


def harness(*answers: Any, **kwargs: Any) -> vf.Harness:
    return vf.Harness(client=ScriptedClient(answers), model="m", **kwargs)


def contents(state: vf.State, role: str) -> list[Any]:
    return [message["content"] for message in state["completion"] if message["role"] == role]


async def test_the_base_loop_calls_tools_until_the_model_calls_none() -> None:
    state = await harness(calling(("get", {"key": "a"}), ("zzz", {}), ("fail", {})), "done", toolsets=[[get, fail]]).run({"prompt": "go"})
    assert (state["stop_condition"], state["is_completed"], state["num_model_requests"]) == ("no_tools", True, 2)
    assert contents(state, "tool") == ["value of a", "'zzz'", "no such thing"]
    assert state["prompt"] == [{"role": "user", "content": "go"}]
    assert state["completion"][-1] == {"role": "assistant", "content": "done"}
    assert all(type(message) is dict for message in state["completion"])
    assert [len(step["prompt"]) for step in state["trajectory"]] == [1, 5]
    assert json.loads(json.dumps(state))["trajectory"][0]["completion"][0]["tool_calls"][1]["function"]["name"] == "zzz"


async def test_the_turn_limit_ends_the_loop_after_the_tools() -> None:
    call = calling(("get", {"key": "a"}))
    state = await harness(call, call, call, toolsets=[get], max_turns=2).run({"prompt": "go"})
    assert (state["stop_condition"], state["num_model_requests"]) == ("max_turns_reached", 2)
    assert state["completion"][-1]["role"] == "tool"
    state = await harness(call, call, call, toolsets=[get], max_turns=2).run({"prompt": "go", "max_turns": 1})
    assert state["num_model_requests"] == 1


async def test_a_task_may_lift_the_turn_limit() -> None:
    """A limit that is not positive is none, also where a task says so and the harness has one."""
    call = calling(("get", {"key": "a"}))
    state = await harness(call, call, "done", toolsets=[get], max_turns=1).run({"prompt": "go", "max_turns": 0})
    assert (state["stop_condition"], state["num_model_requests"]) == ("no_tools", 3)


async def test_stop_conditions_are_checked_before_the_program_and_after_each_tool() -> None:
    def never(task: Any, state: Any) -> bool:
        return True

    state = await harness(stops=[never]).run({"prompt": "go"})
    assert (state["stop_condition"], state["num_model_requests"], state["completion"]) == ("never", 0, [])

    def finish(state: vf.State) -> str:
        """Finish."""
        state.stop("finished")
        return "ok"

    state = await harness(calling(("finish", {}), ("finish", {})), toolsets=[finish]).run({"prompt": "go"})
    assert (state["stop_condition"], contents(state, "tool")) == ("finished", ["ok"])


async def test_done_in_the_state_stops_as_state_done() -> None:
    def finish(state: vf.State) -> None:
        """Finish."""
        state["done"] = True

    state = await harness(calling(("finish", {})), toolsets=[finish]).run({"prompt": "go"})
    assert state["stop_condition"] == "state_done"


async def test_a_user_goes_on_where_the_model_calls_no_tool() -> None:
    seen: list[int] = []

    def user(transcript: list[Any], state: vf.State) -> Any:
        seen.append(len(transcript))
        return [{"role": "user", "content": "and?"}] if len(seen) < 3 else None

    state = await harness("one", "two", "three", user=user).run({"prompt": "go"})
    assert contents(state, "user") == ["and?", "and?"]
    assert (state["stop_condition"], seen) == ("no_tools", [2, 4, 6])
