"""What passes of the messages of a program: fields and content that are named, and what it was given."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym.interception.named_messages import NamedMessages
from vfgym.messages import AssistantMessage, ResponseMessage, ToolCall, UserMessage

GIVEN = {"api": "openai_responses", "items": [{"type": "reasoning", "id": "rs_1"}]}
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}}
PARTS = [
    {"type": "text", "text": ""},
    {"type": "refusal", "refusal": "No."},
    IMAGE,
    {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
    {"type": "file", "file": {"file_data": "data:a", "filename": "a"}},
    {"type": "file", "file": {"file_url": "HTTPS://example.com/a"}},
]
THINKING = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "x"}]


def test_what_is_named_passes_as_the_same_message() -> None:
    messages = [
        UserMessage(PARTS, name="ann"),
        AssistantMessage("a", reasoning_content="hm", thinking_blocks=THINKING, tool_calls=[ToolCall("c", "add", "{")]),
    ]
    passed, aside = NamedMessages().named(messages)
    assert aside == ()
    assert all(one is other for one, other in zip(passed, messages, strict=True))


def test_what_a_program_was_given_passes_as_it_came_and_only_so() -> None:
    named = NamedMessages()
    named.note(ResponseMessage("a", native_output=GIVEN, finish_reason="stop", is_truncated=False))
    [passed], aside = named.named([AssistantMessage("b", native_output=GIVEN)])
    assert (passed["native_output"], aside) == (GIVEN, ())
    for other in ({**GIVEN, "api": "other"}, {**GIVEN, "items": []}):
        [passed], aside = named.named([AssistantMessage("a", native_output=other)])
        assert ("native_output" in passed, aside) == (False, ("native_output",))
    [passed], aside = named.named([AssistantMessage("a", other_name=GIVEN)])
    assert aside == ("other_name",)
    _, aside = NamedMessages().named([AssistantMessage("a", native_output=GIVEN)])
    assert aside == ("native_output",)


def test_names_that_do_not_pass_are_told_sorted_and_once_and_nulls_not_at_all() -> None:
    messages = [
        UserMessage([{**IMAGE, "cache_control": {}}, {"type": "image_url", "image_url": {"url": "data:a", "zoom": 1}}], b=1, none=None),
        UserMessage("x", b=2, a=0),
    ]
    passed, aside = NamedMessages().named(messages)
    assert aside == ("a", "b", "cache_control", "zoom")
    assert passed[0]["content"] == [IMAGE, {"type": "image_url", "image_url": {"url": "data:a"}}]
    both = [*THINKING, {"type": "redacted_thinking", "data": "x", "thinking": "hm", "mark": 1}]
    [passed], aside = NamedMessages().named([AssistantMessage("a", thinking_blocks=both, name=None)])
    assert (passed["thinking_blocks"], aside) == ([*THINKING, THINKING[1]], ("mark", "thinking"))
    parts = [{"type": "image_url", "image_url": {"url": "http://a"}}, {"type": "text", "text": "a", "mark": 1}]
    [passed], aside = NamedMessages().named([UserMessage(parts)])
    assert (passed["content"], aside) == ([parts[0], {"type": "text", "text": "a"}], ("mark",))
    assert parts[1]["mark"] == 1
    named = NamedMessages()
    named.note(ResponseMessage("a", finish_reason="stop", is_truncated=True))
    assert named.named([AssistantMessage("a", is_truncated=True)])[1] == ("is_truncated",)


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ({"type": "document"}, "'document' does not pass"),
        ({"type": "text", "text": 7}, "must have a text"),
        ({"type": "refusal"}, "must have a text"),
        ({"type": "image_url", "image_url": "https://a"}, "must have an object"),
        ({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}, "must begin with"),
        ({"type": "image_url", "image_url": {"url": 7}}, "url of image_url must be a text, got int"),
        ({"type": "input_audio", "input_audio": {"data": None}}, "data of input_audio"),
        ({"type": "file", "file": {"file_id": "f1"}}, "account's"),
        ({"type": "file", "file": {"file_url": "/etc/passwd"}}, "must begin with"),
        (
            {"type": "file", "file": {"file_data": "x", "file_url": "ftp://a"}},
            "the URL of file must begin with one of data:, http://, https://",
        ),
        ({"type": "file", "file": {}}, "account's"),
    ],
)
def test_content_that_does_not_pass(part: dict[str, Any], says: str) -> None:
    message = UserMessage._of({"role": "user", "content": [part]})  # some are refused before, too
    with pytest.raises(ValueError, match=says):
        NamedMessages().named([message])


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        *[({name: 7}, f"{name} of a message must be a text, got int") for name in ("name", "tool_call_id", "reasoning_content")],
        ({"thinking_blocks": [THINKING[0], {"type": "redacted_thinking", "data": None}]}, "data of redacted_thinking must be a text"),
        ({"tool_calls": [ToolCall("c", "add", "{}"), ToolCall("d", "add", '{"a": Infinity}')]}, "Infinity"),
        ({"thinking_blocks": ["hm"]}, "block of thinking"),
        ({"thinking_blocks": [{"type": "other"}]}, "block of thinking"),
        ({"thinking_blocks": [{"type": "thinking", "thinking": 7}]}, "thinking of thinking must be a text"),
        ({"tool_calls": [ToolCall("c", "add", '{"a": NaN}')]}, "NaN"),
    ],
)
def test_answers_that_do_not_pass(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        NamedMessages().named([AssistantMessage("a", **fields)])
