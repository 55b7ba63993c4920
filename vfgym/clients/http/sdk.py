"""The SDKs' own clients, made of a configuration, on the connections of `vfgym.clients.http.transport`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx2
from yarl import URL

from vfgym.clients.asking import note_sending
from vfgym.clients.config import EndpointClientConfig
from vfgym.clients.http.retries import repeats, too_long_a_pause
from vfgym.clients.http.transport import DECODED, Connections, Pool, blocks_of, body_of

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

_EVENTS = "text/event-stream"


def openai_client(config: EndpointClientConfig, connections: Connections) -> AsyncOpenAI:
    """Return a client of the OpenAI SDK, which may be used on any event loop."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(**_settings(config, connections))


def anthropic_client(config: EndpointClientConfig, connections: Connections) -> AsyncAnthropic:
    """Return a client of the Anthropic SDK, which may be used on any event loop."""
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(**_settings(config, connections))


def _settings(config: EndpointClientConfig, connections: Connections) -> dict[str, Any]:
    """Return what both SDKs call the arguments of a client."""
    timeout = httpx2.Timeout(config.timeout, connect=config.connect_timeout)
    return {
        "api_key": config.resolve_api_key(),
        "base_url": config.api_base_url,
        "timeout": timeout,
        "max_retries": 0,  # `AiohttpTransport` sends a request again
        "default_headers": config.resolve_headers(),
        "http_client": httpx2.AsyncClient(transport=AiohttpTransport(connections), timeout=timeout, follow_redirects=True),
    }


def with_bounded_pauses(client: AsyncAnthropic) -> AsyncAnthropic:
    """Return a client like one that was given, which gives up where it is asked for too long a pause (anthropic 2 obeys any)."""

    async def with_limits(request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        if response.status_code >= 400 and too_long_a_pause(response.headers) is not None:
            response.headers["x-should-retry"] = "false"
        return response

    return client.with_middleware(with_limits)


class AiohttpTransport(httpx2.AsyncBaseTransport):
    """Sends the SDKs' requests over `Connections`, again where that may help (see `vfgym.clients.http.retries`).

    Unlike the transport that the SDKs ship, it shares its connections with other callers and event loops, bounds the whole
    request by the read timeout and the answer's body by the configuration, and tells a broken connection from a timeout.
    """

    def __init__(self, connections: Connections) -> None:
        """Take the connections, which stay their owner's to close."""
        self.connections = connections

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request. A stream of events is read afterwards, any other body has been read.

        Raises:
            httpx2.TransportError: If the connection cannot be made, breaks, or takes too long.
            ModelError: If the answer is larger than the configuration allows.
        """
        can_be_repeated = not isinstance(body := _body(request), AsyncIterator)
        max_retries = self.connections.config.max_retries if can_be_repeated else 0
        retries = 0
        while True:
            if retries:  # what httpx itself sends is counted by its hook
                note_sending()
            try:
                response = await self._send(request, body)
            except httpx2.TransportError:
                if not await repeats(retries, max_retries):
                    raise
            else:
                status = response.status_code
                if status < 400 or not await repeats(retries, max_retries, status, response.headers):
                    return response
                await response.aclose()
            retries += 1

    async def _send(self, request: httpx2.Request, body: bytes | AsyncIterator[bytes] | None) -> httpx2.Response:
        try:
            return await self._exchange(request, body)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            failure = _as_httpx_error(error, request)
        # Not from `error`: what aiohttp raises holds the headers of the request, and its `repr` shows them.
        raise failure

    async def _exchange(self, request: httpx2.Request, body: bytes | AsyncIterator[bytes] | None) -> httpx2.Response:
        seconds = request.extensions.get("timeout", {})
        pool = self.connections.pool()
        headers = request.headers.multi_items()
        if not pool.enter():
            headers.append(("Connection", "close"))
        response = None
        try:
            response = await pool.session.request(
                request.method,
                URL(str(request.url), encoded=True),
                headers=headers,
                data=body,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=seconds.get("read"), sock_connect=seconds.get("connect")),
            )
            stream = _BodyStream(response, pool, request, self.connections.config)
            read = None if response.content_type == _EVENTS else await body_of(response, self.connections.config)
        except BaseException:
            if response is not None:
                response.close()
            pool.leave()
            raise
        if read is not None:
            await stream.aclose()
        kept = [(name, value) for name, value in response.raw_headers if name.decode("latin-1").lower() not in DECODED]
        extensions = {"http_version": b"HTTP/1.1", "reason_phrase": (response.reason or "").encode("ascii", "replace")}
        content = {"stream": stream} if read is None else {"content": read}
        return httpx2.Response(response.status, headers=kept, request=request, extensions=extensions, **content)


def _body(request: httpx2.Request) -> bytes | AsyncIterator[bytes] | None:
    try:
        return request.content or None
    except httpx2.RequestNotRead:
        # aiohttp frames a stream itself, and refuses a header that says so already.
        request.headers.pop("transfer-encoding", None)
        return aiter(request.stream)  # type: ignore[arg-type]


class _BodyStream(httpx2.AsyncByteStream):
    """The body of a response, as httpx reads it."""

    def __init__(self, response: aiohttp.ClientResponse, pool: Pool, request: httpx2.Request, config: EndpointClientConfig) -> None:
        self._response = response
        self._pool: Pool | None = pool
        self._request = request
        self._config = config

    async def __aiter__(self) -> AsyncIterator[bytes]:
        failure: Exception | None = None
        try:
            async for block in blocks_of(self._response, self._config):
                yield block
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            failure = error
        if failure is not None:
            raise _as_httpx_error(failure, self._request)

    async def aclose(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.leave()
            if self._response.content.at_eof():
                self._response.release()
            else:
                self._response.close()


def _as_httpx_error(error: Exception, request: httpx2.Request) -> httpx2.TransportError:
    kind = next((kind for kinds, kind in _HTTPX_ERRORS if isinstance(error, kinds)), httpx2.RemoteProtocolError)
    return kind(str(error) or type(error).__name__, request=request)


_HTTPX_ERRORS: tuple[tuple[tuple[type[Exception], ...], type[httpx2.TransportError]], ...] = (
    ((aiohttp.ConnectionTimeoutError,), httpx2.ConnectTimeout),
    ((TimeoutError,), httpx2.ReadTimeout),
    ((aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError), httpx2.ProxyError),
    ((aiohttp.ClientConnectorError,), httpx2.ConnectError),
    ((aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError), httpx2.UnsupportedProtocol),
)
"""What httpx calls the errors of aiohttp; the first row that fits counts."""
