"""What a provider answers that is hostile or broken, and what comes of it: the sentences are those of ``docs/models.md``."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from typing import Any

import pytest
from yarl import URL

import vfgym
from tests.clients.canned_server import Canned, canned_server
from tests.clients.every_client import KINDS, answers_by_route, client_of
from vfgym.clients import resolve_client
from vfgym.errors import ModelError
from vfgym.messages import UserMessage

HELLO = [UserMessage("hello")]
SAMPLING = {"max_tokens": 5}
HEADER = "a-header-for-this-provider-only"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limits", [False, True], ids=["without limits", "under limits"])
async def test_nothing_is_sent_to_where_a_redirect_leads_on_another_server(kind: str, limits: bool) -> None:
    """Fell: headers of the configuration, which may be keys, and the conversation were sent to whatever a redirect named."""
    async with canned_server() as other, canned_server() as first:
        other.routes = answers_by_route()
        first.routes = dict.fromkeys(other.routes, Canned("", 307, {"Location": f"{other.url}/chat/completions"}))
        client = client_of(kind, first.root, extra_headers={"X-Account": HEADER})
        try:
            with vfgym.limit(requests=20) if limits else contextlib.nullcontext(), pytest.raises(ModelError) as caught:
                await client.get_response(HELLO, "m", SAMPLING)
        finally:
            await client.close()
        assert f"redirects to {other.root}: no key, header" in str(caught.value)
        assert other.num_requests == 0


GOOD = json.dumps(answers_by_route()["/v1/chat/completions"])
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def _of(body: bytes) -> bytes:
    return JSON + b"Content-Length: %d\r\n\r\n" % len(body) + body


HOSTILE = {
    "nothing": b"",
    "no HTTP": b"\x00\xff" * 100 + b"\r\n\r\n",
    "half a head": JSON,
    "half a body": JSON + b"Content-Length: 1000\r\n\r\n{",
    "half a chunk": JSON + b"Transfer-Encoding: chunked\r\n\r\nff\r\n{",
    "a length below zero": JSON + b"Content-Length: -1\r\n\r\n{}",
    "two lengths": JSON + b"Content-Length: 2\r\nContent-Length: 900\r\n\r\n{}",
    "a header of 1 MB": JSON + b"X: " + b"a" * 2**20 + b"\r\nContent-Length: 2\r\n\r\n{}",
    "100,000 headers": JSON + b"X: a\r\n" * 100_000 + b"Content-Length: 2\r\n\r\n{}",
    "no gzip": JSON + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    "half a gzip": JSON + b"Content-Encoding: gzip\r\nContent-Length: 10\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03",
    "an unknown charset": _of(b"{}").replace(b"json", b"json; charset=nonsense"),
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "a status of 999": b"HTTP/1.1 999 Eh\r\nContent-Length: 0\r\n\r\n",
    "half a stream": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99\r\n\r\ndata: {",
    "a redirect to nowhere": b"HTTP/1.1 307 Go\r\nLocation: http://[\r\nContent-Length: 0\r\n\r\n",
    "a redirect to a file": b"HTTP/1.1 307 Go\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
    "a redirect to no address": b"HTTP/1.1 307 Go\r\nContent-Length: 0\r\n\r\n",
    "no UTF-8": _of(b'{"choices": "\xff"}'),
    "null": _of(b"null"),
    "a list": _of(b"[[]]"),
    "a number": _of(b"1e999"),
    "a number of many digits": _of(b'{"id": "a", "choices": ' + b"9" * 10_000 + b"}"),
    "nesting": _of(b'{"choices": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "fields of other types": _of(b'{"id": [], "choices": {"a": 1}, "output": "x", "content": 5, "usage": "all", "error": []}'),
    "members of other types": _of(b'{"choices": [[5], null], "output": [5, null], "content": [5, null], "usage": []}'),
    "a repeated key": _of(
        GOOD.encode().replace(b"{", b'{"choices": [{"message": {"content": "Bergen."}}], ', 1)[:-1] + b', "choices": []}'
    ),
}
"""Whole answers of a provider, byte by byte."""


@contextlib.asynccontextmanager
async def saying(data: bytes) -> AsyncIterator[str]:
    """Serve the same bytes to every request, whose connection is closed then, and give the URL."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")), 0)
            await reader.readexactly(length)
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_whatever_a_provider_says_that_is_no_answer_is_an_error_of_the_model(kind: str) -> None:
    wrong: dict[str, Any] = {}
    for what, data in HOSTILE.items():
        async with saying(data) as url:
            client = client_of(kind, url, max_retries=0, timeout=20)
            try:
                wrong[what] = await client.get_response(HELLO, "m", SAMPLING)
            except ModelError:
                pass
            except Exception as error:
                wrong[what] = error
            finally:
                await client.close()
    assert wrong == {}


SERVES_AND_OPENS_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))
from vfgym.model_server import ModelServer

def opens(request):
    kept = [open(sys.executable) for _ in range(100)]
    for each in kept:
        each.close()
    return "opened"

with ModelServer({"opens": opens}) as server:
    print(server.openai_url, flush=True)
    sys.stdin.read()
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are limited on Unix")
async def test_who_opens_all_the_connections_of_a_model_server_leaves_it_descriptors_and_keeps_nobody_out() -> None:
    running = await asyncio.create_subprocess_exec(sys.executable, "-c", SERVES_AND_OPENS_FILES, stdin=PIPE, stdout=PIPE)
    idle = []
    try:
        url = (await running.stdout.readline()).decode().strip()  # type: ignore[union-attr]
        for _ in range(320):
            idle.append((await asyncio.open_connection("127.0.0.1", URL(url).port))[1])
        client = resolve_client(vfgym.ClientConfig(api_base_url=url, api_key="k", max_retries=0, timeout=15))
        assert (await client.get_response(HELLO, "opens")).message["content"] == "opened"
        await client.close()
    finally:
        for each in idle:
            each.close()
        running.stdin.close()  # type: ignore[union-attr]
        await running.wait()
