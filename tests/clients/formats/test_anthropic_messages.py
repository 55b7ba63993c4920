"""Conversations and tools as Anthropic's Messages API takes them, and its blocks as the fields of a message."""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vfgym.clients.formats.anthropic_messages import _turn, native_prompt, native_tool, read_blocks
from vfgym.errors import InvalidMessage
from vfgym.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    TextMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    as_message,
    as_messages,
)
from vfgym.messages.chat import convert_all
from vfgym.tools import Tool

TOOL = Tool(name="add", description="Add.", parameters={"type": "object", "properties": {"a": {"type": "integer"}}})
PNG = base64.b64encode(b"not really an image").decode()


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def use(name: str = "add", call_id: str = "toolu_1", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


THINKING = {"type": "thinking", "thinking": "Let me see. ", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "ZW5j"}


def sent_for(*messages: Message) -> dict[str, Any]:
    turns, more = native_prompt(as_messages(list(messages)))
    return {"messages": turns, **more}


def test_system_messages_are_joined_by_a_blank_line_and_keep_their_marks():
    body = sent_for(SystemMessage("Be brief."), UserMessage("hi"), SystemMessage("Be kind.", role="developer"))
    assert body["system"] == "Be brief.\n\nBe kind."
    assert body["messages"] == [{"role": "user", "content": "hi"}]
    part = {"type": "text", "text": "Long.", "cache_control": {"type": "ephemeral"}}
    body = sent_for(SystemMessage([part]), UserMessage("hi"))
    assert body["system"] == [part]
    body = sent_for(SystemMessage("First."), UserMessage("hi"), SystemMessage([part, text(" "), text("Last.")]))
    assert body == {"messages": [{"role": "user", "content": "hi"}], "system": [text("First."), part, text("Last.")]}
    assert sent_for(SystemMessage(" "), UserMessage("hi")) == {"messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_mark_on_a_lone_text_is_kept(role):
    part = {"type": "text", "text": "Long.", "cache_control": {"type": "ephemeral"}}
    said = [UserMessage([part])] if role == "user" else [UserMessage("hi"), AssistantMessage([part]), UserMessage("on")]
    body = sent_for(*said)
    assert next(message["content"] for message in body["messages"] if message["role"] == role) == [part]


def test_raw_text_is_said_by_the_user():
    assert (sent_for(TextMessage("once upon")))["messages"] == [{"role": "user", "content": "once upon"}]


@pytest.mark.parametrize("role", ["user", "tool"])
def test_images(role):
    parts = [
        text("look: ÅÄÖ 🦉"),
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "high"}},
        {"type": "image_url", "image_url": {"url": f"data:image/webp;base64,{PNG}"}},
        {"type": "image_url", "image_url": {"url": "data:image/svg+xml;charset=utf8,%3Csvg/%3E"}},
    ]
    blocks = [
        text("look: ÅÄÖ 🦉"),
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": PNG}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/svg+xml", "data": base64.b64encode(b"<svg/>").decode()}},
    ]
    if role == "user":
        assert (sent_for(UserMessage(parts)))["messages"] == [{"role": "user", "content": blocks}]
    else:
        body = sent_for(
            UserMessage("hi"), AssistantMessage(tool_calls=[ToolCall("c1", "look", "{}")]), ToolMessage(parts, tool_call_id="c1")
        )
        assert body["messages"][-1]["content"] == [{"type": "tool_result", "tool_use_id": "c1", "content": blocks}]


def test_blocks_of_the_api_itself_pass():
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}}
    assert (sent_for(UserMessage([document])))["messages"][0]["content"] == [document]


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}, "no audio"),
        ({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}, "https://"),
        ({"type": "image_url", "image_url": {}}, "https://"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64"}}, "must begin with https://.*got 'data:image/png;base64'"),
        ({"type": "image_url", "image_url": {"url": "ftp://example.com/a.png"}}, "https://"),
        ({"type": "image_url", "image_url": {"url": "data:text/plain,hi"}}, "data:image/png"),
    ],
)
def test_what_the_api_does_not_take(part, said):
    with pytest.raises(InvalidMessage, match=said):
        sent_for(UserMessage([part]))


def test_a_system_prompt_is_text():
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    with pytest.raises(InvalidMessage, match="system prompt"):
        sent_for(SystemMessage([image]), UserMessage("hi"))


def test_answers_and_tool_calls():
    body = sent_for(
        UserMessage("hi"),
        AssistantMessage("Yes?"),
        UserMessage("add"),
        AssistantMessage("So:", tool_calls=[ToolCall("c1", "add", '{"a": 1, "b": "ü"}'), ToolCall("c2", "stop", "")]),
        ToolMessage("1", tool_call_id="c1"),
        ToolMessage("", tool_call_id="c2"),
        UserMessage("go on"),
    )
    assert body["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "add"},
        {"role": "assistant", "content": [text("So:"), use("add", "c1", a=1, b="ü"), use("stop", "c2")]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "1"},
                {"type": "tool_result", "tool_use_id": "c2", "content": ""},
                text("go on"),
            ],
        },
    ]


@pytest.mark.parametrize("arguments", ['{"a": ', "[1]", '"text"', "null", '{"a": NaN}', '{"a": -Infinity}', " "])
def test_arguments_that_are_no_json_object_are_sent_as_text(arguments):
    body = sent_for(UserMessage("hi"), AssistantMessage(tool_calls=[ToolCall("c1", "add", arguments)]), ToolMessage("?", tool_call_id="c1"))
    assert body["messages"][1]["content"] == [use("add", "c1", _raw=arguments)]


def test_ids_of_other_providers():
    body = sent_for(
        UserMessage("hi"),
        AssistantMessage(tool_calls=[ToolCall("functions.add:0", "add", "{}")]),
        ToolMessage("1", tool_call_id="functions.add:0"),
    )
    assert body["messages"][1]["content"][0]["id"] == body["messages"][2]["content"][0]["tool_use_id"] == "functions_add_0"


def test_an_error_is_said_only_where_the_message_says_it():
    call = AssistantMessage(tool_calls=[ToolCall("c1", "add", "{}")])
    body = sent_for(UserMessage("hi"), call, ToolMessage("boom", tool_call_id="c1", is_error=True))
    assert body["messages"][2]["content"][0]["is_error"] is True
    for more, said in (({"is_error": False}, {"is_error": False}), ({}, {}), ({"is_error": None}, {}), ({"is_error": "yes"}, {})):
        body = sent_for(UserMessage("hi"), call, ToolMessage("fine", tool_call_id="c1", **more))
        assert body["messages"][2]["content"] == [{"type": "tool_result", "tool_use_id": "c1", "content": "fine", **said}]


def test_text_that_is_not_visible_is_left_out_of_parts():
    image = {"type": "image_url", "image_url": {"url": "http://example.com/a.png"}}
    block = {"type": "image", "source": {"type": "url", "url": "http://example.com/a.png"}}
    body = sent_for(UserMessage([text(" \n"), image, text("")]), AssistantMessage([text("")]), UserMessage([text("a")]), UserMessage("b"))
    assert body["messages"] == [{"role": "user", "content": [block, text("a"), text("b")]}]


def test_what_one_speaker_says_in_a_row_is_one_turn_and_nothing_is_left_out():
    body = sent_for(
        UserMessage("a"), SystemMessage("s"), UserMessage("b"), AssistantMessage(None, reasoning_content="only thought"), UserMessage(" \n")
    )
    assert body["messages"] == [{"role": "user", "content": [text("a"), text("b")]}]


def test_foreign_thinking_is_not_sent():
    foreign = AssistantMessage("A.", reasoning_content="hm", thinking_blocks=[{"type": "thinking", "thinking": "hm"}], name="x")
    assert (sent_for(UserMessage("hi"), foreign, UserMessage("?")))["messages"][1] == {"role": "assistant", "content": "A."}
    mixed = AssistantMessage("A.", thinking_blocks=[{**THINKING, "signature": ""}, REDACTED, THINKING])
    assert sent_for(UserMessage("hi"), mixed)["messages"][1]["content"] == [REDACTED, THINKING, text("A.")]


def test_only_new_messages_are_converted():
    conversation = as_messages([{"role": "user", "content": str(i)} for i in range(50)])
    native_prompt(conversation)
    kept = convert_all(conversation, _turn)
    native_prompt([*conversation, AssistantMessage("new")])
    assert all(one is other for one, other in zip(convert_all(conversation, _turn), kept, strict=True))


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "system", "tool"]), st.text(max_size=5)), max_size=12))
def test_turns_alternate_and_no_text_is_lost(said):
    conversation = [as_message({"role": role, "content": content, "tool_call_id": "c"}) for role, content in said]
    turns, more = native_prompt(conversation)
    assert all(one["role"] != other["role"] for one, other in pairwise(turns))
    visible = [content for role, content in said if content.strip() or role == "tool"]
    assert all(content in json.dumps([turns, more], ensure_ascii=False) for content in visible if content.isalnum())


@pytest.mark.parametrize(
    ("tool", "native"),
    [
        (TOOL, {"name": "add", "description": "Add.", "input_schema": TOOL.parameters}),
        (Tool(name="stop", description="", parameters={}), {"name": "stop", "description": "", "input_schema": {"type": "object"}}),
        *[
            (
                Tool(name="stop", description="", parameters={"type": "object"}, strict=strict),
                {"name": "stop", "description": "", "input_schema": {"type": "object"}, "strict": strict},
            )
            for strict in (True, False)
        ],
    ],
)
def test_a_tool(tool, native):
    assert native_tool(tool) == native


@pytest.mark.parametrize(
    ("blocks", "fields"),
    [
        ([], {"content": ""}),
        ([text("Hello, "), text("you.")], {"content": "Hello, you."}),
        ([THINKING, text("4")], {"content": "4", "thinking_blocks": [THINKING], "reasoning_content": "Let me see. "}),
        (
            [THINKING, REDACTED, {**THINKING, "thinking": "So."}],
            {
                "content": "",
                "thinking_blocks": [THINKING, REDACTED, {**THINKING, "thinking": "So."}],
                "reasoning_content": "Let me see. So.",
            },
        ),
        (
            [{**THINKING, "thinking": ""}, text("4")],
            {"content": "4", "thinking_blocks": [{**THINKING, "thinking": ""}], "reasoning_content": None},
        ),
        ([REDACTED], {"content": "", "thinking_blocks": [REDACTED], "reasoning_content": None}),
        (
            [use(a=1, b="é"), use("stop", "toolu_2"), {**use("stop", "toolu_3"), "input": None}],
            {
                "content": "",
                "tool_calls": [ToolCall("toolu_1", "add", '{"a": 1, "b": "é"}'), *(ToolCall(f"toolu_{n}", "stop", "{}") for n in (2, 3))],
            },
        ),
        ([{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, text("a")], {"content": "a"}),
    ],
)
def test_the_blocks_of_an_answer(blocks, fields):
    assert read_blocks(blocks) == fields
