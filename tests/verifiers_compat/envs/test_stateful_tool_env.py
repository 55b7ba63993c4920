"""`StatefulToolEnv`: tools whose hidden arguments the environment gives."""

from __future__ import annotations

from typing import Any

import pytest

from tests.verifiers_compat.models import calling, rolled_out, texts


def make(vf: Any) -> Any:
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


async def test_one_list_of_hidden_arguments_may_serve_several_tools(vf: Any) -> None:
    """A name that a tool does not have hides nothing of it. No tool takes one from the model, whatever else it takes."""
    env, hidden = make(vf), ["session", "page_token"]
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


def test_hidden_arguments_are_names(vf: Any) -> None:
    with pytest.raises(ValueError, match="collection of parameter names"):
        make(vf).add_tool(write, args_to_skip="session")
    with pytest.raises(ValueError, match="as a tool"):
        make(vf).add_tool("write", args_to_skip=["session"])
