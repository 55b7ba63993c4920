"""Servers that are started for an environment: a pool of them, each of which plays one episode at a time.

How a server is started is a function that returns a `StartedServer`: `start_process` here runs a command on this machine, and
`vfgym.wrappers.openenv.sandboxed` one in a sandbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import socket
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol

from vfgym.aio.background import on_background_loop, wait
from vfgym.errors import InfraError
from vfgym.lifecycle import forget_teardown, register_teardown
from vfgym.wrappers.openenv.protocol import ServerError
from vfgym.wrappers.openenv.servers import OpenEnvServer

_PAUSE = 0.05
"""Seconds between two attempts to reach a server that is starting."""

_PATIENCE = 5.0
"""Seconds that a server has to end when it is asked to."""

_SHOWN = 2000
"""Characters of what a server wrote last that an error shows."""


class StartedServer(Protocol):
    """A server that was started, and is stopped by whoever did so."""

    server: OpenEnvServer

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""

    async def stop(self) -> None:
        """End it. A second call does nothing."""


class StartedServers:
    """A source of servers: as many are started as episodes are played at once, and kept for the episodes that follow."""

    def __init__(self, start: Callable[[], Coroutine[Any, Any, StartedServer]]) -> None:
        """Start nothing yet.

        Args:
            start: Starts one server, and returns it once it answers.
        """
        self._start = start
        self._idle: list[StartedServer] = []
        self._leased: list[StartedServer] = []
        self._starting: set[asyncio.Task[StartedServer]] = set()

    def __reduce__(self) -> tuple[type[StartedServers], tuple[Any]]:
        return type(self), (self._start,)  # a copy starts servers of its own

    async def lease(self) -> OpenEnvServer:
        """Return a server that plays no episode; it is started where there is none."""
        while self._idle:
            started = self._idle.pop()
            self._leased.append(started)
            try:
                answers = await _answers(started)
            except BaseException:
                await self.give_back(started.server)
                raise
            if answers:
                return started.server
            if started in self._leased:
                self._leased.remove(started)
            await started.stop()
        register_teardown(self)
        started = await self._start_one()
        self._leased.append(started)
        return started.server

    async def _start_one(self) -> StartedServer:
        starting = asyncio.create_task(self._start())
        self._starting.add(starting)
        try:
            await asyncio.wait((starting,))
        except asyncio.CancelledError:
            await _give_up(starting)
            raise
        finally:
            was_closed = starting not in self._starting
            self._starting.discard(starting)
        if was_closed:
            raise InfraError("the environment was closed while an OpenEnv server was started for it")
        return starting.result()

    async def give_back(self, server: OpenEnvServer) -> None:
        """Keep a server for the next episode."""
        for started in [each for each in self._leased if each.server is server]:
            self._leased.remove(started)
            self._idle.append(started)

    async def close(self) -> None:
        """End all servers that were started, and those that are being started."""
        forget_teardown(self)
        started, self._idle, self._leased = [*self._idle, *self._leased], [], []
        starting, self._starting = self._starting, set()
        await asyncio.gather(*map(_give_up, starting), *(each.stop() for each in started))

    def run_teardown(self) -> None:
        """End all servers as the process exits."""
        wait(on_background_loop(self.close))


async def _answers(started: StartedServer) -> bool:
    """Say whether a server still plays: one that has just died may not be known to have ended."""
    if started.is_alive:
        with contextlib.suppress(ServerError):
            await started.server.read_action_schema()
            return True
    return False


async def _give_up(starting: asyncio.Task[StartedServer]) -> None:
    """End a server that is being started, or has just answered."""
    starting.cancel()
    await asyncio.wait((starting,))
    if not starting.cancelled() and starting.exception() is None:
        await starting.result().stop()


class ServerProcess:
    """A server that a command of this machine is."""

    def __init__(self, process: asyncio.subprocess.Process, server: OpenEnvServer) -> None:
        """Take a process that leads a group of its own."""
        self._process = process
        self.server = server

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.returncode is None

    async def stop(self) -> None:
        """End the process and all that it has started: at first politely."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _PATIENCE)


async def start_process(command: str, folder: Path, port: int, start_timeout: float, request_timeout: float) -> ServerProcess:
    """Start a server by a command of a shell, on a free port of this machine.

    Args:
        command: The command. The number of its port in it is replaced by that of a free one, which is in the environment variable ``PORT``
            too.
        folder: Where it is run.
        port: The port that the command names.
        start_timeout: Seconds that the server has until it can be reached.
        request_timeout: Seconds that it has for each answer.

    Raises:
        ServerError: If it ends, or cannot be reached in time. The text ends with what it wrote last.
    """
    free = _find_free_port()
    server = OpenEnvServer(f"http://127.0.0.1:{free}", request_timeout)
    with tempfile.TemporaryFile() as log:
        process = await asyncio.create_subprocess_shell(
            re.sub(rf"(?<!\d){port}(?!\d)", str(free), command),
            cwd=folder,
            env={**os.environ, "PORT": str(free)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        started = ServerProcess(process, server)
        try:
            problem = await wait_until_reached(started, start_timeout)
        except BaseException:
            await started.stop()
            raise
        if problem:
            await started.stop()
            log.seek(0)
            wrote = log.read().decode(errors="replace").strip()[-_SHOWN:]
            raise ServerError(server.url, f"{problem}. It was started by: {command}\nIt wrote last:\n{wrote or '(nothing)'}")
    return started


async def wait_until_reached(started: StartedServer, seconds: float) -> str:
    """Wait until a server answers; return what keeps it from that, or an empty text."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while started.is_alive:
                if await _answers(started):
                    return ""
                await asyncio.sleep(_PAUSE)
            return "ended as soon as it was started"
    return f"could not be reached {seconds:g} s after it was started"


def _find_free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
