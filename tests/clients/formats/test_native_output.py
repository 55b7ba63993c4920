"""What an answer looked like at its provider is sent back unchanged, to that provider, while the message says the same."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.responses import ResponseOutputMessage

from vfgym.clients.formats.native_output import FIELD, native_output, replayable, wire_form
from vfgym.messages import AssistantMessage, Message, ToolCall

ITEMS = [{"say": "a", "think": "hm"}]
CALL = ToolCall("c1", "add", "{}")


def read(items: Any) -> dict[str, Any]:
    return {"content": items[0]["say"], "reasoning_content": items[0]["think"], "tool_calls": [CALL], "thinking_blocks": [{"type": "x"}]}


def said(**changes: Any) -> Message:
    fields = {**read(ITEMS), FIELD: native_output("one", tuple(ITEMS)), **changes}  # type: ignore[arg-type]
    return AssistantMessage(fields.pop("content"), **fields)


def test_items_are_kept_as_plain_data_and_replayed() -> None:
    message = said()
    assert message[FIELD] == {"api": "one", "items": ITEMS}
    assert replayable(message, "one", read) == ITEMS


@pytest.mark.parametrize(
    "changes",
    [
        {"content": "b"},
        {"content": None},
        {"reasoning_content": "other"},
        {"tool_calls": None},
        {"tool_calls": [CALL, CALL]},
        {"thinking_blocks": []},
        {FIELD: None},
        {FIELD: "items"},
        {FIELD: {"api": "one", "items": "a"}},
        {FIELD: native_output("other", ITEMS)},
    ],
)
def test_what_says_something_else_is_not_replayed(changes: dict[str, Any]) -> None:
    assert replayable(said(**changes), "one", read) is None


def test_no_text_and_empty_text_are_the_same() -> None:
    items = [{"say": "", "think": None}]
    message = said(content=None, reasoning_content=None, native_output=native_output("one", items))
    assert replayable(message, "one", read) == items


def test_an_sdks_object_is_what_came_over_the_wire() -> None:
    wire = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": []}
    assert wire_form(ResponseOutputMessage.model_validate({**wire, "phase": None})) == wire
    assert wire_form(wire) is wire
