"""Steps of many environments on one event loop: they begin in order, and are ready as they end.

What is plain runs where it begins: on the loop, or in the calling thread (`Running.take_here`), which costs no hop to another thread.
Steps that wait for something go on as a task of their own on the loop, and those behind them begin meanwhile.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextvars import copy_context
from typing import TypeAlias

from vfgym.aio.background import background_loop, instead_of_loop, on_background_loop, wait
from vfgym.aio.bridge import BridgeRunner
from vfgym.aio.steps import Pending, Steps, begin_to_end
from vfgym.calls import rollout_failure

Phases: TypeAlias = Iterator[list[Steps[None]]]
"""What a group does: steps that are taken together; once all have ended, the next ones."""

_SECONDS_A_TURN = 0.005
"""For how long steps are begun, where nothing is waited for, until what else is on the loop gets its turn."""


class _Job:
    """What one unit is doing, where that is more than steps that have not been begun."""

    __slots__ = ("failure", "phases", "remaining", "tasks")

    def __init__(self, phases: Phases) -> None:
        self.phases = phases
        """What comes when the steps of this phase have ended."""
        self.remaining = 1
        """How many of them have not."""
        self.failure: Exception | None = None
        """What the first of them raised."""
        self.tasks: list[asyncio.Task[None]] = []


class Running:
    """Units (environments, or groups of them) that are doing something.

    Everything but the constructor is called on the background loop. While nothing happens there, one other thread may do what no `await`
    is in, and `take_here`.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.ready: dict[int, Exception | None] = {}
        """The units that are done and were not taken yet, in the order in which they were, each with what it raised."""
        self.lost: set[int] = set()
        """The units that were given up by the last interruption of `take_here`."""
        self._jobs: dict[int, _Job | None] = {}
        self._queue: deque[tuple[int, Steps[None]]] = deque()
        self._bridge = BridgeRunner()
        self._round = 0
        self._begun_last = 0
        self._beginner: asyncio.Task[None] | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def is_busy(self, unit: int) -> bool:
        """Say whether a unit does something, or was not taken since."""
        return unit in self._jobs or unit in self.ready

    def __len__(self) -> int:
        """Number of units that do something, or were not taken since."""
        return len(self._jobs) + len(self.ready)

    def start(self, several: Mapping[int, Steps[None]]) -> None:
        """Let units take steps, when those that were started before have begun (see `begin_soon`)."""
        self._jobs.update(dict.fromkeys(several))
        self._queue.extend(several.items())

    def start_phases(self, unit: int, phases: Phases) -> None:
        """Let a unit do one thing after another."""
        self._jobs[unit] = job = _Job(phases)
        self._enter_next_phase(unit, job)

    def begin_soon(self) -> None:
        """Begin what was started, while the caller goes on."""
        if self._beginner is None or self._beginner.done():
            self._beginner = asyncio.get_running_loop().create_task(self.begin())

    async def begin(self) -> None:
        """Begin what was started, and give the loop its turn now and then."""
        loop = asyncio.get_running_loop()
        try:
            while self._queue:
                going_on = self._bridge.begin(functools.partial(self._begin_some, self._round))
                if going_on is not None:  # what was begun last waits in the middle of plain code
                    self._job_of(self._begun_last).tasks.append(loop.create_task(going_on))
                self._round += 1
                if self._queue:
                    await asyncio.sleep(0)
        except asyncio.CancelledError:
            self._beginner = loop.create_task(self.begin())  # only who waits was cancelled
            raise

    def take_here(self) -> None:
        """Take what was started to its end in the calling thread. The loop goes on with what waits for something, and the rest.

        Where this is interrupted (Ctrl-C), the loop goes on with the steps that have not begun.

        Raises:
            BaseException: What ends a run (see `ends_run`) and was raised here. The unit that was taken then is given up: it is in `lost`.
        """
        taken: int | None = None
        is_left_to_loop = False

        def hand_over() -> None:
            nonlocal is_left_to_loop
            if not is_left_to_loop:
                is_left_to_loop = True
                background_loop().call_soon_threadsafe(self.begin_soon)

        try:
            with instead_of_loop(hand_over):
                while self._queue:
                    taken, steps = self._queue.popleft()
                    pending, failure = None, None
                    try:
                        pending = copy_context().run(begin_to_end, steps)
                    except BaseException as error:
                        failure = rollout_failure(error)
                    if pending is not None or is_left_to_loop:
                        break
                    self._settle(taken, failure)
                else:
                    return
        except BaseException:
            self.lost = wait(on_background_loop(self._go_on_without, taken))
            raise
        wait(on_background_loop(self._go_on_on_loop, taken, pending, failure))

    async def _go_on_on_loop(self, unit: int, pending: Pending | None, failure: Exception | None) -> None:
        """Go on with steps that were begun elsewhere, or have ended there, and with the rest."""
        if pending is None:
            self._settle(unit, failure)
        else:
            self._job_of(unit).tasks.append(asyncio.get_running_loop().create_task(self._go_on(unit, pending)))
        await self.begin()
        await self.wait(len(self))

    async def _go_on_without(self, unit: int | None) -> set[int]:
        """Go on after an interruption elsewhere, and return what is given up: what was about to do something there."""
        left = {unit for unit, _ in self._queue}
        lost = {unit for unit, job in self._jobs.items() if unit not in left and (job is None or not job.tasks)}
        if unit in self._jobs:
            lost.add(unit)
        await self.cancel(lost)
        self.begin_soon()
        return lost

    async def wait(self, count: int, timeout: float | None = None) -> None:
        """Wait until so many units are ready, or so many cannot be any more, since some were given up.

        Raises:
            TimeoutError: If they are not within `timeout` seconds. Nothing is lost by it.
        """
        if len(self.ready) >= count:
            return
        async with asyncio.timeout(timeout):
            while len(self.ready) < count <= len(self):
                future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiting.append((count, future))
                await future

    async def wait_for(self, units: Collection[int]) -> None:
        """Wait until none of these units does anything any more."""
        while self._jobs and (left := sum(unit in self._jobs for unit in units)):
            await self.wait(len(self.ready) + left)

    async def cancel(self, units: Iterable[int]) -> None:
        """Give up what some units do, and what they did that was not taken."""
        given_up: dict[int, _Job | None] = {}
        for unit in units:
            self.ready.pop(unit, None)
            if unit in self._jobs:
                given_up[unit] = self._jobs.pop(unit)
        if not given_up:
            return
        self._queue = deque(entry for entry in self._queue if entry[0] not in given_up)
        tasks = [task for job in given_up.values() if job is not None for task in job.tasks]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._wake(lambda count: True)

    # How steps are taken

    def _begin_some(self, this_round: int) -> None:
        until = time.monotonic() + _SECONDS_A_TURN
        # Once plain code had to wait, the rest of the queue is begun by others.
        while self._queue and self._round == this_round and time.monotonic() < until:
            unit, steps = self._queue.popleft()
            self._begun_last = unit
            try:
                pending = copy_context().run(begin_to_end, steps)
            except BaseException as error:
                self._settle(unit, rollout_failure(error))
                continue
            if pending is None:
                self._settle(unit)
            else:
                self._job_of(unit).tasks.append(asyncio.get_running_loop().create_task(self._go_on(unit, pending)))

    async def _go_on(self, unit: int, pending: Pending) -> None:
        try:
            await pending
        except BaseException as error:
            self._settle(unit, rollout_failure(error))
        else:
            self._settle(unit)
        if self._queue:
            self.begin_soon()

    def _job_of(self, unit: int) -> _Job:
        job = self._jobs[unit]
        if job is None:
            self._jobs[unit] = job = _Job(iter(()))
        return job

    def _settle(self, unit: int, failure: Exception | None = None) -> None:
        """Note that steps of a unit have ended."""
        if unit not in self._jobs:  # it was given up
            return
        job = self._jobs[unit]
        if job is not None:
            job.failure = failure = job.failure or failure
            job.remaining -= 1
            if job.remaining:
                return
            if failure is None:
                self._enter_next_phase(unit, job)
                return
        self._end(unit, failure)

    def _enter_next_phase(self, unit: int, job: _Job) -> None:
        try:
            several = next(job.phases, None)
        except Exception as error:
            self._end(unit, error)
            return
        if several is None:
            self._end(unit, None)
        else:
            job.remaining = len(several)
            self._queue.extend((unit, steps) for steps in several)

    def _end(self, unit: int, failure: Exception | None) -> None:
        del self._jobs[unit]
        self.ready[unit] = failure
        if self._waiting:
            self._wake(lambda count: len(self.ready) >= count)

    def _wake(self, is_due: Callable[[int], bool]) -> None:
        """Wake those who wait for a number of units, if it is due."""
        for _, future in (due := [entry for entry in self._waiting if is_due(entry[0])]):
            if not future.done():
                future.set_result(None)
        self._waiting = [entry for entry in self._waiting if entry not in due]
