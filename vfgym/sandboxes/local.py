"""What sandboxes on this machine share that are a process and its children: bubblewrap's, and bare ones."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from vfgym.aio.background import on_background_loop
from vfgym.aio.threads import on_thread
from vfgym.errors import FailureCause, SandboxError
from vfgym.sandboxes import cgroups, registry
from vfgym.sandboxes.agent_client import BOOTSTRAP, AgentClient
from vfgym.sandboxes.agent_sandbox import AgentSandbox
from vfgym.sandboxes.base import Backend
from vfgym.sandboxes.spec import DEFAULT_DISK_MB, SandboxSpec

_STARTS_WITHIN = 60.0
_ENDS_WITHIN = 5.0
MOST_OUTPUT = 1 << 20
MOST_TERMINALS = 64
"""Pseudoterminals of a sandbox at once: the system has some 3,000 for all together."""


@cache
def find_interpreter() -> str:
    """Return the interpreter of sandboxes on this machine: ours, without its virtual environment; the system's where that can't be read."""
    own = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    for path in (own, Path("/usr/bin/python3")):
        if os.access(path, os.X_OK):
            return str(path)
    return shutil.which("python3") or sys.executable


def agent_command(interpreter: str) -> list[str]:
    """Return the command that starts an agent."""
    return [interpreter, "-I", "-S", "-c", BOOTSTRAP]


def agent_settings(spec: SandboxSpec, *, processes: int | None, disk_mb: int | None, **more: Any) -> dict[str, Any]:
    """Return what the agent is told: limits, environment and places."""
    limits: list[tuple[str, int]] = [("CORE", 0), ("DATA", spec.memory_mb << 20), ("NOFILE", spec.open_files)]
    if spec.cpu_seconds is not None:
        limits.append(("CPU", math.ceil(spec.cpu_seconds)))
    if processes is not None:
        limits.append(("NPROC", processes))
    if disk_mb is not None:
        limits.append(("FSIZE", disk_mb << 20))
    return {
        "limits": limits,
        "most_memory": spec.memory_mb << 20,
        "most_output": MOST_OUTPUT,
        "cpu_seconds": spec.cpu_seconds,
        "env": dict(spec.env),
        "working_dir": spec.working_dir,
        "folders": [],
        "writable": [],
        "most_files": None,
        "counted": [],
        "most_shared": 0,
        "counts_sockets": False,
        "most_terminals": None,
        "filters": {},
        "root": "/",
        "uid": None,
        "python": None if spec.python is None else f"{spec.python}/bin/python",
        **more,
    }


def search_path(spec: SandboxSpec, interpreter: str, rest: str) -> str:
    """Return a PATH with the interpreter of the cells before the others."""
    first = [] if spec.python is None else [f"{spec.python}/bin"]
    return ":".join([*first, os.path.dirname(interpreter), rest])


def parts_of_environment(folder: str) -> list[str]:
    """Return the folders of a virtual environment and of the interpreter that it stands on."""
    base = str(Path(os.path.realpath(f"{folder}/bin/python")).parents[1])
    return [folder] if is_in_usr(base) else [folder, base]


def is_in_usr(path: str) -> bool:
    """Say whether an absolute path is ``/usr`` or below it, which a sandbox has anyway; ``/usr2`` is not."""
    return (path + "/").startswith("/usr/")


class ProcessPipe:
    """Our ends of the pipes that are the standard streams of a child process."""

    group: cgroups.ControlGroup | None = None
    """The limits that the kernel keeps around the process."""
    most_memory_mb: int = 0

    def __init__(self, reading: int, writing: int, errors: int, ends: contextlib.ExitStack) -> None:
        """Take the descriptors, and what closes them."""
        self.reading, self.writing, self._errors = reading, writing, errors
        self._ends = ends
        for descriptor in (reading, writing, errors):
            os.set_blocking(descriptor, False)

    def decode(self, data: bytes) -> bytes:
        """Return data as it is."""
        return data

    def explain_end(self) -> tuple[str, FailureCause | None]:
        """Return what it has written to its standard error, or that it was killed, for its memory or by somebody."""
        if self.group is not None and self.group.was_short_of_memory():
            return f"its programs used up its memory ({self.most_memory_mb} MB), and it was killed", "policy"
        try:
            text = os.read(self._errors, 1 << 16).decode("utf-8", "replace").strip()
        except BlockingIOError:
            text = ""
        # An agent that raises was brought to it by what runs beside it.
        return (text[-2000:], "policy") if text else ("its process was killed", None)

    def close(self) -> None:
        """Close our ends."""
        self._ends.close()


def _start_process(command: Sequence[str], **options: Any) -> tuple[subprocess.Popen[bytes], ProcessPipe]:
    """Start a process, with options of `subprocess.Popen`; return it with our ends of its standard streams."""
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
        stdin, writing = _open_pipe(theirs, ours)
        reading, stdout = _open_pipe(ours, theirs)
        errors, stderr = _open_pipe(ours, theirs)
        process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True, **options)
        return process, ProcessPipe(reading, writing, errors, ours.pop_all())


def _open_pipe(reader: contextlib.ExitStack, writer: contextlib.ExitStack) -> tuple[int, int]:
    """Open a pipe, whose ends two stacks close."""
    reading, writing = os.pipe()
    reader.callback(os.close, reading)
    writer.callback(os.close, writing)
    return reading, writing


class ProcessSandbox(AgentSandbox):
    """A sandbox that is a process of this machine, and ends with it."""

    def __init__(self, spec: SandboxSpec, backend: Backend, folder: str | None = None, group: cgroups.ControlGroup | None = None) -> None:
        """Make one that was not started; a folder, and a group that limits it, are removed with it."""
        super().__init__(spec)
        self.backend = backend.name
        self.snapshots_have_all_files = backend.snapshots_have_all_files
        self._remover = backend
        self._record = registry.Record(self.id, backend.name, registry.identify(os.getpid()), folder=folder)
        self._group = group
        self._record.groups = [] if group is None else list(group.folders)
        self.most_bytes = (spec.disk_mb or DEFAULT_DISK_MB) << 20
        self._is_closed = False
        self._process: subprocess.Popen[bytes] | None = None

    async def start(
        self, command: Sequence[str], env: dict[str, str], settings: dict[str, Any], pass_fds: Sequence[int] = (), cwd: str | None = None
    ) -> None:
        """Start the process, and wait for its agent.

        Raises:
            SandboxError: If it can't be started.
        """
        registry.add(self._record, self._remover)
        # By the thread of the background loop, which does not end before us: bubblewrap ends with the thread that started it.
        await self._wait_for_start(on_background_loop(self._start, command, env, settings, pass_fds, cwd), _STARTS_WITHIN)

    async def _start(
        self, command: Sequence[str], env: dict[str, str], settings: dict[str, Any], pass_fds: Sequence[int], cwd: str | None
    ) -> None:
        try:
            if self._record.folder is not None:
                os.mkdir(self._record.folder, 0o700)
            if self._group is not None:
                command = self._group.run_in(command)
            self._process, pipe = _start_process(command, env=env, cwd=cwd, pass_fds=pass_fds)
            pipe.group, pipe.most_memory_mb = self._group, self.spec.memory_mb
        except OSError as error:
            raise SandboxError(f"the sandbox could not be started: {error}") from error
        forwards = {port: os.fspath(path) for port, path in self.spec.forwards.items()}
        self.agent = AgentClient(pipe, settings, forwards)
        self._record.process = registry.identify(self._process.pid)
        registry.add(self._record, self._remover)

    async def close(self) -> None:
        """End the process with everything below it: see `Sandbox.close`."""
        if self._is_closed or self._record.owner[0] != os.getpid():  # a fork does not own it
            return
        self._is_closed = True
        if hasattr(self, "agent"):
            self.agent.end("the sandbox is closed")
        await asyncio.shield(on_thread(self._wait))  # whoever is cancelled meanwhile

    def _wait(self) -> None:
        try:
            if self._process is not None:
                _wait_or_kill(self._process)
        finally:
            registry.remove(self._record, self._remover)


def _wait_or_kill(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
