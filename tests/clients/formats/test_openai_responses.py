"""Conversations, tools and parameters as OpenAI's Responses API takes them, and its items as the fields of a message."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vfgym.clients.formats.openai_responses import _items, native_parameters, native_prompt, native_tool, read_items
from vfgym.errors import ConfigurationError, InvalidMessage
from vfgym.messages import AssistantMessage, Message, SystemMessage, TextMessage, ToolCall, ToolMessage, UserMessage, as_messages
from vfgym.messages.chat import convert_all
from vfgym.tools import Tool

TOOL = Tool(name="add", description="Add.", parameters={"type": "object", "properties": {"a": {"type": "integer"}}})


def message_item(role: str, content: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}


def sent_for(*messages: Message) -> list[Any]:
    return native_prompt(as_messages(list(messages)))


def test_roles():
    messages = [SystemMessage("s"), SystemMessage("d", role="developer"), TextMessage("t"), UserMessage("u"), AssistantMessage("a")]
    assert sent_for(*messages) == [
        message_item("system", "s"),
        message_item("developer", "d"),
        message_item("user", "t"),
        message_item("user", "u"),
        message_item("assistant", "a"),
    ]


PARTS = (
    {"type": "text", "text": "look"},
    {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
    {"type": "file", "file": {"file_id": "file_1"}},
    {"type": "input_file", "file_url": "https://example.com/a.pdf"},
)

SENT_PARTS = (
    {"type": "input_text", "text": "look"},
    {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "auto"},
    {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
    {"type": "input_file", "file_id": "file_1"},
    {"type": "input_file", "file_url": "https://example.com/a.pdf"},
)


def test_parts_of_each_role():
    assert sent_for(UserMessage(list(PARTS))) == [message_item("user", list(SENT_PARTS))]
    call_message = AssistantMessage(tool_calls=[ToolCall("c1", "look", "{}")])
    sent = sent_for(UserMessage("hi"), call_message, ToolMessage(list(PARTS), tool_call_id="c1"))
    assert sent[-1] == {"type": "function_call_output", "call_id": "c1", "output": list(SENT_PARTS)}
    sent = sent_for(UserMessage("hi"), AssistantMessage([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]))
    assert sent[1] == message_item("assistant", [{"type": "output_text", "text": "a"}, {"type": "output_text", "text": "b"}])


def test_tool_calls_and_results():
    calls = [ToolCall("c1", "add", '{"a": '), ToolCall("c2", "stop", "{}")]
    sent = sent_for(
        UserMessage("hi"),
        AssistantMessage("So:", tool_calls=calls, reasoning_content="hm"),
        ToolMessage("1", tool_call_id="c1"),
        ToolMessage("", tool_call_id="c2"),
        AssistantMessage(None),
    )
    assert sent[1:] == [
        message_item("assistant", "So:"),
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": '},
        {"type": "function_call", "call_id": "c2", "name": "stop", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "function_call_output", "call_id": "c2", "output": ""},
    ]


@pytest.mark.parametrize(
    ("part", "text"),
    [({"type": "input_audio", "input_audio": {"data": "AA"}}, "no audio"), ({"type": "image_url", "image_url": {}}, "URL")],
)
def test_what_the_api_does_not_take(part, text):
    with pytest.raises(InvalidMessage, match=text):
        sent_for(UserMessage([part]))


def test_only_new_messages_are_converted():
    conversation = as_messages([{"role": "user", "content": str(i)} for i in range(50)])
    native_prompt(conversation)
    kept = convert_all(conversation, _items)
    native_prompt([*conversation, AssistantMessage("new")])
    assert all(one is other for one, other in zip(convert_all(conversation, _items), kept, strict=True))


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({}, {}),
        ({"temperature": 0, "top_p": 0.9}, {"temperature": 0, "top_p": 0.9}),
        ({"max_completion_tokens": 5, "max_output_tokens": 6}, {"max_output_tokens": 6}),
        ({"reasoning_effort": "low", "reasoning": {"effort": "high"}}, {"reasoning": {"effort": "high"}}),
        ({"verbosity": "low", "text": {"verbosity": "high"}}, {"text": {"verbosity": "high"}}),
        ({"logprobs": True, "include": ["message.output_text.logprobs", "x"]}, {"include": ["message.output_text.logprobs", "x"]}),
        ({"logprobs": True, "include": ["x"]}, {"include": ["x", "message.output_text.logprobs"]}),
        ({"tool_choice": "required"}, {"tool_choice": "required"}),
        ({"tool_choice": {"type": "function", "function": {"name": "add"}}}, {"tool_choice": {"type": "function", "name": "add"}}),
        ({"tool_choice": {"type": "function", "name": "add"}}, {"tool_choice": {"type": "function", "name": "add"}}),
        ({"tool_choice": {"type": "web_search"}}, {"tool_choice": {"type": "web_search"}}),
        ({"max_completion_tokens": 5}, {"max_output_tokens": 5}),
        ({"max_completion_tokens": 0}, {"max_output_tokens": 0}),
        ({"stop": []}, {}),
        ({"modalities": ["text"]}, {}),
        ({"logprobs": False, "include": ["x"]}, {"include": ["x"]}),
        ({"logprobs": True}, {"include": ["message.output_text.logprobs"]}),
        ({"reasoning_effort": "low", "reasoning": None}, {"reasoning": {"effort": "low"}}),
        (
            {"verbosity": "low", "response_format": {"type": "json_object"}},
            {"text": {"verbosity": "low", "format": {"type": "json_object"}}},
        ),
        ({"response_format": {"type": "json_object"}, "text": {"format": {"type": "text"}}}, {"text": {"format": {"type": "text"}}}),
        ({"max_output_tokens": 5}, {"max_output_tokens": 5}),
        ({"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}),
        ({"reasoning_effort": "low", "reasoning": {"summary": "auto"}}, {"reasoning": {"effort": "low", "summary": "auto"}}),
        ({"verbosity": "low"}, {"text": {"verbosity": "low"}}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}, "strict": True}}},
            {"text": {"format": {"type": "json_schema", "name": "s", "schema": {"type": "object"}, "strict": True}}},
        ),
        (
            {"response_format": {"type": "json_object"}, "text": {"verbosity": "high"}},
            {"text": {"format": {"type": "json_object"}, "verbosity": "high"}},
        ),
        ({"logprobs": True, "top_logprobs": 2}, {"include": ["message.output_text.logprobs"], "top_logprobs": 2}),
        ({"logprobs": False, "modalities": ["text"], "stop": []}, {}),
        (
            {"instructions": "Be brief.", "store": False, "include": ["reasoning.encrypted_content"]},
            {"instructions": "Be brief.", "store": False, "include": ["reasoning.encrypted_content"]},
        ),
        ({"min_p": 0.1}, {"min_p": 0.1}),
    ],
)
def test_parameters(given, sent):
    before = json.dumps(given)
    assert native_parameters(given) == sent
    assert json.dumps(given) == before


@pytest.mark.parametrize(
    ("wrong", "text"), [({"stop": ["END"]}, "stop sequences"), ({"stop": "E"}, "'E'"), ({"modalities": ["text", "audio"]}, "audio")]
)
def test_parameters_that_the_api_does_not_have(wrong, text):
    with pytest.raises(ConfigurationError, match=text):
        native_parameters(wrong)


@pytest.mark.parametrize("strict", [None, True, False])
def test_a_tool_is_flat(strict):
    flat = {"type": "function", "name": "add", "description": "Add.", "parameters": TOOL.parameters}
    assert native_tool(TOOL.model_copy(update={"strict": strict})) == (flat if strict is None else {**flat, "strict": strict})


def output(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "content": list(parts)}


SAID, REFUSED = {"type": "output_text", "text": "Hello."}, {"type": "refusal", "refusal": " No."}


@pytest.mark.parametrize(
    ("items", "fields"),
    [
        ([], {"content": None}),
        ([output()], {"content": None}),
        ([output({"type": "output_text", "text": ""})], {"content": ""}),
        ([output(SAID, REFUSED), {"type": "web_search_call", "content": [SAID]}, output(SAID)], {"content": "Hello. No.Hello."}),
        (
            [
                {"type": "reasoning", "summary": [{"text": "First."}, {"text": "Then."}], "content": [{"text": "All."}]},
                {"type": "reasoning", "summary": [{"text": "So."}]},
            ],
            {"content": None, "reasoning_content": "First.\nThen.\nAll.\nSo."},
        ),
        ([{"type": "reasoning", "summary": []}], {"content": None}),
        (
            [{"type": "function_call", "id": "fc", "call_id": "c1", "name": "add", "arguments": "{"}],
            {"content": None, "tool_calls": [ToolCall("c1", "add", "{")]},
        ),
        (
            [{"type": "function_call", "id": f"fc{n}", "call_id": f"c{n}", "name": name, "arguments": ""} for n, name in enumerate("ab")],
            {"content": None, "tool_calls": [ToolCall("c0", "a", ""), ToolCall("c1", "b", "")]},
        ),
    ],
)
def test_the_items_of_an_answer(items, fields):
    assert read_items(items) == fields
