"""`SubModel`: a model that is asked from inside a REPL, in conversations of its own, with tools of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from vfgym.aio.threads import on_thread
from vfgym.calls import is_awaitable
from vfgym.errors import ToolCallError
from vfgym.lifecycle import is_blocking
from vfgym.messages import Message, MessageTypes, Response, as_messages, content_text
from vfgym.messages.responses import for_conversation
from vfgym.tools import Tool, ToolFunction, as_tool, result_content


class Ask(Protocol):
    """Asks the model of an episode to go on with a conversation, in which it may call tools."""

    async def __call__(self, messages: list[Message], tools: list[Tool], client: Any = None, model: str | None = None, /) -> Response:
        """Return its answer, or that of another client or model."""


_LAST = "You have used all of your turns with tools. Give your final answer now, from what you know."


@dataclass
class SubAnswer:
    """What came of one sub-call."""

    text: str = ""
    turns: int = 0
    tool_calls: int = 0
    reached_limit: bool = False
    """Whether it had to answer because its turns were used up."""


async def call_function(function: ToolFunction, arguments: Any) -> Any:
    """Call a function with arguments that `ToolFunction.bind` has checked: on a thread, if it blocks."""
    if is_blocking(function.func):
        return await on_thread(function.invoke, arguments, name=function.name)
    result = function.invoke(arguments)
    return await result if is_awaitable(result) else result


class SubModel:
    """What sub-calls have in common: their tools, and how many turns they may take."""

    def __init__(self, tools: Sequence[Callable[..., Any]], max_turns: int, types: MessageTypes, tool_type: type[Tool]) -> None:
        """Offer tools in sub-calls, of at most so many turns that may call them."""
        self.max_turns = max_turns
        self._types = types
        functions = [ToolFunction(tool) for tool in tools]
        self.functions = {function.name: function for function in functions}
        self.tool_defs = [as_tool(function.definition, tool_type) for function in functions]

    def open_conversation(self, prompt: Any) -> list[Message]:
        """Return what a sub-call begins with: the prompt is a text, or messages."""
        messages = [self._types["user"](prompt)] if isinstance(prompt, str) else as_messages(prompt, self._types, name="prompt")
        if not self.tool_defs:
            return messages
        return [self._types["system"](f"You have {self.max_turns} turns in which you can call tools."), *messages]

    async def answer(self, ask: Ask, conversation: list[Message]) -> SubAnswer:
        """Go on with a conversation: the model calls tools until it says something without, or its turns are used up."""
        messages, said = conversation.copy(), SubAnswer()
        while True:
            is_last = bool(self.tool_defs) and said.turns == self.max_turns
            if is_last:
                said.reached_limit = True
                messages.append(self._types["user"](_LAST))
            response = await ask(messages.copy(), [] if is_last else self.tool_defs)
            said.turns += 1
            message = for_conversation(response.message, self._types)
            messages.append(message)
            calls = message.get("tool_calls") or []
            if is_last or not calls or not self.tool_defs:
                said.text = content_text(message.get("content"))
                return said
            said.tool_calls += len(calls)
            messages += [await self._call(call) for call in calls]

    async def _call(self, call: Any) -> Message:
        try:
            function = self.functions.get(call.name)
            if function is None:
                raise ToolCallError(f"unknown tool {call.name!r}; available: {', '.join(self.functions)}")
            result = await call_function(function, function.bind(function.decode(call.arguments)))
            content = result_content(result)
        except Exception as error:
            content = str(error)
        return self._types["tool"](content, tool_call_id=call.id)
