"""The turn of an episode that a conversation goes on from."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym.clients.earlier_turn import earlier_turn
from vfgym.clients.formats.openai_chat import native_message
from vfgym.messages import AssistantMessage, Message, UserMessage

A, B, C = UserMessage("a"), UserMessage("b"), UserMessage("c")
ONE, TWO = AssistantMessage("1"), AssistantMessage("2")


def step(prompt: list[Message], completion: list[Message]) -> dict[str, Any]:
    return {"prompt": prompt, "completion": completion}


FIRST, SECOND = step([A], [ONE]), step([A, ONE, B], [TWO])


def found(conversation: list[Message], *steps: Any) -> Any:
    return earlier_turn(list(map(native_message, conversation)), {"trajectory": list(steps)}, native_message)


@pytest.mark.parametrize(
    ("conversation", "steps", "expected"),
    [
        ([A, ONE, B], [FIRST], (2, FIRST)),
        ([A, ONE, B, TWO, C], [FIRST, SECOND], (4, SECOND)),
        ([A, ONE, B, TWO, C], [SECOND, FIRST], (4, SECOND)),
        ([A, ONE, C], [FIRST, SECOND], (2, FIRST)),
        ([A, ONE, B, ONE, C], [FIRST, SECOND], (2, FIRST)),
        ([A, ONE], [FIRST], None),  # nothing new to answer
        ([B, ONE, C], [FIRST], None),
        ([A, TWO, C], [FIRST], None),
        ([A, ONE, B], [step([A, ONE], [])], None),
        ([A, ONE, B], [], None),
        ([A, AssistantMessage(None), B], [step([A], [AssistantMessage("")])], (2, step([A], [AssistantMessage("")]))),
        ([A, AssistantMessage("", prefix=True), B], [step([A], [AssistantMessage("")])], None),
    ],
)
def test_the_longest_turn_that_the_conversation_begins_with(conversation: Any, steps: Any, expected: Any) -> None:
    assert found(conversation, *steps) == expected


def test_of_turns_of_equal_length_the_last_counts() -> None:
    again = step([A], [ONE])
    assert found([A, ONE, B], FIRST, again)[1] is again


@pytest.mark.parametrize("state", [None, {}, {"trajectory": None}, {"trajectory": []}, object()])
def test_anything_else_has_no_turns(state: Any) -> None:
    assert earlier_turn([native_message(A)], state, native_message) is None
