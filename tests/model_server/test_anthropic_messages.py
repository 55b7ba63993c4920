"""Anthropic's messages, asked by its SDK."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import pytest

from tests.model_server.asked import BODIES, CALLS, CLAUDE_TOOL, FULL, HELLO, post
from vfgym.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from vfgym.model_server import ModelRequest, ModelServer
from vfgym.model_server.anthropic_messages import read_prompt
from vfgym.model_server.wire import RequestRefused


async def test_messages_carry_thinking_text_and_tool_use(claude: anthropic.AsyncAnthropic) -> None:
    message = await claude.messages.create(model="full", max_tokens=1000, messages=HELLO, tools=[CLAUDE_TOOL], system="Be brief.")
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert message.stop_reason == "tool_use"
    thinking, text, *calls = message.content
    assert (thinking.thinking, text.text) == (FULL.reasoning, FULL.text)  # type: ignore[union-attr]
    assert [(call.id, call.input) for call in calls] == [(call.id, json.loads(call.arguments)) for call in CALLS]  # type: ignore[union-attr]


async def test_a_message_stream_adds_up_to_the_whole_message(claude: anthropic.AsyncAnthropic) -> None:
    whole = await claude.messages.create(model="full", max_tokens=1000, messages=HELLO)
    async with claude.messages.stream(model="full", max_tokens=1000, messages=HELLO) as stream:
        streamed = await stream.get_final_message()
    ignored = {"id": True, "content": {"__all__": {"parsed_output"}}}
    assert streamed.model_dump(exclude=ignored) == whole.model_dump(exclude=ignored)  # type: ignore[arg-type]
    raw = await claude.messages.create(model="full", max_tokens=1000, messages=HELLO, stream=True)
    kinds = [event.type async for event in raw]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 4


async def test_a_message_can_be_sent_back(claude: anthropic.AsyncAnthropic, server: ModelServer) -> None:
    asked: list[ModelRequest] = []

    def policy(request: ModelRequest) -> str:
        asked.append(request)
        return "done"

    server.models["asks"] = policy
    first = await claude.messages.create(model="full", max_tokens=1000, messages=HELLO, tools=[CLAUDE_TOOL])
    results = [{"type": "tool_result", "tool_use_id": "c1", "content": "3"}, {"type": "tool_result", "tool_use_id": "c2", "is_error": True}]
    turn: Any = {"role": "user", "content": [*results, {"type": "text", "text": "go on"}]}
    await claude.messages.create(model="asks", max_tokens=9, messages=[*HELLO, first.to_param(), turn], tools=[CLAUDE_TOOL])
    user, assistant, *tool_messages, last = asked[0].messages
    assert (user.content, last.content, assistant.content) == (HELLO[0]["content"], "go on", FULL.text)
    assert (assistant.reasoning_content, list(assistant.tool_calls)) == (FULL.reasoning, CALLS)
    assert [(each.tool_call_id, each.content) for each in tool_messages] == [("c1", "3"), ("c2", "")]
    assert tool_messages[1].is_error is True
    changed: Any = first.to_param()
    changed["content"] = [{**changed["content"][0].model_dump(), "thinking": "something else"}, *changed["content"][1:]]
    with pytest.raises(anthropic.BadRequestError, match="Invalid `signature`"):
        await claude.messages.create(model="asks", max_tokens=9, messages=[*HELLO, changed, turn])


async def test_messages_count_tokens(claude: anthropic.AsyncAnthropic) -> None:
    counted = await claude.messages.count_tokens(model="echo", messages=HELLO, tools=[CLAUDE_TOOL])
    message = await claude.messages.create(model="echo", max_tokens=9, messages=HELLO, tools=[CLAUDE_TOOL])
    assert counted.input_tokens == message.usage.input_tokens


USE = {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}
RESULT = {"type": "tool_result", "tool_use_id": "c1"}
HEADERS = {"anthropic-version": "2023-06-01"}


def of(role: str, *blocks: Any) -> list[Any]:
    return [{"role": role, "content": list(blocks)}]


def test_a_request_is_read_as_a_conversation() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    linked = {"type": "image", "source": {"type": "url", "url": "https://a.b/c.png"}}
    asked = read_prompt(
        {
            **{"model": "m", "system": [{"type": "text", "text": "Be brief."}], "tools": [CLAUDE_TOOL], "stream": True, "top_k": 0},
            "messages": [
                {"role": "user", "content": "Hi"},
                *of(
                    "assistant",
                    {"type": "redacted_thinking", "data": "x"},
                    {"type": "text", "text": "So:"},
                    {**USE, "name": CLAUDE_TOOL["name"]},
                ),
                *of("user", {**RESULT, "content": [image], "is_error": False}, {"type": "text", "text": "a"}, linked),
            ],
        },
        HEADERS,
        7,
    )
    ((request,), call) = (asked.requests, ToolCall("c1", "add", '{"a": 1}'))
    image_part, linked_part = (
        {"type": "image_url", "image_url": {"url": url}} for url in ("data:image/png;base64,AA==", "https://a.b/c.png")
    )
    assert request.messages == [
        SystemMessage("Be brief."),
        UserMessage("Hi"),
        AssistantMessage("So:", tool_calls=[call], thinking_blocks=[{"type": "redacted_thinking", "data": "x"}]),
        ToolMessage([image_part], tool_call_id="c1"),
        UserMessage([{"type": "text", "text": "a"}, linked_part]),
    ]
    assert (request.number, request.model, request.sampling_args, request.tool_choice) == (7, "m", {"top_k": 0}, "auto")


@pytest.mark.parametrize(
    ("given", "choice"),
    [({"type": "auto"}, "auto"), ({"type": "any"}, "required"), ({"type": "none"}, "none"), ({"type": "tool", "name": "NAME"}, "NAME")],
)
def test_the_choice_of_a_tool_is_that_of_chats(given: dict[str, Any], choice: str) -> None:
    name = CLAUDE_TOOL["name"]
    given = {key: name if value == "NAME" else value for key, value in given.items()}
    (request,) = read_prompt({"model": "m", "messages": HELLO, "tools": [CLAUDE_TOOL], "tool_choice": given}, HEADERS, 1).requests
    assert request.tool_choice == choice.replace("NAME", name)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"messages": []}, "messages: at least one message is required, got []"),
        ({"messages": "Hi"}, "messages: at least one message is required, got 'Hi'"),
        (
            {"messages": [*HELLO, {"role": "system", "content": "x"}]},
            'messages.1: unexpected role \'system\'; allowed roles are "user" and "assistant"',
        ),
        ({"messages": ["Hi"]}, 'messages.0: unexpected role None; allowed roles are "user" and "assistant"'),
        ({"messages": of("user", "Hi")}, "messages.0.content: must be text or a list of content blocks, got ['Hi']"),
        ({"messages": of("user", {"type": "text", "text": ""})}, "messages.0: text content blocks must be non-empty"),
        (
            {"messages": of("user", {"type": "audio"})},
            "messages.0: this server reads text and image blocks here, got {'type': 'audio'}",
        ),
        (
            {"messages": of("user", {"type": "text", "text": "a"}, RESULT)},
            "messages.0.content: tool_result blocks must come first in the content",
        ),
        *[
            (
                {"messages": of("assistant", {**USE, name: 1})},
                f"messages.0.content: a tool_use block needs id, name and input (an object), got { ({**USE, name: 1})!r}",
            )
            for name in ("id", "name", "input")
        ],
        *[
            (
                {"messages": of("assistant", {"type": "thinking", **block})},
                "messages.0.content: a thinking block needs thinking and signature (texts)",
            )
            for block in ({"thinking": "a"}, {"signature": "b"})
        ],
        ({"system": [1]}, "system: must be text or a list of content blocks, got [1]"),
        ({"tools": [{"name": "x"}]}, "tools: a tool needs name and input_schema, got {'name': 'x'}"),
        ({"tools": [{"type": "bash"}]}, "tools: only custom tools are supported by this server, got {'type': 'bash'}"),
        *[
            ({"tool_choice": choice}, f"tool_choice: expected an object of type auto, any, none or tool, got {choice!r}")
            for choice in ("auto", {"type": "tool"}, {"type": "some"}, {})
        ],
    ],
)
async def test_messages_are_checked_as_anthropic_does(server: ModelServer, change: dict[str, Any], problem: str) -> None:
    status, answer = await post(server, "/v1/messages", {**BODIES["/v1/messages"], **change})
    assert (status, answer["type"], answer["error"]["type"]) == (400, "error", "invalid_request_error")
    assert answer["error"]["message"] == problem


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"messages": of("user", {**RESULT, "content": ""})}, "answers the tool call"),
        ({"tool_choice": {"type": "tool", "name": "x"}}, "tool_choice"),
    ],
)
async def test_what_is_checked_for_all_apis_is_said_as_anthropic_does(server: ModelServer, change: dict[str, Any], problem: str) -> None:
    status, answer = await post(server, "/v1/messages", {**BODIES["/v1/messages"], **change})
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")
    assert problem in answer["error"]["message"]


def test_the_version_of_the_api_is_asked_for() -> None:
    with pytest.raises(RequestRefused, match="anthropic-version: header is required") as refused:
        read_prompt({"model": "m", "messages": HELLO}, {}, 1)
    assert refused.value.status == 400
