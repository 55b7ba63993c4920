"""A server whose connections and bodies are bounded, for whoever connects."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from vfgym.aio import bounded_http
from vfgym.aio.bounded_http import BoundedServer, read_body
from vfgym.aio.bounds import TooMuch
from vfgym.interception.socket_files import make_socket_path, remove_socket

ASK = b"POST / HTTP/1.1\r\nHost: a\r\nX-Owner: %s\r\nContent-Length: 2\r\n\r\nhi"


class Served:
    """A server that reads bodies of up to 8 bytes, and welcomes whom a header names."""

    def __init__(self, **options: Any) -> None:
        self.server = BoundedServer(self.answer, **options)
        self.num_owners = 1
        self.sizes: list[int] = []
        self.take: Callable[[int], None] = self.sizes.append
        self.port = 0
        self.writers: list[asyncio.StreamWriter] = []
        self.cancelled = asyncio.Event()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            owner = request.headers.get("X-Owner")
            if owner and not self.server.welcome(request, owner, self.num_owners):
                return web.Response(status=503)
            if request.path == "/hang":
                await asyncio.Event().wait()
            if request.path == "/fail":
                raise ValueError("a mistake of ours")
            body = await read_body(request, 8, self.take)
        except TooMuch as error:
            return web.Response(status=error.status, text=str(error))
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return web.Response(body=body)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers.append(writer)
        return reader, writer

    async def said(self, request: bytes) -> bytes:
        """Return what comes back for a request that wants its connection closed."""
        reader, writer = await self.connect()
        writer.write(request.replace(b"Host: a", b"Host: a\r\nConnection: close"))
        return await reader.read()


@pytest.fixture(autouse=True)
def refused_bodies_are_let_go_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "_LINGERS", 0.01)


@asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[Served]:
    served = Served(**options)
    listening = await asyncio.get_running_loop().create_server(served.server, "127.0.0.1", 0)
    served.port = listening.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        for writer in served.writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        listening.close()
        await served.server.shutdown(0.1)


async def is_cut(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


def head(*headers: str) -> bytes:
    return "\r\n".join(["POST / HTTP/1.1", "Host: a", *headers, "", ""]).encode()


@pytest.mark.parametrize(
    ("request_", "status", "says"),
    [
        (head("Content-Length: 8") + b"12345678", 200, b"12345678"),
        (head("Content-Length: 0"), 200, b""),
        (head("Content-Length: 9"), 413, b"may have 8 bytes"),
        (head("Transfer-Encoding: chunked") + b"5\r\n12345\r\n5\r\n12345\r\n0\r\n\r\n", 413, b"may have 8 bytes"),
        (head("Content-Length: 2", "Content-Encoding: gzip") + b"hi", 415, b"compressed"),
        (head("Content-Length: 2", "Content-Encoding: IDENTITY") + b"hi", 200, b"hi"),
    ],
)
async def test_bodies_are_bounded(request_: bytes, status: int, says: bytes) -> None:
    async with serving() as served:
        answer = await served.said(request_)
    assert f"HTTP/1.1 {status} ".encode() in answer
    assert says in answer.partition(b"\r\n\r\n")[2]
    assert sum(served.sizes) <= 8
    if status == 200:
        assert sum(served.sizes) == len(says)


async def test_who_waits_to_be_told_to_go_on_is() -> None:
    async with serving() as served:
        reader, writer = await served.connect()
        writer.write(head("Expect: 100-continue", "Content-Length: 5"))
        assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
        writer.write(b"hi ")
        await until(lambda: served.sizes == [3])
        writer.write(b"du")
        assert b"200 OK" in await reader.readuntil(b"hi du")
        assert served.sizes == [3, 2]
        writer.close()


async def test_a_body_that_does_not_come_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "_BODY_SECONDS", 0.01)
    async with serving() as served:
        assert b"HTTP/1.1 408 " in await served.said(head("Content-Length: 2") + b"h")


async def test_who_goes_away_takes_the_request_along() -> None:
    async with serving() as served:
        _, writer = await served.connect()
        writer.write(head("Content-Length: 0").replace(b"POST /", b"POST /hang"))
        await writer.drain()
        while not served.server._owner_of and not served.server._strangers:
            await asyncio.sleep(0)
        writer.close()
        await served.cancelled.wait()


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0)


async def test_who_has_not_asked_in_time_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "_HEAD_SECONDS", 0.01)
    async with serving() as served:
        reader, writer = await served.connect()
        assert await is_cut(reader)
        writer.close()
        await until(lambda: served.server._num_open == 0)


async def test_the_oldest_stranger_goes_where_another_one_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "_MOST_STRANGERS", 2)
    async with serving() as served:
        connections = []
        for count in range(3):
            connections.append(await served.connect())
            await until(lambda count=count: len(served.server._strangers) == min(count + 1, 2))  # type: ignore[misc]
        assert await is_cut(connections[0][0])
        for reader, writer in connections[1:]:
            writer.write(ASK % b"ann")
            assert b"200" in await reader.readuntil(b"hi")
            writer.close()


async def test_whom_somebody_speaks_for_is_no_stranger_and_has_a_fair_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "_MOST_OF_ONE", 2)
    monkeypatch.setattr(bounded_http, "_LEAST_OF_ONE", 1)
    async with serving() as served:
        kept = [await served.connect() for _ in range(2)]
        for _ in range(2):  # once more by the same connections
            for reader, writer in kept:
                writer.write(ASK % b"ann")
                assert b"200" in await reader.readuntil(b"hi")
        assert not served.server._strangers
        assert not served.server._timers
        assert b"HTTP/1.1 503" in await served.said(ASK % b"ann")
        assert b"HTTP/1.1 200" in await served.said(ASK % b"bob")
        kept[0][1].close()
        await until(lambda: len(served.server._owned["ann"]) == 1)
        assert b"HTTP/1.1 200" in await served.said(ASK % b"ann")
        served.server.let_go("ann")
        served.server.let_go("nobody")
        assert await is_cut(kept[1][0])
        assert served.server._owned.keys() <= {"bob"}


async def test_for_anyone_who_has_asked_is_no_stranger() -> None:
    async with serving(for_anyone=True) as served:
        reader, writer = await served.connect()
        writer.write(head("Content-Length: 2") + b"hi")
        await reader.readuntil(b"hi")
        assert (served.server._num_open, served.server._strangers, served.server._timers) == (1, {}, {})
        writer.close()


async def test_what_is_no_http_is_answered_and_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async with serving() as served:
        assert b"400" in await served.said(b"no http at all\r\n\r\n")
        assert caplog.messages == []
        assert b"HTTP/1.1 500" in await served.said(head("Content-Length: 0").replace(b"POST /", b"POST /fail"))
    assert [record.exc_info and repr(record.exc_info[1]) for record in caplog.records] == ["ValueError('a mistake of ours')"]


async def test_what_takes_the_parts_of_a_body_may_refuse_it() -> None:
    def refuse(size: int) -> None:
        raise TooMuch(507, f"no room for {size}")

    async with serving() as served:
        served.take = refuse
        answer = await served.said(head("Content-Length: 2") + b"hi")
    assert answer.startswith(b"HTTP/1.1 507 ")
    assert answer.endswith(b"no room for 2")


async def test_connections_are_shared_out_among_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "most_connections", lambda: 4)
    monkeypatch.setattr(bounded_http, "_LEAST_OF_ONE", 1)
    async with serving() as served:
        served.num_owners = 4
        reader, writer = await served.connect()
        writer.write(ASK % b"ann")
        await reader.readuntil(b"hi")
        assert b"HTTP/1.1 503" in await served.said(ASK % b"ann")
        served.num_owners = 2
        assert b"HTTP/1.1 200" in await served.said(ASK % b"ann")


async def test_a_connection_belongs_to_whoever_asked_by_it_last() -> None:
    async with serving() as served:
        reader, writer = await served.connect()
        for owner in (b"ann", b"bob"):
            writer.write(ASK % owner)
            await reader.readuntil(b"hi")
        served.server.let_go("ann")
        writer.write(ASK % b"bob")
        await reader.readuntil(b"hi")
        served.server.let_go("bob")
        assert await is_cut(reader)
        await until(lambda: served.server._num_open == 0)
        assert (served.server._owned, served.server._owner_of) == ({}, {})


async def test_where_all_connections_are_taken_the_one_that_comes_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_http, "most_connections", lambda: 1)
    async with serving() as served:
        reader, writer = await served.connect()
        writer.write(ASK % b"ann")
        await reader.readuntil(b"hi")
        assert await is_cut((await served.connect())[0])
        writer.write(ASK % b"ann")
        assert b"200" in await reader.readuntil(b"hi")


async def test_who_comes_by_a_unix_socket_is_no_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest that has not asked goes where there is no room at all."""
    monkeypatch.setattr(bounded_http, "_MOST_STRANGERS", 1)
    monkeypatch.setattr(bounded_http, "most_connections", lambda: 2)
    path = make_socket_path()
    async with serving() as served:
        listening = await asyncio.get_running_loop().create_unix_server(served.server, path)
        connections = []
        for count in range(3):
            connections.append(await asyncio.open_unix_connection(path))
            served.writers.append(connections[-1][1])
            await until(lambda count=count: len(served.server._timers) == min(count + 1, 2))  # type: ignore[misc]
        assert served.server._strangers == {}
        assert await is_cut(connections[0][0])
        for reader, writer in connections[1:]:
            writer.write(ASK % b"ann")
            assert b"200" in await reader.readuntil(b"hi")
        listening.close()
    remove_socket(path)
