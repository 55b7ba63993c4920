"""The connection between a coordinator and a worker: messages in order, bounds, and who is let in."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from vfgym.runs.executors.link import LinkClosed, WorkerLink, addresses_of, connect


@asynccontextmanager
async def served(serve: Callable[[WorkerLink], Awaitable[None]]) -> AsyncIterator[str]:
    """Serve connections; the address is given."""

    async def take(reader: Any, writer: Any) -> None:
        link = WorkerLink(reader, writer)
        try:
            await serve(link)
        except LinkClosed:
            pass
        finally:
            await link.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def echo(link: WorkerLink) -> None:
    while True:
        link.send(await link.receive())


async def test_messages_arrive_as_they_were_and_in_order() -> None:
    messages: list[dict[str, Any]] = [{"a": "ü\n"}, {}, {"b": [None, True, 0.1, 10**20]}, {"long": "x" * 3_000_000}]
    async with served(echo) as address:
        link = await connect([address])
        for message in messages:
            link.send(message)
        await link.drain()
        assert [await link.receive() for _ in messages] == messages
        assert link.is_local
        await link.close()


async def test_who_sends_much_waits_until_the_other_side_has_taken_it() -> None:
    may_read = asyncio.Event()
    num_read = 0

    async def read_late(link: WorkerLink) -> None:
        nonlocal num_read
        await may_read.wait()
        while True:
            await link.receive()
            num_read += 1

    async with served(read_late) as address:
        link = await connect([address])
        link.send({"a": 1})
        await asyncio.wait_for(link.drain(), 60)
        for _ in range(20):
            link.send({"long": "x" * 2**20})
        waiting = asyncio.create_task(link.drain())
        await asyncio.wait({waiting}, timeout=0.1)
        assert not waiting.done()
        assert num_read == 0
        may_read.set()
        await waiting
        assert num_read > 0
        await link.close()


async def test_it_is_closed_at_once_and_where_the_other_machine_says_nothing_any_more() -> None:
    gone = asyncio.Event()

    async def wait(link: WorkerLink) -> None:
        try:
            await link.receive()
        finally:
            gone.set()

    async with served(wait) as address:
        link = await connect([address])
        assert link._writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) != 0
        link.abort()
        await asyncio.wait_for(gone.wait(), 60)
        with pytest.raises(LinkClosed):
            await link.receive()


async def test_the_first_address_that_answers_is_taken() -> None:
    async with served(echo) as address:
        link = await connect(["127.0.0.1:1", address])
        link.send({"a": 1})
        assert await link.receive() == {"a": 1}
        await link.close()
    with pytest.raises(LinkClosed, match=r"cannot reach the coordinator of its run \(127.0.0.1:1: .*; 127.0.0.1:2: "):
        await connect(["127.0.0.1:1", "127.0.0.1:2"])


async def test_why_an_address_does_not_answer_is_told_where_its_error_has_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: Any) -> Any:
        raise TimeoutError

    monkeypatch.setattr(asyncio, "open_connection", never)
    with pytest.raises(LinkClosed, match=r"cannot reach the coordinator of its run \(h:1: TimeoutError; ::1:2: TimeoutError\)$"):
        await connect(["h:1", "::1:2"])
    with pytest.raises(LinkClosed, match=r"cannot reach the coordinator of its run \(\)$"):
        await connect([])


@pytest.mark.parametrize(
    ("peer", "own", "is_local"),
    [
        (("127.0.0.9", 1), ("127.0.0.1", 2), True),
        (("::1", 1, 0, 0), ("::2", 2, 0, 0), True),
        (("10.0.0.5", 1), ("10.0.0.5", 2), True),
        (("10.0.0.6", 1), ("10.0.0.5", 1), False),
        (("10.127.0.1", 1), ("10.0.0.5", 1), False),
    ],
)
async def test_the_other_side_is_on_this_machine_by_its_address(peer: Any, own: Any, is_local: bool) -> None:
    class Writer:
        get_extra_info = staticmethod({"peername": peer, "sockname": own}.get)

    link = WorkerLink(asyncio.StreamReader(), Writer())  # type: ignore[arg-type]
    assert (link.peer, link.is_local) == (peer[0], is_local)


async def test_what_was_sent_before_it_is_closed_arrives() -> None:
    async def say(link: WorkerLink) -> None:
        link.send({"last": 1})

    async with served(say) as address:
        link = await connect([address])
        assert await link.receive() == {"last": 1}
        with pytest.raises(LinkClosed, match="the connection broke"):
            await link.receive()
        await link.close()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (struct.pack("!I", 2**31) + b"{}", "sent a message of 2147483648 bytes"),
        (struct.pack("!I", 2) + b"[]", "something else than messages"),
        (struct.pack("!I", 2) + b"{x", "something else than messages"),
        (struct.pack("!I", 9) + b"{}", "the connection broke"),
        (struct.pack("!I", 1000) + b'{"a":' + b"[" * 300 + b"]" * 300 + b"}" + b" " * 394, "nested more than"),
    ],
)
async def test_what_is_no_message_closes_it(data: bytes, message: str) -> None:
    async def say(reader: Any, writer: Any) -> None:
        writer.write(data)
        writer.close()

    server = await asyncio.start_server(say, "127.0.0.1", 0)
    async with server:
        link = await connect([f"127.0.0.1:{server.sockets[0].getsockname()[1]}"])
        with pytest.raises(LinkClosed, match=message):
            await link.receive()
        await link.close()


async def test_both_sides_learn_what_the_other_says_where_both_know_the_token() -> None:
    heard: list[Any] = []

    async def greet(link: WorkerLink) -> None:
        heard.append(await link.greet("token", {"pid": 1}, is_coordinator=True))

    async with served(greet) as address:
        link = await connect([address])
        assert await link.greet("token", {"pid": 2}, is_coordinator=False) == {"pid": 1}
        await link.close()
    assert heard == [{"pid": 2}]


async def test_who_does_not_know_the_token_is_refused_by_either_side_and_never_sees_it() -> None:
    refused: list[str] = []
    sent: list[bytes] = []

    async def greet(link: WorkerLink) -> None:
        write = link._writer.write
        link._writer.write = lambda data: (sent.append(bytes(data)), write(data))[1]  # type: ignore[assignment, method-assign, func-returns-value]
        try:
            await link.greet("the right token", {}, is_coordinator=True)
        except LinkClosed as error:
            refused.append(str(error))
            raise

    async with served(greet) as address:
        link = await connect([address])
        with pytest.raises(LinkClosed, match=r"127.0.0.1 does not know the token of this run"):
            await link.greet("another token", {}, is_coordinator=False)
        await link.close()
    assert refused == ["127.0.0.1 does not know the token of this run"]
    assert b"the right token" not in b"".join(sent)


async def test_what_a_side_said_is_no_proof_for_the_other_side() -> None:
    """Who only sends back what it hears does not know the token."""
    refused: list[str] = []

    async def greet(link: WorkerLink) -> None:
        try:
            await link.greet("token", {}, is_coordinator=True)
        except LinkClosed as error:
            refused.append(str(error))

    async with served(greet) as address:
        link = await connect([address])
        for _ in range(2):
            link.send(await link.receive())
        await link.drain()
        with pytest.raises(LinkClosed):
            await link.receive()
        await link.close()
    assert refused == ["127.0.0.1 does not know the token of this run"]


async def test_a_stranger_is_not_read_at_length() -> None:
    refused: list[str] = []

    async def greet(link: WorkerLink) -> None:
        try:
            await link.greet("token", {}, is_coordinator=True)
        except LinkClosed as error:
            refused.append(str(error))

    async with served(greet) as address:
        link = await connect([address])
        link.send_text(json.dumps({"nonce": "x" * 20_000}))
        with contextlib.suppress(LinkClosed):
            while True:
                await link.receive()
        await link.close()
    assert "sent a message of 20" in refused[0]


def test_a_server_is_looked_for_on_this_machine_where_workers_are_there() -> None:
    assert addresses_of(80, is_local=True) == ["127.0.0.1:80"]
    elsewhere = addresses_of(80, is_local=False)
    assert elsewhere[-1] == "127.0.0.1:80"
    assert len(elsewhere) > 1
