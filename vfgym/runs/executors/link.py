"""A connection between a coordinator and one of its workers: JSON objects, each after its length.

Both know the run's token, and prove that to each other before anything else is said; the token itself is never sent. What is said is not
encrypted.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import os
import secrets
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from vfgym.bounded_json import MOST_LEVELS, dump_json, parse_json
from vfgym.errors import InfraError

_LENGTH = struct.Struct("!I")
_MOST_BYTES = 2**30
"""Of one message: a group's rows, with pictures."""
_MOST_BYTES_OF_STRANGERS = 2**14
"""Of one message of who has not proved to know the token."""
_SECONDS_FOR_GREETING = 30.0
_MUCH = 2**16
"""Bytes that wait to be sent before whoever sends more has to wait, too."""
_LEVELS_AROUND_ROWS = 8


class LinkClosed(InfraError):
    """The other side is gone."""


class WorkerLink:
    """One side of a connection. Messages are written together at the end of the event loop's turn."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a connection that is open."""
        self._reader, self._writer = reader, writer
        self._unwritten: list[bytes] = []
        self._num_unwritten = 0
        self._loop = asyncio.get_running_loop()
        keep_alive(writer.get_extra_info("socket"))

    @property
    def peer(self) -> str:
        """The address of the other side."""
        return str((self._writer.get_extra_info("peername") or ("",))[0])

    @property
    def is_local(self) -> bool:
        """Whether the other side is on this machine."""
        own = (self._writer.get_extra_info("sockname") or ("",))[0]
        return self.peer == own or self.peer.startswith("127.") or self.peer == "::1"

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        self.send_text(dump_json(message))

    def send_text(self, text: str) -> None:
        """Send a message that is JSON text already. It may be called on this link's loop only."""
        data = text.encode()
        if not self._unwritten:
            self._loop.call_soon(self._write)
        self._unwritten.append(_LENGTH.pack(len(data)) + data)
        self._num_unwritten += len(data)

    def _write(self) -> None:
        data, self._unwritten, self._num_unwritten = b"".join(self._unwritten), [], 0
        if data and not self._writer.is_closing():
            self._writer.write(data)

    async def drain(self) -> None:
        """Wait until the other side has taken most of what was sent, where that is much.

        Raises:
            LinkClosed: If it is gone.
        """
        if self._num_unwritten + self._writer.transport.get_write_buffer_size() < _MUCH:
            return  # it is written with what else is sent in this turn
        self._write()
        try:
            await self._writer.drain()
        except OSError as error:
            raise LinkClosed(f"the connection broke: {error}") from error

    async def receive(self, most_bytes: int = _MOST_BYTES) -> dict[str, Any]:
        """Return the next message.

        Raises:
            LinkClosed: If there is none, since the other side is gone.
        """
        try:
            (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            if length > most_bytes:
                raise LinkClosed(f"{self.peer} sent a message of {length} bytes")
            message = parse_json(await self._reader.readexactly(length), most_levels=MOST_LEVELS + _LEVELS_AROUND_ROWS)
        except (OSError, asyncio.IncompleteReadError) as error:
            raise LinkClosed(f"the connection broke: {error}") from error
        except ValueError as error:
            raise LinkClosed(f"{self.peer} sent something else than messages: {error}") from error
        if not isinstance(message, dict):
            raise LinkClosed(f"{self.peer} sent something else than messages")
        return message

    async def greet(self, token: str, hello: Mapping[str, Any], *, is_coordinator: bool) -> dict[str, Any]:
        """Exchange what both sides say of themselves, and check that the other one knows the token.

        Args:
            token: The run's token.
            hello: What this side says.
            is_coordinator: Which side this is.

        Returns:
            What the other side says.

        Raises:
            LinkClosed: If the other side does not know the token, or is gone.
        """
        own = secrets.token_hex(16)
        try:
            async with asyncio.timeout(_SECONDS_FOR_GREETING):
                self.send({"nonce": own})
                other = str((await self.receive(_MOST_BYTES_OF_STRANGERS)).get("nonce"))
                self.send({"proof": _proof(token, is_coordinator, own, other), "hello": hello})
                said = await self.receive(_MOST_BYTES_OF_STRANGERS)
        except TimeoutError as error:
            raise LinkClosed(f"{self.peer} did not say who it is") from error
        if not hmac.compare_digest(str(said.get("proof")).encode(), _proof(token, not is_coordinator, other, own).encode()):
            raise LinkClosed(f"{self.peer} does not know the token of this run")
        return dict(said["hello"])

    async def close(self) -> None:
        """Close the connection, after what was sent. A second call does nothing."""
        self._write()
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def abort(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()


def _proof(token: str, is_coordinator: bool, own: str, other: str) -> str:
    said = f"{'coordinator' if is_coordinator else 'worker'} {own} {other}"
    return hmac.new(token.encode(), said.encode(), hashlib.sha256).hexdigest()


def keep_alive(sock: Any) -> None:
    """Let the system notice that the other side's machine is gone: about a minute after it said nothing any more."""
    if sock is None:
        return
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def addresses_of(port: int, *, is_local: bool) -> list[str]:
    """Return where a server of this machine may be found, the likeliest first.

    Args:
        port: Its port.
        is_local: Whether only this machine's own processes look for it.
    """
    hosts = ["127.0.0.1"]
    if not is_local:
        hosts = list(dict.fromkeys([*_own_addresses(), socket.gethostname(), *hosts]))
    return [f"{host}:{port}" for host in hosts]


def _own_addresses() -> list[str]:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(("192.0.2.1", 9))  # nothing is sent: it says by which address this machine would be seen
        return [str(sock.getsockname()[0])]
    return []


async def connect(addresses: Sequence[str]) -> WorkerLink:
    """Connect to a coordinator at the first of its addresses that answers.

    Raises:
        LinkClosed: If none does.
    """
    reasons = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            async with asyncio.timeout(10):
                return WorkerLink(*await asyncio.open_connection(host, int(port)))
        except OSError as error:  # a timeout, too
            reasons.append(f"{address}: {str(error) or type(error).__name__}")
    raise LinkClosed(f"process {os.getpid()} on {socket.gethostname()} cannot reach the coordinator of its run ({'; '.join(reasons)})")
