"""Tool calls in any of their raw forms."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessageToolCall

from vfgym.errors import InvalidMessage
from vfgym.messages.tool_calls import ToolCall, as_tool_call, fields_of, short

NESTED = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}


@pytest.mark.parametrize(
    "raw",
    [
        *[NESTED, {"id": "c1", "name": "add", "arguments": '{"a": 1}'}, {"id": "c1", "name": "add", "arguments": {"a": 1}}],
        *[{"id": "c1", "function": {"name": "add", "arguments": {"a": 1}}}, {**NESTED, "index": None}, json.dumps(NESTED)],
        ChatCompletionMessageToolCall.model_validate(NESTED),
    ],
)
def test_every_raw_form_is_one_call(raw: Any) -> None:
    call = as_tool_call(raw)
    assert (call, call.id, call.name, call.arguments) == (NESTED, "c1", "add", '{"a": 1}')
    assert (call["name"], call["arguments"], call.get("name"), call.get("nothing", 0)) == ("add", '{"a": 1}', "add", 0)
    assert as_tool_call(call) is call
    with pytest.raises(KeyError):
        call["nothing"]


@pytest.mark.parametrize("arguments", [None, {}])
def test_no_arguments_are_an_empty_object(arguments: Any) -> None:
    assert as_tool_call({"name": "stop", "arguments": arguments}).arguments == "{}"
    assert as_tool_call({"function": {"name": "stop", "arguments": arguments}}).arguments == "{}"
    assert ToolCall("c", "stop", "").arguments == ""


def test_a_call_without_an_id_has_its_tools_name_and_fields_of_providers_stay() -> None:
    assert as_tool_call({"name": "stop"}).id == as_tool_call({"id": 7, "name": "stop"}).id == "stop"
    assert ToolCall("", "stop", "{}").id == ""
    call = ToolCall("c", function={"name": "add", "arguments": "{}", "parsed": [1], "none": None}, index=0, type="")
    assert call == {"id": "c", "type": "function", "index": 0, "function": {"name": "add", "arguments": "{}", "parsed": [1]}}
    inner = ToolCall("c", "flat", "[]", function={"name": "add", "arguments": None}, type="custom")
    assert inner == {"id": "c", "type": "custom", "function": {"name": "add", "arguments": "[]"}}


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        *[({}, "needs the name"), ({"name": 7}, "needs the name"), ({"name": "add", "arguments": [1]}, "must be JSON text")],
        *[({"function": "add"}, "must be a dict with name"), ("add", "must be JSON"), ("[1]", "must be a dict")],
        *[(None, "must be a dict"), ("null", "must be a dict"), ({"name": "add", "arguments": 0}, "'add' must be JSON text .*got 0")],
        *[({"function": {}}, "needs the name"), ({"function": {"name": "add", "arguments": False}}, "'add' must be JSON text .*got False")],
        (7, "must be a dict"),
    ],
)
def test_what_is_no_call(raw: Any, says: str) -> None:
    with pytest.raises(InvalidMessage, match=says):
        as_tool_call(raw)


def test_fields_of_anything() -> None:
    given = {"a": 0, "b": None}
    copied = fields_of(given)
    assert (copied, copied is given) == (given, False)
    every = {"role": "assistant", "content": "", "name": "n", "tool_calls": [], "tool_call_id": "c", "reasoning_content": "r"}
    every |= {"thinking_blocks": [0], "arguments": "{}", "id": "i"}
    assert fields_of(SimpleNamespace(**every, other=1)) == every
    assert [fields_of(SimpleNamespace(**{name: "x"})) for name in ("role", "content")] == [None, None]
    assert fields_of(SimpleNamespace(role="user", content="", name=None)) == {"role": "user", "content": ""}
    assert fields_of(object()) is None


def test_the_beginning_of_a_value() -> None:
    assert [short("x" * count, 10) for count in (8, 9)] == ["'xxxxxxxx'", "'xxxxxx..."]
