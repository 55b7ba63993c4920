"""The SDKs' own clients, made of a configuration, on the connections of `vfgym.clients.transport`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import aiohttp
import httpx2
from yarl import URL

from vfgym.clients.config import EndpointClientConfig
from vfgym.clients.transport import Connections, Pool

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI


def openai_client(config: EndpointClientConfig, connections: Connections) -> AsyncOpenAI:
    """Return a client of the OpenAI SDK, which may be used on any event loop."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(
        api_key=config.resolved_api_key(),
        base_url=config.api_base_url,
        timeout=_timeout(config),
        max_retries=config.max_retries,
        default_headers=config.resolved_headers(),
        http_client=_http_client(config, connections),
    )


def anthropic_client(config: EndpointClientConfig, connections: Connections) -> AsyncAnthropic:
    """Return a client of the Anthropic SDK, which may be used on any event loop."""
    from anthropic import AsyncAnthropic

    return AsyncAnthropic(
        api_key=config.resolved_api_key(),
        base_url=config.api_base_url,
        timeout=_timeout(config),
        max_retries=config.max_retries,
        default_headers=config.resolved_headers(),
        http_client=_http_client(config, connections),
    )


def _timeout(config: EndpointClientConfig) -> httpx2.Timeout:
    return httpx2.Timeout(config.timeout, connect=config.connect_timeout)


def _http_client(config: EndpointClientConfig, connections: Connections) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=AiohttpTransport(connections), timeout=_timeout(config), follow_redirects=True)


class AiohttpTransport(httpx2.AsyncBaseTransport):
    """Sends the SDKs' requests over `Connections`.

    Unlike the transport that the SDKs ship, it shares its connections with other callers and event loops, bounds the whole
    request by the read timeout, and tells a broken connection from a timeout.
    """

    def __init__(self, connections: Connections) -> None:
        """Take the connections, which stay their owner's to close."""
        self.connections = connections

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; the body of the response is read afterwards.

        Raises:
            httpx2.TransportError: If the connection cannot be made, breaks, or takes too long.
        """
        seconds = request.extensions.get("timeout", {})
        pool = self.connections.pool()
        headers = request.headers.multi_items()
        if not pool.enter():
            headers.append(("Connection", "close"))
        try:
            response = await pool.session.request(
                request.method,
                URL(str(request.url), encoded=True),
                headers=headers,
                data=_body(request),
                allow_redirects=False,
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=seconds.get("read"), sock_connect=seconds.get("connect")),
            )
        except BaseException as error:
            pool.leave()
            if isinstance(error, aiohttp.ClientError | TimeoutError | OSError):
                raise _as_httpx_error(error, request) from error
            raise
        extensions = {"http_version": b"HTTP/1.1", "reason_phrase": (response.reason or "").encode("ascii", "replace")}
        return httpx2.Response(
            response.status,
            headers=list(response.raw_headers),
            stream=_BodyStream(response, pool, request),
            request=request,
            extensions=extensions,
        )


def _body(request: httpx2.Request) -> bytes | AsyncIterator[bytes] | None:
    try:
        return request.content or None
    except httpx2.RequestNotRead:
        # aiohttp frames a stream itself, and refuses a header that says so already.
        request.headers.pop("transfer-encoding", None)
        return aiter(request.stream)  # type: ignore[arg-type]


class _BodyStream(httpx2.AsyncByteStream):
    """The body of a response, as httpx reads it."""

    def __init__(self, response: aiohttp.ClientResponse, pool: Pool, request: httpx2.Request) -> None:
        self._response = response
        self._pool: Pool | None = pool
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _as_httpx_error(error, self._request) from error

    async def aclose(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.leave()
            if self._response.content.at_eof():
                self._response.release()
            else:
                self._response.close()


def _as_httpx_error(error: Exception, request: httpx2.Request) -> httpx2.TransportError:
    kind: type[httpx2.TransportError]
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        kind = httpx2.ConnectTimeout
    elif isinstance(error, TimeoutError):
        kind = httpx2.ReadTimeout
    elif isinstance(error, aiohttp.ClientProxyConnectionError | aiohttp.ClientHttpProxyError):
        kind = httpx2.ProxyError
    elif isinstance(error, aiohttp.ClientConnectorError):
        kind = httpx2.ConnectError
    elif isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
        kind = httpx2.UnsupportedProtocol
    else:
        kind = httpx2.RemoteProtocolError
    return kind(str(error) or type(error).__name__, request=request)
