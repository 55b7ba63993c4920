"""The base program: the model's turns, its tools, the user, and what ends it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.models import calling
from tests.verifiers_compat.v1.playing import contents, get, harness

CALL = calling(("get", {"key": "a"}))


def fail() -> str:
    """Raise an error."""
    raise LookupError("no such thing")


async def test_the_base_loop_calls_tools_until_the_model_calls_none() -> None:
    state = await harness(calling(("get", {"key": "a"}), ("zzz", {}), ("fail", {})), "done", toolsets=[[get, fail]]).run({"prompt": "go"})
    assert (state["stop_condition"], state["is_completed"], state["num_model_requests"]) == ("no_tools", True, 2)
    assert contents(state) == ["value of a", "'zzz'", "no such thing"]
    assert (state["prompt"], state["completion"][-1]) == ([{"role": "user", "content": "go"}], {"role": "assistant", "content": "done"})
    assert all(type(message) is dict for message in state["completion"])
    assert [len(step["prompt"]) for step in state["trajectory"]] == [1, 5]
    assert json.loads(json.dumps(state))["trajectory"][0]["completion"][0]["tool_calls"][1]["function"]["name"] == "zzz"


@pytest.mark.parametrize(
    ("most", "task", "requests", "stop"),
    [(2, {}, 2, "max_turns_reached"), (2, {"max_turns": 1}, 1, "max_turns_reached"), (1, {"max_turns": 0}, 3, "no_tools")],
)
async def test_the_turn_limit_ends_the_loop_after_the_tools(most: int, task: dict[str, Any], requests: int, stop: str) -> None:
    """That of a task wins over that of the harness, and one that is not positive is none."""
    state = await harness(CALL, CALL, "done", toolsets=[get], max_turns=most).run({"prompt": "go", **task})
    assert (state["stop_condition"], state["num_model_requests"]) == (stop, requests)
    assert state["completion"][-1]["role"] == ("tool" if stop == "max_turns_reached" else "assistant")


async def test_stop_conditions_are_checked_before_the_program_and_after_each_tool() -> None:
    def never(task: Any, state: Any) -> bool:
        return True

    state = await harness(stops=[never]).run({"prompt": "go"})
    assert (state["stop_condition"], state["num_model_requests"], state["completion"]) == ("never", 0, [])

    def finish(state: vf.State) -> str:
        """Finish."""
        state.stop("finished")
        return "ok"

    def write_done(state: vf.State) -> None:
        """Finish."""
        state["done"] = True

    state = await harness(calling(("finish", {}), ("finish", {})), toolsets=[finish]).run({"prompt": "go"})
    assert (state["stop_condition"], contents(state)) == ("finished", ["ok"])
    assert (await harness(calling(("write_done", {})), toolsets=[write_done]).run({"prompt": "go"}))["stop_condition"] == "state_done"


async def test_a_user_goes_on_where_the_model_calls_no_tool() -> None:
    seen: list[int] = []

    def user(transcript: list[Any], state: vf.State) -> Any:
        seen.append(len(transcript))
        return [{"role": "user", "content": "and?"}] if len(seen) < 3 else None

    state = await harness("one", "two", "three", user=user).run({"prompt": "go"})
    assert (contents(state, "user"), state["stop_condition"], seen) == (["and?", "and?"], "no_tools", [2, 4, 6])
