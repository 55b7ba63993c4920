"""Commands and cells that the agent runs: what they have printed, when they must end, and what is answered of them."""

from __future__ import annotations

import binascii
import os
import selectors
import time

from vfgym.sandboxes.inside.processes import Process, cpu_seconds
from vfgym.sandboxes.inside.wire import read, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vfgym.sandboxes.inside.agent import Agent

_GRACE = 0.5
"""Seconds that a cell has to end after it was interrupted."""
_CHUNK = 1 << 18
_MOST_READS = 8
"""More than empty a pipe, which holds 1 MiB at most."""

BOOTSTRAP = """
import sys
if sys.path[:1] == [""]:
    del sys.path[0]
import socket, types
channel = socket.socket(fileno=3)
source = channel.recv(int.from_bytes(channel.recv(4, socket.MSG_WAITALL), "big"), socket.MSG_WAITALL)
module = types.ModuleType("vfgym.sandboxes.inside.cells")
exec(compile(source, module.__name__, "exec"), module.__dict__)
sys.path.insert(len(sys.path) if "wary" in sys.argv else 0, "")
module.main(channel)
"""
"""What an interpreter of cells is started with: it reads its program. Until then no module of the working directory is found."""
_TOKEN_BYTES = 16


class Output:
    """What a process writes into a pipe: its beginning is kept."""

    def __init__(self, descriptor: int, most: int) -> None:
        """Read a pipe, and keep so many bytes."""
        self.descriptor, self.most = descriptor, most
        self.kept = bytearray()
        self.is_cut = False

    def read(self) -> int | None:
        """Read once; return how many bytes there were, 0 at the end and None where there is nothing now."""
        try:
            data = os.read(self.descriptor, _CHUNK)
        except BlockingIOError:
            return None
        room = self.most - len(self.kept)
        self.kept += data[:room]
        self.is_cut = self.is_cut or len(data) > room
        return len(data)

    def take(self) -> str:
        """Return what was kept, as base64, and forget it."""
        text = binascii.b2a_base64(self.kept, newline=False).decode()
        self.kept.clear()
        return text


class Job:
    """A process with its outputs, watched by the agent's selector."""

    def __init__(self, agent: Agent, process: Process) -> None:
        """Begin to read what a process writes."""
        self.agent, self.process = agent, process
        self.outputs = [Output(descriptor, agent.most_output) for descriptor in (process.stdout, process.stderr)]
        for output in self.outputs:
            agent.watch(output.descriptor, lambda output=output: self._read(output))  # type: ignore[misc]
        agent.watch(process.status, self._read_status)

    def _read(self, output: Output) -> None:
        if output.read() == 0:
            self.agent.unwatch(output.descriptor)  # closed by all who could write to it

    def _read_status(self) -> None:
        if self.process.read_status():
            self.end()

    def drain(self) -> None:
        """Read what there still is in the pipes, but not for ever what somebody goes on to write."""
        for output in self.outputs:
            for _ in range(_MOST_READS):
                if not output.read():
                    break

    def end(self) -> None:
        """Kill what the program has left, and let go of it."""
        for descriptor in (self.process.stdout, self.process.stderr, self.process.status, self.process.stdin):
            self.agent.unwatch(descriptor)
        self.agent.jobs.discard(self)
        self.process.kill()
        self.agent.kill_strays()
        self.drain()
        self.process.close()

    def look(self, now: float) -> None:
        """End it, if it must end."""


def describe_failure(error: OSError) -> dict[str, Any]:
    """Return what is answered of a command that can't be started."""
    text = binascii.b2a_base64(f"{error}\n".encode("utf-8", "replace"), newline=False).decode()
    exit_code = 127 if isinstance(error, FileNotFoundError) else 126
    return {"exit_code": exit_code, "stdout": "", "stderr": text, "timed_out": False, "truncated": False}


def describe_cell(cell: dict[str, Any], value: str | None = None, trace: str | None = None) -> dict[str, Any]:
    """Return what is answered of a cell that has printed nothing."""
    described = {"value": value, "traceback": trace, "stdout": "", "stderr": "", "count": cell["count"]}
    return dict(described, timed_out=False, state_is_lost=False, truncated=False)


class Command(Job):
    """A command: it is over when its program ends, or must."""

    def __init__(self, agent: Agent, request: dict[str, Any]) -> None:
        """Start what is asked for."""
        data = binascii.a2b_base64(request["input"])
        env = dict(agent.env, **request["env"])
        folder = agent.files.find(request["working_dir"] or ".")
        super().__init__(agent, Process(request["command"], env, folder, agent.limits, stdin=bool(data)))
        self.number = request["id"]
        self.deadline = None if request["timeout"] is None else time.monotonic() + request["timeout"]
        self.timed_out = False
        self._input = memoryview(data)
        if data:
            agent.watch(self.process.stdin, self._write, selectors.EVENT_WRITE)

    def _write(self) -> None:
        try:
            self._input = self._input[os.write(self.process.stdin, self._input) :]
        except BlockingIOError:
            return
        except OSError:  # it does not read
            self._input = self._input[:0]
        if not self._input:
            self.agent.unwatch(self.process.stdin)
            self.process.close_stdin()

    def look(self, now: float) -> None:
        """Kill it when its time is up."""
        if self.deadline is not None and now >= self.deadline:
            self.timed_out = True
            self.process.kill()  # the end of its keeper ends it
            self.deadline = None

    def end(self) -> None:
        """Answer what came of it."""
        super().end()
        result = {
            "exit_code": self.process.exit_code,
            "stdout": self.outputs[0].take(),
            "stderr": self.outputs[1].take(),
            "timed_out": self.timed_out,
            "truncated": any(output.is_cut for output in self.outputs),
        }
        self.agent.answer(self.number, result)


class CellWorker(Job):
    """The process that runs cells, one after the other."""

    def __init__(self, agent: Agent) -> None:
        """Start it."""
        import socket  # which takes 10 ms, and only cells need it

        ours, theirs = socket.socketpair()
        with theirs:
            command = [agent.python, *(["-s", "-c", BOOTSTRAP, "wary"] if agent.is_wary else ["-c", BOOTSTRAP])]
            process = Process(command, agent.env, agent.files.working_dir, agent.worker_limits, theirs.fileno())
        super().__init__(agent, process)
        ours.setblocking(False)
        self.channel = ours
        self._unsent = bytearray()
        self._received = bytearray()
        self._cell: dict[str, Any] | None = None
        self._deadline: float | None = None
        self._kills_at: float | None = None
        self._cpu_until = 0.0
        self._token = ""
        self.timed_out = False
        agent.watch(ours.fileno(), self._serve)
        self._send(agent.cells_source.encode())

    def run(self, cell: dict[str, Any]) -> None:
        """Begin to run a cell."""
        self._cell, self.timed_out, self._kills_at = cell, False, None
        self._deadline = None if cell["timeout"] is None else time.monotonic() + cell["timeout"]
        if self.agent.most_cpu_seconds is not None:
            self._cpu_until = cpu_seconds(self.process.keeper) + self.agent.most_cpu_seconds
        for output in self.outputs:
            output.is_cut = False
        self._token = os.urandom(_TOKEN_BYTES).hex()
        asked = {"code": cell["code"], "count": cell["count"], "most": self.agent.most_output, "token": self._token}
        self._send(write(asked))

    def _send(self, data: bytes) -> None:
        self._unsent += len(data).to_bytes(4, "big") + data
        self._write()

    def _serve(self) -> None:
        if self._unsent:
            self._write()
        self._receive()

    def _write(self) -> None:
        """Write what can be written now; the rest when there is room, if the interpreter goes on to read."""
        try:
            while self._unsent:
                del self._unsent[: self.channel.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError:  # it has ended, or has closed its end
            self._unsent.clear()
            self.process.kill()
        self.agent.unwatch(self.channel.fileno())
        self.agent.watch(self.channel.fileno(), self._serve, selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0))

    def _receive(self) -> None:
        try:
            data = self.channel.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._received += data
        size = int.from_bytes(self._received[:4], "big")
        if not data:  # it has ended, as its status says in a moment, or has closed its end
            self.agent.unwatch(self.channel.fileno())
            self._kills_at = time.monotonic() + _GRACE
        elif self._cell is None or size > 16 * self.agent.most_output or len(self._received) > 4 + size:
            self.process.kill()  # a cell has written what nobody asks for, or nonsense
        elif len(self._received) == 4 + size:
            body = bytes(self._received[4 : 4 + size])
            self._received.clear()
            self._finish(body)

    def _finish(self, body: bytes) -> None:
        try:
            said = read(body)
            value, trace, is_cut = said["value"], said["traceback"], bool(said["is_cut"])
            if said["token"] != self._token:
                raise ValueError("it answers another cell")
        except (ValueError, TypeError, KeyError, RecursionError):  # a cell has written nonsense
            self.process.kill()
            return
        self.drain()
        self._answer(value, trace, is_cut, state_is_lost=False)

    def _answer(self, value: str | None, trace: str | None, is_cut: bool, state_is_lost: bool) -> None:
        cell, self._cell, self._deadline, self._kills_at = self._cell, None, None, None
        if cell is None:  # nobody asks for it
            return
        result = describe_cell(cell, value, trace)
        result.update(
            stdout=self.outputs[0].take(),
            stderr=self.outputs[1].take(),
            timed_out=self.timed_out,
            state_is_lost=state_is_lost,
            truncated=is_cut or any(output.is_cut for output in self.outputs),
        )
        self.agent.answer(cell["id"], result)
        self.agent.run_next_cell()

    def look(self, now: float) -> None:
        """Interrupt, and then kill, a cell whose time is up."""
        if self._kills_at is not None:
            if now >= self._kills_at:
                self.process.kill()
                self._kills_at = None
        elif self._deadline is not None and now >= self._deadline:
            self.interrupt(now)

    def bound_cpu(self, now: float) -> None:
        """Interrupt a cell that has used its CPU time, itself or by what it has started."""
        is_running = self._cell is not None and self._kills_at is None
        if is_running and self.agent.most_cpu_seconds is not None and cpu_seconds(self.process.keeper) > self._cpu_until:
            self.interrupt(now)

    def interrupt(self, now: float) -> None:
        """Interrupt the cell, which is killed where that does not end it."""
        self.timed_out, self._deadline, self._kills_at = True, None, now + _GRACE
        self.process.interrupt()

    @property
    def deadline(self) -> float | None:
        """When it must be looked at."""
        return self._kills_at if self._kills_at is not None else self._deadline

    @property
    def cell(self) -> dict[str, Any] | None:
        """The cell that it runs."""
        return self._cell

    def end(self) -> None:
        """Answer for the cell that it ran, and let another go on."""
        self.agent.unwatch(self.channel.fileno())
        self.channel.close()
        self.agent.worker = None
        super().end()
        reason = "it did not stop when it was interrupted" if self.timed_out else f"exit code {self.process.exit_code}"
        self._answer(None, f"The interpreter of the cells has ended: {reason}.", False, state_is_lost=True)
        self.agent.run_next_cell()
