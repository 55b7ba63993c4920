"""A model that is asked from inside a REPL: its conversations, its tools, and how many turns it has."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.models import answer, calling
from vfgym import blocking
from vfgym.envs.recursion.sub_calls import SubAnswer, SubModel, call_function
from vfgym.messages import MESSAGE_TYPES, AssistantMessage, Response, ResponseMessage, SystemMessage, ToolMessage, UserMessage
from vfgym.tools import Tool, ToolFunction


def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


async def fail(reason: str) -> str:
    """Raise an error."""
    await asyncio.sleep(0)
    raise LookupError(reason)


class Mine(Tool): ...


def sub_model(*tools: Any, max_turns: int = 2) -> SubModel:
    return SubModel(tools, max_turns, MESSAGE_TYPES, Mine)


async def ask(model: SubModel, prompt: Any, *said: Any) -> tuple[SubAnswer, list[Any]]:
    """Return what came of a sub-call in which a model says this, and what it was asked each time."""
    asked: list[Any] = []
    left = list(said)

    async def answer_next(messages: Any, tools: Any, *args: Any) -> Response:
        asked.append((messages, [tool.name for tool in tools]))
        each = left.pop(0)
        if isinstance(each, str):
            return answer(each)
        message = ResponseMessage(each["content"], tool_calls=each["tool_calls"])
        return Response("id", 0, "m", None, message)

    conversation = model.open_conversation(prompt)
    before = list(conversation)
    result = await model.answer(answer_next, conversation)
    assert (left, conversation) == ([], before)
    return result, asked


@pytest.mark.parametrize("prompt", ["?", [UserMessage("?")], [{"role": "user", "content": "?"}]])
async def test_without_tools_one_answer_is_all(prompt: Any) -> None:
    assert await ask(sub_model(max_turns=0), prompt, "42") == (SubAnswer("42", turns=1), [([UserMessage("?")], [])])
    assert (await ask(sub_model(), prompt, ""))[0] == SubAnswer("", turns=1)


async def test_calls_without_tools_are_no_turns() -> None:
    said = AssistantMessage("I call", tool_calls=calling(("add", {"a": 1}))["tool_calls"])
    assert (await ask(sub_model(), "?", said))[0] == SubAnswer("I call", turns=1)


async def test_calls_are_answered_in_order_and_what_goes_wrong_is_told() -> None:
    model = sub_model(add, fail)
    calls = calling(("add", {"a": 1, "b": 2}), ("fail", {"reason": "no page"}), ("nope", {}), ("add", "{"), ("add", {}))
    said, asked = await ask(model, "?", calls, "done")
    assert said == SubAnswer("done", turns=2, tool_calls=5)
    opening = [SystemMessage("You have 2 turns in which you can call tools."), UserMessage("?")]
    assert asked[0] == (opening, ["add", "fail"])
    messages, tools = asked[1]
    assert (messages[:2], messages[2]["tool_calls"], tools) == (opening, calls["tool_calls"], ["add", "fail"])
    assert messages[3:6] == [
        ToolMessage("3", tool_call_id="c0"),
        ToolMessage("no page", tool_call_id="c1"),
        ToolMessage("unknown tool 'nope'; available: add, fail", tool_call_id="c2"),
    ]
    assert [(message["tool_call_id"], message["content"].partition(":")[0]) for message in messages[6:]] == [("c3", "add"), ("c4", "add")]
    assert [type(tool) for tool in model.tool_defs] == [Mine, Mine]


@pytest.mark.parametrize("max_turns", [0, 1, 2])
async def test_who_has_used_all_turns_has_to_answer_without_tools(max_turns: int) -> None:
    """Once more than there are turns; what it calls then is not carried out."""
    call = calling(("add", {"a": 1}))
    said, asked = await ask(sub_model(add, max_turns=max_turns), "?", *[call] * max_turns, "at last")
    assert said == SubAnswer("at last", turns=max_turns + 1, tool_calls=max_turns, reached_limit=True)
    assert [tools for _, tools in asked] == [["add"]] * max_turns + [[]]
    assert asked[-1][0][-1] == UserMessage("You have used all of your turns with tools. Give your final answer now, from what you know.")
    said, _ = await ask(sub_model(add, max_turns=max_turns), "?", *[call] * (max_turns + 1))
    assert said == SubAnswer("", turns=max_turns + 1, tool_calls=max_turns, reached_limit=True)


async def test_who_answers_in_the_last_turn_has_reached_no_limit() -> None:
    said, _ = await ask(sub_model(add), "?", calling(("add", {"a": 1})), "2")
    assert said == SubAnswer("2", turns=2, tool_calls=1, reached_limit=False)


async def test_functions_are_called_on_a_thread_where_they_block() -> None:
    def where() -> int:
        """Return the thread."""
        return threading.get_ident()

    here = threading.get_ident()
    assert await call_function(ToolFunction(where), {}) == here
    assert await call_function(ToolFunction(blocking(where)), {}) != here
    with pytest.raises(LookupError, match="x"):
        await call_function(ToolFunction(fail), {"reason": "x"})
