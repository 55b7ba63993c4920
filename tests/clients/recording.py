"""A server on loopback that answers with prepared JSON and keeps what it was sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web


class Recorder:
    """What a server was sent, and what it answers: the prepared answers in turn, the last one again and again."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers = answers
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self.models: list[dict[str, Any]] | None = None
        """What ``GET /v1/models`` lists; None where the server has no such route."""

    @property
    def body(self) -> dict[str, Any]:
        return self.bodies[-1]

    async def handle(self, request: web.Request) -> web.Response:
        if request.method == "GET":
            return web.json_response({"object": "list", "data": self.models or []}, status=404 if self.models is None else 200)
        text = await request.text()
        self.paths.append(request.path)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.bodies.append(json.loads(text) if text else {})
        answer = self.answers[min(len(self.bodies), len(self.answers)) - 1]
        status, content = answer if isinstance(answer, tuple) else (200, answer)
        if isinstance(content, str):
            return web.Response(text=content, status=status, content_type="text/html")
        return web.json_response(content, status=status)


@asynccontextmanager
async def recording(*answers: Any) -> AsyncIterator[Recorder]:
    """Serve answers: JSON, text, or (status, JSON)."""
    recorder = Recorder(list(answers))
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", recorder.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    recorder.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield recorder
    finally:
        await runner.cleanup()
