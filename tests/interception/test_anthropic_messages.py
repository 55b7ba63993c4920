"""Anthropic's messages as a server speaks them: blocks as messages, parameters, and answers as blocks."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym.interception.anthropic_messages import MESSAGES
from vfgym.messages import AssistantMessage, Response, ResponseMessage, ToolCall, Usage

THINKING = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "x"}]
TEXT = {"type": "text", "text": "a"}
USE = {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}


def parsed(content: Any, role: str = "user", **more: Any) -> Any:
    return MESSAGES.parse({"messages": [{"role": role, "content": content}], **more})


@pytest.mark.parametrize(
    ("content", "messages"),
    [
        ("hi", [("user", "hi")]),
        ([TEXT], [("user", "a")]),
        ([TEXT, TEXT], [("user", [TEXT, TEXT])]),
        ([{"type": "tool_result", "tool_use_id": "c1"}], [("tool", "")]),
        ([TEXT, {"type": "tool_result", "tool_use_id": "c1", "content": [TEXT]}], [("tool", "a"), ("user", "a")]),
        (
            [
                {"type": "tool_result", "tool_use_id": "c1", "content": "x"},
                TEXT,
                {"type": "tool_result", "tool_use_id": "c2", "content": [TEXT, {"type": "text", "text": "b"}]},
                {"type": "text", "text": "b"},
            ],
            [("tool", "x"), ("tool", [TEXT, {"type": "text", "text": "b"}]), ("user", [TEXT, {"type": "text", "text": "b"}])],
        ),
        (
            [
                {"type": "image", "source": {"type": "url", "url": "https://a"}},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
            ],
            [
                (
                    "user",
                    [
                        {"type": "image_url", "image_url": {"url": "https://a"}},
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
                    ],
                )
            ],
        ),
    ],
)
def test_what_a_user_says(content: Any, messages: list[Any]) -> None:
    assert [(each["role"], each["content"]) for each in parsed(content).messages] == messages


def test_what_the_assistant_said() -> None:
    [message] = parsed([*THINKING, TEXT, TEXT, USE], "assistant").messages
    assert (message.content, message.thinking_blocks) == ("aa", THINKING)
    assert [(call.id, call.name, call.arguments) for call in message.tool_calls] == [("c1", "add", '{"a": 1}')]
    [message] = parsed([USE], "assistant").messages
    assert (message.content, message.thinking_blocks) == (None, None)
    assert parsed("hi", "assistant").messages[0].content == "hi"


@pytest.mark.parametrize(
    ("asked", "parameters"),
    [
        ({"max_tokens": 5, "temperature": 0, "top_k": 3}, {"max_tokens": 5, "temperature": 0, "top_k": 3}),
        ({"stop_sequences": ["a"]}, {"stop": ["a"]}),
        ({"stop_sequences": [], "tool_choice": None}, {}),
        ({"tool_choice": {"type": "any"}}, {"tool_choice": "required"}),
        ({"tool_choice": {"type": "none"}}, {"tool_choice": "none"}),
        ({"tool_choice": {"type": "any", "disable_parallel_tool_use": False}}, {"tool_choice": "required"}),
        ({"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, {"tool_choice": "auto", "parallel_tool_calls": False}),
        ({"tool_choice": {"type": "tool", "name": "add"}}, {"tool_choice": {"type": "function", "function": {"name": "add"}}}),
        ({"thinking": {"type": "enabled", "budget_tokens": 5}}, {"thinking": {"type": "enabled", "budget_tokens": 5}}),
    ],
)
def test_parameters_as_chat_completions_spell_them(asked: dict[str, Any], parameters: dict[str, Any]) -> None:
    assert parsed("hi", **asked).sampling_args == parameters


@pytest.mark.parametrize(("system", "said"), [("Be brief.", ["Be brief."]), ([TEXT, TEXT], ["a\na"]), ("", []), (None, [])])
def test_the_system_prompt_comes_first(system: Any, said: list[str]) -> None:
    assert [each["content"] for each in parsed("hi", system=system).messages] == [*said, "hi"]


def test_tools() -> None:
    tools = [
        {"name": "add", "input_schema": {"type": "object"}, "description": "Add."},
        {"name": "stop", "input_schema": {}, "description": None},
    ]
    request = parsed("hi", tools=tools, stream=True, account="x")
    assert [(tool.name, tool.description) for tool in request.tools] == [("add", "Add."), ("stop", "")]
    assert (request.stream, request.set_aside) == (True, ("account",))


@pytest.mark.parametrize(("content", "role"), [([{"type": "document"}], "user"), ([{"type": "server_tool_use"}], "assistant")])
def test_blocks_that_are_not_understood(content: Any, role: str) -> None:
    with pytest.raises(ValueError, match=content[0]["type"]):
        parsed(content, role)


@pytest.mark.parametrize(
    ("message", "blocks", "reason"),
    [
        (AssistantMessage("a"), [TEXT], "end_turn"),
        (AssistantMessage(""), [{"type": "text", "text": ""}], "end_turn"),
        (AssistantMessage("a", thinking_blocks=THINKING), [*THINKING, TEXT], "end_turn"),
        (AssistantMessage(None, tool_calls=[ToolCall("c1", "add", '{"a": 1}')]), [USE], "tool_use"),
        (AssistantMessage(None, tool_calls=[ToolCall("c1", "add", "")]), [{**USE, "input": {}}], "tool_use"),
        (AssistantMessage(None, tool_calls=[ToolCall("c1", "add", "{")]), [{**USE, "input": {"arguments": "{"}}], "tool_use"),
        (AssistantMessage(None, tool_calls=[ToolCall("c1", "add", "[1]")]), [{**USE, "input": {"arguments": [1]}}], "tool_use"),
        (
            AssistantMessage("a", tool_calls=[ToolCall("c1", "add", '{"a": 1}'), ToolCall("c2", "stop", "null")]),
            [TEXT, USE, {"type": "tool_use", "id": "c2", "name": "stop", "input": {"arguments": None}}],
            "tool_use",
        ),
        (ResponseMessage("a", finish_reason="length", is_truncated=True), [TEXT], "max_tokens"),
        (ResponseMessage("a", finish_reason="content_filter", is_truncated=False), [TEXT], "end_turn"),
        (ResponseMessage("a", tool_calls=[ToolCall("c1", "add", '{"a": 1}')], finish_reason="stop"), [TEXT, USE], "end_turn"),
    ],
)
def test_answers(message: Any, blocks: list[Any], reason: str) -> None:
    answer = MESSAGES.answer(Response("r1", 0, "m", Usage(3, 0, 5, 8), message))
    assert (answer["id"], answer["content"], answer["stop_reason"]) == ("r1", blocks, reason)
    assert answer["usage"] == {"input_tokens": 3, "output_tokens": 5}
    assert MESSAGES.answer(Response("", 0, "m", None, message))["usage"] == {"input_tokens": 0, "output_tokens": 0}
