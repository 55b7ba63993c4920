"""The host's end of forwarded ports: a stream is a connection to a unix socket, within bounds, and is cut where it must be."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from vfgym.sandboxes import forwarding
from vfgym.sandboxes.forwarding import Forwarding


class Sent:
    """What was sent to the agent, and the connections of the host's socket."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.connections: list[asyncio.StreamWriter] = []
        self._came = asyncio.Event()

    def __call__(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        self._came.set()

    async def wait_for_connections(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.connections) < count:
                self._came.clear()
                await self._came.wait()

    async def wait(self, count: int) -> list[dict[str, Any]]:
        async with asyncio.timeout(60):
            while len(self.messages) < count:
                self._came.clear()
                await self._came.wait()
        return self.messages


@contextlib.asynccontextmanager
async def serving(tmp_path: Path, answers: bool = True) -> AsyncIterator[tuple[Forwarding, Sent]]:
    """Serve a socket that repeats in brackets all that it was sent, or reads nothing; and forward port 80 to it, and 81 to nobody."""
    sent = Sent()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent.connections.append(writer)
        sent._came.set()
        if answers:
            writer.write(b"<" + await reader.read() + b">")
            writer.close()

    made = Forwarding({80: str(tmp_path / "socket"), 81: str(tmp_path / "nobody")}, sent)
    async with await asyncio.start_unix_server(serve, tmp_path / "socket"):
        yield made, sent
        made.close()
        async with asyncio.timeout(60):
            while made._tasks:
                await asyncio.sleep(0)
            for writer in sent.connections:
                writer.close()
                await writer.wait_closed()


def data(number: int, text: bytes) -> dict[str, Any]:
    return {"stream": number, "data": base64.b64encode(text).decode()}


async def test_streams_are_connections_of_their_own_and_end_in_each_direction(tmp_path: Path) -> None:
    async with serving(tmp_path) as (made, sent):
        for number, text in ((1, b"one"), (2, b"two")):
            made.receive({"stream": number, "port": 80})
            made.receive(data(number, text[:1]))
            made.receive(data(number, text[1:]))
            made.receive({"stream": number})
        messages = await sent.wait(6)
        for number, text in ((1, b"<one>"), (2, b"<two>")):
            of_it = [message for message in messages if message["stream"] == number]
            assert b"".join(base64.b64decode(message["data"]) for message in of_it if "data" in message) == text
            assert of_it[-1] == {"stream": number}


async def test_where_nobody_listens_the_stream_ends_and_others_go_on(tmp_path: Path) -> None:
    async with serving(tmp_path) as (made, sent):
        made.receive({"stream": 1, "port": 81})
        assert await sent.wait(1) == [{"stream": 1}]
        made.receive(data(1, b"too late"))
        made.receive({"stream": 2, "port": 80})
        made.receive({"stream": 2})
        assert base64.b64decode((await sent.wait(2))[1]["data"]) == b"<>"


@pytest.mark.parametrize(("of_one", "of_all", "streams"), [(1000, 10**6, 1), (10**6, 1000, 2)])
async def test_what_a_socket_does_not_take_is_bounded_for_each_and_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of_one: int, of_all: int, streams: int
) -> None:
    monkeypatch.setattr(forwarding, "_MOST_WAITING", of_one)
    monkeypatch.setattr(forwarding, "_MOST_OF_ALL", of_all)
    async with serving(tmp_path, answers=False) as (made, sent):
        for number in range(1, streams + 1):
            made.receive({"stream": number, "port": 80})
        await sent.wait_for_connections(streams)
        for number in range(1, streams + 1):
            made.receive(data(number, bytes(1000 // streams)))
        assert sent.messages == [], "so much may wait"
        made.receive(data(streams, b"x"))
        assert await sent.wait(1) == [{"stream": streams}]


def test_16_mib_of_a_connection_and_64_of_all_may_wait() -> None:
    assert (forwarding._MOST_WAITING, forwarding._MOST_OF_ALL) == (16 << 20, 64 << 20)


async def test_more_streams_than_a_share_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "fair_share", lambda *arguments, **options: 2)
    async with serving(tmp_path, answers=False) as (made, sent):
        for number in (1, 2, 3):
            made.receive({"stream": number, "port": 80})
        assert sent.messages == [{"stream": 3}]
        await sent.wait_for_connections(2)
        made.receive({"stream": 1, "is_closed": True})
        assert (await sent.wait(2))[1] == {"stream": 1}
        made.receive({"stream": 4, "port": 80})
        await sent.wait_for_connections(3)
        assert len(sent.messages) == 2, "there is room again"


async def test_closing_cuts_all_streams(tmp_path: Path) -> None:
    async with serving(tmp_path, answers=False) as (made, sent):
        for number in (1, 2):
            made.receive({"stream": number, "port": 80})
        await sent.wait_for_connections(2)
        made.close()
        assert {message["stream"] for message in await sent.wait(2)} == {1, 2}


async def test_a_stream_that_is_cut_before_it_has_begun_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its program has closed the connection at once: the beginning and the end come together."""
    monkeypatch.setattr(forwarding, "fair_share", lambda *arguments, **options: 1)
    async with serving(tmp_path) as (made, sent):
        for number in (1, 2, 3):
            made.receive({"stream": number, "port": 80})
            made.receive({"stream": number, "is_closed": True})
            assert (await sent.wait(number))[-1] == {"stream": number}
        made.receive({"stream": 4, "port": 80})
        made.receive({"stream": 4})
        assert base64.b64decode((await sent.wait(4))[3]["data"]) == b"<>"
