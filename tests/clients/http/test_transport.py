"""Retries, broken connections, cancellation, event loops and closing, over real HTTP.

Retries hold for both ways to the server, without the SDK and through it; connections are the same for both.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import openai
import pytest
from yarl import URL

from tests.clients.canned_server import COMPLETION, CUT, HANG, Canned, CannedServer
from tests.clients.every_client import ThroughTheSDK
from vfgym.clients import Client, ClientConfig
from vfgym.clients.http.transport import Connections, _only_to, proxy_of
from vfgym.clients.providers.openai_chat_completions import OpenAIChatCompletionsClient
from vfgym.errors import ModelError
from vfgym.messages import UserMessage
from vfgym.model_server import ModelServer

HELLO = [UserMessage("hello")]
SOON = {"Retry-After": "0.001"}
PATIENCE = 60.0
"""Seconds after which a test fails instead of hanging."""

Make = Callable[..., Client]


@pytest.fixture(params=[OpenAIChatCompletionsClient, ThroughTheSDK])
async def make(request: pytest.FixtureRequest, server: CannedServer) -> AsyncIterator[Make]:
    made: list[Client] = []

    def make(**fields: Any) -> Client:
        made.append(request.param(ClientConfig(**{"api_base_url": server.url, "api_key": "k", **fields})))
        return made[-1]

    yield make
    for client in made:
        await client.close()


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
async def test_a_passing_error_is_retried(make: Make, server: CannedServer, status: int) -> None:
    server.answers = [Canned({}, status, SOON), Canned({}, status, {"retry-after-ms": "1"}), COMPLETION]
    assert (await make().get_response(HELLO, "m")).message.content == "Oslo."
    assert len(server.bodies) == 3
    assert server.bodies[0] == server.bodies[2]


@pytest.mark.parametrize("status", [400, 401, 404, 422])
async def test_a_lasting_error_is_not(make: Make, server: CannedServer, status: int) -> None:
    server.answers = [Canned({}, status, SOON)]
    with pytest.raises((ModelError, openai.AuthenticationError, openai.NotFoundError)):
        await make().get_response(HELLO, "m")
    assert len(server.bodies) == 1


async def test_the_server_may_decide(make: Make, server: CannedServer) -> None:
    server.answers = [Canned({}, 400, {"x-should-retry": "true", **SOON}), Canned({}, 500, {"x-should-retry": "false", **SOON})]
    with pytest.raises(ModelError):
        await make().get_response(HELLO, "m")
    assert len(server.bodies) == 2


async def test_retries_have_an_end(make: Make, server: CannedServer) -> None:
    server.answers = [Canned({"error": {"message": "slow down"}}, 429, SOON)]
    with pytest.raises(ModelError, match="slow down") as caught:
        await make(max_retries=3).get_response(HELLO, "m")
    assert isinstance(caught.value.__cause__, openai.RateLimitError)
    assert len(server.bodies) == 4


async def test_a_cut_connection_is_retried(make: Make, server: CannedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfgym.clients.http.retries._FIRST_PAUSE", 0.001)
    server.answers = [CUT, CUT, COMPLETION]
    assert (await make().get_response(HELLO, "m")).message.content == "Oslo."
    assert len(server.bodies) == 3


@pytest.mark.parametrize("fault", ["cut_in_body", "cut_before_headers"])
async def test_cuts_of_the_model_server(fault: str) -> None:
    async with ModelServer() as model_server:
        for kind in (OpenAIChatCompletionsClient, ThroughTheSDK):
            client = kind(ClientConfig(api_base_url=model_server.openai_url, api_key="k", max_retries=0, extra_headers={"X-Fault": fault}))
            with pytest.raises(ModelError) as caught:
                await client.get_response(HELLO, "echo")
            assert type(caught.value.__cause__) is openai.APIConnectionError
            await client.close()


async def test_the_timeout_is_that_of_the_whole_request(make: Make, server: CannedServer) -> None:
    server.answers = [HANG]
    with pytest.raises(ModelError) as caught:
        await make(timeout=0.05, max_retries=0).get_response(HELLO, "m")
    assert type(caught.value.__cause__) is openai.APITimeoutError


async def test_the_connect_timeout_is_that_of_opening_a_connection(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole request has an hour, so only the other limit can end it."""

    async def connect(*args: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", connect)
    with pytest.raises(ModelError) as caught:
        await asyncio.wait_for(make(connect_timeout=0.05, max_retries=0).get_response(HELLO, "m"), PATIENCE)
    assert type(caught.value.__cause__) is openai.APITimeoutError


async def test_a_cancelled_request_leaves_the_others_alone(make: Make, server: CannedServer) -> None:
    client = make()
    server.answers = [HANG, COMPLETION]
    hung = asyncio.create_task(client.get_response(HELLO, "m"))
    while not server.bodies:
        await asyncio.sleep(0)
    others = [asyncio.create_task(client.get_response(HELLO, "m")) for _ in range(5)]
    hung.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hung
    assert [each.message.content for each in await asyncio.gather(*others)] == ["Oslo."] * 5
    await asyncio.wait_for(server.left.wait(), 5)  # the server saw the client go
    assert len(server.bodies) == 6
    pool = client.connections.pool()  # type: ignore[attr-defined]
    assert pool._running == 0
    assert not pool.session.connector._acquired


async def test_nothing_is_retried_after_a_cancellation(make: Make, server: CannedServer) -> None:
    server.answers = [Canned({}, 429, {"Retry-After": "100"})]
    asked = asyncio.create_task(make().get_response(HELLO, "m"))
    while not server.bodies:
        await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asked, 0.02)
    assert len(server.bodies) == 1


async def test_a_pause_does_not_hold_up_others(make: Make, server: CannedServer) -> None:
    client = make()
    server.answers = [Canned({}, 429, {"Retry-After": "100"}), COMPLETION]
    waiting = asyncio.create_task(client.get_response(HELLO, "m"))
    while not server.bodies:
        await asyncio.sleep(0)
    assert (await client.get_response(HELLO, "m")).message.content == "Oslo."
    assert not waiting.done()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_connections_are_limited_and_reused(make: Make, server: CannedServer) -> None:
    client = make(max_connections=3)
    for _ in range(2):
        await asyncio.gather(*(client.get_response(HELLO, "m") for _ in range(12)))
    assert len(server.bodies) == 24
    assert len(server.peers) <= 3


@pytest.mark.parametrize("kept", [0, 1, 28000])
async def test_connections_are_kept(make: Make, server: CannedServer, kept: int) -> None:
    client = make(max_keepalive_connections=kept)
    server.gate = asyncio.Barrier(4)
    await asyncio.gather(*(client.get_response(HELLO, "m") for _ in range(4)))
    assert len(server.peers) == 4
    connector: Any = client.connections.pool().session.connector  # type: ignore[attr-defined]
    assert sum(map(len, connector._conns.values())) == min(kept, 4)
    server.gate = None
    for _ in range(3):
        await client.get_response(HELLO, "m")
    assert len(server.peers) == (7 if kept == 0 else 4)


async def test_sessions_are_closed_when_close_returns(make: Make, server: CannedServer) -> None:
    """Also those of another event loop, however busy that is."""
    client = make()
    await client.get_response(HELLO, "m")
    other = asyncio.new_event_loop()
    thread = threading.Thread(target=other.run_forever)
    thread.start()

    def there(awaitable: Any) -> Any:
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(awaitable, other))

    try:
        await there(client.get_response(HELLO, "m"))
        sessions = [await _session(client), await there(_session(client))]
        other.call_soon_threadsafe(time.sleep, 0.3)
        await client.close()
        assert [session.closed for session in sessions] == [True, True]
    finally:
        other.call_soon_threadsafe(other.stop)
        thread.join()
        other.close()


async def test_closing_twice_and_using_again(make: Make, server: CannedServer) -> None:
    client = make()
    await client.get_response(HELLO, "m")
    session = client.connections.pool().session  # type: ignore[attr-defined]
    await client.close()
    await client.close()
    assert session.closed
    await client.get_response(HELLO, "m")


@pytest.mark.usefixtures("young_heap")
def test_the_session_of_a_loop_that_was_closed_is_closed_where_another_loop_asks() -> None:
    with ModelServer() as model_server:
        client = OpenAIChatCompletionsClient(ClientConfig(api_base_url=model_server.openai_url, api_key="k"))

        loop = asyncio.new_event_loop()
        loop.run_until_complete(client.get_response(HELLO, "echo"))
        session = loop.run_until_complete(_session(client))
        loop.close()
        for number in range(2):
            assert session.closed is (number == 1)
            asyncio.run(client.get_response(HELLO, "echo"))
        asyncio.run(client.close())


async def _session(client: Any) -> Any:
    return client.connections.pool().session


@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize("loop_is_closed", [True, False])
@pytest.mark.parametrize("client_is_closed", [True, False], ids=["closed on another loop", "closed by nobody"])
def test_a_loop_that_ended_without_a_farewell(client_is_closed: bool, loop_is_closed: bool) -> None:
    with ModelServer() as model_server:
        client = OpenAIChatCompletionsClient(ClientConfig(api_base_url=model_server.openai_url, api_key="k"))
        loop = asyncio.new_event_loop()
        loop.run_until_complete(client.get_response(HELLO, "echo"))
        if loop_is_closed:
            loop.close()
        if client_is_closed:
            asyncio.run(client.close())
        del client
        gc.collect()
        if not loop_is_closed:
            loop.run_until_complete(asyncio.sleep(0))
            loop.close()
        del loop
        gc.collect()  # warnings are errors: a socket that nobody closed would be one


def test_a_process_that_exits_without_closing() -> None:
    asks = """
import sys
from vfgym.clients import ClientConfig, resolve_client
from vfgym.aio.background import wait
from vfgym.messages import UserMessage
client = resolve_client(ClientConfig(api_base_url=sys.argv[1], api_key="k"))
print(wait(client.get_response([UserMessage("hello")], "echo")).message.content, "openai" in sys.modules)
"""
    with ModelServer() as model_server:
        command = [sys.executable, "-X", "dev", "-W", "error", "-c", asks, model_server.openai_url]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "hello False\n")
    assert not [word for word in ("Warning", "Traceback", "Unclosed", "unclosed") if word in done.stderr], done.stderr


@pytest.mark.usefixtures("young_heap")
async def test_a_client_that_nobody_closes_on_a_loop_that_goes_on(server: CannedServer) -> None:
    client = OpenAIChatCompletionsClient(ClientConfig(api_base_url=server.url, api_key="k"))
    await client.get_response(HELLO, "m")
    session = client.connections.pool().session
    del client
    gc.collect()
    while not session.closed:
        await asyncio.sleep(0)


async def test_a_proxy_of_the_environment(server: CannedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.root)
    client = OpenAIChatCompletionsClient(ClientConfig(api_base_url="http://models.invalid/v1", api_key="k", max_retries=0))
    assert (await client.get_response(HELLO, "m")).message.content == "Oslo."
    assert server.headers[0]["Host"] == "models.invalid"
    await client.close()


@pytest.mark.parametrize(
    ("variables", "url", "proxy"),
    [
        ({}, "http://a/v1", None),
        ({"http_proxy": "http://p:1"}, "http://a/v1", "http://p:1"),
        ({"http_proxy": "http://p:1"}, "https://a/v1", None),
        ({"https_proxy": "http://s:2", "http_proxy": "http://p:1"}, "https://a/v1", "http://s:2"),
        ({"all_proxy": "http://all:3", "http_proxy": "http://p:1"}, "http://a/v1", "http://p:1"),
        ({"all_proxy": "http://all:3"}, "https://a/v1", "http://all:3"),
        ({"http_proxy": "http://p:1", "no_proxy": "b,a"}, "http://a:8000/v1", None),
        ({"http_proxy": "http://p:1", "no_proxy": "b"}, "http://a:8000/v1", "http://p:1"),
    ],
)
def test_which_proxy_the_environment_names(variables: dict[str, str], url: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert proxy_of(url) == proxy


async def test_a_copy_opens_connections_of_its_own(server: CannedServer) -> None:
    connections = Connections(ClientConfig(api_base_url=server.url, api_key="k"))
    pool = connections.pool()
    assert connections.pool() is pool
    copied = copy.copy(connections)
    assert copied.config == connections.config
    await copied.close()
    assert not pool.session.closed
    assert connections.pool() is pool
    await connections.close()
    assert pool.session.closed


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        *(("http://a:8000/elsewhere", True), ("https://a/v1", True), ("http://a:8001/v1", False), ("https://a:8443/v1", False)),
        *(("http://a/v1", False), ("http://b:8000/v1", False), ("http://a.b:8000/v1", False), ("https://b/v1", False)),
    ],
)
async def test_the_server_that_is_named_is_asked_and_the_same_host_by_https(url: str, allowed: bool) -> None:
    async def send(request: aiohttp.ClientRequest) -> str:
        return "sent"

    request = aiohttp.ClientRequest("POST", URL(url), loop=asyncio.get_running_loop())
    if allowed:
        assert await _only_to("http://a:8000/v1")(request, send) == "sent"
    else:
        with pytest.raises(ModelError, match="redirects to"):
            await _only_to("http://a:8000/v1")(request, send)
