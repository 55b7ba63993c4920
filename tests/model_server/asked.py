"""What the model server is asked in these tests, over real HTTP."""

from __future__ import annotations

import io
import json
from typing import Any

import aiohttp

from vfgym import ToolCall
from vfgym.model_server import ModelServer, Policy, Reply, echo, random_policy, tokenize

HELLO: list[Any] = [{"role": "user", "content": "héllo 😀"}]
CALLS = [ToolCall("c1", "add", '{"a": 1, "b": 2}'), ToolCall("c2", "add", '{"a": 3, "b": 4}')]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
CHAT_TOOL: Any = {"type": "function", "function": {"name": "add", "description": "Add.", "parameters": SCHEMA}}
CLAUDE_TOOL: Any = {"name": "add", "description": "Add.", "input_schema": SCHEMA}
FULL = Reply("The sum is 3, and then there is 7.", CALLS, "First I add the small ones, then the big ones.")
MODELS: dict[str, Policy] = {"echo": echo, "full": lambda request: FULL, "random": random_policy(seed=1)}

BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"model": "echo", "messages": HELLO},
    "/v1/chat/completions/tokens": {"model": "echo", "tokens": [258, *tokenize("héllo 😀"), 262, 259]},
    "/v1/completions": {"model": "echo", "prompt": "héllo 😀"},
    "/v1/responses": {"model": "echo", "input": "héllo 😀"},
    "/v1/messages": {"model": "echo", "messages": HELLO, "max_tokens": 100},
}
"""A valid body for each of the APIs; all of them say the same."""

PATHS = sorted(BODIES)


async def post(server: ModelServer, path: str, body: Any, **headers: str) -> tuple[int, Any]:
    """Post a body (bytes as they are) and return status and parsed answer; of a stream, its text."""
    data = io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
    headers = {"anthropic-version": "2023-06-01", **headers}
    async with aiohttp.ClientSession() as session, session.post(server.url + path, data=data, headers=headers) as response:
        text = await response.text()
        return response.status, json.loads(text) if "json" in response.headers["Content-Type"] else text


def says(answer: Any) -> str:
    """Return the text in an answer of any of the APIs."""
    if "choices" in answer:
        choice = answer["choices"][0]
        return str(choice["message"]["content"] if "message" in choice else choice["text"])
    parts = answer["content"] if "content" in answer else answer["output"][0]["content"]
    return str(parts[0]["text"])
