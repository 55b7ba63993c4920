"""Servers in sandboxes, which have no network: calls from here reach one over lines that a relay inside keeps open to here.

A sandbox can forward connections from inside to a socket of the host, and not the other way round. So the relay opens each line before
it is needed, and greets with a byte; the first byte of a call has it connect to the server.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from vfgym.errors import ConfigurationError
from vfgym.interception.socket_files import make_socket_path, remove_socket
from vfgym.sandboxes import ExecResult, Sandbox, SandboxSpec, create
from vfgym.wrappers.openenv.protocol import ServerError
from vfgym.wrappers.openenv.servers import OpenEnvServer
from vfgym.wrappers.openenv.starting import wait_until_reached

_MEMORY_MB = 2048
_LINES = 4
"""Lines that the relay keeps open besides those that are in use."""
_CHUNK = 1 << 16
_SHOWN = 2000

_RELAY = """
import asyncio, sys

HOST, SERVER, LINES = map(int, sys.argv[1:])

async def pipe(reader, writer, data=b""):
    try:
        while data or (data := await reader.read(65536)):
            writer.write(data)
            await writer.drain()
            data = b""
    except OSError:
        pass
    finally:
        writer.close()

async def keep_line():
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", HOST)
        writer.write(b"+")
        first = await reader.read(65536)
        if first:
            spare = asyncio.ensure_future(keep_line())
            RUNNING.add(spare)
            break
        writer.close()
        await asyncio.sleep(0.05)
    try:
        there, here = await asyncio.open_connection("127.0.0.1", SERVER)
        await asyncio.gather(pipe(reader, here, first), pipe(there, writer))
    except OSError:
        writer.close()

RUNNING = set()

async def main():
    RUNNING.update(asyncio.ensure_future(keep_line()) for _ in range(LINES))
    await asyncio.Event().wait()

asyncio.run(main())
"""


class SandboxedServer:
    """A server in a sandbox of its own."""

    def __init__(self, timeout: float) -> None:
        """Make one that was not started."""
        self._timeout = timeout
        self._socket = make_socket_path()
        self._lines: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter] | None] = asyncio.Queue()
        """Lines that no call has taken; None, the last one, once there will be no more."""
        self._listeners: list[asyncio.Server] = []
        self._connections: set[asyncio.StreamWriter] = set()
        self._commands: list[asyncio.Task[ExecResult]] = []
        self._sandbox: Sandbox | None = None
        self.server = OpenEnvServer("", timeout)

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._sandbox is not None and self._sandbox.is_alive and not any(command.done() for command in self._commands)

    async def start(self, command: str, folder: Path, port: int, image: str | None, backend: str) -> None:
        """Start it; it need not answer yet.

        Args:
            command: Starts the server, in a shell.
            folder: The project's, which is copied into the sandbox where there is no image.
            port: The port that the server listens at.
            image: The container image in which it runs.
            backend: The backend of sandboxes.
        """
        inside = 61000 if port != 61000 else 61001
        self._listeners = [
            await asyncio.start_unix_server(self._take_line, self._socket),
            await asyncio.start_server(self._take_call, "127.0.0.1", 0),
        ]
        self.server = OpenEnvServer(f"http://127.0.0.1:{self._listeners[1].sockets[0].getsockname()[1]}", self._timeout)
        self._sandbox = await create(SandboxSpec(image=image, memory_mb=_MEMORY_MB, forwards={inside: self._socket}), backend)
        if image is None:
            try:
                await self._sandbox.upload(folder, ".")
            except OSError as error:
                raise ConfigurationError(f"the folder {folder} cannot be copied into a sandbox: {error.strerror or error}") from error
        relay = ["python3", "-c", _RELAY, str(inside), str(port), str(_LINES)]
        self._commands = [asyncio.ensure_future(self._sandbox.exec(each)) for each in (command, relay)]
        for started in self._commands:
            started.add_done_callback(lambda _: self._lines.put_nowait(None))

    async def _take_line(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        with contextlib.suppress(OSError):
            if await reader.read(1):
                await self._lines.put((reader, writer))
                return
        self._connections.remove(writer)  # somebody looked whether anybody listens here
        writer.close()

    async def _take_call(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        line = await self._lines.get()
        if line is None:
            self._lines.put_nowait(None)  # for whoever calls next
            self._connections.remove(writer)
            writer.close()
            return
        line_reader, line_writer = line
        await asyncio.gather(_pipe(reader, line_writer), _pipe(line_reader, writer))
        self._connections -= {writer, line_writer}

    def explain_end(self) -> str:
        """Return what the commands wrote last that ended."""
        wrote = []
        for command in self._commands:
            if command.done() and not command.cancelled():
                error = command.exception()
                wrote.append(str(error) if error else command.result().stdout + command.result().stderr)
        return "\n".join(wrote).strip()[-_SHOWN:]

    async def stop(self) -> None:
        """End the sandbox. A second call does nothing."""
        for command in self._commands:
            command.cancel()
        if self._commands:
            await asyncio.wait(self._commands)
        if self._sandbox is not None:
            await self._sandbox.close()
        for listener in self._listeners:
            listener.close()
        for writer in self._connections:
            writer.transport.abort()
        remove_socket(self._socket)


async def start_sandboxed(
    command: str, folder: Path, port: int, image: str | None, backend: str, start_timeout: float, request_timeout: float
) -> SandboxedServer:
    """Start a server in a sandbox, and return it once it answers (see `SandboxedServer.start`).

    Raises:
        ServerError: If it ends, or cannot be reached in time. The text ends with what it wrote last.
        vfgym.errors.SandboxError: If there is no sandbox for it.
        ConfigurationError: If the project's folder cannot be copied into one.
    """
    started = SandboxedServer(request_timeout)
    try:
        await started.start(command, folder, port, image, backend)
        problem = await wait_until_reached(started, start_timeout)
        if problem:
            wrote = started.explain_end() or "(nothing)"
            raise ServerError(started.server.url, f"{problem}. It was started by: {command}\nIt wrote last:\n{wrote}")
    except BaseException:
        await started.stop()
        raise
    return started


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()
