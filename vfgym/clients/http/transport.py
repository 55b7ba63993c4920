"""Connections to an endpoint: one aiohttp session for each event loop, shared by whoever asks there.

aiohttp carries several times as many requests a second as the transport that the SDKs take by default. The SDKs get there
through `vfgym.clients.http.sdk`, plain chat completions through `vfgym.clients.http.json_http`.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import ssl
import urllib.request
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from vfgym.aio.bounds import raise_descriptor_limit
from vfgym.clients.config import EndpointClientConfig
from vfgym.errors import ModelError
from vfgym.output.redaction import secret_url

if TYPE_CHECKING:
    import aiohttp

Middleware = Callable[[Any, Any], Awaitable[Any]]


class Pool:
    """The connections of one event loop."""

    __slots__ = ("__weakref__", "_keeper", "_max_kept", "_running", "check", "loop", "session")

    def __init__(self, loop: asyncio.AbstractEventLoop, config: EndpointClientConfig) -> None:
        """Make a session on `loop`, which is the running one."""
        self.loop = loop
        self.check = _only_to(config.api_base_url)
        """Asked by the session before it sends anything; who gives a request middlewares of its own puts this first."""
        self.session = session = _new_session(config, self.check)
        self._max_kept = config.max_keepalive_connections
        self._running = 0
        # Closes the session when the loop shuts down its generators, as asyncio.run does, or when nobody uses the pool any more.
        self._keeper = _close_with(session)
        try:
            self._keeper.__anext__().__await__().send(None)
        except StopIteration:
            pass
        weakref.finalize(self, _drop_if_idle, loop, session).atexit = False
        _pools.add(self)

    def enter(self) -> bool:
        """Count a request as running, and say whether its connection may be kept afterwards.

        A connection that is kept is one whose request began while no more than the permitted number ran; as kept connections
        are taken first, there are never more of them.
        """
        self._running += 1
        return self._running <= self._max_kept

    def leave(self) -> None:
        """Count a request as done."""
        self._running -= 1

    async def close(self) -> None:
        """Close the connections, whatever has become of their loop. Requests that still run on it fail."""
        if self.loop is asyncio.get_running_loop():
            await self._finish()
        elif self.loop.is_running():
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._finish(), self.loop))
        else:
            _drop(self.loop, self.session)

    async def _finish(self) -> None:
        # By its keeper, which would otherwise be left to a loop that may have stopped by then.
        await self._keeper.aclose()


class Connections:
    """The connections to one endpoint, from any number of event loops."""

    def __init__(self, config: EndpointClientConfig) -> None:
        """Open nothing yet.

        Args:
            config: Where the endpoint is, and the limits of its connections. They hold for each event loop.
        """
        self.config = config
        self._pools: dict[int, Pool] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pools": {}}  # a copy opens connections of its own

    def pool(self) -> Pool:
        """Return the connections of the running event loop."""
        loop = asyncio.get_running_loop()
        pool = self._pools.get(id(loop))
        if pool is None or pool.loop is not loop or pool.session.closed:
            self._drop_dead()
            raise_descriptor_limit()
            pool = self._pools[id(loop)] = Pool(loop, self.config)
        return pool

    def _drop_dead(self) -> None:
        for key, pool in list(self._pools.items()):
            if pool.loop.is_closed():
                _drop(pool.loop, pool.session)
                del self._pools[key]

    async def close(self) -> None:
        """Close the connections of every event loop. A second call does nothing; a later request opens new ones."""
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.close()


DECODED = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers of an answer that do not hold for its body any more, once that was read."""


async def body_of(response: aiohttp.ClientResponse, config: EndpointClientConfig) -> bytes:
    """Return the body of an answer, uncompressed.

    Raises:
        ModelError: If it is larger than the configuration allows. What came of it is let go.
    """
    return b"".join([block async for block in blocks_of(response, config)])


async def blocks_of(response: aiohttp.ClientResponse, config: EndpointClientConfig) -> AsyncIterator[bytes]:
    """Give the body of an answer as it comes, uncompressed.

    Raises:
        ModelError: If it is larger than the configuration allows.
    """
    # Block by block: aiohttp's own `read` uncompresses all that has come at once, however much that becomes.
    size, limit = 0, config.max_body_mb * 2**20
    while block := await response.content.readany():
        size += len(block)
        if size > limit:
            response.close()
            raise ModelError(
                f"the body of the provider's answer (HTTP status {response.status}) has more than {config.max_body_mb:g} MB, uncompressed:"
                " max_body_mb of the ClientConfig says how much it may have"
            )
        yield block


def _new_session(config: EndpointClientConfig, check: Middleware) -> aiohttp.ClientSession:
    import aiohttp

    is_secure = urlsplit(config.api_base_url).scheme == "https"
    connector = aiohttp.TCPConnector(
        limit=config.max_connections, force_close=config.max_keepalive_connections == 0, ssl=ssl_context() if is_secure else True
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=config.timeout, sock_connect=config.connect_timeout),
        middlewares=(check,),
        proxy=proxy_of(config.api_base_url),
    )


def _only_to(url: str) -> Middleware:
    """Return what lets requests pass to the server of `url` only, or to the same host by HTTPS. A redirect is a request, too."""
    from yarl import URL

    origin = URL(url).origin()
    origins = {origin, URL.build(scheme="https", host=origin.host or "")}

    async def check(request: Any, send: Any) -> Any:
        if (asked := request.url.origin()) not in origins:
            raise ModelError(
                f"{origin} redirects to {asked}: no key, header or conversation is sent to another server."
                " Give that one as api_base_url, if it is to be asked"
            )
        return await send(request)

    return check


def ssl_context() -> ssl.SSLContext:
    """Return a context with the certificates that the SDKs trust."""
    import httpx2

    return httpx2.create_ssl_context()


def proxy_of(url: str) -> str | None:
    """Return the proxy that the environment names for `url` (``HTTPS_PROXY``, ``NO_PROXY`` and so on)."""
    # Once a session: aiohttp's trust_env reads the whole environment at each request.
    parts = urlsplit(url)
    proxies = urllib.request.getproxies()
    if urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return secret_url(proxy) if proxy else None


async def _close_with(session: aiohttp.ClientSession) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await session.close()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()
_LAST_MOMENT = 1.0
"""Seconds that closing may take when the process exits."""


@atexit.register
def _drop_all() -> None:
    for pool in list(_pools):
        if pool.loop.is_running():  # on a daemon thread, which goes on until the very end
            closing = asyncio.run_coroutine_threadsafe(pool.session.close(), pool.loop)
            concurrent.futures.wait([closing], timeout=_LAST_MOMENT)
        else:
            _drop(pool.loop, pool.session)


def _drop_if_idle(loop: asyncio.AbstractEventLoop, session: aiohttp.ClientSession) -> None:
    if not loop.is_running():
        _drop(loop, session)


def _drop(loop: asyncio.AbstractEventLoop, session: aiohttp.ClientSession) -> None:
    """Close the sockets of a session whose event loop does not run, so that it cannot close them itself."""
    connector: Any = session.connector
    if connector is None:
        return
    session.detach()
    protocols = [protocol for kept in connector._conns.values() for protocol, *_ in kept] + list(connector._acquired)
    connector._conns.clear()
    for protocol in protocols:
        if protocol.transport is None:
            continue
        if loop.is_closed():
            _close_socket(protocol.transport)
        else:
            protocol.transport.abort()


def _close_socket(transport: Any) -> None:
    # asyncio's own `close` needs the loop, and its `__del__` warns of a socket that is still there.
    secure = getattr(transport, "_ssl_protocol", None)
    if secure is not None:
        transport._closed = True
        transport = secure._transport
    sock = getattr(transport, "_sock", None)
    if sock is not None:
        sock.close()
        transport._sock = None
