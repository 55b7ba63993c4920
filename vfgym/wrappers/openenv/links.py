"""Links: one episode's way to a server, by WebSocket or by HTTP. They belong to the event loop on which they were opened."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias
from urllib.parse import urlsplit

from vfgym.clients.http.transport import proxy_of, ssl_context
from vfgym.wrappers.openenv.protocol import (
    MAX_BYTES,
    ActionRefused,
    ServerError,
    ServerFull,
    ServerReply,
    describe_problems,
    encode,
    encode_any,
    parse,
    read_reply,
    shorten,
)

if TYPE_CHECKING:
    import aiohttp

_FAREWELL = 2.0
"""Seconds that a server has to end a session that says goodbye."""

_MOST_UNREAD = 4
"""Messages that are taken before somebody asks for them."""

_FAILURES = frozenset({401, 407, 408, 429})
"""HTTP statuses that say nothing of whether a server has ``/ws``, besides those from 500. Any other that is not a WebSocket's says no."""


Request: TypeAlias = Literal["reset", "step"]
"""What a server is asked: to begin an episode (its ``seed`` and other options), or to play an action."""


class Link(Protocol):
    """One episode's way to a server."""

    async def ask(self, request: Request, data: Mapping[str, Any]) -> ServerReply:
        """Make a request, and return what the server answers.

        Raises:
            ActionRefused: If the data does not fit the server's schema.
            ServerError: If something else goes wrong.
        """

    async def close(self) -> None:
        """End the episode. A second call does nothing."""


class HttpLink:
    """An episode over the routes ``/reset`` and ``/step``."""

    def __init__(self, url: str, timeout: float) -> None:
        """Open a link; nothing is sent yet."""
        self._url = url
        self._http = _new_http(url, timeout)

    async def ask(self, request: Request, data: Mapping[str, Any]) -> ServerReply:
        """Make a request (see `Link`)."""
        body = data if request == "reset" else {"action": data}
        return read_reply(self._url, await self.exchange("POST", f"/{request}", body))

    async def exchange(self, method: str, route: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Ask any route, and return the JSON object that comes back.

        Raises:
            ActionRefused: If the server refused the body (HTTP status 422).
            StatusError: If it answered with another status that is an error.
            ServerError: If something else went wrong.
        """
        data = None if body is None else encode(body)
        headers = {"Content-Type": "application/json"} if data is not None else None
        async with (
            _reported(self._url, route),
            self._http.request(method, self._url + route, data=data, headers=headers) as response,
        ):
            status, answer = response.status, await _read_body(self._url, response)
        if status == 422 and body is not None:
            raise ActionRefused(describe_problems(parse(self._url, answer).get("detail")))
        if status >= 400:
            raise StatusError(self._url, f"answered {route} with the HTTP status {status}: {shorten(answer)!r}", status)
        return parse(self._url, answer)

    async def close(self) -> None:
        """Close the connection."""
        await self._http.close()


class StatusError(ServerError):
    """A server answered with an HTTP status that is an error."""

    def __init__(self, url: str, problem: str, status: int) -> None:
        super().__init__(url, problem)
        self.status = status

    def __reduce__(self) -> tuple[type[StatusError], tuple[str, str, int]]:  # type: ignore[override]
        return type(self), (self.url, self.problem, self.status)


class WebSocketLink:
    """An episode over a WebSocket, which the server keeps an environment of its own for."""

    def __init__(self, url: str, http: aiohttp.ClientSession, socket: aiohttp.ClientWebSocketResponse, timeout: float) -> None:
        """Take the connection, which is closed with the link."""
        self._url, self._http, self._socket, self._timeout = url, http, socket, timeout
        self._is_waiting = False
        """Whether the server has not answered yet."""
        self._said: asyncio.Queue[aiohttp.WSMessage] = asyncio.Queue(_MOST_UNREAD)
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        """Take what the server says. It pings, too, and ends a session that does not answer while a model thinks."""
        import aiohttp

        while True:
            message = await self._socket.receive()
            await self._said.put(message)
            if message.type is not aiohttp.WSMsgType.TEXT:
                return

    @classmethod
    async def open(cls, url: str, timeout: float) -> Self | None:
        """Return a link; None where the server has no WebSockets.

        Raises:
            ServerError: If it cannot be reached.
        """
        import aiohttp

        http = _new_http(url, timeout)
        try:
            async with _reported(url, "/ws"), asyncio.timeout(timeout):
                socket = await http.ws_connect(f"{url}/ws", max_msg_size=MAX_BYTES, timeout=aiohttp.ClientWSTimeout(ws_close=_FAREWELL))
            return cls(url, http, socket, timeout)
        except BaseException as error:
            await http.close()
            cause = error.__cause__
            if isinstance(cause, aiohttp.WSServerHandshakeError) and cause.status < 500 and cause.status not in _FAILURES:
                return None
            raise

    async def ask(self, request: Request, data: Mapping[str, Any]) -> ServerReply:
        """Make a request (see `Link`)."""
        import aiohttp

        text = encode({"type": request, "data": data})
        self._is_waiting = True
        async with _reported(self._url, request), asyncio.timeout(self._timeout):
            with contextlib.suppress(ConnectionError):  # what the server said before it closed the connection is read all the same
                await self._socket.send_str(text)
            message = await self._said.get()
        if message.type is not aiohttp.WSMsgType.TEXT:
            raise ServerError(self._url, f"closed the connection while it was asked for {request}")
        self._is_waiting = False
        answer = parse(self._url, message.data)
        content = answer.get("data")
        if answer.get("type") == "error":
            raise self._failure(request, content if isinstance(content, dict) else {"message": content})
        if answer.get("type") != "observation" or not isinstance(content, dict):
            raise ServerError(self._url, f"answered {request} with something that is not an observation: {shorten(message.data)}")
        return read_reply(self._url, content)

    def _failure(self, request: str, said: Mapping[str, Any]) -> Exception:
        code, message = said.get("code"), said.get("message")
        if code == "VALIDATION_ERROR":
            return ActionRefused(describe_problems(said.get("errors") or message))
        if code == "CAPACITY_REACHED":
            return ServerFull(self._url, f"plays no further episode at the moment: {message}")
        return ServerError(self._url, f"failed in {request}: {message if isinstance(message, str) else encode_any(message)}")

    async def close(self) -> None:
        """End the session, and wait until the server has let go of its environment, so that another may take its place."""
        import aiohttp

        try:
            if not self._is_waiting and not self._socket.closed:
                with contextlib.suppress(aiohttp.ClientError, ConnectionError):
                    await self._socket.send_str(encode({"type": "close"}))
                    await asyncio.wait((self._reader,), timeout=_FAREWELL)
        finally:
            self._reader.cancel()
            await asyncio.wait((self._reader,))
            with contextlib.suppress(asyncio.QueueFull):  # nobody waits then
                self._said.put_nowait(aiohttp.WSMessage(aiohttp.WSMsgType.CLOSED, None, None))
            await self._socket.close()
            await self._http.close()


def _new_http(url: str, timeout: float) -> aiohttp.ClientSession:
    import aiohttp

    is_secure = urlsplit(url).scheme == "https"
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=1, ssl=ssl_context() if is_secure else True),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=timeout),
        proxy=proxy_of(url),
    )


@contextlib.asynccontextmanager
async def _reported(url: str, what: str) -> AsyncIterator[None]:
    """Raise what goes wrong on the way to a server, or takes too long, as a `ServerError`."""
    import aiohttp

    try:
        yield
    except TimeoutError as error:
        raise ServerError(url, f"did not answer {what} in time") from error
    except (aiohttp.ClientConnectorError, ConnectionRefusedError) as error:
        raise ServerError(url, f"cannot be reached: {getattr(error, 'strerror', None) or error}") from error
    except (aiohttp.ClientError, OSError) as error:
        raise ServerError(url, f"broke off while it was asked for {what}: {type(error).__name__}: {error}") from error


async def _read_body(url: str, response: aiohttp.ClientResponse) -> bytes:
    blocks, size = [], 0
    while block := await response.content.readany():
        blocks.append(block)
        size += len(block)
        if size > MAX_BYTES:
            response.close()
            raise ServerError(url, f"answered with more than {MAX_BYTES // 2**20} MB")
    return b"".join(blocks)
