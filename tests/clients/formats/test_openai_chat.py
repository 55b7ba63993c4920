"""Messages as chat completions have them, and what is made of each answer."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
import pytest
from openai.types.chat import ChatCompletion

from tests.clients.canned_server import COMPLETION, completion
from vfgym.clients.formats.openai_chat import (
    as_fields,
    check_completion,
    is_streamed,
    native_message,
    read_completion,
    request_headers,
    split_sampling_args,
    unix_time,
)
from vfgym.errors import EmptyModelResponseError, InvalidModelResponseError, OverlongPromptError
from vfgym.messages import AssistantMessage, Response, ResponseTokens, SystemMessage, TextMessage, ToolCall, ToolMessage, UserMessage

AUDIO = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}


def read(answer: Any) -> Response:
    check_completion(answer)
    return read_completion(answer, lambda field, value: None, "asked")


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
CALL = ToolCall("c1", "add", '{"a": 1}')
NATIVE_CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}


@pytest.mark.parametrize(
    ("message", "native"),
    [
        (SystemMessage("Be kind."), {"role": "system", "content": "Be kind."}),
        (SystemMessage("Be kind.", role="developer"), {"role": "developer", "content": "Be kind."}),
        (UserMessage("Grüße 👋 \u2028"), {"role": "user", "content": "Grüße 👋 \u2028"}),
        (UserMessage("hi", name="ann"), {"role": "user", "content": "hi", "name": "ann"}),
        (TextMessage("Once"), {"role": "user", "content": "Once"}),
        (UserMessage([IMAGE]), {"role": "user", "content": [IMAGE]}),
        (AssistantMessage("yes"), {"role": "assistant", "content": "yes"}),
        (AssistantMessage(""), {"role": "assistant", "content": ""}),
        (AssistantMessage("yes", tool_calls=[]), {"role": "assistant", "content": "yes"}),
        (AssistantMessage(None, tool_calls=[CALL]), {"role": "assistant", "content": None, "tool_calls": [NATIVE_CALL]}),
        (
            AssistantMessage("so", reasoning_content="Hm.", thinking_blocks=[{"type": "thinking", "thinking": "Hm.", "signature": "x"}]),
            {"role": "assistant", "content": "so", "reasoning_content": "Hm."},
        ),
        (AssistantMessage(None, reasoning_content="Hm."), {"role": "assistant", "content": "", "reasoning_content": "Hm."}),
        (AssistantMessage("so", native_output={"api": "responses", "items": []}), {"role": "assistant", "content": "so"}),
        (AssistantMessage("so", prefix=True), {"role": "assistant", "content": "so", "prefix": True}),
        (ToolMessage("2", tool_call_id="c1"), {"role": "tool", "content": "2", "tool_call_id": "c1"}),
        (ToolMessage([IMAGE], tool_call_id="c1"), {"role": "tool", "content": [IMAGE], "tool_call_id": "c1"}),
    ],
)
def test_each_kind_of_message(message: Any, native: dict[str, Any]) -> None:
    assert native_message(message) == native


@pytest.mark.parametrize(
    ("answer", "field", "expected"),
    [
        (completion({"content": "a", "reasoning": "r1", "reasoning_content": "r2"}), "reasoning_content", "r1"),
        (completion({"content": "a", "reasoning_content": "r2"}), "reasoning_content", "r2"),
        (completion({"content": "a", "reasoning_details": "r3"}), "reasoning_content", "r3"),
        (
            completion({"content": "a", "reasoning": None, "reasoning_details": [{"text": "r"}, {"summary": "4"}]}),
            "reasoning_content",
            "r4",
        ),
        (completion({"content": "a", "reasoning_details": [{"text": "r"}]}), "reasoning_details", [{"text": "r"}]),
        (completion({"content": "a"}), "reasoning_content", None),
        (completion({"content": None, "reasoning": "only"}), "reasoning_content", "only"),
        (completion({"content": "a", "reasoning": "", "reasoning_content": "r2"}), "reasoning_content", "r2"),
        (completion({"content": None, "refusal": "No."}), "content", "No."),
        (completion({"content": "", "refusal": "No."}), "content", "No."),
        (completion({"content": [], "refusal": "No."}), "content", "No."),
        (completion({"content": "Yes.", "refusal": "No."}), "content", "Yes."),
        (completion({"content": ["x", {"text": None}, {"text": "a"}]}), "content", "a"),
        (completion({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), "content", "ab"),
        (completion({"content": "a", "tool_calls": []}), "tool_calls", None),
        (completion({"content": None, "tool_calls": [{**NATIVE_CALL, "index": 0}]}), "tool_calls", [NATIVE_CALL]),
        (
            completion({"content": None, "tool_calls": [{**NATIVE_CALL, "extra": None}, {**NATIVE_CALL, "id": "c2"}]}),
            "tool_calls",
            [NATIVE_CALL, {**NATIVE_CALL, "id": "c2"}],
        ),
        (completion(finish_reason="stop"), "is_truncated", False),
        (completion(finish_reason="stop"), "finish_reason", "stop"),
        (completion(finish_reason="length"), "finish_reason", "length"),
        (completion(finish_reason="length"), "is_truncated", True),
        (completion(finish_reason="tool_calls"), "finish_reason", "tool_calls"),
        (completion(finish_reason="content_filter"), "finish_reason", None),
    ],
)
def test_each_field_of_an_answer(answer: Any, field: str, expected: Any) -> None:
    message = read(answer).message
    assert getattr(message, field, message.get(field)) == expected


def test_malformed_tool_calls_are_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    bad = [
        {"id": None, "type": "function", "function": {"name": "add", "arguments": "{}"}},
        {"id": "c2", "type": "function", "function": {"name": None, "arguments": "{}"}},
        {"id": "c2", "type": "function", "function": {"name": "add", "arguments": {"a": 1}}},
        {"id": "c3", "type": "function"},
        "add",
    ]
    assert read(completion({"content": "", "tool_calls": [*bad, NATIVE_CALL]})).message.tool_calls == [NATIVE_CALL]
    assert "5 malformed tool call(s)" in caplog.text
    with pytest.raises(EmptyModelResponseError):
        read(completion({"content": "", "tool_calls": bad}))


def test_token_data() -> None:
    experts = np.arange(12, dtype=np.int32).reshape(3, 2, 2)
    packed = {"data": base64.b85encode(experts.tobytes()).decode(), "shape": [3, 2, 2]}
    logprobs = {"content": [{"token": "a", "logprob": -0.5, "top_logprobs": []}, {"token": "b", "logprob": -1.5, "top_logprobs": []}]}
    response = read(completion(prompt_token_ids=[1, 2, 3], token_ids=[4, 5], logprobs=logprobs, routed_experts=packed))
    assert response.tokens == ResponseTokens([1, 2, 3], [0, 0, 0], [4, 5], [1, 1], [-0.5, -1.5], experts.tolist())


@pytest.mark.parametrize("missing", ["prompt_token_ids", "token_ids", "logprobs"])
def test_token_data_that_is_not_whole_is_none(missing: str) -> None:
    data: dict[str, Any] = {"prompt_token_ids": [1], "token_ids": [4], "logprobs": {"content": [{"logprob": -1.0}]}}
    assert read(completion(**data)).tokens == ResponseTokens([1], [0], [4], [1], [-1.0])
    assert read(completion(**{**data, missing: None})).tokens is None


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        ({**COMPLETION, "choices": []}, EmptyModelResponseError, "without choices"),
        ({**COMPLETION, "choices": None}, EmptyModelResponseError, "without choices"),
        ({"error": {"message": "upstream is down", "code": 502}}, EmptyModelResponseError, "upstream is down"),
        ({**COMPLETION, "choices": COMPLETION["choices"] * 2}, InvalidModelResponseError, "gave 2"),
        (completion({"content": None}), EmptyModelResponseError, "without text"),
        (completion({"content": ""}), EmptyModelResponseError, "without text"),
        ({"error": {"message": "This endpoint's maximum context length is 9 tokens", "code": 400}}, OverlongPromptError, "9 tokens"),
        ("<html>hello</html>", InvalidModelResponseError, "/v1"),
        (None, EmptyModelResponseError, "no response"),
        ({**COMPLETION, "choices": [{"finish_reason": "stop"}]}, EmptyModelResponseError, "without a message"),
    ],
)
def test_answers_that_cannot_be_used(answer: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        check_completion(answer)
    assert type(caught.value) is error


@pytest.mark.parametrize(
    ("fields", "made"),
    [
        ({}, ("chatcmpl-7", 1700000000, "served-model")),
        ({"id": 7, "created": "now", "model": ""}, ("", 0, "asked")),
        ({"id": None, "created": 0, "model": None}, ("", 0, "asked")),
        ({"created": 5.9}, ("chatcmpl-7", 5, "served-model")),
    ],
)
def test_who_answered_when(fields: dict[str, Any], made: tuple[str, int, str]) -> None:
    response = read(completion(**fields))
    assert (response.id, response.created, response.model) == made


@pytest.mark.parametrize("created", [math.nan, math.inf, -1, 2**53, 10**400, "now", None])
def test_a_time_that_cannot_be_is_none(created: Any) -> None:
    assert unix_time(created) == 0


@pytest.mark.parametrize(
    ("asked", "parameters", "options"),
    [
        ({}, {}, {}),
        ({"temperature": 0, "top_p": None, "stop": []}, {"temperature": 0, "stop": []}, {}),
        ({"max_tokens": 0}, {"max_completion_tokens": 0}, {}),
        ({"max_tokens": 5, "max_completion_tokens": 6}, {"max_completion_tokens": 6}, {}),
        ({"max_tokens": None}, {}, {}),
        (
            {"n": 1, "extra_headers": {"A": "1"}, "extra_query": {"q": 0}, "extra_body": {"x": 1}, "timeout": 0},
            {"n": 1},
            {"extra_headers": {"A": "1"}, "extra_query": {"q": 0}, "extra_body": {"x": 1}, "timeout": 0},
        ),
    ],
)
def test_parameters_and_options_are_split(asked: dict[str, Any], parameters: dict[str, Any], options: dict[str, Any]) -> None:
    before = dict(asked)
    assert split_sampling_args(asked) == (parameters, options)
    assert asked == before


def test_the_nearer_header_wins() -> None:
    assert request_headers({"extra_headers": {"A": "1", "B": "1"}}, {"extra_headers": {"B": "2"}}) == {"A": "1", "B": "2"}
    assert request_headers({"extra_headers": None}, {}) == {}


@pytest.mark.parametrize(
    ("asked", "streamed"),
    [({}, False), ({"stream": True}, True), ({"stream": False, "extra_body": {"stream": True}}, True), ({"extra_body": None}, False)],
)
def test_whether_an_answer_comes_in_pieces(asked: dict[str, Any], streamed: bool) -> None:
    assert is_streamed(asked) is streamed


def test_an_sdks_response_is_read_as_its_fields() -> None:
    made = ChatCompletion.model_validate(COMPLETION)
    assert read(as_fields(made)).message == read(COMPLETION).message
    assert as_fields(COMPLETION) is COMPLETION
