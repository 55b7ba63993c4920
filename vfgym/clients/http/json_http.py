"""A lean way to ask a route for JSON: no SDK, one request body of bytes, one parsed answer.

It behaves as a client of the OpenAI SDK that is made of the same configuration: the same retries (`vfgym.clients.http.retries`), and the
SDK's own exceptions, which are made only where one is raised.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vfgym.aio.threads import on_thread
from vfgym.bounded_json import parse_json
from vfgym.clients.asking import note_sending
from vfgym.clients.config import EndpointClientConfig
from vfgym.clients.http.retries import repeats
from vfgym.clients.http.transport import DECODED, Connections, Pool, body_of
from vfgym.context import in_force
from vfgym.errors import ModelError
from vfgym.output.redaction import Secret

if TYPE_CHECKING:
    from multidict import CIMultiDict
    from yarl import URL

_ORGANISATION = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
"""Headers that the SDK takes from the environment."""

dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
"""Encode compactly; NaN and infinities, which are not JSON, are refused."""

_escaped = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def encode_json(value: Any) -> bytes:
    """Return `value` as compact JSON in UTF-8."""
    try:
        return dumps(value).encode()
    except UnicodeEncodeError:  # half of a surrogate pair (a model's answer that was cut inside an emoji) has no UTF-8
        return _escaped(value).encode()


class JsonRoute:
    """One route of an endpoint that takes and answers JSON."""

    def __init__(self, connections: Connections, path: str, *, root: str | None = None) -> None:
        """Name the route.

        Args:
            connections: The way to the endpoint.
            path: The route, below the endpoint's URL.
            root: Another URL that the route is below.
        """
        from multidict import CIMultiDict
        from yarl import URL

        config = connections.config
        base = URL(root or config.api_base_url)
        self.connections = connections
        self.url = base.with_path(f"{base.raw_path.rstrip('/')}/{path.lstrip('/')}", encoded=True, keep_query=True)
        self._headers: CIMultiDict[str] = CIMultiDict(
            {
                "Accept": "application/json",
                "Content-Type": "application/json",
                "User-Agent": "vfgym",
                "Authorization": Secret(f"Bearer {config.resolve_api_key()}"),
            }
        )
        self._headers.update({header: os.environ[name] for header, name in _ORGANISATION.items() if os.environ.get(name)})
        self._headers.update(config.resolve_headers())

    async def post(
        self,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        timeout: Any = None,
    ) -> Any:
        """Send JSON and return the JSON that comes back; what is not JSON comes back as text.

        Args:
            body: The JSON.
            headers: Headers of this request, over those of the configuration.
            query: Added to the URL.
            timeout: Seconds that each attempt may take (a number, or an ``httpx2.Timeout``); those of the configuration by default.

        Raises:
            openai.APIStatusError: If the endpoint answers with an error that a retry may not, or did not, mend.
            openai.APIConnectionError: If it cannot be reached.
            openai.APITimeoutError: If it takes too long.
            ModelError: If the answer is larger than the configuration allows, or nested too deeply.
        """
        import aiohttp

        own_headers = self._headers
        if headers:
            own_headers = own_headers.copy()
            own_headers.update(headers)
        url = self.url if not query else self.url.extend_query(_plain_query(query))
        pool, config = self.connections.pool(), self.connections.config
        retries = 0
        while True:
            failure: Exception | None = None
            try:
                status, answered, data = await _exchange(pool, config, url, body, own_headers, timeout)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                failure = error
            if failure is not None:
                # Redirects without an end are an answer, and would be the same again.
                if isinstance(failure, aiohttp.TooManyRedirects) or not await repeats(retries, config.max_retries):
                    # Not from `failure`: what aiohttp raises holds the headers of the request, and its `repr` shows them.
                    raise await _connection_error(str(url), failure)
            else:
                if status < 400:
                    return _parse_json(data)
                if not await repeats(retries, config.max_retries, status, answered):
                    raise await _status_error(str(url), status, answered, data)
            retries += 1


async def _exchange(
    pool: Pool, config: EndpointClientConfig, url: URL, body: bytes, headers: CIMultiDict[str], timeout: Any
) -> tuple[int, Mapping[str, str], bytes]:
    may_keep = pool.enter()
    if not may_keep:
        headers = headers.copy()
        headers["Connection"] = "close"
    options: dict[str, Any] = {} if timeout is None else {"timeout": _client_timeout(pool, timeout)}
    if in_force().meters:
        options["middlewares"] = (pool.check, _count_sending)
    try:
        async with pool.session.post(url, data=body, headers=headers, **options) as response:
            return response.status, response.headers, await body_of(response, config)
    finally:
        pool.leave()


async def _count_sending(request: Any, send: Any) -> Any:
    """Count what is sent: aiohttp asks here before each request, and before each that a redirect makes of it."""
    note_sending()
    return await send(request)


def _client_timeout(pool: Pool, timeout: Any) -> Any:
    import aiohttp

    if isinstance(timeout, int | float):
        return aiohttp.ClientTimeout(total=timeout, sock_connect=pool.session.timeout.sock_connect)
    return aiohttp.ClientTimeout(total=timeout.read, sock_connect=timeout.connect)


def _plain_query(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items() if value is not None}


def _parse_json(data: bytes) -> Any:
    try:
        return parse_json(data)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return data.decode(errors="replace")
    except ValueError as error:
        raise ModelError(f"the provider's answer cannot be read: {error}") from error


async def _sdk() -> Any:
    return await on_thread(importlib.import_module, "openai")  # a second's work, the first time


async def _connection_error(url: str, error: Exception) -> Exception:
    openai = await _sdk()
    request = _request(url)
    made: Exception
    if isinstance(error, TimeoutError):
        made = openai.APITimeoutError(request=request)
    else:
        made = openai.APIConnectionError(message=f"Connection error: {type(error).__name__}: {error}", request=request)
    return made


async def _status_error(url: str, status: int, headers: Mapping[str, str], data: bytes) -> Exception:
    openai = await _sdk()
    import httpx2

    kinds = {
        400: openai.BadRequestError,
        401: openai.AuthenticationError,
        403: openai.PermissionDeniedError,
        404: openai.NotFoundError,
        409: openai.ConflictError,
        422: openai.UnprocessableEntityError,
        429: openai.RateLimitError,
    }
    kind = kinds.get(status, openai.InternalServerError if status >= 500 else openai.APIStatusError)
    text = data.decode(errors="replace").strip()
    try:
        body: Any = parse_json(text)
    except ValueError:
        body = text
    said = body.get("error", body) if isinstance(body, dict) else body
    message = said.get("message") if isinstance(said, dict) else None
    message = f"Error code: {status} - {message}" if isinstance(message, str) and message else f"Error code: {status}"
    kept = [(name, value) for name, value in headers.items() if name.lower() not in DECODED]
    response = httpx2.Response(status, headers=kept, content=data, request=_request(url))
    made: Exception = kind(message, response=response, body=said)
    return made


def _request(url: str) -> Any:
    import httpx2

    return httpx2.Request("POST", url)
