"""HTTP answers: whole, streamed, and cut off; and the bodies that come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from vfgym.model_server import wire
from vfgym.model_server.exchange import RequestRefused

EVENTS = [b"data: %d\n\n" % number for number in range(5)]


@asynccontextmanager
async def answering(answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> AsyncIterator[aiohttp.ClientResponse]:
    """Ask a server that answers so, and give its response."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await answer(request)
        except wire.ConnectionCut:
            return web.Response()

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with aiohttp.ClientSession() as session, session.post(f"http://127.0.0.1:{runner.addresses[0][1]}/x") as response:
            yield response
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("raw", "body", "says"),
    [
        (b"{}", {}, None),
        (b'{"a": 0}', {"a": 0}, None),
        (b"", None, "no body"),
        (b"[]", [], "got list"),
        (b"null", None, "got NoneType"),
        (b"{", "{", "could not parse"),
        (b"\xff", "\ufffd", "could not parse"),
    ],
)
def test_bodies(raw: bytes, body: Any, says: str | None) -> None:
    parsed, wrong = wire.parse_body(raw)
    assert parsed == body
    assert (wrong is None) if says is None else (says in str(wrong))


@pytest.mark.parametrize(("provider", "name"), [("openai", "x-request-id"), ("anthropic", "request-id")])
def test_a_request_is_named_to_its_client(provider: Any, name: str) -> None:
    assert wire.id_header(provider, 7) == {name: "req_7"}


async def test_json_is_encoded_and_bytes_are_sent_as_they_are() -> None:
    for body, sent in (({"a": "é"}, b'{"a":"\\u00e9"}'), (b"{not json", b"{not json")):
        response = wire.json_response(body, {"X-A": "1"}, 418)
        assert (response.status, response.headers["X-A"], response.headers["Content-Type"]) == (418, "1", "application/json")
        assert response.body == sent


async def test_only_one_method_is_taken() -> None:
    seen: list[RequestRefused] = []

    async def check(request: web.BaseRequest) -> web.StreamResponse:
        wire.check_method(request, "POST")
        with pytest.raises(RequestRefused) as caught:
            wire.check_method(request, "GET")
        seen.append(caught.value)
        return web.Response()

    async with answering(check):
        assert (seen[0].status, seen[0].headers, seen[0].message) == (405, {"Allow": "GET"}, "/x takes GET requests, got POST")


async def test_a_stream_is_whole_or_half() -> None:
    async with answering(lambda request: wire.stream(request, EVENTS, {"X-A": "1"}, is_cut=False)) as response:
        assert (await response.read(), response.headers["X-A"]) == (b"".join(EVENTS), "1")
        assert response.headers["Content-Type"] == "text/event-stream"
    async with answering(lambda request: wire.stream(request, EVENTS, {}, is_cut=True)) as response:
        assert await response.content.read(len(b"".join(EVENTS[:2]))) == b"".join(EVENTS[:2])
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()


async def test_half_an_answer_comes_with_the_length_of_all() -> None:
    async with answering(lambda request: wire.send_half(request, b"123456789")) as response:
        assert response.headers["Content-Length"] == "9"
        assert await response.content.read(4) == b"1234"
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()


async def test_a_connection_that_is_cut_brings_nothing() -> None:
    async def cut(request: web.BaseRequest) -> web.StreamResponse:
        wire.cut_connection(request)

    with pytest.raises(aiohttp.ServerDisconnectedError):
        async with answering(cut):
            pass
