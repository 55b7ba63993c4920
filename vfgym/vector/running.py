"""Steps of many environments on one event loop: they begin in order, and are ready as they end.

What is plain runs where it begins. Steps that wait for something go on as a task of their own, and those behind them begin meanwhile.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextvars import copy_context
from typing import TypeAlias

from vfgym.aio.bridge import begin_bridge
from vfgym.aio.steps import Pending, Steps, begin
from vfgym.calls import rollout_failure

Phases: TypeAlias = Iterator[list[Steps[None]]]
"""What one unit does: steps that are taken together; once all have ended, the next ones."""

_SECONDS_A_TURN = 0.005
"""For how long steps are begun, where nothing is waited for, until what else is on the loop gets its turn."""


class _Job:
    """What one unit is doing."""

    __slots__ = ("failure", "phases", "remaining", "tasks", "unit")

    def __init__(self, unit: int, phases: Phases) -> None:
        self.unit, self.phases = unit, phases
        self.remaining = 0
        """How many steps of this phase have not ended."""
        self.failure: Exception | None = None
        """What the first of them raised."""
        self.tasks: list[asyncio.Task[None]] = []


class Running:
    """Units (environments, or groups of them) that are doing something. Everything but the constructor is called on one event loop."""

    def __init__(self) -> None:
        """Begin with none."""
        self.ready: dict[int, Exception | None] = {}
        """The units that are done and were not taken yet, in the order in which they were, each with what it raised."""
        self._jobs: dict[int, _Job] = {}
        self._queue: deque[tuple[_Job, Steps[None]]] = deque()
        self._beginner: asyncio.Task[None] | None = None
        self._round = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def is_busy(self, unit: int) -> bool:
        """Say whether a unit does something, or was not taken since."""
        return unit in self._jobs or unit in self.ready

    def __len__(self) -> int:
        """Number of units that do something, or were not taken since."""
        return len(self._jobs) + len(self.ready)

    def start(self, unit: int, phases: Phases) -> None:
        """Let a unit do something, soon."""
        self._jobs[unit] = job = _Job(unit, phases)
        self._enter_next_phase(job)

    async def wait(self, count: int, timeout: float | None = None) -> None:
        """Wait until so many units are ready, or so many cannot be any more, since some were given up.

        Raises:
            TimeoutError: If they are not within `timeout` seconds. Nothing is lost by it.
        """
        async with asyncio.timeout(timeout):
            while len(self.ready) < count <= len(self):
                future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiting.append((count, future))
                await future

    async def wait_for(self, units: Collection[int]) -> None:
        """Wait until none of these units does anything any more."""
        while left := sum(unit in self._jobs for unit in units):
            await self.wait(len(self.ready) + left)

    async def cancel(self, units: Iterable[int]) -> None:
        """Give up what some units do, and what they did that was not taken."""
        jobs = []
        for unit in units:
            self.ready.pop(unit, None)
            if unit in self._jobs:
                jobs.append(self._jobs.pop(unit))
        if not jobs:
            return
        self._queue = deque(entry for entry in self._queue if entry[0] not in jobs)
        tasks = [task for job in jobs for task in job.tasks]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._wake(lambda count: True)

    # How steps are taken

    def _enter_next_phase(self, job: _Job) -> None:
        try:
            several = next(job.phases, None)
        except Exception as error:
            job.failure, several = error, None
        if several is None:
            del self._jobs[job.unit]
            self.ready[job.unit] = job.failure
            self._wake(lambda count: len(self.ready) >= count)
            return
        job.remaining = len(several)
        self._queue.extend((job, steps) for steps in several)
        if self._beginner is None:
            self._beginner = asyncio.get_running_loop().create_task(self._begin_all())

    async def _begin_all(self) -> None:
        """Begin what is in the queue, and give the loop its turn now and then."""
        try:
            while self._queue:
                begun: list[_Job] = []
                going_on = begin_bridge(functools.partial(self._begin_some, self._round, begun))
                if going_on is not None:  # what was begun last waits in the middle of plain code
                    begun[-1].tasks.append(asyncio.get_running_loop().create_task(going_on))
                self._round += 1
                await asyncio.sleep(0)
        finally:
            self._beginner = None

    def _begin_some(self, this_round: int, begun: list[_Job]) -> None:
        until = time.monotonic() + _SECONDS_A_TURN
        # Once plain code had to wait, the rest of the queue has been begun by others.
        while self._queue and self._round == this_round and time.monotonic() < until:
            job, steps = self._queue.popleft()
            begun.append(job)
            self._begin(job, steps)

    def _begin(self, job: _Job, steps: Steps[None]) -> None:
        context = copy_context()
        try:
            result = context.run(begin, steps)
        except BaseException as error:
            self._settle(job, rollout_failure(error))
        else:
            if isinstance(result, Pending):
                job.tasks.append(asyncio.get_running_loop().create_task(self._go_on(job, result), context=context))
            else:
                self._settle(job)

    async def _go_on(self, job: _Job, pending: Pending) -> None:
        try:
            await pending
        except BaseException as error:
            self._settle(job, rollout_failure(error))
        else:
            self._settle(job)

    def _settle(self, job: _Job, failure: Exception | None = None) -> None:
        """Note that steps of a unit have ended."""
        job.failure = job.failure or failure
        job.remaining -= 1
        if job.remaining == 0 and self._jobs.get(job.unit) is job:
            if job.failure is not None:
                job.phases = iter(())
            self._enter_next_phase(job)

    def _wake(self, is_due: Callable[[int], bool]) -> None:
        """Wake those who wait for a number of units, if it is due."""
        if self._waiting:
            for _, future in (due := [entry for entry in self._waiting if is_due(entry[0])]):
                if not future.done():
                    future.set_result(None)
            self._waiting = [entry for entry in self._waiting if entry not in due]
