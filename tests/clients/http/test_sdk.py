"""The SDKs' own clients, on the library's connections."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import anthropic
import httpx2
import pytest

from tests.clients.canned_server import CUT, HANG, Canned, CannedServer
from vfgym.clients import ClientConfig
from vfgym.clients.http.sdk import AiohttpTransport, _as_httpx_error, anthropic_client, openai_client
from vfgym.clients.http.transport import Connections
from vfgym.errors import ModelError
from vfgym.messages import UserMessage
from vfgym.model_server import ModelServer

HELLO = [UserMessage("hello")]


async def test_anthropics_sdk_and_streaming_use_them_too(server: CannedServer) -> None:
    async with ModelServer() as model_server:
        config = ClientConfig(api_base_url=model_server.url, api_key="k")
        connections = Connections(config)
        sdk = anthropic_client(config, connections)
        ask: Any = {"model": "echo", "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]}
        assert (await sdk.messages.create(**ask)).content[0].text == "hi"  # type: ignore[union-attr]
        async with sdk.messages.stream(**ask) as stream:
            assert "".join([text async for text in stream.text_stream]) == "hi"
        with pytest.raises(anthropic.BadRequestError):
            await sdk.messages.create(**{**ask, "messages": []})
        pool = connections.pool()
        assert pool._running == 0
        await sdk.close()
        await connections.close()
        assert pool.session.closed


@pytest.fixture
async def transport(server: CannedServer) -> AsyncIterator[httpx2.AsyncClient]:
    connections = Connections(ClientConfig(api_base_url=server.url, api_key="k", max_retries=1, max_body_mb=0.001))
    async with httpx2.AsyncClient(transport=AiohttpTransport(connections)) as client:
        yield client
    await connections.close()


async def pieces() -> AsyncIterator[bytes]:
    yield b'{"a":'
    yield b"1}"


async def test_bodies_pass_whole_and_in_pieces(transport: httpx2.AsyncClient, server: CannedServer) -> None:
    for content in (b'{"a":1}', pieces()):
        response = await transport.post(f"{server.url}/x?q=%2F", content=content, headers=[("X-A", "1"), ("X-A", "2")])
        assert (response.status_code, response.json()["model"]) == (200, "served-model")
    assert server.bodies == [{"a": 1}] * 2
    assert server.paths == ["/v1/x?q=%2F"] * 2
    assert server.headers[0].getall("X-A") == ["1", "2"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("content", "count"), [(b"{}", 2), (None, 2), (pieces, 1)])
async def test_only_what_can_be_sent_again_is(transport: httpx2.AsyncClient, server: CannedServer, content: Any, count: int) -> None:
    server.answers = [Canned({}, 503, {"retry-after-ms": "1"})]
    response = await transport.post(f"{server.url}/x", content=content() if content is pieces else content)
    assert (response.status_code, len(server.bodies)) == (503, count)


async def test_an_answer_that_is_too_large(transport: httpx2.AsyncClient, server: CannedServer) -> None:
    for kind in ("application/json", "text/event-stream"):
        server.answers = [Canned("x" * 2000, content_type=kind)]
        with pytest.raises(ModelError, match=r"more than 0.001 MB"):
            await transport.post(f"{server.url}/x")


@pytest.mark.parametrize(
    ("answer", "kind"), [(CUT, httpx2.RemoteProtocolError), (HANG, httpx2.ReadTimeout)], ids=["a cut connection", "no answer"]
)
async def test_what_breaks_is_told_in_httpxs_words(transport: httpx2.AsyncClient, server: CannedServer, answer: Any, kind: Any) -> None:
    server.answers = [answer]
    request = transport.build_request("POST", f"{server.url}/x", content=pieces(), timeout=httpx2.Timeout(60.0, read=0.05))
    with pytest.raises(kind) as caught:
        await transport.send(request)
    assert caught.value.request is request
    assert caught.value.__cause__ is None


KEY: Any = aiohttp.client_reqrep.ConnectionKey("a.example", 80, False, True, None, None, None)


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (aiohttp.ConnectionTimeoutError("x"), httpx2.ConnectTimeout, "x"),
        (TimeoutError(), httpx2.ReadTimeout, "TimeoutError"),
        (aiohttp.SocketTimeoutError("x"), httpx2.ReadTimeout, "x"),
        (aiohttp.ClientProxyConnectionError(KEY, OSError(1, "x")), httpx2.ProxyError, "a.example"),
        (aiohttp.ClientConnectorError(KEY, OSError(1, "x")), httpx2.ConnectError, "a.example"),
        (aiohttp.InvalidURL("x"), httpx2.UnsupportedProtocol, "x"),
        (aiohttp.NonHttpUrlClientError("ftp://x"), httpx2.UnsupportedProtocol, "ftp://x"),
        (aiohttp.ClientPayloadError("x"), httpx2.RemoteProtocolError, "x"),
        (ConnectionResetError(), httpx2.RemoteProtocolError, "ConnectionResetError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_errors_have_the_kind_that_httpx_gives_them(error: Exception, kind: type[Exception], says: str) -> None:
    request = httpx2.Request("POST", "http://a.example")
    made = _as_httpx_error(error, request)
    assert (type(made), made.request) == (kind, request)
    assert says in str(made)


async def test_a_stream_that_is_left_early_frees_its_place_once(transport: httpx2.AsyncClient, server: CannedServer) -> None:
    server.answers = [Canned("data: 1\n\n", content_type="text/event-stream")]
    pool = transport._transport.connections.pool()  # type: ignore[attr-defined]
    for reads in (False, True):
        async with transport.stream("POST", f"{server.url}/x") as response:
            assert pool._running == 1
            if reads:
                assert await response.aread() == b"data: 1\n\n"
        await response.stream.aclose()  # type: ignore[union-attr]
        assert pool._running == 0
        assert not pool.session.connector._acquired


@pytest.mark.parametrize("make", [openai_client, anthropic_client])
async def test_a_client_is_made_as_the_configuration_says(make: Any, server: CannedServer) -> None:
    config = ClientConfig(
        api_base_url=f"{server.root}/base", api_key="k", timeout=50, connect_timeout=3, max_retries=7, extra_headers={"X-A": "1"}
    )
    sdk = make(config, Connections(config))
    assert (sdk.api_key, str(sdk.base_url).rstrip("/"), sdk.max_retries) == ("k", f"{server.root}/base", 0)
    assert (sdk.timeout.read, sdk.timeout.connect, sdk._custom_headers["X-A"]) == (50, 3, "1")
    await sdk.close()


async def test_nobody_is_there(transport: httpx2.AsyncClient) -> None:
    with pytest.raises(ModelError, match="redirects"):  # not the server that was named
        await transport.post("http://other.invalid/x")
