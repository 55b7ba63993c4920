"""Anthropic's messages, asked by its SDK."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import pytest

from tests.model_server.asked import BODIES, CALLS, CLAUDE_TOOL, FULL, HELLO, post
from vfgym.model_server import ModelRequest, ModelServer


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


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"messages": [{"role": "system", "content": "x"}]}, "unexpected role"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]}, "must be non-empty"),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": ""}]}]},
            "answers the tool call",
        ),
        ({"tools": [{"name": "x"}]}, "input_schema"),
        ({"tool_choice": {"type": "tool", "name": "x"}}, "tool_choice"),
    ],
)
async def test_messages_are_checked_as_anthropic_does(server: ModelServer, change: dict[str, Any], problem: str) -> None:
    status, answer = await post(server, "/v1/messages", {**BODIES["/v1/messages"], **change})
    assert (status, answer["type"], answer["error"]["type"]) == (400, "error", "invalid_request_error")
    assert problem in answer["error"]["message"]
