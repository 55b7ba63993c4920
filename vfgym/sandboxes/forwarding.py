"""`Forwarding`: the host's side of the ports of a sandbox, each connection a connection to a unix socket of the host."""

from __future__ import annotations

import asyncio
import base64
import weakref
from collections.abc import Callable
from typing import Any

from vfgym.aio.bounds import fair_share, most_connections

_CHUNK = 1 << 16
_MOST_WAITING = 1 << 24
"""Bytes that a socket of the host has not taken yet, beyond which its connection is cut."""
_MOST_OF_ALL = 1 << 26
"""The same for all connections of a sandbox together."""
_MOST_STREAMS, _LEAST_STREAMS = 128, 8
"""Connections of a sandbox: at most, and those that each may have however many there are."""


_open: weakref.WeakSet[Forwarding] = weakref.WeakSet()
"""Those that ever had a connection, and are there still."""


class Forwarding:
    """Streams that come from a sandbox, on the background loop."""

    def __init__(self, targets: dict[int, str], send: Callable[[dict[str, Any]], None]) -> None:
        """Take the path of the socket for each port, and the function that sends to the agent."""
        self._targets, self._send = targets, send
        self._incoming: dict[int, asyncio.Queue[bytes | None]] = {}
        self._waiting: dict[int, int] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def receive(self, message: dict[str, Any]) -> None:
        """Take what the agent says of a stream: that it begins, data, that no more comes, or that it was cut."""
        number = int(message["stream"])
        if "port" in message:
            if len(self._tasks) >= fair_share(most_connections(), len(_open), least=_LEAST_STREAMS, most=_MOST_STREAMS):
                self._send({"stream": number})  # as where nobody listens
                return
            _open.add(self)
            self._incoming[number] = asyncio.Queue()
            self._waiting[number] = 0
            task = self._tasks[number] = asyncio.ensure_future(self._serve(number, self._targets[message["port"]]))
            task.add_done_callback(lambda _: self._end(number))  # also of one that is cancelled before it has begun
        elif "is_closed" in message:
            self._cut(number)
        elif number in self._incoming:
            data = base64.b64decode(message["data"]) if "data" in message else None
            self._waiting[number] += len(data or b"")
            self._incoming[number].put_nowait(data)
            if self._waiting[number] > _MOST_WAITING or sum(self._waiting.values()) > _MOST_OF_ALL:
                self._cut(number)

    def close(self) -> None:
        """Cut all streams."""
        for number in list(self._tasks):
            self._cut(number)

    def _cut(self, number: int) -> None:
        task = self._tasks.get(number)
        if task is not None:
            task.cancel()

    async def _serve(self, number: int, path: str) -> None:
        writer = None
        try:
            reader, writer = await asyncio.open_unix_connection(path)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._write(number, writer))
                group.create_task(self._read(number, reader))
        except* OSError:  # nobody listens, or the connection was cut: so is the one inside
            pass
        finally:
            if writer is not None:
                writer.close()

    def _end(self, number: int) -> None:
        """Say that a stream has ended, and forget it."""
        self._send({"stream": number})
        for known in (self._incoming, self._waiting, self._tasks):
            known.pop(number, None)

    async def _write(self, number: int, writer: asyncio.StreamWriter) -> None:
        while (data := await self._incoming[number].get()) is not None:
            writer.write(data)
            await writer.drain()
            self._waiting[number] -= len(data)
        writer.write_eof()

    async def _read(self, number: int, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(_CHUNK):
            self._send({"stream": number, "data": base64.b64encode(data).decode()})
        self._send({"stream": number})
