"""Messages: normalisation of raw forms, printable and plain forms."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verifiers_compat.messages import AssistantMessage, SystemMessage, TextMessage, ToolMessage, UserMessage
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


def test_texts_and_lists_of_messages_become_messages() -> None:
    assert normalize_messages("Once upon") == [TextMessage("Once upon")]
    messages = [UserMessage("x")]
    assert maybe_normalize_messages(messages) is messages
    assert normalize_messages(messages) == messages
    assert normalize_messages(messages) is not messages
    assert concat_messages([messages, {"role": "assistant", "content": "y"}, "z"]) == [
        UserMessage("x"),
        AssistantMessage("y"),
        TextMessage("z"),
    ]


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


def test_printable_messages_say_what_cannot_be_shown() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "Look:"}, IMAGE, AUDIO, {"type": "video", "url": "u"}]}
    assert message_to_printable(message) == {"role": "user", "content": "Look:\n\n[image]\n\n[audio]\n\n[video]"}
    assert messages_to_printable([message, {"role": "assistant", "content": "I see."}])[1] == {"role": "assistant", "content": "I see."}


CALLING = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "name": "f", "arguments": '{"ä": 1}'}], "name": None}


def test_serialized_messages_are_plain_json_and_sanitized_calls_text() -> None:
    plain = serialize_message_for_output(CALLING)
    assert plain == {
        "role": "assistant",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"ä": 1}'}}],
    }
    assert {type(plain), type(plain["tool_calls"][0])} == {dict}
    messages = [UserMessage([{"type": "text", "text": "x"}, IMAGE]), from_raw_message(CALLING), ToolMessage("3", tool_call_id="1")]
    assert normalize_messages(json.loads(json.dumps(serialize_messages_for_output(messages)))) == messages
    assert serialize_messages_for_output("") == [{"role": "text", "content": ""}]
    assert serialize_messages_for_output(iter([CALLING, messages[2]]))[1] == {"role": "tool", "content": "3", "tool_call_id": "1"}
    (message,) = sanitize_tool_calls([CALLING])
    assert [type(call) for call in message["tool_calls"]] == [str]
    assert normalize_messages([message]) == normalize_messages([CALLING])


TEXT = st.text(st.characters(exclude_categories=["C"]))  # a terminal's text has no control characters


@settings(max_examples=15)
@given(st.lists(st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant", "text"]), "content": TEXT}), max_size=5))
def test_any_text_survives(raw: list[dict[str, str]]) -> None:
    assert serialize_messages_for_output(raw) == raw
    for message in raw:
        assert message["content"] in format_messages(raw).plain


def test_formatted_messages_show_reasoning_and_calls() -> None:
    text = format_messages([{"role": "user", "content": "[bold]?"}, {**CALLING, "reasoning_content": "Hm."}]).plain
    assert text == 'user: [bold]?\n\nassistant: [reasoning] Hm.\n\n[tool call] f({"ä": 1})'
    assert format_messages("plain").plain == "plain"


def test_styles_say_who_speaks_and_every_call_is_shown() -> None:
    calls = [{"id": str(number), "name": name, "arguments": "{}"} for number, name in enumerate(("f", "g"))]
    messages = [
        {"role": "system", "content": "a"},
        {"role": "user", "content": "b"},
        {"role": "assistant", "content": "", "reasoning_content": "", "tool_calls": calls},
        {"role": "tool", "content": [], "tool_call_id": "0"},
    ]
    text = format_messages(messages)
    assert text.plain == "system: a\n\nuser: b\n\nassistant: \n[tool call] f({})\n[tool call] g({})\n\ntool: "
    styles = {str(span.style) for span in text.spans}
    assert styles >= {"bold dim", "dim", "bold cyan", "cyan", "bold green", "green", "bold yellow"}
    assert [str(format_messages([{"role": "text", "content": "x"}]).spans[0].style), format_messages([]).plain] == ["bold cyan", ""]


@pytest.mark.parametrize(
    ("part", "kept"),
    [
        ({"type": "input_audio", "input_audio": {"data": "A A\n==", "format": "WAV"}}, AUDIO),
        ({"type": "input_audio", "input_audio": {"data": " ", "format": "wav"}}, {"type": "text", "text": "[audio]"}),
        (IMAGE, IMAGE),
    ],
)
def test_parts_are_kept_as_results_hold_them(part: dict[str, Any], kept: dict[str, Any]) -> None:
    """What was given stays as it was."""
    content = ({"type": "text", "text": ""}, part)
    message = {"role": "user", "content": content}
    before = json.dumps(message)
    assert serialize_message_for_output(message) == {"role": "user", "content": [{"type": "text", "text": ""}, kept]}
    assert serialize_messages_for_output([message, message])[1]["content"][1] == kept
    assert json.dumps(message) == before


def test_what_is_printable_when_there_is_nothing() -> None:
    assert message_to_printable({"role": "user", "content": []}) == {"role": "user", "content": ""}
    assert message_to_printable({"role": "assistant", "content": ""}) == {"role": "assistant", "content": ""}
    assert "content" not in message_to_printable({"role": "assistant", "content": None})
    assert (messages_to_printable("x"), messages_to_printable([])) == ([{"role": "text", "content": "x"}], [])
    assert from_raw_content_part(SimpleNamespace(model_dump=lambda exclude_none: {"type": "text", "text": ""})) == {
        "type": "text",
        "text": "",
    }
