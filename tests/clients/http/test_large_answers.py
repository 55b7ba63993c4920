"""Answers that are far too large: a `ModelError` in every client, which runs in a process of its own whose memory is measured."""

from __future__ import annotations

import asyncio
import functools
import json
import sys
import zlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from tests.clients.canned_server import COMPLETION, Canned, canned_server
from tests.clients.every_client import KINDS, client_of
from vfgym.errors import ModelError
from vfgym.messages import UserMessage

SIZE = 300 * 2**20
BLOCK = b" " * 2**20
WHAT = ("plain", "gzip", "deflate", "error", "events")

ASK = """
import asyncio, json, resource, sys
from tests.clients.every_client import KINDS, client_of
from vfgym.messages import UserMessage

async def said(kind, size):
    client = client_of(kind, sys.argv[1], max_retries=0, max_body_mb=8, extra_headers={"X-Size": size})
    try:
        await client.get_response([UserMessage("hello")], "m", {"max_tokens": 5})
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        await client.close()

async def main():
    for kind in KINDS:
        await said(kind, "small")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    texts = {f"{kind}, {what}": await said(kind, what) for what in sys.argv[2:] for kind in KINDS}
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(json.dumps({"texts": texts, "grown": grown}))

asyncio.run(main())
"""


@functools.cache
def bomb(wbits: int) -> bytes:
    """Return 300 MB of blanks, compressed to less than one."""
    packer = zlib.compressobj(9, wbits=wbits)
    return b"".join([*(packer.compress(BLOCK) for _ in range(SIZE // len(BLOCK))), packer.flush()])


WINDOW_BITS = {"gzip": 31, "deflate": 15}


async def handle(request: web.Request) -> web.StreamResponse:
    """Give what the request's header asks for."""
    await request.read()
    asked_for = request.headers["X-Size"]
    if asked_for == "small" or request.method == "GET":
        return web.json_response({})
    if asked_for in WINDOW_BITS:
        return web.Response(body=bomb(WINDOW_BITS[asked_for]), headers={"Content-Encoding": asked_for}, content_type="application/json")
    is_stream = asked_for == "events"
    response = web.StreamResponse(status=500 if asked_for == "error" else 200)
    response.content_type = "text/event-stream" if is_stream else "application/json"
    await response.prepare(request)
    if is_stream:
        await response.write(b"data: ")
    for _ in range(SIZE // len(BLOCK)):
        await response.write(BLOCK)
    return response


@pytest.fixture
async def url() -> AsyncIterator[str]:
    app = web.Application(client_max_size=2**20)
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units elsewhere")
async def test_three_hundred_megabytes(url: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ASK, url, *WHAT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), 240)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    came = json.loads(out)
    assert len(came["texts"]) == len(KINDS) * len(WHAT)
    for which, text in came["texts"].items():
        assert text.startswith("ModelError"), (which, text)
        assert "more than 8 MB" in text, (which, text)
        assert "max_body_mb" in text, (which, text)
    assert came["grown"] < 80  # MB


@pytest.mark.parametrize("kind", KINDS)
async def test_the_limit_holds_exactly(kind: str) -> None:
    """Counted uncompressed; an answer of just that size is an answer."""
    size = 2**16
    async with canned_server() as server:
        client = client_of(kind, server.root, max_retries=0, max_body_mb=size / 2**20)
        for length, is_too_large in ((size, False), (size + 1, True)):
            server.answers = [Canned("{}" + " " * (length - 2))]
            with pytest.raises(ModelError) as caught:
                await client.get_response([UserMessage("hello")], "m", {"max_tokens": 5})
            assert ("max_body_mb" in str(caught.value)) is is_too_large
        await client.close()


async def test_a_stream_is_counted_as_a_whole() -> None:
    """It comes in many small events: 1.6 MB together."""
    delta = {**COMPLETION, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "o" * 1000}}]}
    events = f"data: {json.dumps(delta)}\n\n" * 1300 + "data: [DONE]\n\n"
    async with canned_server(Canned(events, content_type="text/event-stream")) as server:
        client = client_of("openai_chat_completions", server.root, max_retries=0, max_body_mb=0.5)
        with pytest.raises(ModelError, match="max_body_mb"):
            await client.get_response([UserMessage("hello")], "m", {"stream": True})
        await client.close()
