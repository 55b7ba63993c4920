"""A server on loopback that gives prepared answers in order and keeps what it was asked."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-7",
    "object": "chat.completion",
    "created": 1700000000,
    "model": "served-model",
    "choices": [{"index": 0, "finish_reason": "stop", "logprobs": None, "message": {"role": "assistant", "content": "Oslo."}}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}


def completion(message: Mapping[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a chat completion with some fields changed; those of the choice are told by their names."""
    choice = dict(COMPLETION["choices"][0])
    for name in ("finish_reason", "logprobs", "token_ids", "routed_experts"):
        if name in changes:
            choice[name] = changes.pop(name)
    if message is not None:
        choice["message"] = {"role": "assistant", **message}
    return {**COMPLETION, "choices": [choice], **changes}


@dataclass
class Canned:
    """An answer: JSON (or text), its status and headers."""

    data: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


CUT = object()
"""Stands for a connection that is closed without an answer."""

HANG = object()
"""Stands for no answer at all, until the client goes away."""


class CannedServer:
    """Gives `answers` in order, then the last one again; one for a route of its own where `routes` has it.

    An answer is JSON, ``(status, JSON)``, text of a page, or a `Canned` one.
    A list of models is not noted among the requests; without a route for it there is none.
    """

    def __init__(self, *answers: Any) -> None:
        self.answers: list[Any] = list(answers) or [COMPLETION]
        self.routes: dict[str, Any] = {}
        self.num_requests = 0
        """Of all kinds, lists of models too."""
        self.bodies: list[Any] = []
        self.paths: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.peers: set[Any] = set()
        self.left = asyncio.Event()
        self.gate: asyncio.Barrier | None = None
        """Holds requests back until as many have come."""
        self.root = ""
        self.url = ""
        """The root with ``/v1``."""

    @property
    def body(self) -> Any:
        return self.bodies[-1]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.num_requests += 1
        answer = self.routes.get(request.path)
        if request.path == "/v1/models":
            return web.json_response(answer, status=404 if answer is None else 200)
        text = await request.text()
        self.bodies.append(json.loads(text) if text else None)
        self.paths.append(request.path_qs)
        self.headers.append(request.headers)
        self.peers.add(request.transport.get_extra_info("peername"))
        if self.gate is not None:
            await self.gate.wait()
        if callable(answer):
            answer = answer(self.body)
        if answer is None:
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is CUT:
            request.transport.close()
            raise asyncio.CancelledError
        if answer is HANG:
            try:
                await asyncio.Event().wait()
            finally:
                self.left.set()
        if isinstance(answer, str):
            answer = Canned(answer, content_type="text/html")
        elif isinstance(answer, tuple):
            answer = Canned(answer[1], answer[0])
        elif not isinstance(answer, Canned):
            answer = Canned(answer)
        body = answer.data if isinstance(answer.data, str) else json.dumps(answer.data)
        return web.Response(text=body, status=answer.status, headers=answer.headers, content_type=answer.content_type)


@contextlib.asynccontextmanager
async def canned_server(*answers: Any) -> AsyncIterator[CannedServer]:
    """Serve on loopback."""
    server = CannedServer(*answers)
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.root = f"http://127.0.0.1:{runner.addresses[0][1]}"
    server.url = f"{server.root}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()
