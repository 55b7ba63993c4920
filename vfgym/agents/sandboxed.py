"""`SandboxedProcess`: calls functions in a sandbox, for an agent that nobody trusts.

The program in the sandbox connects to a socket of this process, which is all that it can reach. Jobs go there pickled; what comes back is
JSON, and bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import pickle
import posixpath
import struct
import sys
from concurrent.futures import Future
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from vfgym.agents.isolated_process import Source
from vfgym.aio.background import background_loop, in_event_loop, on_background_loop
from vfgym.errors import WorkerDied, WorkerTimeout
from vfgym.interception.socket_files import make_socket_path, remove_socket
from vfgym.sandboxes import ExecResult, Sandbox, SandboxSpec, create
from vfgym.sandboxes.creation import check_spec
from vfgym.workers import read_json_outcome

_PORT = 9001
_MOST_SAID = 1 << 26
"""Bytes of what a process says at once."""
_STARTS_WITHIN = 60.0
_ENDS_WITHIN = 30.0
_SHOWN = 2000
_MODULE = "vfgym.agents.isolated_process"
_PROGRAM = "from vfgym.agents.sandboxed_process import main; main()"
_SEEN_ANYWAY = ("/usr", "/bin", "/lib", "/lib64")
"""Folders of programs that sandboxes have of the host by themselves."""


def check_sandbox(name: str, spec: SandboxSpec, backend: str | None) -> tuple[SandboxSpec, Source]:
    """Return what a sandbox is to have in which an agent is loaded, and where it is loaded from there.

    Raises:
        ConfigurationError: If no such sandbox can be made here.
    """
    installed = [os.path.realpath(prefix) for prefix in dict.fromkeys((sys.prefix, sys.base_prefix))]
    library = str(Path(__file__).resolve().parents[1])
    own = [*(prefix for prefix in (sys.prefix, sys.base_prefix) if not prefix.startswith(_SEEN_ANYWAY)), library]
    readable = dict.fromkeys((*(os.fspath(path) for path in spec.readable_paths), *own))
    spec = dataclasses.replace(spec, readable_paths=tuple(readable), forwards={**spec.forwards, _PORT: "/"})
    check_spec(spec, backend)
    path = [entry for entry in sys.path if entry and os.path.realpath(entry).startswith(tuple(installed))]
    return spec, Source(name, spec.working_dir, (spec.working_dir, os.path.dirname(library), *path))


class SandboxedProcess:
    """A sandbox with one program in it, made with the first call. It ends with a call that fails, with `close`, or with this object."""

    def __init__(self, spec: SandboxSpec, backend: str | None, source: Source) -> None:
        """Take what the sandbox is to have."""
        self._spec, self._backend, self._source = spec, backend, source
        self._running: _Running | None = None

    def __del__(self) -> None:
        self._let_go()

    async def call(self, function: str, *arguments: Any, wall_seconds: float) -> Any:
        """Call a function, and return its result. A call that takes too long, or is cancelled, ends the sandbox.

        Raises:
            WorkerTimeout: If it uses up its time.
            WorkerDied: If the program ends.
            SandboxError: If there can be no sandbox.
            RemoteError: What the function raises.
        """
        return await on_background_loop(self._call, function, arguments, wall_seconds)

    def call_sync(self, function: str, *arguments: Any, wall_seconds: float) -> Any:
        """Do what `call` does, while the calling thread waits."""
        return asyncio.run_coroutine_threadsafe(self._call(function, arguments, wall_seconds), background_loop()).result()

    async def _call(self, function: str, arguments: tuple[Any, ...], wall_seconds: float) -> Any:
        try:
            if self._running is None:
                self._running = await _Running.start(self._spec, self._backend, self._source)
            try:
                async with asyncio.timeout(wall_seconds):
                    answer = await self._running.ask(pickle.dumps((_MODULE, function, arguments)))
            except TimeoutError:
                raise WorkerTimeout(f"{function} took more than {wall_seconds:g} wall_seconds") from None
        except BaseException:
            running, self._running = self._running, None
            if running is not None:
                await running.close()
            raise
        return read_json_outcome(answer)

    def close(self) -> None:
        """End the sandbox, and wait for that."""
        closing = self._let_go()
        if closing is not None and not in_event_loop():
            closing.result(_ENDS_WITHIN)

    def _let_go(self) -> Future[None] | None:
        running, self._running = self._running, None
        if running is None or not (loop := background_loop()).is_running():
            return None
        return asyncio.run_coroutine_threadsafe(running.close(), loop)


class _Running:
    """A program that runs in its sandbox, on the background loop."""

    def __init__(self, sandbox: Sandbox, socket_path: str, server: asyncio.Server) -> None:
        self._sandbox, self._socket_path, self._server = sandbox, socket_path, server
        self._lines: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._run: asyncio.Task[ExecResult] | None = None

    @classmethod
    async def start(cls, spec: SandboxSpec, backend: str | None, source: Source) -> _Running:
        """Make a sandbox, and start the program."""
        socket_path = make_socket_path()
        connected: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if connected.done():  # there is one program, and what it starts has nothing to say
                writer.close()
            else:
                connected.set_result((reader, writer))

        server = await asyncio.start_unix_server(accept, socket_path, limit=1 << 16)
        running: _Running | None = None
        try:
            sandbox = await create(dataclasses.replace(spec, forwards={**spec.forwards, _PORT: socket_path}), backend)
            running = cls(sandbox, socket_path, server)
            await _upload_module(sandbox, source)
            await running._begin(source, connected)
        except BaseException:
            if running is not None:
                await running.close()
            else:
                server.close()
                remove_socket(socket_path)
            raise
        return running

    async def _begin(self, source: Source, connected: asyncio.Future[Any]) -> None:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        env = {"PYTHONPATH": os.pathsep.join(source.path[1:]), "VFGYM_AGENT_PORT": str(_PORT), **threads}
        command = [sys.executable, "-P", "-W", "ignore", "-c", _PROGRAM]
        self._run = asyncio.ensure_future(self._sandbox.exec(command, env=env))
        await asyncio.wait([self._run, connected], timeout=_STARTS_WITHIN, return_when=asyncio.FIRST_COMPLETED)
        if not connected.done():
            raise WorkerDied(f"the program of a sandboxed agent did not start: {await self._end()}")
        self._lines = connected.result()

    async def ask(self, job: bytes) -> bytes:
        """Send a job, and return what comes of it.

        Raises:
            WorkerDied: If the program ends, or says too much.
        """
        if self._lines is None:
            raise WorkerDied("the program of a sandboxed agent was not started")
        reader, writer = self._lines
        try:
            writer.write(struct.pack("!Q", len(job)) + job)
            await writer.drain()
            [size] = struct.unpack("!Q", await reader.readexactly(8))
            if size > _MOST_SAID:
                raise WorkerDied(f"an agent may say {_MOST_SAID:,} bytes at once")
            return await reader.readexactly(size)
        except (OSError, EOFError):
            raise WorkerDied(f"its process ended: {await self._end()}") from None

    async def _end(self) -> str:
        """Return how the program ended, as far as that is known."""
        if self._run is None:
            return "it was not started"
        await asyncio.wait([self._run], timeout=1.0)
        if not self._run.done():
            return "it still runs"
        if self._run.cancelled() or self._run.exception() is not None:
            return "its sandbox has ended"
        result = self._run.result()
        return f"exit code {result.exit_code}: {(result.stderr.strip() or result.stdout.strip())[-_SHOWN:]}"

    async def close(self) -> None:
        """End the sandbox with all that is in it."""
        self._server.close()
        if self._lines is not None:
            self._lines[1].close()
        if self._run is not None:
            self._run.cancel()
        try:
            await asyncio.shield(self._sandbox.close())
        finally:
            remove_socket(self._socket_path)
            if self._run is not None:
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await self._run


async def _upload_module(sandbox: Sandbox, source: Source) -> None:
    """Copy the module of an agent into its sandbox, unless it is installed. It is looked for, and not imported."""
    name = source.name.partition(":")[0].partition(".")[0]
    found = PathFinder.find_spec(name, [os.getcwd(), *sys.path]) if name.isidentifier() else None
    if found is None:
        return
    folder = next(iter(found.submodule_search_locations or ()), None)
    place = Path(folder or found.origin or "")
    if not place.exists() or str(place.parent) in source.path:
        return
    await sandbox.upload(place, posixpath.join(source.directory, place.name))
