"""What a recursive model is told of its REPL, before the text of its task."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym.envs.recursion.prompts import describe_context, describe_repl, insert_instructions
from vfgym.messages import MESSAGE_TYPES, SystemMessage, TextMessage, UserMessage
from vfgym.tools import Tool

LOOK = Tool(name="look", description="Look.", parameters={"properties": {"at": {"type": "string"}}})
FIND = Tool(name="find", description="Find.", parameters={})


@pytest.mark.parametrize(
    ("language", "names"),
    [("python", ["Python", "call_python_repl", 'answer["ready"]']), ("bash", ["Bash", "call_bash_repl", "ANSWER_READY"])],
)
def test_each_language_is_told_how_to_answer_ask_and_call(language: str, names: list[str]) -> None:
    alone = describe_repl(language, None, [])
    asking = describe_repl(language, [], [])
    everything = describe_repl(language, [FIND], [LOOK])
    for text in (alone, asking, everything):
        assert all(name in text for name in names)
    assert ("llm_batch" in alone, "llm_batch" in asking) == (False, True)
    assert "call tools by themselves" not in asking
    assert "call tools by themselves:\n- `find`: Find. Arguments: {}" in everything
    assert everything.endswith('- `look`: Look. Arguments: {"at": {"type": "string"}}')


@pytest.mark.parametrize(
    ("language", "file", "says"),
    [
        *[("python", None, ""), ("bash", None, ""), ("python", ".", "`context` is a `pathlib.Path`")],
        ("python", "context.txt", "`context.txt` of the working directory, and the variable `context` is a text"),
        ("python", "context.json", "what that JSON says"),
        ("bash", "context.txt", "The context of the task is the file `context.txt`"),
        ("bash", ".", "The context of the task is the files"),
    ],
)
def test_where_the_context_is(language: str, file: str | None, says: str) -> None:
    text = describe_context(language, file)
    assert (says in text) if says else text == ""


PART: Any = {"type": "text", "text": "a"}


@pytest.mark.parametrize(
    ("messages", "made"),
    [
        ([UserMessage("a"), UserMessage("b")], [UserMessage("I\n\na"), UserMessage("b")]),
        ([SystemMessage("s"), TextMessage("a")], [SystemMessage("s"), UserMessage("I\n\na")]),
        ([UserMessage([PART])], [UserMessage([{"type": "text", "text": "I"}, PART])]),
        ([SystemMessage("s")], [SystemMessage("s"), UserMessage("I")]),
        ([], [UserMessage("I")]),
    ],
)
def test_instructions_stand_before_the_first_text_of_the_user(messages: list[Any], made: list[Any]) -> None:
    before = list(messages)
    assert (insert_instructions(messages, "I", MESSAGE_TYPES), messages) == (made, before)
