"""Ports on which the agent listens: what comes in is sent to the caller, who connects to a socket of the host."""

from __future__ import annotations

import binascii
import itertools
import selectors
import socket
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CHUNK = 1 << 16
_MOST_STREAMS = 256
_MOST_WAITING = 1 << 22
"""Bytes that a connection has not read yet, beyond which it is cut."""


class Forwards:
    """Connections to ports on 127.0.0.1, as numbered streams of the pipe to the caller."""

    def __init__(self, selector: selectors.BaseSelector, send: Callable[[dict[str, Any]], None]) -> None:
        """Take the agent's selector, and its function that sends a message."""
        self._selector, self._send = selector, send
        self._numbers = itertools.count(1)
        self._streams: dict[int, _Stream] = {}

    def listen(self, port: int) -> None:
        """Listen on a port."""
        listener = socket.create_server(("127.0.0.1", port))
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ, lambda: self._accept(listener, port))

    def receive(self, message: dict[str, Any]) -> None:
        """Write what the caller sends to its connection."""
        stream = self._streams.get(message["stream"])
        if stream is None:
            return
        if "data" in message:
            stream.waiting += binascii.a2b_base64(message["data"])
        else:
            stream.is_ending = True
        self._write(stream)

    def _accept(self, listener: socket.socket, port: int) -> None:
        try:
            connection = listener.accept()[0]
        except OSError:
            return
        if len(self._streams) >= _MOST_STREAMS:
            connection.close()
            return
        connection.setblocking(False)
        stream = _Stream(next(self._numbers), connection)
        self._streams[stream.number] = stream
        self._send({"stream": stream.number, "port": port})
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._serve(stream))

    def _serve(self, stream: _Stream) -> None:
        self._write(stream)
        if stream.number in self._streams:
            self._read(stream)

    def _read(self, stream: _Stream) -> None:
        if stream.is_read:
            return
        try:
            data = stream.connection.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            self._close(stream)
            return
        if data:
            self._send({"stream": stream.number, "data": binascii.b2a_base64(data, newline=False).decode()})
            return
        stream.is_read = True
        self._send({"stream": stream.number})
        self._listen_for(stream)

    def _write(self, stream: _Stream) -> None:
        try:
            while stream.waiting:
                del stream.waiting[: stream.connection.send(stream.waiting)]
        except BlockingIOError:
            pass
        except OSError:
            stream.waiting.clear()
            stream.is_ending = True
        if len(stream.waiting) > _MOST_WAITING or (stream.is_ending and not stream.waiting):
            self._close(stream)
        else:
            self._listen_for(stream)

    def _listen_for(self, stream: _Stream) -> None:
        events = (0 if stream.is_read else selectors.EVENT_READ) | (selectors.EVENT_WRITE if stream.waiting else 0)
        known = self._selector.get_map().get(stream.connection)
        if known is not None:
            self._selector.unregister(stream.connection)
        if events:
            self._selector.register(stream.connection, events, lambda: self._serve(stream))

    def _close(self, stream: _Stream) -> None:
        """Cut a connection, and say so."""
        del self._streams[stream.number]
        if self._selector.get_map().get(stream.connection) is not None:
            self._selector.unregister(stream.connection)
        stream.connection.close()
        self._send({"stream": stream.number, "is_closed": True})


class _Stream:
    """A connection: what it is still to be sent, and which of its directions have ended."""

    def __init__(self, number: int, connection: socket.socket) -> None:
        self.number, self.connection = number, connection
        self.waiting = bytearray()
        self.is_ending = self.is_read = False
