"""Clients of models that tests write: they answer in the order of the calls, with an error, or never.

`vfgym.testing.ScriptedClient` answers by the turn of the episode instead, however often it was asked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from vfgym import Client, Response, Usage
from vfgym.clients import SamplingArgs
from vfgym.messages import AssistantMessage, Message, ResponseMessage, ToolCall
from vfgym.testing import ScriptedClient


def answer(text: str, *, completion_tokens: int | None = None, finish_reason: str = "stop") -> Response:
    """Return a model's answer as a client gives it."""
    usage = None if completion_tokens is None else Usage(prompt_tokens=1, completion_tokens=completion_tokens)
    return Response("id", 0, "scripted", usage, ResponseMessage(text, finish_reason=finish_reason, is_truncated=False))


def calling(*calls: tuple[str, Any]) -> AssistantMessage:
    """Return a message that calls tools by their names; arguments that are not text are written as JSON."""
    written = [(name, arguments if isinstance(arguments, str) else json.dumps(arguments)) for name, arguments in calls]
    return AssistantMessage(None, tool_calls=[ToolCall(f"c{number}", *call) for number, call in enumerate(written)])


class InOrder(Client):
    """Answers in the order of the calls: texts, fields of messages, responses, exceptions to raise, events to wait for."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []
        """The arguments of each call."""

    async def get_response(
        self, prompt: Sequence[Message], model: str, sampling_args: SamplingArgs | None = None, tools: Any = None, **kwargs: Any
    ) -> Response:
        self.asked.append({"prompt": list(prompt), "model": model, "sampling_args": sampling_args, "tools": tools, **kwargs})
        await asyncio.sleep(0)
        given = self.answers.pop(0)
        if isinstance(given, BaseException):
            raise given
        if isinstance(given, asyncio.Event):
            await given.wait()
            given = "late"
        if isinstance(given, dict):
            return Response("id", 0, "scripted", None, ResponseMessage(**given, finish_reason="stop", is_truncated=False))
        return answer(given) if isinstance(given, str) else given


class Recording(ScriptedClient):
    """A script that keeps what it was asked, and reports 3 tokens of prompts and 5 of answers."""

    def __init__(self, answers: Any) -> None:
        super().__init__(answers)
        self.asked: list[dict[str, Any]] = []

    async def get_response(self, *args: Any, **kwargs: Any) -> Response:
        self.asked.append(kwargs)
        response = await super().get_response(*args, **kwargs)
        response.usage = Usage(3, 0, 5, 8)
        return response


class Failing(Client):
    def __init__(self, error: Exception) -> None:
        self.error = error

    async def get_response(self, *args: Any, **kwargs: Any) -> Response:
        raise self.error


class Mute(Client):
    """Never answers; says when it is asked, and counts the calls that were given up."""

    def __init__(self) -> None:
        self.asked, self.left = asyncio.Event(), asyncio.Event()
        self.cancelled = 0

    async def get_response(self, *args: Any, **kwargs: Any) -> Response:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled += 1
            self.left.set()
        raise AssertionError
