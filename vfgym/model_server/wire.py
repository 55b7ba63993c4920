"""HTTP answers: whole, streamed, and cut off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from aiohttp import web

from vfgym.bounded_json import parse_json
from vfgym.model_server.exchange import RequestRefused
from vfgym.model_server.parsed_request import dumps
from vfgym.model_server.provider_errors import ProviderName


class ConnectionCut(Exception):
    """The connection was closed on purpose."""


def parse_body(raw: bytes) -> tuple[Any, str | None]:
    """Return a body as JSON, or as text where it is none, and what is wrong with it."""
    if not raw:
        return None, "the request has no body: send a JSON object"
    try:
        body = parse_json(raw)
    except ValueError as error:
        return raw.decode("utf-8", "replace"), f"We could not parse the JSON body of your request: {error}"
    if not isinstance(body, dict):
        return body, f"the body must be a JSON object, got {type(body).__name__}"
    return body, None


def check_method(http: web.BaseRequest, method: str) -> None:
    """Refuse any other HTTP method.

    Raises:
        RequestRefused: If the request has another one.
    """
    if http.method != method:
        raise RequestRefused(405, f"{http.path} takes {method} requests, got {http.method}", headers={"Allow": method})


def id_header(provider: ProviderName, number: int) -> dict[str, str]:
    """Return the header that names a request to its client."""
    return {"request-id" if provider == "anthropic" else "x-request-id": f"req_{number}"}


def json_response(body: Any, headers: Mapping[str, str], status: int = 200) -> web.Response:
    """Return a JSON answer; a body of bytes is sent as it is."""
    data = body if isinstance(body, bytes) else dumps(body)
    return web.Response(body=data, status=status, headers={"Content-Type": "application/json", **headers})


async def stream(http: web.BaseRequest, events: list[bytes], headers: Mapping[str, str], *, is_cut: bool) -> web.StreamResponse:
    """Send server-sent events; where the connection is to be cut, half of them.

    Raises:
        ConnectionCut: If the connection was cut.
    """
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache", **headers})
    await response.prepare(http)
    for data in events[: len(events) // 2] if is_cut else events:
        await response.write(data)
    if is_cut:
        cut_connection(http)
    await response.write_eof()
    return response


async def send_half(http: web.BaseRequest, data: bytes) -> NoReturn:
    """Send the headers and half of an answer, and cut the connection.

    Raises:
        ConnectionCut: Always.
    """
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(data))})
    await response.prepare(http)
    await response.write(data[: len(data) // 2])
    cut_connection(http)


def cut_connection(http: web.BaseRequest) -> NoReturn:
    """Close the connection of a request.

    Raises:
        ConnectionCut: Always.
    """
    if http.transport is not None:
        http.transport.close()  # sends what was written, and no more
    raise ConnectionCut
