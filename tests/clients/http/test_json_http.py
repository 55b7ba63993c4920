"""The lean way to ask a route for JSON: addresses, headers, bodies, and what comes back."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai
import pytest

from tests.clients.canned_server import CUT, HANG, Canned, CannedServer
from vfgym.clients import ClientConfig
from vfgym.clients.http.json_http import JsonRoute, _client_timeout, dumps, encode_json
from vfgym.clients.http.transport import Connections
from vfgym.errors import ModelError


@pytest.fixture
async def connections(server: CannedServer) -> AsyncIterator[Connections]:
    made = Connections(ClientConfig(api_base_url=f"{server.url}/?v=1", api_key="k", extra_headers={"X-A": "1", "X-B": "1"}, max_retries=0))
    yield made
    await made.close()


@pytest.mark.parametrize(
    ("value", "sent"), [({"a": [1, "é"], "b": None}, '{"a":[1,"é"],"b":null}'.encode()), ("cut \ud83d", b'"cut \\ud83d"'), ("", b'""')]
)
def test_compact_json_in_utf_8(value: Any, sent: bytes) -> None:
    assert encode_json(value) == sent


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("encode", [encode_json, dumps])
def test_numbers_that_json_does_not_have_are_refused(encode: Any, number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode({"a": number})


async def test_a_route_is_below_the_url_and_keeps_its_query(server: CannedServer, connections: Connections) -> None:
    await JsonRoute(connections, "/chat/completions").post(b"{}")
    await JsonRoute(connections, "generate", root=server.root).post(b"{}", query={"dry": True, "n": 0, "none": None})
    assert server.paths == ["/v1/chat/completions?v=1", "/generate?dry=true&n=0"]


async def test_headers(server: CannedServer, connections: Connections, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "")
    route = JsonRoute(connections, "x")
    await route.post(b"{}", {"X-B": "2", "authorization": "Bearer other"})
    await route.post(b"{}")
    first, second = server.headers
    assert (first["X-A"], first["X-B"], first.getall("Authorization")) == ("1", "2", ["Bearer other"])  # type: ignore[attr-defined]
    assert (second["X-B"], second["Authorization"]) == ("1", "Bearer k")
    assert (second["OpenAI-Organization"], "OpenAI-Project" in second) == ("org", False)
    assert (second["Content-Type"], second["Accept"]) == ("application/json", "application/json")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project")
    monkeypatch.delenv("OPENAI_ORG_ID")
    await JsonRoute(connections, "x").post(b"{}")
    assert (server.headers[2]["OpenAI-Project"], "OpenAI-Organization" in server.headers[2]) == ("project", False)


@pytest.mark.parametrize("status", [200, 500])
async def test_a_body_may_be_as_large_as_is_said_and_no_larger(server: CannedServer, status: int) -> None:
    connections = Connections(ClientConfig(api_base_url=server.url, api_key="k", max_body_mb=1000 / 2**20, max_retries=3))
    text = json.dumps("x" * 998)
    server.answers = [Canned(text), Canned(text[:-1] + 'y"', status), Canned(text)]
    route = JsonRoute(connections, "x")
    assert await route.post(b"{}") == "x" * 998
    with pytest.raises(ModelError) as caught:
        await route.post(b"{}")
    assert str(caught.value) == (
        f"the body of the provider's answer (HTTP status {status}) has more than 0.000953674 MB, uncompressed:"
        " max_body_mb of the ClientConfig says how much it may have"
    )
    assert await route.post(b"{}") == "x" * 998
    assert (len(server.bodies), connections.pool()._running) == (3, 0)
    await connections.close()


async def test_the_time_to_connect_is_the_attempts_own_or_the_configurations(connections: Connections) -> None:
    connections.config = connections.config.model_copy(update={"timeout": 50.0, "connect_timeout": 3.0})
    pool = connections.pool()
    assert (pool.session.timeout.total, pool.session.timeout.sock_connect) == (50, 3)
    for given, total, connect in ((7, 7, 3), (0.5, 0.5, 3), (httpx2.Timeout(60, read=8, connect=2), 8, 2), (httpx2.Timeout(9), 9, 9)):
        made = _client_timeout(pool, given)
        assert (made.total, made.sock_connect) == (total, connect)


@pytest.mark.parametrize(
    ("answer", "read"), [({"a": [0, None]}, {"a": [0, None]}), (Canned("null"), None), (Canned("<html>"), "<html>"), (Canned(""), "")]
)
async def test_what_comes_back(server: CannedServer, connections: Connections, answer: Any, read: Any) -> None:
    server.answers = [answer]
    assert await JsonRoute(connections, "x").post(b"{}") == read


async def test_an_answer_that_is_nested_too_deeply(server: CannedServer, connections: Connections) -> None:
    server.answers = [Canned("[" * 10_000 + "]" * 10_000)]
    with pytest.raises(ModelError, match="cannot be read"):
        await JsonRoute(connections, "x").post(b"{}")


KINDS = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    403: openai.PermissionDeniedError,
    404: openai.NotFoundError,
    409: openai.ConflictError,
    418: openai.APIStatusError,
    422: openai.UnprocessableEntityError,
    429: openai.RateLimitError,
    500: openai.InternalServerError,
    599: openai.InternalServerError,
}


@pytest.mark.parametrize(("status", "kind"), KINDS.items())
async def test_errors_are_the_sdks_own(server: CannedServer, connections: Connections, status: int, kind: Any) -> None:
    body = {"error": {"message": "no such thing", "type": "t", "param": "p", "code": "gone"}}
    server.answers = [Canned(body, status, {"x-request-id": "r1"})]
    with pytest.raises(openai.APIStatusError) as caught:
        await JsonRoute(connections, "x").post(b"{}")
    error = caught.value
    assert type(error) is kind
    assert (error.status_code, error.code, error.param, error.type, error.request_id) == (status, "gone", "p", "t", "r1")
    assert (error.body, error.message) == (body["error"], f"Error code: {status} - no such thing")
    assert error.response.json() == body


@pytest.mark.parametrize(
    ("answer", "body", "message"),
    [
        (Canned("Bad gateway", 502), "Bad gateway", "Error code: 502"),
        (Canned({"error": "why"}, 502), "why", "Error code: 502"),
        (Canned({"message": "why"}, 502), {"message": "why"}, "Error code: 502 - why"),
        (Canned({"error": {"message": ""}}, 502), {"message": ""}, "Error code: 502"),
        (Canned([1], 502), [1], "Error code: 502"),
    ],
)
async def test_bodies_of_errors(server: CannedServer, connections: Connections, answer: Any, body: Any, message: str) -> None:
    server.answers = [answer]
    with pytest.raises(openai.InternalServerError) as caught:
        await JsonRoute(connections, "x").post(b"{}")
    assert (caught.value.body, caught.value.message) == (body, message)


@pytest.mark.parametrize("timeout", [0.05, httpx2.Timeout(60.0, read=0.05)])
async def test_each_attempt_has_its_time(server: CannedServer, connections: Connections, timeout: Any) -> None:
    server.answers = [HANG]
    with pytest.raises(openai.APITimeoutError):
        await JsonRoute(connections, "x").post(b"{}", timeout=timeout)
    await server.left.wait()


async def test_a_connection_that_breaks_shows_no_header(server: CannedServer, connections: Connections) -> None:
    server.answers = [CUT]
    with pytest.raises(openai.APIConnectionError, match="Connection error: ") as caught:
        await JsonRoute(connections, "x").post(b"{}", {"X-Key": "sesame"})
    assert caught.value.__cause__ is None
    assert "sesame" not in repr(caught.value) + str(caught.value.__context__)


async def test_after_whatever_happens_no_request_counts_as_running(server: CannedServer, connections: Connections) -> None:
    route = JsonRoute(connections, "x")
    server.answers = [{}, CUT, Canned({}, 500), HANG]
    for _ in range(4):
        try:
            await route.post(json.dumps({}).encode(), timeout=0.05 if server.answers[0] is HANG else None)
        except openai.APIError:
            pass
    assert connections.pool()._running == 0
