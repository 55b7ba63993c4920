"""An endpoint of a rollout as programs and strangers find it, and how attacks ask there."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp

from vfgym.interception import Endpoint, Request
from vfgym.messages import AssistantMessage, Response


class Answers:
    """Answers what is asked with "yes", and remembers it; the first ones wait where that is said."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.message = AssistantMessage("yes")
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self, request: Request) -> Response:
        self.asked.append(request)
        await self.may_answer.wait()
        return Response("r", 0, "m", None, self.message)


PLAIN: dict[str, dict[str, Any]] = {
    "chat/completions": {"messages": [{"role": "user", "content": "go"}]},
    "completions": {"prompt": "go"},
    "responses": {"input": "go"},
    "messages": {"messages": [{"role": "user", "content": "go"}], "max_tokens": 9},
}


async def post(endpoint: Endpoint, path: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, dict[str, str], str]:
    """Return the status, the headers and the text of an answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    url = f"{endpoint.config('chat', 'm')['base_url']}/{path}"
    async with aiohttp.ClientSession() as session, session.post(url, data=data, headers=headers) as response:
        return response.status, dict(response.headers), await response.text()


async def raw(endpoint: Endpoint, data: bytes, *, reads: bool = True) -> tuple[int, bytes]:
    """Send bytes, and return the status and all that comes back."""
    reader, writer = await asyncio.open_unix_connection(endpoint.socket_path)
    writer.write(data)
    head = await asyncio.wait_for(reader.readline(), 20) if reads else b""
    writer.close()
    return (int(head.split()[1]) if head else 0), head
