"""A run's limits, cache and pace where its workers are: what a worker spends counts with its coordinator, which says when to stop.

No request begins before the coordinator has let it, where the run has limits: so it is refused by what all workers have spent. What was
spent is reported as it is spent, in the same connection and so in order. What a rollout may spend (`limits_each`) holds where it plays.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Coroutine, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from vfgym.bounded_json import dump_json, parse_json
from vfgym.clients.cache import ResponseCache
from vfgym.clients.pacing import Pace
from vfgym.errors import LimitReached
from vfgym.limits import Meter, SpendingLimits
from vfgym.messages import Response
from vfgym.prices import PriceTable
from vfgym.runs.executors.link import WorkerLink
from vfgym.runs.spending import Budget, RunSpending

T = TypeVar("T")


class WorkerSpending(RunSpending):
    """The budget of a run, in one of its workers."""

    def __init__(self, budget: Budget, most_at_once: int, ledger: Ledger) -> None:
        """Keep a budget.

        Args:
            budget: What the run may spend.
            most_at_once: Most rollouts at once in this worker.
            ledger: Tells the coordinator what is spent.
        """
        cache = None if budget.cache is None else RemoteCache(ledger)
        super().__init__(Budget(budget.limits, budget.limits_each, budget.prices, cache), most_at_once)
        self._pace = ledger.pace = ReportingPace(most_at_once, ledger, asks_leave=bool(budget.limits.given()))
        if self.meter is not None:
            self.meter = ledger.meter = ReportingMeter(budget.limits, budget.prices, ledger)


class Ledger:
    """What a worker and its coordinator tell each other of spending, of busy providers and of cached answers."""

    def __init__(self, link: WorkerLink) -> None:
        """Tell it by this connection."""
        self._link = link
        self._loop = asyncio.get_running_loop()
        self.meter: ReportingMeter | None = None
        self.pace: ReportingPace | None = None
        self._is_due = False
        self._leaves: deque[asyncio.Future[None]] = deque()
        """Requests that wait until they may begin, in order."""
        self._leaves_used = 0
        self._questions: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count()

    def report_soon(self) -> None:
        """Let what was spent be reported at the end of the event loop's turn. It may be called in any thread."""
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon_threadsafe(self.report_if_due)

    def report_if_due(self) -> None:
        """Report what was spent since the last report: before anything is told that came of it."""
        if self._is_due:
            self.report()

    def report(self) -> None:
        """Report what was spent so far, and how many requests are under way."""
        self._is_due = False
        if self.meter is not None:
            self._link.send({"spent": asdict(self.meter.spent), "under_way": self.meter.under_way, "leaves": self._leaves_used})

    async def ask_leave(self) -> None:
        """Wait until the coordinator lets a request begin."""
        await self._here(self._ask_leave())
        self._leaves_used += 1
        self.report_soon()  # once the request has begun, which it does in this turn of the loop

    async def _ask_leave(self) -> None:
        leave: asyncio.Future[None] = self._loop.create_future()
        self._leaves.append(leave)
        self._link.send({"ask": 1})
        try:
            await leave
        except BaseException:
            if leave.done() and not leave.cancelled():
                self._forget_leave()
            raise

    def _forget_leave(self) -> None:
        self._leaves_used += 1
        self.report_soon()

    def tell_busy(self, seconds: float) -> None:
        """Tell that the provider wants to be left alone for so many seconds. It may be called in any thread."""
        self._loop.call_soon_threadsafe(self._link.send, {"busy": seconds})

    async def ask(self, question: Mapping[str, Any]) -> Any:
        """Return what the coordinator answers."""
        return await self._here(self._ask(question))

    async def _ask(self, question: Mapping[str, Any]) -> Any:
        number = next(self._numbers)
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._questions[number] = answer
        try:
            self._link.send({**question, "question": number})
            return await answer
        finally:
            del self._questions[number]

    async def _here(self, asking: Coroutine[Any, Any, T]) -> T:
        """Await something on the connection's loop: judges may be asked on another one than models."""
        if asyncio.get_running_loop() is self._loop:
            return await asking
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asking, self._loop))

    def take(self, message: Mapping[str, Any]) -> None:
        """Take in what the coordinator says."""
        if "leave" in message:
            for _ in range(message["leave"]):
                leave = self._leaves.popleft()
                if leave.cancelled():
                    self._forget_leave()
                elif not leave.done():
                    leave.set_result(None)
        if "busy" in message and self.pace is not None:
            self.pace.hold(message["busy"])
        if "used_up" in message and self.meter is not None:
            self.meter.used_up = LimitReached(**message["used_up"])
        if "answer" in message:
            waiting = self._questions.get(message["question"])
            if waiting is not None and not waiting.done():
                waiting.set_result(message["answer"])


def _response(data: Any) -> Response | None:
    return None if data is None else Response.model_validate(data)


class ReportingMeter(Meter):
    """Counts what is spent in a worker, and reports it. What is used up is known by its coordinator."""

    def __init__(self, limits: SpendingLimits, prices: PriceTable | None, ledger: Ledger) -> None:
        """Begin to count.

        Args:
            limits: What the run may spend.
            prices: What models cost.
            ledger: Tells the coordinator.
        """
        super().__init__(limits, prices, counts_failed_requests=False)
        self.used_up: LimitReached | None = None
        """The limit that the coordinator has found to be used up."""
        self._ledger = ledger

    @property
    def under_way(self) -> int:
        """Requests that are under way."""
        return self._under_way

    @property
    def deadline(self) -> float | None:
        """None: the coordinator ends the run when its time is over."""
        return None

    def find_used_up(self) -> LimitReached | None:
        """Return the limit that is used up, as far as the coordinator has told; None where none is."""
        return self.used_up

    def hold_place(self) -> None:
        """Count a request as under way: the coordinator has let it begin."""
        self.refuse_if_used_up()
        with self._lock:
            self._under_way += 1
        self._ledger.report_soon()

    def begin_again(self) -> None:
        """Count a request that is sent again (see `Meter.begin_again`)."""
        with self._lock:
            self.spent.requests += 1
        self._ledger.report_soon()
        self.refuse_if_used_up()

    def end(self, requests: int = 1) -> None:
        """Count requests as over."""
        super().end(requests)
        self._ledger.report_soon()

    def count_failure(self) -> None:
        """Count a request that failed."""
        super().count_failure()
        self._ledger.report_soon()

    def count_given_up(self) -> None:
        """Count a request that was given up."""
        super().count_given_up()
        self._ledger.report_soon()

    def count(self, model: str, usage: Any) -> None:
        """Count one answer."""
        try:
            super().count(model, usage)
        finally:
            self._ledger.report_soon()


class ReportingPace(Pace):
    """Lets requests begin as the provider bears them, in a worker: a refusal counts for all workers."""

    def __init__(self, most: float, ledger: Ledger, *, asks_leave: bool) -> None:
        """Begin with as many as are allowed.

        Args:
            most: From how many at once on there is no limit again.
            ledger: Tells the coordinator.
            asks_leave: Whether the coordinator is asked before a request begins.
        """
        super().__init__(most)
        self._ledger, self._asks_leave = ledger, asks_leave

    async def enter(self) -> None:
        """Wait until one more request may begin, for the provider and for the run's limits."""
        await super().enter()
        if self._asks_leave:
            try:
                await self._ledger.ask_leave()
            except BaseException:
                super().leave()
                raise

    def hold(self, seconds: float) -> None:
        """Slow down, since the provider refused a request of another worker."""
        super()._note_refusal(seconds)

    def _note_refusal(self, seconds: float) -> None:
        super()._note_refusal(seconds)
        self._ledger.tell_busy(seconds)


class RemoteCache(ResponseCache):
    """The cache of a run, in one of its workers: the coordinator has the file."""

    def __init__(self, ledger: Ledger) -> None:
        """Ask the coordinator."""
        super().__init__(Path("of the coordinator"))
        self._ledger = ledger

    def open(self) -> None:
        """Do nothing: the coordinator has opened it."""

    def close(self) -> None:
        """Do nothing: the coordinator closes it."""

    async def find(self, key: str) -> Response | None:
        """Return the answer that is kept under a key; None where there is none."""
        return _response(await self._ledger.ask({"find": key}))

    async def keep(self, key: str, response: Response) -> Response:
        """Keep an answer, and return the one to use."""
        try:
            data = parse_json(dump_json(response.model_dump()))
        except (TypeError, ValueError):  # it has no form in JSON, or too many levels
            return response
        return _response(await self._ledger.ask({"keep": key, "response": data})) or response
