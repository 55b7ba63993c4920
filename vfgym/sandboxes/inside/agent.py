"""The agent: the one process that lives as long as its sandbox, and does what its caller asks for.

Frames of a length and JSON come in at descriptor 0 and go out at descriptor 1; bytes are base64. It is one loop without threads. As the
first process of a sandbox it can't be killed from inside, and nothing outlives it. Limits are those of its children, never its own.
"""

from __future__ import annotations

import errno
import os
import selectors
import sys
import time
from collections import deque
from collections.abc import Callable

from vfgym.sandboxes.inside.bounds import Bounds
from vfgym.sandboxes.inside.files import Files, walk
from vfgym.sandboxes.inside.jobs import CellWorker, Command, Job, describe_cell, describe_failure
from vfgym.sandboxes.inside.pristine import Pristine
from vfgym.sandboxes.inside.processes import filter_calls, kill_strays, protect_this_process
from vfgym.sandboxes.inside.wire import read, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vfgym.sandboxes.inside.forwarding import Forwards

_TICK = 0.1
"""Seconds between two looks at what programs cost."""
MOST_COMMANDS = 128
"""At once: each has four pipes, and the agent may have 1024 open files where nobody has allowed more."""


class Agent:
    """What the agent knows: its settings, what runs, and what waits."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """Set things up as the caller says."""
        self.settings = settings
        self.files = Files(settings["root"], settings["working_dir"], settings["folders"])
        self.env: dict[str, str] = dict(os.environ, **settings["env"])
        self.python: str = settings["python"] or sys.executable
        self.shell = next(path for path in ("/bin/bash", "/usr/bin/bash", "/bin/sh") if path == "/bin/sh" or os.path.exists(path))
        self.cells_source: str = settings["cells_source"]
        self.limits = [(name, most) for name, most in settings["limits"]]
        self.worker_limits = [(name, most) for name, most in self.limits if name != "CPU"]
        self.most_output: int = settings["most_output"]
        self.most_cpu_seconds: float | None = settings["cpu_seconds"]
        self.jobs: set[Job] = set()
        self.worker: CellWorker | None = None
        self.cells: deque[dict[str, Any]] = deque()
        self.count = 0
        self.is_wary = False
        """Whether an interpreter of cells is to load nothing that programs may have left for it."""
        self._selector = selectors.DefaultSelector()
        self._received = bytearray()
        self._looks_at = 0.0
        self._bounds = Bounds(settings)
        self._pristine = Pristine(settings["writable"]) if settings["writable"] else None
        self._forwards: Forwards | None = None
        if settings["ports"]:
            from vfgym.sandboxes.inside.forwarding import Forwards

            self._forwards = Forwards(self._selector, self.send)
            for port in settings["ports"]:
                self._forwards.listen(port)

    # The caller

    def send(self, message: dict[str, Any]) -> None:
        """Send the caller a message."""
        data = write(message)
        left = memoryview(len(data).to_bytes(4, "big") + data)
        while left:
            left = left[os.write(1, left) :]

    def answer(self, number: int, result: dict[str, Any]) -> None:
        """Answer a request."""
        self.send({"id": number, "result": result})

    def _receive(self) -> None:
        data = os.read(0, 1 << 18)
        if not data:
            self.leave()
        self._received += data
        while len(self._received) >= 4:
            size = int.from_bytes(self._received[:4], "big")
            if len(self._received) < 4 + size:
                break
            message = read(bytes(self._received[4 : 4 + size]))
            del self._received[: 4 + size]
            self._handle(message)

    def _handle(self, message: dict[str, Any]) -> None:
        if "stream" in message:
            if self._forwards is not None:
                self._forwards.receive(message)
        elif "cancelled" in message:
            self._cancel(message["cancelled"])
        else:
            try:
                result = getattr(self, "do_" + message["do"])(message)
            except OSError as error:
                named = [error.errno or errno.EIO, error.strerror or str(error), error.filename]
                self.send({"id": message["id"], "error": named})
            except ValueError as error:  # a path that no file can have: with a NUL, or of what is not Unicode
                self.send({"id": message["id"], "error": [errno.EINVAL, str(error), message.get("path")]})
            else:
                if result is not None:
                    self.answer(message["id"], result)

    def _cancel(self, number: int) -> None:
        for job in list(self.jobs):
            if isinstance(job, Command) and job.number == number:
                job.process.kill()
        self.cells = deque(cell for cell in self.cells if cell["id"] != number)
        if self.worker is not None and self.worker.cell is not None and self.worker.cell["id"] == number:
            self.worker.interrupt(time.monotonic())

    # What it does

    def do_exec(self, request: dict[str, Any]) -> None:
        """Run a command; it is answered when it ends."""
        command = request["command"]
        request["command"] = [self.shell, "-c", command] if isinstance(command, str) else command
        try:
            if sum(isinstance(job, Command) for job in self.jobs) >= MOST_COMMANDS:
                raise OSError(errno.EAGAIN, f"More than {MOST_COMMANDS} commands at once")
            self.jobs.add(Command(self, request))
        except OSError as error:  # as a shell has it that can't start a program
            self.answer(request["id"], describe_failure(error))

    def do_cell(self, request: dict[str, Any]) -> None:
        """Run a cell, when those before it are done."""
        self.cells.append(request)
        self.run_next_cell()

    def run_next_cell(self) -> None:
        """Run a cell that waits, if none runs."""
        if not self.cells or (self.worker is not None and self.worker.cell is not None):
            return
        self.count += 1
        cell = dict(self.cells.popleft(), count=self.count)
        if self.worker is None:
            try:
                self.worker = CellWorker(self)
            except OSError as error:
                self.answer(cell["id"], describe_cell(cell, trace=f"The interpreter of the cells can't be started: {error}"))
                self.run_next_cell()
                return
            self.jobs.add(self.worker)
        self.worker.run(cell)

    def do_read(self, request: dict[str, Any]) -> dict[str, Any]:
        """Read a part of a file."""
        return self.files.read(request["path"], request["offset"], request["size"])

    def do_write(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write a part of a file."""
        return self.files.write(request["path"], request["data"], request["append"], request["mode"])

    def do_make_folder(self, request: dict[str, Any]) -> dict[str, Any]:
        """Make a folder."""
        return self.files.make_folder(request["path"], request["mode"])

    def do_make_link(self, request: dict[str, Any]) -> dict[str, Any]:
        """Make a symbolic link."""
        return self.files.make_link(request["path"], request["target"])

    def do_walk(self, request: dict[str, Any]) -> dict[str, Any]:
        """Say what is in a folder."""
        return walk(self.files.find(request["path"]), request["path"])

    def do_walk_new(self, request: dict[str, Any]) -> dict[str, Any]:
        """Say what was made since the sandbox began, and whether cells have an interpreter."""
        return {"entries": self._known_pristine().find_new(), "has_interpreter": self.worker is not None}

    def do_clear(self, request: dict[str, Any]) -> dict[str, Any]:
        """Empty a folder."""
        return self.files.clear(request["path"])

    def do_remove_new(self, request: dict[str, Any]) -> dict[str, Any]:
        """Make the files what they were when the sandbox was created."""
        return {"problem": self._known_pristine().restore()}

    def _known_pristine(self) -> Pristine:
        if self._pristine is None:
            raise OSError(errno.ENOTSUP, "Nobody looked at what the sandbox began with", "/")
        return self._pristine

    def do_end_interpreter(self, request: dict[str, Any]) -> dict[str, Any]:
        """End the interpreter of the cells; the next one loads nothing that programs have left for it."""
        waiting, self.cells = self.cells, deque()
        if self.worker is not None:
            self.worker.end()
        for cell in waiting:
            self.answer(cell["id"], describe_cell(dict(cell, count=self.count), trace="The interpreter of the cells was ended."))
        self.is_wary = True
        return {}

    # The loop

    def watch(self, descriptor: int, call: Callable[[], None], events: int = selectors.EVENT_READ) -> None:
        """Have a function called when there is something to read."""
        self._selector.register(descriptor, events, call)

    def unwatch(self, descriptor: int) -> None:
        """Undo `watch`, if it was done."""
        if descriptor >= 0 and descriptor in self._selector.get_map():
            self._selector.unregister(descriptor)

    def kill_strays(self) -> None:
        """Kill what belongs to no job."""
        kill_strays(job.process.keeper for job in self.jobs)

    def run(self) -> None:
        """Do what is asked, until nobody asks any more."""
        self.watch(0, self._receive)
        self.send({"ready": {"python": sys.version.split()[0], "pid": os.getpid()}})
        while True:
            for key, _ in self._selector.select(self._timeout()):
                if self._selector.get_map().get(key.fd) is key:  # what came before may have ended it
                    key.data()
            now = time.monotonic()
            for job in list(self.jobs):
                job.look(now)
            if self.jobs and now >= self._looks_at:
                self._looks_at = now + _TICK
                self._bound()
                if self.worker is not None:
                    self.worker.bound_cpu(now)

    def _is_busy(self) -> bool:
        return any(not isinstance(job, CellWorker) or job.cell is not None for job in self.jobs)

    def _timeout(self) -> float | None:
        """Return for how long there is nothing to do, if nothing comes in."""
        if not self._is_busy():
            return 1.0 if self.jobs else None  # what a cell has left running may still grow
        now = time.monotonic()
        deadlines = [job.deadline for job in self.jobs if isinstance(job, (Command, CellWorker)) and job.deadline is not None]
        return max(0.0, min([*deadlines, now + _TICK]) - now)

    def _bound(self) -> None:
        """Bound what all programs cost; where that can't be, end the sandbox, and say why."""
        reason = self._bounds.look(job.process.keeper for job in self.jobs)
        if reason is not None:
            self.send({"ended": reason})
            self.leave()

    def leave(self) -> None:
        """End everything, and itself."""
        kill_strays(())
        os._exit(0)


def main(settings: dict[str, Any]) -> None:
    """Set the sandbox up, and serve."""
    if settings["uid"] is not None:
        os.setgroups([])
        os.setgid(settings["uid"])
        os.setuid(settings["uid"])
    protect_this_process()
    if settings["filters"]:
        filter_calls(settings["filters"].get(os.uname().machine))
    os.umask(0o022)
    try:
        agent = Agent(settings)
    except OSError as error:
        data = write({"failed": str(error)})
        os.write(1, len(data).to_bytes(4, "big") + data)
        os._exit(1)
    agent.run()
