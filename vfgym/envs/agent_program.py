"""`AgentProgram`: the program of one episode, whose questions wait for whoever plays.

It runs in a sandbox and finds its model at an address of its own (see `vfgym.interception`). Each question waits in order; `next_request`
answers the one before and returns the next. All of it lives on the background loop of the process, from wherever the episode is stepped.
"""

from __future__ import annotations

import asyncio
import posixpath
import socket
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from vfgym.aio.background import on_background_loop
from vfgym.errors import AgentError, EpisodeNotPicklable, Error
from vfgym.interception import Endpoint, Request, open_endpoint
from vfgym.messages import Response

if TYPE_CHECKING:
    from vfgym.sandboxes import ExecResult, Sandbox

TASK_FOLDER = "/task"
"""Where in its sandbox a program finds what it is to do."""
_START = """\
cd {task} && echo $$ > program.pid
export AGENT_INSTRUCTION_PATH="${{AGENT_INSTRUCTION_PATH:-$PWD/instruction.md}}"
cd - > /dev/null
export AGENT_WORKDIR="${{AGENT_WORKDIR:-$PWD}}"
{command}"""
"""What is run: the places are as the program sees them, since not every sandbox is a file system of its own."""
_READ_FILE = f'[ -f "$1" ] && head -c {1 << 20} -- "$1"'
_ENDS_WITHIN = 5.0
"""Seconds within which a program that is killed has ended."""


class _Question:
    """A request that waits for its answer."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()


class AgentProgram:
    """A program that asks, from when its address is opened until it is stopped."""

    def __init__(self, sampling_args: Mapping[str, Any]) -> None:
        """Make a program that was not started yet.

        Args:
            sampling_args: Generation parameters of its rollout, which win over those of its requests.
        """
        self.sampling_args = sampling_args
        self.variables: Mapping[str, str] = {}
        """The environment variables that lead it to its model."""
        self._waiting: deque[_Question] = deque()
        self._asked: _Question | None = None
        """The question that is to be answered next."""
        self._changed = asyncio.Event()
        self._endpoint: Endpoint | None = None
        self._running: tuple[Sandbox, asyncio.Task[ExecResult]] | None = None

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise EpisodeNotPicklable("a running program cannot be pickled or copied: reset() or close() the environment first")

    @property
    def headers_asked(self) -> Mapping[str, str]:
        """The headers of the request that is answered next; none where none is."""
        return {} if self._asked is None else self._asked.request.headers

    async def open(self) -> Endpoint:
        """Return the address at which the program will ask."""
        self._endpoint = await on_background_loop(open_endpoint, self._ask)
        return self._endpoint

    async def start(self, sandbox: Sandbox, command: str, env: Mapping[str, str]) -> None:
        """Start the program: a line for the shell of its sandbox."""
        await on_background_loop(self._start, sandbox, command, env)

    async def next_request(self, answer: Response | None) -> Request | ExecResult:
        """Answer the last question, and wait for the next one.

        Args:
            answer: What the last question is answered with; None where none was asked.

        Returns:
            What the program asks, or how it ended.

        Raises:
            vfgym.errors.SandboxError: If its sandbox died.
        """
        return await on_background_loop(self._next_request, answer)

    async def stop(self) -> ExecResult | None:
        """Kill the program, if it still runs, and refuse what it may still ask. A second call does nothing.

        Returns:
            What it printed until it was killed; None where it had ended before, or its sandbox has.
        """
        return await on_background_loop(self._stop)

    async def _ask(self, request: Request) -> Response:
        question = _Question(request)
        self._waiting.append(question)
        self._changed.set()
        try:
            return await question.answer
        finally:
            if question in self._waiting:  # the program gave up waiting
                self._waiting.remove(question)

    async def _start(self, sandbox: Sandbox, command: str, env: Mapping[str, str]) -> None:
        run = asyncio.create_task(sandbox.exec(_START.format(task=_task_folder(sandbox), command=command), env=env))
        run.add_done_callback(self._note_end)
        self._running = sandbox, run

    def _note_end(self, run: asyncio.Task[ExecResult]) -> None:
        if not run.cancelled():
            run.exception()  # else asyncio reports that nobody asked for it, where the episode ends otherwise
        self._changed.set()

    async def _next_request(self, answer: Response | None) -> Request | ExecResult:
        asked, self._asked = self._asked, None
        if asked is not None and answer is not None and not asked.answer.done():
            asked.answer.set_result(answer)
        if self._running is None:
            raise AgentError("the program was not started, or it was stopped")
        _, run = self._running
        while not self._waiting and not run.done():
            self._changed.clear()
            await self._changed.wait()
        if run.done():
            return run.result()
        self._asked = self._waiting.popleft()
        return self._asked.request

    async def _stop(self) -> ExecResult | None:
        endpoint, self._endpoint = self._endpoint, None
        running, self._running = self._running, None
        try:
            if endpoint is not None:
                await endpoint.close()
        finally:
            killed = None if running is None or running[1].done() else await self._kill(*running)
        return killed

    async def _kill(self, sandbox: Sandbox, run: asyncio.Task[ExecResult]) -> ExecResult | None:
        """Kill the program's shell, so that what it printed is kept: with its command, a sandbox ends all that the command has started."""
        try:
            killed = await sandbox.exec(f"kill -9 $(cat {_task_folder(sandbox)}/program.pid)", timeout=_ENDS_WITHIN)
            if killed.exit_code == 0:
                await asyncio.wait([run], timeout=_ENDS_WITHIN)
        except (Error, OSError):  # its sandbox has ended
            pass
        finally:
            run.cancel()
            await asyncio.wait([run])
        return None if run.cancelled() or run.exception() is not None else run.result()


def _task_folder(sandbox: Sandbox) -> str:
    """Return the folder, relative to where commands run."""
    return posixpath.relpath(TASK_FOLDER, sandbox.spec.working_dir)


async def read_left_file(sandbox: Sandbox, path: str) -> str | None:
    """Return the text of a file that a program may have left, 1 MiB of it at most; None where there is no file.

    What is not a file, such as a pipe, is not waited for.
    """
    read = await sandbox.exec(["sh", "-c", _READ_FILE, "sh", path])
    return read.stdout if read.exit_code == 0 else None


def free_port() -> int:
    """Return a port of loopback that nobody listens on now: where the network is shared, each episode needs its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
