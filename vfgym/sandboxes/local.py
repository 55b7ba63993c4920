"""What sandboxes on this machine share that are a process and its children: bubblewrap's, and bare ones."""

from __future__ import annotations

import asyncio
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
from vfgym.errors import SandboxError
from vfgym.sandboxes import registry
from vfgym.sandboxes.agent_client import BOOTSTRAP, AgentClient
from vfgym.sandboxes.agent_sandbox import AgentSandbox
from vfgym.sandboxes.base import Backend
from vfgym.sandboxes.spec import DEFAULT_DISK_MB, SandboxSpec

_STARTS_WITHIN = 60.0
_ENDS_WITHIN = 5.0
MOST_OUTPUT = 1 << 20


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
        limits.append(("CPU", max(1, round(spec.cpu_seconds))))
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
    return [folder] if base.startswith("/usr") else [folder, base]


class ProcessPipe:
    """The standard streams of a child process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Take a process that was started with pipes."""
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self.reading, self.writing = process.stdout.fileno(), process.stdin.fileno()
        os.set_blocking(self.reading, False)
        os.set_blocking(self.writing, False)

    def decode(self, data: bytes) -> bytes:
        """Return data as it is."""
        return data

    def explain_end(self) -> str:
        """Return what it has written to its standard error, or that it was killed."""
        assert self.process.stderr is not None
        os.set_blocking(self.process.stderr.fileno(), False)
        try:
            text = os.read(self.process.stderr.fileno(), 1 << 16).decode("utf-8", "replace").strip()
        except OSError:
            text = ""
        return text[-2000:] or "its process was killed"

    def close(self) -> None:
        """Close our ends."""
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            try:
                stream.close()
            except OSError:  # what was still to be written
                pass


class ProcessSandbox(AgentSandbox):
    """A sandbox that is a process of this machine, and ends with it."""

    def __init__(self, spec: SandboxSpec, backend: Backend, folder: str | None = None) -> None:
        """Make one that was not started, with a folder of its own that is removed with it."""
        super().__init__(spec)
        self.backend = backend.name
        self.snapshots_have_all_files = backend.snapshots_have_all_files
        self._remover = backend
        self._record = registry.Record(self.id, backend.name, registry.identify(os.getpid()), folder=folder)
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
        starting = asyncio.ensure_future(on_background_loop(self._start, command, env, settings, pass_fds, cwd))
        try:
            await asyncio.shield(starting)
            await self.agent.ready(_STARTS_WITHIN)
        except BaseException:
            await asyncio.wait([starting])  # where this was cancelled meanwhile
            await self.close()
            raise

    async def _start(
        self, command: Sequence[str], env: dict[str, str], settings: dict[str, Any], pass_fds: Sequence[int], cwd: str | None
    ) -> None:
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=cwd, pass_fds=pass_fds, bufsize=0, start_new_session=True
            )
        except OSError as error:
            raise SandboxError(f"the sandbox could not be started: {error}") from error
        self._record.process = registry.identify(self._process.pid)
        registry.add(self._record, self._remover)
        forwards = {port: os.fspath(path) for port, path in self.spec.forwards.items()}
        self.agent = AgentClient(ProcessPipe(self._process), settings, forwards)

    async def close(self) -> None:
        """End the process with everything below it: see `Sandbox.close`."""
        if self._is_closed or self._record.owner[0] != os.getpid():  # a fork does not own it
            return
        self._is_closed = True
        if self._process is not None:
            self.agent.end("the sandbox is closed")
        await asyncio.shield(on_thread(self._wait))  # whoever is cancelled meanwhile

    def _wait(self) -> None:
        try:
            if self._process is not None:
                self._process.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            assert self._process is not None
            self._process.kill()
            self._process.wait()
        finally:
            registry.remove(self._record, self._remover)
