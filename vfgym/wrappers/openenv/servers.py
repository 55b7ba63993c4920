"""Servers: what plays episodes at a URL, and where one comes from. All of it lives on the process's background event loop."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from vfgym.errors import ConfigurationError
from vfgym.output.redaction import REDACTED, redact_url, secret_url
from vfgym.wrappers.openenv.links import HttpLink, Link, Request, StatusError, WebSocketLink
from vfgym.wrappers.openenv.protocol import ServerError, ServerFull, ServerReply

_PAUSE = 1.0
"""Seconds after which a server that was full is asked again."""


class OpenEnvServer:
    """A server that runs.

    A server with ``/ws`` plays each episode in a session of its own. One without has a single environment behind ``/reset`` and
    ``/step``, so it plays one episode at a time.

    Whoever finds the server full waits: it is asked again when an episode here ends, and every second besides, by those who wait in
    the order in which they came. They give up once no episode here has made a step for `timeout` seconds.
    """

    def __init__(self, url: str, timeout: float) -> None:
        """Describe a server; nothing is sent yet.

        Args:
            url: Where it is, checked by `check_url`.
            timeout: Seconds that it has for each answer.
        """
        self.url = url
        self.timeout = timeout
        self._has_websockets: bool | None = None
        """Whether it has ``/ws``; None until an episode has begun."""
        self._is_taken = False
        """Whether an episode is played over HTTP."""
        self._moved_at = 0.0
        self._line = asyncio.Lock()
        self._has_ended = asyncio.Event()

    def __reduce__(self) -> tuple[type[OpenEnvServer], tuple[str, float]]:
        return type(self), (self.url, self.timeout)

    async def begin(self, request: Request, data: Mapping[str, Any]) -> tuple[Link, ServerReply]:
        """Open a link, and make the first request of an episode.

        Raises:
            ServerError: If that fails, or the server was full for too long.
            ConfigurationError: If the server was pickled, and its URL is without its user and password since.
        """
        if REDACTED in self.url:
            raise ConfigurationError(
                f"the URL {self.url} is without its user and password, since pickles hold no secrets: make the environment again, where"
                " it is played"
            )
        since = time.monotonic()
        if not self._line.locked():
            with contextlib.suppress(ServerFull):
                return await self._try(request, data)
        async with self._line:
            while True:
                self._has_ended.clear()
                try:
                    return await self._try(request, data)
                except ServerFull:
                    if time.monotonic() - max(since, self._moved_at) >= self.timeout:
                        raise
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._has_ended.wait(), min(_PAUSE, self.timeout))

    async def _try(self, request: Request, data: Mapping[str, Any]) -> tuple[Link, ServerReply]:
        link = await self._open()
        try:
            reply = await link.ask(request, data)
        except BaseException:
            await self._close(link)
            raise
        self.note_move()
        return link, reply

    async def _open(self) -> Link:
        if self._has_websockets is not False:
            link = await WebSocketLink.open(self.url, self.timeout)
            if link is not None:
                self._has_websockets = True
                return link
            if self._has_websockets:  # behind its HTTP routes there may be no environment that is kept from step to step
                raise ServerError(self.url, "has no /ws now, over which earlier episodes were played")
            self._has_websockets = False
        if self._is_taken:
            raise ServerFull(self.url, "has no /ws, so it plays one episode at a time, and another one is being played")
        self._is_taken = True
        return HttpLink(self.url, self.timeout)

    def note_move(self) -> None:
        """Note that an episode goes on."""
        self._moved_at = time.monotonic()

    async def end(self, link: Link) -> None:
        """End an episode."""
        try:
            await self._close(link)
        finally:
            self.note_move()
            self._has_ended.set()

    async def _close(self, link: Link) -> None:
        try:
            await link.close()
        finally:
            if isinstance(link, HttpLink):
                self._is_taken = False

    async def read_action_schema(self) -> dict[str, Any]:
        """Return the JSON schema of actions; an empty one where the server has no ``/schema``.

        Raises:
            ServerError: If the server cannot be reached, or answers with something else.
        """
        link = HttpLink(self.url, self.timeout)
        try:
            schema = (await link.exchange("GET", "/schema")).get("action")
        except StatusError as error:
            if error.status != 404:
                raise
            return {}
        finally:
            await link.close()
        if not isinstance(schema, dict) or not _describes_fields(schema):
            raise ServerError(self.url, "has no schema of actions in its /schema")
        return schema


def _describes_fields(schema: Mapping[str, Any]) -> bool:
    """Say whether what a schema says of fields has the form of a JSON schema."""
    properties, required = schema.get("properties"), schema.get("required")
    has_fields = isinstance(properties, dict) and all(isinstance(field, dict | bool) for field in properties.values())
    has_names = isinstance(required, list) and all(isinstance(name, str) for name in required)
    return (properties is None or has_fields) and (required is None or has_names)


class ServerSource(Protocol):
    """Where the server of an episode comes from. Its methods are called on the background loop."""

    async def lease(self) -> OpenEnvServer:
        """Return a server that plays one more episode."""

    async def give_back(self, server: OpenEnvServer) -> None:
        """Take a server back whose episode has ended."""

    async def close(self) -> None:
        """End what was started. A second call does nothing."""


@dataclass(frozen=True)
class GivenServer:
    """A server that somebody else started: every episode is played there."""

    server: OpenEnvServer

    async def lease(self) -> OpenEnvServer:
        """Return the server."""
        return self.server

    async def give_back(self, server: OpenEnvServer) -> None:
        """Do nothing: the server is its owner's."""

    async def close(self) -> None:
        """Do nothing: the server is its owner's."""


def check_seconds(name: str, seconds: object) -> float:
    """Return a number of seconds.

    Raises:
        ConfigurationError: If it is not one that is positive and finite; the text calls it `name`.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise ConfigurationError(f"{name} must be a positive number of seconds, got {seconds!r}")
    return float(seconds)


def check_url(url: object) -> str:
    """Return the URL of a server, without a slash at its end, so that its routes can be put behind it. A user and password are a secret.

    Raises:
        ConfigurationError: If it is not one.
    """
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        is_address = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets that are not an IPv6 address, or a port that is not a number
        parts, is_address = None, False
    if parts is None or not is_address:
        raise ConfigurationError(
            f"url must be where the server is, such as 'http://127.0.0.1:8000' (http or https), got {redact_url(repr(url))}"
        )
    if parts.query or parts.fragment:
        raise ConfigurationError(f"url must end with the server's address or path, without a query; got {redact_url(repr(url))}")
    return secret_url(str(url).rstrip("/"))
