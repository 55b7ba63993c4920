"""What the agent answers to requests that need no process: files, errors, cells that wait. Sandboxes test the rest."""

from __future__ import annotations

import base64
import errno
import os
from pathlib import Path
from typing import Any

import pytest

from vfgym.sandboxes.inside import agent as agent_module
from vfgym.sandboxes.inside.agent import MOST_COMMANDS, Agent
from vfgym.sandboxes.inside.jobs import Command
from vfgym.sandboxes.inside.wire import write
from vfgym.sandboxes.local import agent_settings
from vfgym.sandboxes.spec import SandboxSpec


class Said(Agent):
    """Keeps what it sends."""

    def send(self, message: dict[str, Any]) -> None:
        self.__dict__.setdefault("sent", []).append(message)

    def asked(self, **message: Any) -> Any:
        """Return what is sent on account of a message."""
        before = len(self.__dict__.setdefault("sent", []))
        self._handle(message)
        return self.__dict__["sent"][before:]


@pytest.fixture
def agent(tmp_path: Path) -> Said:
    spec = SandboxSpec(working_dir="/work", cpu_seconds=1.5, env={"A": "1"}, python=None)
    return Said({**agent_settings(spec, processes=7, disk_mb=None, root=str(tmp_path)), "cells_source": "", "ports": []})


def test_limits_are_those_of_the_spec_and_cells_have_a_clock_of_their_own(agent: Said) -> None:
    assert agent.limits == [("CORE", 0), ("DATA", 1024 << 20), ("NOFILE", 256), ("CPU", 2), ("NPROC", 7)]
    assert agent.worker_limits == [("CORE", 0), ("DATA", 1024 << 20), ("NOFILE", 256), ("NPROC", 7)]
    assert (agent.most_cpu_seconds, agent.env["A"], agent.env["PATH"]) == (1.5, "1", os.environ["PATH"])


def test_files_are_written_read_listed_and_cleared(agent: Said, tmp_path: Path) -> None:
    text = base64.b64encode(b"abc").decode()
    assert [each["id"] for each in agent.asked(id=1, do="write", path="d/a", data=text, append=False, mode=0o600)] == [1]
    agent.asked(id=2, do="write", path="d/a", data=text, append=True, mode=None)
    assert (tmp_path / "work/d/a").read_bytes() == b"abcabc"
    assert (tmp_path / "work/d/a").stat().st_mode & 0o777 == 0o600
    [answer] = agent.asked(id=3, do="read", path="d/a", offset=2, size=2)
    assert (answer["id"], base64.b64decode(answer["result"]["data"])) == (3, b"ca")
    agent.asked(id=4, do="make_folder", path="d/sub", mode=0o711)
    agent.asked(id=5, do="make_link", path="d/link", target="a")
    [answer] = agent.asked(id=6, do="walk", path="d")
    assert sorted(entry[:2] for entry in answer["result"]["entries"]) == [["a", "file"], ["link", "link"], ["sub", "folder"]]
    agent.asked(id=7, do="clear", path="d")
    assert list((tmp_path / "work/d").iterdir()) == []


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"do": "read", "path": "none", "offset": 0, "size": 1}, [errno.ENOENT, "No such file or directory"]),
        ({"do": "read", "path": "", "offset": 0, "size": 1}, [errno.EISDIR, "Is a directory"]),
        ({"do": "write", "path": "a\0b", "data": "", "append": False, "mode": None}, [errno.EINVAL, "embedded null byte"]),
        ({"do": "walk_new"}, [errno.ENOTSUP, "Nobody looked at what the sandbox began with"]),
        ({"do": "remove_new"}, [errno.ENOTSUP, "Nobody looked at what the sandbox began with"]),
    ],
)
def test_what_goes_wrong_is_answered_by_its_number_and_words(agent: Said, request_: dict[str, Any], error: list[Any]) -> None:
    [answer] = agent.asked(id=9, **request_)
    assert (answer["id"], answer["error"][:2]) == (9, error)


def test_frames_may_come_in_pieces_and_together(agent: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    handled: list[Any] = []
    monkeypatch.setattr(agent, "_handle", handled.append)
    frames = b"".join(len(data).to_bytes(4, "big") + data for data in (write({"id": number, "text": "é" * number}) for number in range(3)))
    pieces = [frames[:3], frames[3:9], frames[9:-1], frames[-1:]]
    seen = []
    for piece in pieces:
        with monkeypatch.context() as patched:
            patched.setattr(agent_module.os, "read", lambda descriptor, size, piece=piece: piece)
            agent._receive()
        seen.append(len(handled))
    assert handled == [{"id": number, "text": "é" * number} for number in range(3)]
    assert seen == sorted(seen)
    assert (seen[0], seen[2], seen[3]) == (0, 2, 3)


def test_more_commands_than_may_run_at_once_are_answered_as_a_shell_does(agent: Said) -> None:
    agent.jobs = {Command.__new__(Command) for _ in range(MOST_COMMANDS)}
    [answer] = agent.asked(id=5, do="exec", command="true")
    assert (answer["id"], answer["result"]["exit_code"]) == (5, 126)
    assert base64.b64decode(answer["result"]["stderr"]) == f"[Errno {errno.EAGAIN}] More than 128 commands at once\n".encode()


class Cell:
    """Stands for the interpreter, which runs a cell already."""

    def __init__(self, number: int) -> None:
        self.cell = {"id": number}
        self.interrupted: list[float] = []
        self.num_ended = 0

    def interrupt(self, now: float) -> None:
        self.interrupted.append(now)

    def end(self) -> None:
        self.num_ended += 1


def test_cells_wait_and_those_that_are_cancelled_are_not_run(agent: Said) -> None:
    worker: Any = Cell(1)
    agent.worker = worker
    for number in (2, 3, 4):
        assert agent.asked(id=number, do="cell", code="", timeout=None) == []
    agent.asked(cancelled=3)
    assert [cell["id"] for cell in agent.cells] == [2, 4]
    assert worker.interrupted == []
    agent.asked(cancelled=1)
    assert len(worker.interrupted) == 1
    answers = agent.asked(id=9, do="end_interpreter")
    assert [answer["id"] for answer in answers] == [2, 4, 9]
    assert {answer["result"].get("traceback") for answer in answers[:2]} == {"The interpreter of the cells was ended."}
    assert (answers[2]["result"], worker.num_ended, agent.is_wary, list(agent.cells)) == ({}, 1, True, [])


def test_streams_are_not_heard_of_where_no_port_is_forwarded(agent: Said) -> None:
    assert agent.asked(stream=1, data="") == []
