"""`StatefulToolEnv`: tools whose hidden arguments the environment gives."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import verifiers_compat as vf
from tests.verifiers_compat.environments import ROW, WAYS, Ledger, look, replacing
from tests.verifiers_compat.models import calling, evaluated, rolled_out, texts
from verifiers_compat.envs.stateful_tool_env import filter_signature


def make() -> Any:
    class Notes(vf.StatefulToolEnv):
        def update_tool_args(self, tool_name: str, tool_args: Any, messages: Any, state: Any, **kwargs: Any) -> Any:
            return {**tool_args, "session": "s1"} if tool_name == "write" else tool_args

    return Notes(dataset=[{"question": "?"}])


def write(text: str, session: str) -> str:
    """Write something down."""
    return f"{session}: {text}"


def read(page: int) -> str:
    """Read a page."""
    return f"page {page}"


def search(**filters: Any) -> str:
    """Search by anything."""
    return str(filters)


async def test_one_list_of_hidden_arguments_may_serve_several_tools() -> None:
    """A name that a tool does not have hides nothing of it. No tool takes one from the model, whatever else it takes."""
    env, hidden = make(), ["session", "page_token"]
    for tool in (write, read, search):
        env.add_tool(tool, args_to_skip=hidden)
    assert [list(tool.parameters["properties"]) for tool in env.tool_defs] == [["text"], ["page"], []]
    assert env.skipped_args == dict.fromkeys(("write", "read", "search"), hidden)
    calls = calling(("write", {"text": "a"}), ("read", {"page": 1}), ("search", {"by": "b"}), ("search", {"session": "mine"}))
    state = await rolled_out(env, calls, "done")
    answers = texts(state["completion"])
    assert answers[:3] == ["s1: a", "page 1", "{'by': 'b'}"]
    assert "session" in answers[3]
    assert "mine" not in answers[3]


def test_hidden_arguments_are_names() -> None:
    with pytest.raises(ValueError, match="collection of parameter names"):
        make().add_tool(write, args_to_skip="session")
    for tool in ("write", dict):  # neither has a signature that could be read
        with pytest.raises(ValueError, match="as a tool"):
            make().add_tool(tool, args_to_skip=["session"])


async def test_update_tool_args_is_asked_about_unknown_tools_too() -> None:
    asked: list[tuple[str, Any]] = []

    class Asked(Ledger):
        def update_tool_args(self, tool_name: str, tool_args: dict[str, Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
            asked.append((tool_name, tool_args))
            return super().update_tool_args(tool_name, tool_args, *args, **kwargs)

    state = await rolled_out(Asked(), calling(("nope", {"text": "x"}), ("write", "{"), ("write", "[1]"), ("write", {"text": "y"})), "done")
    assert asked == [("nope", {"text": "x"}), ("write", {"text": "y"})]
    unknown, *_, written = texts(state["completion"])
    assert (unknown, written) == ("'nope'", "1 lines")


async def test_arguments_that_are_no_object_are_a_value_error() -> None:
    state = await rolled_out(Ledger(stop_errors=[ValueError]), calling(("write", "[1]")), "done")
    assert (type(state["error"]), type(state["error"].__cause__)) == (vf.ToolParseError, ValueError)


async def test_hidden_arguments_cannot_be_given_by_the_model() -> None:
    env = Ledger()
    assert (list(env.tool_defs[0].parameters["properties"]), env.skipped_args) == (["text"], {"write": ["book"]})
    (output,) = await evaluated(env, calling(("write", {"text": "x", "book": ["mine"]})), "done", state_columns=["book"])
    assert (output["book"], "book" in output["completion"][1]["content"]) == ([], True)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["call_tool", "update_tool_args"])
async def test_a_replaced_hook_of_tools_is_what_is_called(name: str, way: str) -> None:
    class Stateful(vf.StatefulToolEnv):
        def update_tool_args(self, tool_name: str, tool_args: Any, messages: Any, state: Any, **kwargs: Any) -> Any:
            return tool_args

    calls: list[str] = []
    env = replacing(Stateful, name, way, calls, dataset=[ROW], tools=[look])
    (output,) = await evaluated(env, calling(("look", {"key": "a"})), "done")
    assert (calls, texts(output["completion"])) == ([name], ["value of a"])


def test_a_signature_is_shown_without_hidden_arguments_and_without_self() -> None:
    def write(self: Any, text: str, session: str) -> str:
        return text + session

    shown = filter_signature(write, ["session"])
    assert ([*inspect.signature(shown).parameters], "session" in shown.__annotations__) == (["text"], False)
    assert shown(None, "a", session="b") == "ab"
