"""Plain data: conversations as dicts, and what has no form in JSON."""

from __future__ import annotations

from typing import Any

import pytest

from verifiers_compat.v1.plain import NotSerializable, check_json, plain_message, plain_messages, system_messages
from vfgym.errors import ConfigurationError, InvalidMessage
from vfgym.messages import AssistantMessage, ToolCall, UserMessage


def test_conversations_in_any_form_are_plain() -> None:
    assert plain_messages("hi", "prompt") == [{"role": "user", "content": "hi"}]
    assert plain_messages("", "prompt") == [{"role": "user", "content": ""}]
    assert plain_messages([], "prompt") == []
    messages = plain_messages([UserMessage("a"), {"role": "assistant", "content": "b", "name": None}], "prompt")
    assert messages == [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert {type(message) for message in messages} == {dict}
    calls = plain_message(AssistantMessage(None, tool_calls=[ToolCall("c", "add", "{}")]))
    assert (calls["content"], calls.keys()) == (None, {"role", "content", "tool_calls"})
    with pytest.raises(InvalidMessage, match=r"told\[1\]"):
        plain_messages([{"role": "user", "content": "a"}, {"role": "nobody", "content": "b"}], "told")


def test_a_system_prompt_is_text_or_system_messages() -> None:
    assert system_messages(None) == []
    for text in ("be kind", ""):
        assert system_messages(text) == [{"role": "system", "content": text}]
    several = [{"role": "system", "content": "a"}, {"role": "system", "content": "b"}]
    assert system_messages(several) == several
    for role in ("user", "developer", "assistant"):
        with pytest.raises(ConfigurationError, match=f"mine must be text, or system messages only; .*role '{role}'"):
            system_messages([*several, {"role": role, "content": "c"}], "mine")


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"x", LOOP, {(1, 2): 3}])
def test_the_item_without_a_form_in_json_is_named(value: Any) -> None:
    check_json({"a": [1, "x", None, {"b": 0.5}]}, "a state")
    with pytest.raises(NotSerializable, match="a state must be JSON, and 'bad' is not"):
        check_json({"a": 1, "bad": value}, "a state")
    assert issubclass(NotSerializable, ConfigurationError)
    assert issubclass(NotSerializable, TypeError)
