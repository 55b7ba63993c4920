"""`AgentProgram`: the program of one episode, whose questions wait for whoever plays.

It runs in a sandbox and finds its model at an address of its own (see `vfgym.interception`). Each question waits in order; `next_request`
answers the one before and returns the next. All of it lives on the background loop of the process, from wherever the episode is stepped.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, NoReturn

from vfgym.aio.background import on_background_loop
from vfgym.errors import AgentError, EpisodeNotPicklable
from vfgym.interception import Endpoint, Request, open_endpoint
from vfgym.messages import Response

if TYPE_CHECKING:
    from vfgym.sandboxes import ExecResult


class _Question:
    """A request that waits for its answer."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()


class AgentProgram:
    """A program that asks, from when its address is opened until it is stopped."""

    def __init__(self) -> None:
        """Make a program that was not started yet."""
        self._waiting: deque[_Question] = deque()
        self._asked: _Question | None = None
        """The question that is to be answered next."""
        self._changed = asyncio.Event()
        self._endpoint: Endpoint | None = None
        self._run: asyncio.Task[ExecResult] | None = None

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise EpisodeNotPicklable("a running program cannot be pickled or copied: reset() or close() the environment first")

    @property
    def request(self) -> Request | None:
        """What is to be answered next; None before the first question and after the last."""
        return None if self._asked is None else self._asked.request

    async def open(self) -> Endpoint:
        """Return the address at which the program will ask."""
        self._endpoint = await on_background_loop(open_endpoint, self._ask)
        return self._endpoint

    async def start(self, run: Coroutine[Any, Any, ExecResult]) -> None:
        """Start the program: `run` runs it, and ends with it."""
        await on_background_loop(self._start, run)

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

    async def stop(self) -> None:
        """Kill the program, if it still runs, and refuse what it may still ask. A second call does nothing."""
        await on_background_loop(self._stop)

    async def _ask(self, request: Request) -> Response:
        question = _Question(request)
        self._waiting.append(question)
        self._changed.set()
        try:
            return await question.answer
        finally:
            if question in self._waiting:  # the program gave up waiting
                self._waiting.remove(question)

    async def _start(self, run: Coroutine[Any, Any, ExecResult]) -> None:
        self._run = asyncio.create_task(run)
        self._run.add_done_callback(lambda _: self._changed.set())

    async def _next_request(self, answer: Response | None) -> Request | ExecResult:
        asked, self._asked = self._asked, None
        if asked is not None and answer is not None and not asked.answer.done():
            asked.answer.set_result(answer)
        run = self._run
        if run is None:
            raise AgentError("the program was not started, or it was stopped")
        while not self._waiting and not run.done():
            self._changed.clear()
            await self._changed.wait()
        if run.done():
            return run.result()
        self._asked = self._waiting.popleft()
        return self._asked.request

    async def _stop(self) -> None:
        endpoint, self._endpoint = self._endpoint, None
        run, self._run = self._run, None
        try:
            if endpoint is not None:
                await endpoint.close()
        finally:
            if run is not None:
                run.cancel()
                await asyncio.wait([run])


def free_port() -> int:
    """Return a port of loopback that nobody listens on now: where the network is shared, each episode needs its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
