"""OpenAI's Responses API as a server speaks it: items as messages, parameters, and answers as items."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym.interception.openai_responses import RESPONSES
from vfgym.messages import AssistantMessage, Response, ResponseMessage, ToolCall, Usage

SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}
THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
CALLED = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "1"}


def said(*items: Any) -> list[tuple[Any, ...]]:
    """Return what messages items stand for, as their role, content, reasoning and number of calls."""
    messages = RESPONSES.parse({"input": list(items)}).messages
    return [(each["role"], each["content"], each.get("reasoning_content"), len(each.get("tool_calls") or ())) for each in messages]


@pytest.mark.parametrize(
    ("items", "messages"),
    [
        ([{"role": "user", "content": "hi"}], [("user", "hi", None, 0)]),
        ([{"role": "developer", "content": "d"}], [("developer", "d", None, 0)]),
        ([SAID], [("assistant", "a", None, 0)]),
        ([{**SAID, "content": "a"}], [("assistant", "a", None, 0)]),
        ([THOUGHT, SAID, CALLED, RESULT], [("assistant", "a", "hm", 1), ("tool", "1", None, 0)]),
        ([CALLED, CALLED, RESULT], [("assistant", None, None, 2), ("tool", "1", None, 0)]),
        ([SAID, SAID], [("assistant", "a", None, 0)] * 2),
        ([SAID, THOUGHT, SAID], [("assistant", "a", None, 0), ("assistant", "a", "hm", 0)]),
        ([THOUGHT, THOUGHT, SAID], [("assistant", "a", "hm\nhm", 0)]),
        (
            [SAID, {"role": "user", "content": "b"}, CALLED],
            [("assistant", "a", None, 0), ("user", "b", None, 0), ("assistant", None, None, 1)],
        ),
    ],
)
def test_the_items_of_one_answer_are_one_message(items: list[Any], messages: list[Any]) -> None:
    assert said(*items) == messages


def test_parts_of_content() -> None:
    url = "https://example.com/a.png"
    text, image = {"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": url}
    assert said({"role": "user", "content": [text]})[0][1] == "a"
    assert said({"role": "user", "content": [text, {**image, "detail": "low"}, image, {"type": "input_file", "file_data": "x"}]})[0][1] == [
        {"type": "text", "text": "a"},
        {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "file", "file": {"file_data": "x"}},
    ]


def test_instructions_come_first_and_a_text_is_said_by_the_user() -> None:
    messages = RESPONSES.parse({"input": "hi", "instructions": "Be brief."}).messages
    assert [(each["role"], each["content"]) for each in messages] == [("system", "Be brief."), ("user", "hi")]
    assert len(RESPONSES.parse({"input": "", "instructions": ""}).messages) == 1


@pytest.mark.parametrize(
    ("asked", "parameters"),
    [
        ({"max_output_tokens": 0}, {"max_completion_tokens": 0}),
        ({"tool_choice": "required"}, {"tool_choice": "required"}),
        ({"tool_choice": {"type": "function", "name": "add"}}, {"tool_choice": {"type": "function", "function": {"name": "add"}}}),
        ({"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning_effort": "low"}),
        ({"reasoning": None, "text": None}, {}),
        ({"text": {"verbosity": "low", "format": {"type": "text"}}}, {"verbosity": "low"}),
        ({"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
        (
            {"text": {"format": {"type": "json_schema", "name": "s", "schema": {}}}},
            {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {}}}},
        ),
        ({"temperature": 0, "store": True, "include": ["x"], "service_tier": "flex"}, {"temperature": 0}),
    ],
)
def test_parameters_as_chat_completions_spell_them(asked: dict[str, Any], parameters: dict[str, Any]) -> None:
    request = RESPONSES.parse({"input": "hi", **asked})
    assert (request.sampling_args, request.set_aside) == (parameters, ())


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        *[({name: "x"}, name) for name in ("previous_response_id", "conversation", "prompt", "background")],
        ({"input": [{"type": "item_reference", "id": "x"}]}, "item_reference"),
        ({"input": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input_audio"),
        ({"tools": [{"type": "web_search"}]}, "web_search"),
        ({"max_output_tokens": "9"}, "max_completion_tokens"),
        ({"tool_choice": "add"}, "tool_choice"),
    ],
)
def test_requests_that_are_refused(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        RESPONSES.parse({"input": "hi", **asked})


def test_tools_are_flat() -> None:
    tools = [{"type": "function", "name": "add", "description": "Add.", "parameters": {"type": "object"}, "strict": False}]
    one, bare = RESPONSES.parse({"input": "hi", "tools": [*tools, {"type": "function", "name": "stop", "parameters": None}]}).tools
    assert (one.name, one.description, one.parameters, one.strict) == ("add", "Add.", {"type": "object"}, False)
    assert (bare.name, bare.strict) == ("stop", None)


@pytest.mark.parametrize(
    ("message", "kinds", "status", "why"),
    [
        (AssistantMessage("a", reasoning_content="hm"), ["reasoning", "message"], "completed", None),
        (AssistantMessage(""), ["message"], "completed", None),
        (AssistantMessage(None, tool_calls=[ToolCall("c1", "add", "{}")]), ["function_call"], "completed", None),
        (ResponseMessage("a", finish_reason="length", is_truncated=True), ["message"], "incomplete", {"reason": "max_output_tokens"}),
        (ResponseMessage("a", finish_reason="stop", is_truncated=False), ["message"], "completed", None),
        (ResponseMessage("a", finish_reason="content_filter", is_truncated=False), ["message"], "incomplete", {"reason": "content_filter"}),
    ],
)
def test_answers(message: Any, kinds: list[str], status: str, why: Any) -> None:
    answer = RESPONSES.answer(Response("r1", 7, "m", Usage(3, 2, 5, 0), message))
    assert [item["type"] for item in answer["output"]] == kinds
    assert (answer["id"], answer["created_at"], answer["status"], answer["incomplete_details"]) == ("r1", 7, status, why)
    usage = answer["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (3, 5, 8)
    assert usage["output_tokens_details"] == {"reasoning_tokens": 2}
    assert RESPONSES.answer(Response("", 7, "m", None, message))["usage"] is None
    assert RESPONSES.answer(Response("r1", 7, "m", Usage(3, 2, 5, 9), message))["usage"]["total_tokens"] == 9


@pytest.mark.parametrize(("given", "name"), [("r1", "r1"), ("", "rollout")])
def test_the_items_of_an_answer_have_ids_of_their_own(given: str, name: str) -> None:
    calls = [ToolCall("c1", "add", '{"a": 1}'), ToolCall("c2", "stop", "{}")]
    message = ResponseMessage("a", reasoning_content="hm", tool_calls=calls, finish_reason="length", is_truncated=True)
    answer = RESPONSES.answer(Response(given, 7, "m", None, message))
    assert answer["id"] == name
    assert answer["output"] == [
        {"id": f"rs_{name}", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {
            **{"id": f"msg_{name}", "type": "message", "role": "assistant", "status": "incomplete"},
            "content": [{"type": "output_text", "text": "a", "annotations": [], "logprobs": []}],
        },
        *(
            {
                **{"id": f"fc_{name}_{number}", "type": "function_call", "status": "incomplete"},
                **{"call_id": call.id, "name": call.name, "arguments": call.arguments},
            }
            for number, call in enumerate(calls)
        ),
    ]
