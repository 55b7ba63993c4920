"""Models for tests of the rollout API that need no server: a client that is a function, and short ways to play an environment."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import verifiers_compat as vf
from vfgym import Client
from vfgym.testing import ScriptedClient


class Model(Client):
    """Answers with what a function says of the number of the call and the state: text, a message, a response or an exception."""

    def __init__(self, answer: Callable[[int, Any], Any] = lambda number, state: "1") -> None:
        self.answer = answer
        self.calls = 0
        self.prompts: list[list[Any]] = []

    async def get_response(self, prompt: Any, model: str, sampling_args: Any = None, tools: Any = None, **kwargs: Any) -> vf.Response:
        number, self.calls = self.calls, self.calls + 1
        self.prompts.append([dict(message) for message in prompt])
        given = self.answer(number, kwargs.get("state"))
        if hasattr(given, "__await__"):
            given = await given
        if isinstance(given, BaseException):
            raise given
        return given if isinstance(given, vf.Response) else response(given)


class Counting(Model):
    """Counts how many calls are under way at once, and says whether it was closed."""

    at_once = most_at_once = 0
    closed = False

    async def get_response(self, *args: Any, **kwargs: Any) -> vf.Response:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            for _ in range(3):
                await asyncio.sleep(0)
            return await super().get_response(*args, **kwargs)
        finally:
            self.at_once -= 1

    async def close(self) -> None:
        self.closed = True


class Endpoint(Client):
    """Notes who asks which endpoint."""

    def __init__(self, url: str, asked: list[tuple[str, str]]) -> None:
        self.url, self.asked, self.closed = url, asked, False

    async def get_response(self, prompt: Any, model: str, *args: Any, **kwargs: Any) -> vf.Response:
        self.asked.append((self.url, prompt[-1].content))
        return response("1")

    async def close(self) -> None:
        self.closed = True


def response(
    message: Any = "ok", *, usage: tuple[int, int] | None = None, tokens: tuple[int, int] | None = None, **fields: Any
) -> vf.Response:
    """Return a response: usage and tokens are numbers of the prompt and of the completion, fields those of its message."""
    content = {"content": message} if message is None or isinstance(message, str) else dict(message)
    content.pop("role", None)
    if tokens is not None:
        prompt, completion = tokens
        fields["tokens"] = vf.ResponseTokens([*range(prompt)], [0] * prompt, [*range(completion)], [1] * completion, [-0.5] * completion)
    counted = None if usage is None else vf.Usage(usage[0], 0, usage[1], sum(usage))
    return vf.Response("r", 0, "m", counted, vf.ResponseMessage(**content, **fields))


def calling(*calls: tuple[str, Any]) -> dict[str, Any]:
    """Return an assistant message that calls tools; arguments that are not text are written as JSON."""
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": f"c{number}", "name": name, "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)}
            for number, (name, arguments) in enumerate(calls)
        ],
    }


async def rolled_out(env: vf.Environment, *answers: Any, row: int = 0) -> vf.State:
    """Play one rollout, unscored, with scripted answers."""
    return await env.rollout(env.get_dataset()[row], ScriptedClient(answers), "m")


async def evaluated(env: vf.Environment, *answers: Any, **options: Any) -> list[Any]:
    """Evaluate with scripted answers and return the outputs."""
    return (await env.evaluate(ScriptedClient(answers), "m", **options))["outputs"]


def texts(messages: Any, role: str = "tool") -> list[Any]:
    """Return the contents of the messages of one role."""
    return [message["content"] for message in messages if message["role"] == role]


def roles(messages: Any) -> list[str]:
    """Return who said what."""
    return [message["role"] for message in messages]
