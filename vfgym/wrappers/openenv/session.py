"""`OpenEnvSession`: one episode on a server, opened once and closed once, from any event loop or thread."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import weakref
from collections.abc import Mapping
from typing import Any, NoReturn

from vfgym.aio.background import background_loop, on_background_loop
from vfgym.errors import EpisodeNotPicklable, InfraError
from vfgym.wrappers.openenv.links import Link, Request
from vfgym.wrappers.openenv.protocol import ServerError, ServerReply
from vfgym.wrappers.openenv.servers import OpenEnvServer, ServerSource

_LAST_MOMENT = 1.0
"""Seconds that ending sessions may take when the process exits."""

_CLOSED = "the episode's session with its OpenEnv server was closed"

_open: weakref.WeakSet[OpenEnvSession] = weakref.WeakSet()


class OpenEnvSession:
    """One episode on a server. One that nobody closed is ended when nobody has it any more, and when the process exits."""

    def __init__(self, source: ServerSource) -> None:
        """Describe a session; nothing is opened yet."""
        self._source = source
        self._episode: tuple[OpenEnvServer, Link] | None = None
        self._is_closed = False
        self._end_if_lost: weakref.finalize[Any, Any] | None = None

    def __reduce__(self) -> NoReturn:
        raise EpisodeNotPicklable("an episode on an OpenEnv server lives there, in a session that cannot be copied")

    async def begin(self, request: Request, data: Mapping[str, Any]) -> ServerReply:
        """Open the session, and make its first request.

        Args:
            request: ``"reset"`` begins an episode, ``"step"`` can list the tools without one.
            data: The options of `reset` (its ``seed``), or the action.

        Raises:
            ActionRefused: If the data does not fit the server's schema.
            vfgym.errors.InfraError: If something else goes wrong.
        """
        return await on_background_loop(self._begin, request, data)

    async def step(self, action: Mapping[str, Any]) -> ServerReply:
        """Play an action; raises as `begin` does."""
        return await on_background_loop(self._step, action)

    async def close(self) -> None:
        """End the session. A second call does nothing."""
        await on_background_loop(self._close)

    async def _begin(self, request: Request, data: Mapping[str, Any]) -> ServerReply:
        server = await self._source.lease()
        try:
            link, reply = await server.begin(request, data)
        except BaseException:
            await self._source.give_back(server)
            raise
        if self._is_closed:  # meanwhile, from elsewhere
            await _end(self._source, server, link)
            raise InfraError(_CLOSED)
        self._episode = server, link
        self._end_if_lost = weakref.finalize(self, _end_lost, self._source, server, link)
        self._end_if_lost.atexit = False
        _open.add(self)
        return reply

    async def _step(self, action: Mapping[str, Any]) -> ServerReply:
        if self._episode is None:
            raise InfraError(_CLOSED)
        server, link = self._episode
        server.note_move()
        try:
            return await link.ask("step", action)
        except ServerError:
            if self._is_closed:  # meanwhile, from elsewhere
                raise InfraError(_CLOSED) from None
            raise
        finally:
            server.note_move()

    async def _close(self) -> None:
        self._is_closed = True
        episode, self._episode = self._episode, None
        if self._end_if_lost is not None:
            self._end_if_lost.detach()
        if episode is not None:
            await _end(self._source, *episode)


async def _end(source: ServerSource, server: OpenEnvServer, link: Link) -> None:
    try:
        await server.end(link)
    finally:
        await source.give_back(server)


def _end_lost(source: ServerSource, server: OpenEnvServer, link: Link) -> None:
    asyncio.run_coroutine_threadsafe(_end(source, server, link), background_loop())


@atexit.register
def _end_all() -> None:
    sessions = list(_open)
    if sessions:
        loop = background_loop()
        ends = [asyncio.run_coroutine_threadsafe(session._close(), loop) for session in sessions]
        concurrent.futures.wait(ends, timeout=_LAST_MOMENT)
