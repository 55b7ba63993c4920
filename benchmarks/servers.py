"""A server in a process of its own: ``python -m benchmarks.servers model LATENCY`` is this library's, ``bare`` answers with prepared bytes.

It prints its URL. Whenever it reads a line it prints the CPU seconds that it has used, and it ends with its standard input.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Stockholm. " * 20}}],
    "usage": {"prompt_tokens": 200, "completion_tokens": 60, "total_tokens": 260},
}
ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Stockholm. " * 20}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 200, "output_tokens": 60},
}
BODIES = {"/v1/chat/completions": json.dumps(CHAT).encode(), "/v1/messages": json.dumps(ANTHROPIC).encode()}


class Server:
    """A server that runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Wait for its URL."""
        self._process = process
        self.url = self._read()

    def cpu(self) -> float:
        """Return the CPU seconds that it has used."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._read())

    def _read(self) -> str:
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            raise RuntimeError(f"the server ended with exit code {self._process.wait()}")
        return line.strip()


@contextlib.contextmanager
def served(kind: str, latency: float, python: str = sys.executable) -> Iterator[Server]:
    """Run a server; `python` is this library's interpreter."""
    command = [python, "-m", "benchmarks.servers", kind, str(latency)]
    folder = Path(__file__).parents[1]
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Server(process)
        finally:
            process.communicate()


def serve_bytes(latency: float) -> str:
    """Answer with prepared bytes on a thread, and return the URL."""
    from aiohttp import web

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        if latency:
            await asyncio.sleep(latency)
        return web.Response(body=BODIES[request.path], content_type="application/json")

    async def run() -> None:
        app = web.Application()
        for path in BODIES:
            app.router.add_post(path, answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        addresses.extend(runner.addresses)
        is_ready.set()
        await asyncio.Event().wait()

    addresses: list[Any] = []
    is_ready = threading.Event()
    threading.Thread(target=lambda: asyncio.run(run()), daemon=True).start()
    is_ready.wait()
    return f"http://127.0.0.1:{addresses[0][1]}"


def main() -> None:
    """Serve until the standard input ends."""
    kind, latency = sys.argv[1], float(sys.argv[2])
    with contextlib.ExitStack() as stack:
        if kind == "bare":
            url = serve_bytes(latency)
        else:
            from vfgym.model_server import ModelServer, echo

            url = stack.enter_context(ModelServer({"m": echo}, latency=latency, keep_requests=0)).url
        print(url, flush=True)
        for _ in sys.stdin:
            print(time.process_time(), flush=True)


if __name__ == "__main__":
    main()
