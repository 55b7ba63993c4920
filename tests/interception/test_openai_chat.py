"""Chat completions and completions as a server speaks them: what programs ask, and what they are answered."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym.interception.openai_chat import CHAT, TEXT
from vfgym.messages import AssistantMessage, Response, ResponseMessage, TextMessage, ToolCall, Usage, UserMessage

TOOL = {"type": "function", "function": {"name": "add", "description": "", "parameters": {"type": "object"}}}
CALL = ToolCall("c1", "add", "{}")


def test_a_chat_request() -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "tools": [TOOL], "temperature": 0, "stream": True, "account": "x"}
    request = CHAT.parse({**body, "stream_options": {"include_usage": True}})
    assert (request.messages, [tool.name for tool in request.tools]) == ([UserMessage("hi")], ["add"])
    assert (request.sampling_args, request.stream, request.stream_usage, request.set_aside) == (
        {"temperature": 0},
        True,
        True,
        ("account",),
    )
    bare = CHAT.parse({"messages": body["messages"], "tools": None, "functions": [], "stream_options": None})
    assert (bare.tools, bare.stream, bare.stream_usage, bare.set_aside) == ([], False, False, ())


@pytest.mark.parametrize("name", ["functions", "function_call"])
def test_earlier_forms_of_tools_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        CHAT.parse({"messages": [], name: [1]})


def test_a_text_request() -> None:
    request = TEXT.parse({"prompt": "", "max_tokens": 5, "stream": False})
    assert (request.messages, request.sampling_args, request.stream) == ([TextMessage("")], {"max_tokens": 5}, False)
    request = TEXT.parse({"prompt": "a", "stream": 1, "stream_options": {"include_usage": True}, "account": "x"})
    assert (request.messages, request.stream, request.stream_usage, request.set_aside) == ([TextMessage("a")], True, True, ("account",))
    assert not TEXT.parse({"prompt": "a", "stream_options": {"include_usage": False}}).stream_usage
    for wrong in (["a"], [1], None):
        with pytest.raises(ValueError, match="one text"):
            TEXT.parse({"prompt": wrong})


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        (None, None),
        (Usage(3, 0, 5, 9), {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 9}),
        (Usage(3, 0, 5, 0), {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}),
    ],
)
def test_answers(usage: Usage | None, told: Any) -> None:
    response = Response("r1", 7, "m", usage, ResponseMessage(None, tool_calls=[CALL], finish_reason="length", is_truncated=True))
    assert CHAT.answer(response) == {
        **{"id": "r1", "object": "chat.completion", "created": 7, "model": "m", "usage": told},
        "choices": [
            {
                **{"index": 0, "finish_reason": "length", "logprobs": None},
                "message": {"role": "assistant", "content": None, "tool_calls": [CALL]},
            }
        ],
    }
    said = Response("", 7, "m", usage, AssistantMessage("hi"))
    assert TEXT.answer(said) == {
        **{"id": "rollout", "object": "text_completion", "created": 7, "model": "m", "usage": told},
        "choices": [{"index": 0, "text": "hi", "finish_reason": "stop", "logprobs": None}],
    }
