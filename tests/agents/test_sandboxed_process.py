"""The program in an agent's sandbox: it does the jobs of one line, whole, one after the other, and ends with it."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from vfgym.agents import sandboxed_process


class Ended(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[socket.socket, list[int]]]:
    """Our end of the line, and the exit codes of the program."""
    codes: list[int] = []

    def end(code: int) -> None:
        codes.append(code)
        raise Ended

    monkeypatch.setattr(sandboxed_process.os, "_exit", end)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("VFGYM_AGENT_PORT", str(server.getsockname()[1]))

        def run() -> None:
            with pytest.raises(Ended):
                sandboxed_process.main()

        program = threading.Thread(target=run, daemon=True)
        program.start()
        ours, _ = server.accept()
        with ours:
            ours.settimeout(60)
            yield ours, codes
            with contextlib.suppress(OSError):  # the program has ended
                ours.shutdown(socket.SHUT_RDWR)
        program.join(60)
    assert codes == [0]
    assert "VFGYM_AGENT_PORT" not in os.environ


def framed(*job: Any) -> bytes:
    pickled = pickle.dumps(job)
    return struct.pack("!Q", len(pickled)) + pickled


def read_outcome(ours: socket.socket) -> Any:
    with ours.makefile("rb") as file:
        (size,) = struct.unpack("!Q", file.read(8))
        return json.loads(file.read(size))


def test_jobs_are_done_one_after_the_other_also_after_one_that_fails(line: tuple[socket.socket, list[int]]) -> None:
    ours, codes = line
    for job, outcome in (
        (("operator", "add", (1, 2)), 3),
        (("builtins", "int", ("x",)), None),
        (("builtins", "len", (b"x" * 200_000,)), 200_000),
        (("operator", "mul", ("ab", 100_000)), "ab" * 100_000),
    ):
        ours.sendall(framed(*job))
        said = read_outcome(ours)
        assert said == {"result": outcome} if outcome else said["error"]["kind"] == "ValueError"
    ours.sendall(struct.pack("!Q", 0))
    assert read_outcome(ours)["error"]["kind"] == "EOFError"
    assert codes == []


@pytest.mark.parametrize("sent", [b"", b"\0\0\0", struct.pack("!Q", 9), struct.pack("!Q", 9) + b"12345678"])
def test_it_ends_where_a_job_is_cut(line: tuple[socket.socket, list[int]], sent: bytes) -> None:
    ours, _ = line
    ours.sendall(sent)
    ours.shutdown(socket.SHUT_WR)
    assert ours.recv(1) == b""
