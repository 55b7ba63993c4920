"""The conversation that the model is shown: how a turn is made of an answer, and what comes after it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vfgym.episode.prompt import add_messages, new_step, recorded_conversation, rewrite_conversation
from vfgym.errors import InvalidMessage
from vfgym.messages import MESSAGE_TYPES, AssistantMessage, Response, ResponseMessage, ResponseTokens, TextMessage, UserMessage
from vfgym.state import MessagesView, State

A, B = UserMessage("a"), UserMessage("b")


def step_of(message: Any, max_seq_len: int | None = None) -> tuple[Any, State]:
    state = State(trajectory_id="t", trajectory=[])
    definition: Any = SimpleNamespace(message_types=MESSAGE_TYPES, max_seq_len=max_seq_len)
    return new_step(definition, state, [A], Response("r", 0, "m", None, message)), state


TOKENS = ResponseTokens([1, 2], [0, 0], [3, 4], [1, 1], [-1.0, -2.0])


def said(**fields: Any) -> ResponseMessage:
    return ResponseMessage("x", **{"finish_reason": "stop", "is_truncated": False, **fields})


@pytest.mark.parametrize(
    ("message", "max_seq_len", "is_truncated", "is_cut_off", "has_tokens"),
    [
        (AssistantMessage("x"), None, False, False, False),
        (said(), None, False, False, False),
        (said(is_truncated=True), None, True, True, False),
        (said(tokens=TOKENS), None, False, False, True),
        (said(tokens=TOKENS), 4, False, False, True),
        (said(tokens=TOKENS), 3, True, False, True),
    ],
)
def test_a_turn_is_made_of_an_answer(message: Any, max_seq_len: int | None, is_truncated: bool, is_cut_off: bool, has_tokens: bool) -> None:
    step, state = step_of(message, max_seq_len)
    assert (step["is_truncated"], state.is_cut_off, step["tokens"] is not None) == (is_truncated, is_cut_off, has_tokens)
    assert (step["prompt"], step["completion"], step["trajectory_id"]) == ([A], [AssistantMessage("x")], "t")
    assert type(step["completion"][0]) is AssistantMessage
    assert (step["reward"], step["advantage"], step["extras"]) == (None, None, {})


def test_the_conversation_is_the_one_that_was_played_unless_another_turn_was_recorded() -> None:
    conversation = [A, AssistantMessage("x")]
    state = State(trajectory=[{"prompt": MessagesView(conversation, 1), "completion": [conversation[-1]]}])
    assert recorded_conversation(state, conversation) is conversation
    state = State(trajectory=[{"prompt": MessagesView(conversation, 1), "completion": [AssistantMessage("y")]}])
    assert recorded_conversation(state, conversation) == [A, AssistantMessage("y")]
    state = State(trajectory=[{"prompt": [B], "completion": [conversation[-1]]}])
    assert recorded_conversation(state, conversation) == [B, conversation[-1]]


@pytest.mark.parametrize(
    ("returned", "added"),
    [([B], [B]), ([], []), ("b", [TextMessage("b")]), ([{"role": "user", "content": "b"}], [B]), ((A, B), [A, B]), (B, [B])],
)
def test_what_env_response_returns_is_added(returned: Any, added: list[Any]) -> None:
    conversation: list[Any] = [A]
    add_messages(conversation, returned, MESSAGE_TYPES)
    assert conversation == [A, *added]


@pytest.mark.parametrize("wrong", [7, [7], [{"content": "x"}]])
def test_what_is_no_message_is_named_by_its_hook(wrong: Any) -> None:
    with pytest.raises(InvalidMessage, match="env_response"):
        add_messages([A], wrong, MESSAGE_TYPES)
    with pytest.raises(InvalidMessage, match="get_prompt_messages"):
        rewrite_conversation([A], wrong, MESSAGE_TYPES)


def test_a_conversation_that_goes_on_grows_and_another_one_takes_its_place() -> None:
    conversation: list[Any] = [A]
    assert rewrite_conversation(conversation, [A, {"role": "user", "content": "b"}], MESSAGE_TYPES) is conversation
    assert conversation == [A, B]
    other = rewrite_conversation(conversation, [B], MESSAGE_TYPES)
    assert (other, conversation, rewrite_conversation([], [A], MESSAGE_TYPES)) == ([B], [A, B], [A])
