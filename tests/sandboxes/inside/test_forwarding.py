"""The agent's end of forwarded ports: connections become numbered streams, in both directions, within bounds."""

from __future__ import annotations

import base64
import contextlib
import selectors
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from vfgym.sandboxes.inside import forwarding
from vfgym.sandboxes.inside.forwarding import Forwards

MIB = 1 << 20


class Agent:
    """A selector, the forwards that it serves, and what they have sent to the caller."""

    def __init__(self, port: int) -> None:
        self.selector, self.port = selectors.DefaultSelector(), port
        self.sent: list[dict[str, Any]] = []
        self.forwards = Forwards(self.selector, self.sent.append)
        self.forwards.listen(port)
        self.clients: list[socket.socket] = []

    def serve(self, *, until: int = 0) -> None:
        """Serve what is ready, till so many messages were sent and nothing is ready any more."""
        while True:
            ready = self.selector.select(60 if len(self.sent) < until else 0)
            for key, _ in ready:
                key.data()
            if not ready:
                assert len(self.sent) >= until
                return

    def connect(self) -> socket.socket:
        """Connect, and have it said."""
        known = len(self.sent)
        client = socket.create_connection(("127.0.0.1", self.port))
        client.settimeout(60)
        self.clients.append(client)
        self.serve(until=known + 1)
        return client

    def receive(self, number: int, data: bytes | None) -> None:
        """Receive data for a stream, or its end."""
        self.forwards.receive({"stream": number} if data is None else {"stream": number, "data": base64.b64encode(data).decode()})


@pytest.fixture
def agent(unused_tcp_port: int) -> Iterator[Agent]:
    agent = Agent(unused_tcp_port)
    yield agent
    for client in agent.clients:
        client.close()
    for key in list(agent.selector.get_map().values()):
        with contextlib.suppress(AttributeError):
            key.fileobj.close()  # type: ignore[union-attr]
    agent.selector.close()


def text(message: dict[str, Any]) -> bytes:
    return base64.b64decode(message["data"])


def test_connections_are_streams_with_numbers_of_their_own(agent: Agent) -> None:
    first, second = agent.connect(), agent.connect()
    assert agent.sent == [{"stream": 1, "port": agent.port}, {"stream": 2, "port": agent.port}]
    second.sendall(b"from the second")
    agent.serve(until=3)
    assert (agent.sent[2]["stream"], text(agent.sent[2])) == (2, b"from the second")
    agent.receive(1, b"to the first")
    agent.serve()
    assert first.recv(100) == b"to the first"
    second.setblocking(False)
    with pytest.raises(BlockingIOError):
        second.recv(100)


def test_each_direction_ends_for_itself(agent: Agent) -> None:
    client = agent.connect()
    client.shutdown(socket.SHUT_WR)
    agent.serve(until=2)
    assert agent.sent[1] == {"stream": 1}, "no more comes from inside"
    agent.receive(1, b"still an answer")
    agent.receive(1, None)
    assert client.recv(100) == b"still an answer"
    assert client.recv(100) == b""
    assert agent.sent[2] == {"stream": 1, "is_closed": True}


def test_what_is_for_no_stream_is_dropped(agent: Agent) -> None:
    client = agent.connect()
    agent.receive(7, b"nobody")
    agent.receive(1, None)
    agent.receive(1, b"too late")
    assert client.recv(100) == b""
    assert agent.sent[1:] == [{"stream": 1, "is_closed": True}]


def test_a_connection_that_does_not_read_is_cut_once_4_mib_wait(agent: Agent) -> None:
    agent.connect()
    streams, waiting = agent.forwards._streams, 0
    while 1 in streams:
        waiting = len(streams[1].waiting)
        assert waiting <= 4 * MIB
        agent.receive(1, bytes(MIB // 16))
    assert waiting > 4 * MIB - MIB // 16, "so much may wait"
    assert agent.sent[1:] == [{"stream": 1, "is_closed": True}]


def test_what_waits_is_written_as_it_is_read(agent: Agent) -> None:
    client = agent.connect()
    data = bytes(range(256)) * 4096 * 5  # 5 MiB, in parts
    received = bytearray()
    for start in range(0, len(data), MIB):
        agent.receive(1, data[start : start + MIB])
        while len(received) < start:
            received += client.recv(MIB)
            agent.serve()
    agent.receive(1, None)
    while len(received) < len(data):
        received += client.recv(MIB)
        agent.serve()
    assert received == data
    assert client.recv(1) == b""


def test_more_connections_than_there_may_be_are_closed_at_once(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    assert forwarding._MOST_STREAMS == 256
    monkeypatch.setattr(forwarding, "_MOST_STREAMS", 2)
    agent.connect()
    kept = agent.connect()
    refused = socket.create_connection(("127.0.0.1", agent.port), timeout=60)
    agent.clients.append(refused)
    while len(agent.selector.select(0)):
        agent.serve()
    assert refused.recv(1) == b""
    assert len(agent.sent) == 2
    agent.receive(1, None)
    agent.connect()
    assert agent.sent[-1] == {"stream": 3, "port": agent.port}, "there is room again"
    kept.sendall(b"x")
    agent.serve(until=5)
    assert text(agent.sent[-1]) == b"x"


def test_a_connection_that_breaks_is_closed_and_said(agent: Agent) -> None:
    client = agent.connect()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    client.close()  # with a reset
    agent.serve(until=2)
    assert agent.sent[1] == {"stream": 1, "is_closed": True}
    assert len(agent.selector.get_map()) == 1, "the listener alone"
