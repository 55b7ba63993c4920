"""Tool definitions, and what is taken for one."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from vfgym.errors import ConfigurationError
from vfgym.tools.definition import Tool, as_tool

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
ADD = Tool(name="add", description="Add.", parameters=SCHEMA)


class Mine(Tool): ...


@pytest.mark.parametrize("strict", [None, False, True])
def test_the_form_of_openai_and_back(strict: bool | None) -> None:
    tool = ADD.model_copy(update={"strict": strict})
    function = {"name": "add", "description": "Add.", "parameters": SCHEMA, **({} if strict is None else {"strict": strict})}
    assert tool.to_openai() == tool.openai == {"type": "function", "function": function}
    assert as_tool(tool.to_openai()) == as_tool(function) == tool
    assert tool.openai is tool.openai
    with pytest.raises(TypeError, match="immutable"):
        tool.openai["type"] = "x"


def test_what_may_be_left_out() -> None:
    bare = Tool(name="stop", description="", parameters={"type": "object", "properties": {}})
    for given in ({"name": "stop"}, {"name": "stop", "description": None, "parameters": None, "strict": None, "type": "function"}):
        assert as_tool(given) == as_tool({"type": "function", "function": given}) == bare


def test_the_class_of_the_result() -> None:
    assert as_tool(ADD) is ADD
    mine = as_tool(ADD, Mine)
    assert (type(mine), mine.parameters) == (Mine, SCHEMA)
    assert as_tool(mine) is mine


@pytest.mark.parametrize(
    "wrong",
    [None, "add", 7, [ADD], {"function": "add"}, {}, {"name": ""}, {"name": "a", "parametres": {}}, {"name": "a", "parameters": []}],
)
def test_what_is_no_tool(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="tool"):
        as_tool(wrong)


def test_a_tool_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        ADD.name = "other"  # type: ignore[misc]
