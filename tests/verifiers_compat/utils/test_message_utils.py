"""Messages of the rollout API's helpers: normalisation of raw forms, printable and plain forms, a response's turn."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verifiers_compat.messages import AssistantMessage, SystemMessage, TextMessage, ToolMessage, UserMessage
from verifiers_compat.types import Response, ResponseTokens
from verifiers_compat.utils.message_utils import (
    concat_messages,
    format_messages,
    from_raw_content_part,
    from_raw_message,
    maybe_normalize_messages,
    message_to_printable,
    messages_to_printable,
    normalize_messages,
    sanitize_tool_calls,
    serialize_message_for_output,
    serialize_messages_for_output,
)
from verifiers_compat.utils.response_utils import parse_response_message, parse_response_tokens
from verifiers_compat.utils.tool_utils import convert_func_to_tool_def, is_valid_tool_content_parts

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ({"role": "system", "content": "x"}, SystemMessage),
        ({"role": "user", "content": "x"}, UserMessage),
        ({"role": "assistant", "content": "x"}, AssistantMessage),
        ({"role": "tool", "tool_call_id": "c", "content": "x"}, ToolMessage),
        ({"role": "text", "content": "x"}, TextMessage),
        (SimpleNamespace(role="user", content="x"), UserMessage),
    ],
)
def test_the_role_decides_the_class(raw: Any, kind: type) -> None:
    message = from_raw_message(raw)
    assert type(message) is kind
    assert (message["content"], message.content, message.get("content"), "content" in message) == ("x", "x", "x", True)


def test_a_text_is_one_text_message() -> None:
    assert normalize_messages("Once upon") == [TextMessage("Once upon")]


def test_messages_can_be_written_to() -> None:
    """Environments shorten earlier messages in place."""
    message = normalize_messages([{"role": "user", "content": "long"}])[0]
    message["content"] = "short"
    message.content += "er"
    assert message == {"role": "user", "content": "shorter"}


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}, ("1", "f", '{"a": 1}')),
        ({"id": "1", "name": "f", "arguments": '{"a": 1}'}, ("1", "f", '{"a": 1}')),
        ({"id": "1", "name": "f", "arguments": {"a": 1}}, ("1", "f", '{"a": 1}')),
        ({"id": "1", "name": "f", "arguments": None}, ("1", "f", "{}")),
        ({"function": {"name": "f", "arguments": "{}"}}, ("f", "f", "{}")),
        (json.dumps({"id": "1", "name": "f", "arguments": "{}"}), ("1", "f", "{}")),
    ],
)
def test_tool_calls_in_every_form(call: Any, expected: tuple[str, str, str]) -> None:
    (read,) = from_raw_message({"role": "assistant", "content": None, "tool_calls": [call]}).tool_calls
    assert (read.id, read.name, read.arguments) == expected


def test_content_parts() -> None:
    """Known types are checked, others stay as they are."""
    assert from_raw_content_part({"type": "text", "text": "x"}) == {"type": "text", "text": "x"}
    assert from_raw_content_part({"type": "video", "url": "u"}) == {"type": "video", "url": "u"}
    for bad in ({"type": "text"}, {"text": "x"}, {"type": "image_url", "image_url": "u"}, "x"):
        with pytest.raises(ValueError, match="content part 0"):
            from_raw_content_part(bad)


@pytest.mark.parametrize(
    ("raw", "error", "told"),
    [
        ([{"role": "wizard", "content": "x"}], ValueError, r"prompt\[0\].*role='wizard'"),
        ([{"role": "user"}], ValueError, r"prompt\[0\].*content"),
        ([{"role": "tool", "content": "x"}], ValueError, "tool_call_id"),
        (7, TypeError, "prompt must be a list of messages"),
        (None, TypeError, "prompt must be a list of messages"),
        ([{"role": "user", "content": "x"}, "hi"], TypeError, r"prompt\[1\] must be a message"),
        ([3], TypeError, r"prompt\[0\] must be a message"),
    ],
)
def test_what_is_no_message(raw: Any, error: type[Exception], told: str) -> None:
    for normalize in (normalize_messages, maybe_normalize_messages):
        with pytest.raises(error, match=told):
            normalize(raw, "prompt")


def test_a_list_of_messages_is_left_alone_where_it_may_be() -> None:
    messages = [UserMessage("x")]
    assert maybe_normalize_messages(messages) is messages
    assert normalize_messages(messages) == messages
    assert normalize_messages(messages) is not messages
    assert concat_messages([messages, {"role": "assistant", "content": "y"}, "z"]) == [
        UserMessage("x"),
        AssistantMessage("y"),
        TextMessage("z"),
    ]


def test_printable_messages_say_what_cannot_be_shown() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "Look:"}, IMAGE, AUDIO, {"type": "video", "url": "u"}]}
    assert message_to_printable(message) == {"role": "user", "content": "Look:\n\n[image]\n\n[audio]\n\n[video]"}
    assert messages_to_printable([message, {"role": "assistant", "content": "I see."}])[1] == {"role": "assistant", "content": "I see."}


CALLING = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "name": "f", "arguments": '{"ä": 1}'}], "name": None}


def test_serialized_messages_are_plain_json() -> None:
    """Tool calls are dicts, None is left out, and reading them back gives the same messages."""
    plain = serialize_message_for_output(CALLING)
    assert plain == {
        "role": "assistant",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"ä": 1}'}}],
    }
    assert {type(plain), type(plain["tool_calls"][0])} == {dict}
    messages = [UserMessage([{"type": "text", "text": "x"}, IMAGE]), from_raw_message(CALLING), ToolMessage("3", tool_call_id="1")]
    assert normalize_messages(json.loads(json.dumps(serialize_messages_for_output(messages)))) == messages


def test_sanitized_tool_calls_are_text_that_can_be_read_back() -> None:
    (message,) = sanitize_tool_calls([CALLING])
    assert [type(call) for call in message["tool_calls"]] == [str]
    assert normalize_messages([message]) == normalize_messages([CALLING])


TEXT = st.text(st.characters(exclude_categories=["C"]))  # a terminal's text has no control characters


@given(st.lists(st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant", "text"]), "content": TEXT})))
def test_any_text_survives(raw: list[dict[str, str]]) -> None:
    assert serialize_messages_for_output(raw) == raw
    for message in raw:
        assert message["content"] in format_messages(raw).plain


def test_formatted_messages_show_reasoning_and_calls() -> None:
    text = format_messages([{"role": "user", "content": "[bold]?"}, {**CALLING, "reasoning_content": "Hm."}]).plain
    assert text == 'user: [bold]?\n\nassistant: [reasoning] Hm.\n\n[tool call] f({"ä": 1})'
    assert format_messages("plain").plain == "plain"


def _response(tokens: ResponseTokens | None = None) -> Response:
    return Response("r", 0, "m", None, {"content": "hi", "finish_reason": "stop", "tokens": tokens})  # type: ignore[arg-type]


async def test_a_response_is_one_assistant_message() -> None:
    assert await parse_response_message(_response()) == [{"role": "assistant", "content": "hi"}]
    assert type((await parse_response_message(_response()))[0]) is AssistantMessage


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (None, ([1, 2, 3], [4, 5], False, False)),
        (5, ([1, 2, 3], [4, 5], False, False)),
        (4, ([1, 2, 3], [4], False, True)),
        (2, ([1, 2], [], True, True)),
    ],
)
async def test_token_data_is_cut_to_the_limit(limit: int | None, expected: tuple[Any, ...]) -> None:
    tokens = await parse_response_tokens(_response(ResponseTokens([1, 2, 3], [0, 0, 0], [4, 5], [1, 1], [-0.1, -0.2])), limit)
    assert tokens is not None
    assert (tokens["prompt_ids"], tokens["completion_ids"], tokens["overlong_prompt"], tokens["is_truncated"]) == expected
    assert len(tokens["completion_logprobs"]) == len(tokens["completion_mask"]) == len(tokens["completion_ids"])
    assert await parse_response_tokens(_response(), limit) is None


def test_a_function_as_a_tool() -> None:
    def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    tool = convert_func_to_tool_def(add)
    assert (tool.name, tool.description, tool.parameters["required"]) == ("add", "Add two numbers.", ["a"])


@pytest.mark.parametrize(
    ("value", "is_valid"),
    [
        ([{"type": "text", "text": "x"}, IMAGE], True),
        ([], False),
        ([{"type": "text"}], False),
        ([{"type": "record", "record": 1}], False),
        ("x", False),
        ({"type": "text", "text": "x"}, False),
    ],
)
def test_what_a_tool_may_return_as_content(value: Any, is_valid: bool) -> None:
    assert is_valid_tool_content_parts(value) is is_valid
