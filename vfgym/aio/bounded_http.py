"""`BoundedServer`: an HTTP server whose connections and bodies are bounded, for whoever connects.

A connection is a stranger's until the server has seen that its request may be asked (`BoundedServer.welcome`). Strangers have seconds to
ask, and only so many of them are kept: the oldest goes where another one comes, so that nobody is kept out by those who only wait.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

from aiohttp import http_exceptions, web

from vfgym.aio.bounds import TooMuch, all_but_a_reserve, fair_share, most_connections

_HEAD_SECONDS = 20.0
"""Seconds in which a new connection must have asked."""
_BODY_SECONDS = 120.0
"""Seconds in which the body of a request must have come."""
_LINGERS = 1.0
"""Seconds for which the rest of a refused body is read and let go, so that its sender reads why."""
_IDLE_SECONDS = 75.0
_MOST_STRANGERS = 256
_MOST_OF_ONE = 128
_LEAST_OF_ONE = 8
"""Connections of one owner: at most, and those that each may have however many owners there are."""

logger = logging.getLogger(__name__)
# What is no HTTP is answered with 400. It is whoever sent it who made a mistake: nobody shall fill our log with it.
logger.addFilter(lambda record: not (record.exc_info and isinstance(record.exc_info[1], http_exceptions.HttpProcessingError)))


class BoundedServer(web.Server):
    """Bounds connections: all of them, those of strangers, and those of each owner."""

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        *,
        for_anyone: bool = False,
    ) -> None:
        """Take what answers a request; a client that goes away takes its request with it.

        Args:
            handler: Answers a request.
            for_anyone: Whether anyone may ask: who has asked is no stranger then, and nearly all descriptors are for connections.
        """
        super().__init__(
            self._handle,
            handler_cancellation=True,
            access_log=None,
            logger=logger,
            auto_decompress=False,
            keepalive_timeout=3600.0 if for_anyone else _IDLE_SECONDS,
            lingering_time=_LINGERS,
        )
        self._answer = handler
        self._is_for_anyone = for_anyone
        self._most = all_but_a_reserve() if for_anyone else most_connections()
        self._most_strangers = self._most if for_anyone else min(_MOST_STRANGERS, self._most)
        self._timers: dict[web.RequestHandler, asyncio.TimerHandle] = {}
        """When the time of each connection is up that has not asked, the oldest first."""
        self._num_open = 0
        self._strangers: dict[web.RequestHandler, None] = {}
        """Connections that nobody has spoken for, the oldest first, but for those by a unix socket: who reaches that is bounded there."""
        self._owned: dict[Hashable, set[web.RequestHandler]] = {}
        self._owner_of: dict[web.RequestHandler, Hashable] = {}

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Take a connection, if there is room, or a stranger leaves."""
        super().connection_made(handler, transport)
        self._num_open += 1
        self._timers[handler] = self._loop.call_later(_HEAD_SECONDS, self._drop, handler)
        if transport.get_extra_info("socket").family != getattr(socket, "AF_UNIX", None):
            self._strangers[handler] = None
        if len(self._strangers) > self._most_strangers or self._num_open > self._most:
            self._drop(next(iter(self._strangers or self._timers), handler))

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """Forget a connection."""
        self._num_open -= 1
        self._forget(handler)
        super().connection_lost(handler, exc)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        timer = self._timers.pop(request.protocol, None)
        if timer is not None:
            timer.cancel()
        if self._is_for_anyone:
            self._strangers.pop(request.protocol, None)
        return await self._answer(request)

    def welcome(self, request: web.BaseRequest, owner: Hashable, num_owners: int = 1) -> bool:
        """Note whose connection a request came by, and say whether they may have one more.

        Args:
            request: The request.
            owner: Who asks.
            num_owners: How many there are: a connection is shared out fairly where there are few.
        """
        handler = request.protocol
        if self._owner_of.get(handler) == owner:
            return True
        own = self._owned.setdefault(owner, set())
        if len(own) >= fair_share(self._most, num_owners, least=_LEAST_OF_ONE, most=_MOST_OF_ONE):
            return False
        self._forget(handler)
        self._owned.setdefault(owner, own).add(handler)
        self._owner_of[handler] = owner
        return True

    def let_go(self, owner: Hashable) -> None:
        """Cut all connections of an owner."""
        for handler in list(self._owned.get(owner, ())):
            self._drop(handler)

    def _forget(self, handler: web.RequestHandler) -> None:
        self._strangers.pop(handler, None)
        timer = self._timers.pop(handler, None)
        if timer is not None:
            timer.cancel()
        owner = self._owner_of.pop(handler, None)
        if owner is not None:
            self._owned[owner].discard(handler)
            if not self._owned[owner]:
                del self._owned[owner]

    def _drop(self, handler: web.RequestHandler) -> None:
        self._forget(handler)
        transport: Any = handler.transport
        if transport is not None:
            transport.abort()


async def read_body(request: web.BaseRequest, limit: int, take: Callable[[int], None] = lambda size: None) -> bytes:
    """Return the body of a request.

    Args:
        request: The request.
        limit: Bytes that it may have.
        take: Called with the size of each part that came. It may raise, too.

    Raises:
        TooMuch: If it is larger, compressed, or does not come in time.
    """
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise TooMuch(415, "the body of a request must not be compressed")
    too_large = TooMuch(413, f"the body of a request may have {limit:,} bytes")
    if (request.content_length or 0) > limit:
        raise too_large
    if request.headers.get("Expect", "").lower() == "100-continue" and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    parts, size = [], 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while part := await request.content.readany():
                size += len(part)
                if size > limit:
                    raise too_large
                take(len(part))
                parts.append(part)
    except TimeoutError:
        raise TooMuch(408, f"the body of a request must come within {_BODY_SECONDS:g} s") from None
    return b"".join(parts)
