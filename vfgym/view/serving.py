"""`PageServer`: the page of some runs, served to browsers of this machine while the runs grow.

It listens on the loopback address only, answers nobody who asked for another host (so no page of the web can read it by a name that leads
here), and does nothing but read: the page, and its data when they have changed.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from aiohttp import web

from vfgym.aio.bounded_http import BoundedServer
from vfgym.errors import ConfigurationError
from vfgym.results import ResultsError
from vfgym.view.page import PageContent, read_content, render_page
from vfgym.view.run_files import files_state

HOST = "127.0.0.1"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the page has the rest in itself
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_GRACE = 0.02
"""Seconds that requests in flight have when the server closes."""
_REST = 5
"""How many times as long as reading the runs took they are not read again."""


class PageServer:
    """Serves the page of some runs: ``async with PageServer(runs) as server``."""

    def __init__(self, runs: Sequence[Path], port: int = 0) -> None:
        """Read the runs; it does not listen yet.

        Args:
            runs: Their directories.
            port: Port to listen on; 0 for any free one.

        Raises:
            ConfigurationError: If there are none.
            ResultsError: If one cannot be read.
        """
        self._runs = runs
        self._port = port
        self._seen: list[object] = self._state()
        self._next_read = 0.0
        self._reading = asyncio.Lock()
        self._read()
        self._runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        """Where the page is, while the server listens."""
        return f"http://{HOST}:{self._port}/"

    async def __aenter__(self) -> Self:
        """Listen.

        Raises:
            ConfigurationError: If the port cannot be listened on.
        """
        runner = web.ServerRunner(BoundedServer(self._answer, for_anyone=True), shutdown_timeout=_GRACE)
        await runner.setup()
        try:
            await web.TCPSite(runner, HOST, self._port).start()
        except BaseException as error:
            await runner.cleanup()
            if isinstance(error, OSError):
                why = error.strerror or error
                raise ConfigurationError(f"cannot listen on port {self._port} of {HOST}: {why}. Give another port, or 0 for any") from error
            raise
        self._runner, self._port = runner, runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening, and let connections go."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("Host") not in (f"{HOST}:{self._port}", f"localhost:{self._port}"):
            return _text(403, f"this server answers at {self.url} only")
        if request.method not in ("GET", "HEAD"):
            return _text(405, "this server can be read only", Allow="GET, HEAD")
        if request.path not in ("/", "/data"):
            return _text(404, f"there is nothing here; the page is {self.url}")
        await self._refresh()
        if request.path == "/":
            page = await asyncio.to_thread(render_page, self._content, follows=self._tag)
            return web.Response(text=page, content_type="text/html", headers=_HEADERS)
        if request.headers.get("If-None-Match") == self._tag:
            return web.Response(status=304, headers={**_HEADERS, "ETag": self._tag})
        return web.Response(
            body=self._packed, content_type="application/json", headers={**_HEADERS, "ETag": self._tag, "Content-Encoding": "gzip"}
        )

    async def _refresh(self) -> None:
        """Read the runs again if they have changed; what cannot be read now is left for the next time."""
        async with self._reading:
            state = self._state()
            if state == self._seen or time.monotonic() < self._next_read:
                return
            try:
                await asyncio.to_thread(self._read)
            except (ResultsError, OSError):  # its files are being replaced
                return
            self._seen = state

    def _read(self) -> None:
        started = time.monotonic()
        content = read_content(self._runs)
        packed = content.packed()
        self._content: PageContent = content
        self._packed = packed
        self._tag = f'"{hashlib.sha256(packed).hexdigest()[:32]}"'
        self._next_read = time.monotonic() + _REST * (time.monotonic() - started)

    def _state(self) -> list[object]:
        return [files_state(run) for run in self._runs]


def _text(status: int, text: str, **headers: str) -> web.Response:
    return web.Response(status=status, text=f"{text}\n", headers={**_HEADERS, **headers})
