"""The coordinator of a run: it gives rollouts to workers, takes their rows, and keeps the run's limits for all of them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vfgym.errors import ConfigurationError, LimitReached, WorkerDied, WorkersLost
from vfgym.limits import Spending
from vfgym.messages import MessageTypes, Response
from vfgym.results import RolloutOutput
from vfgym.results.reading import read_row, take_messages
from vfgym.results.rows import STANDARD_KEYS
from vfgym.runs.engine import GroupJob
from vfgym.runs.executors.failures import from_data
from vfgym.runs.executors.link import LinkClosed, WorkerLink, addresses_of
from vfgym.runs.executors.opening import OpenExecutor
from vfgym.runs.executors.travelling import TravellingRun
from vfgym.runs.executors.worker import serve_rollouts, this_process
from vfgym.runs.executors.worker_log import log_again
from vfgym.runs.spending import RunSpending

logger = logging.getLogger(__name__)

MOST_DEATHS = 3
"""A rollout that was running when so many workers died is not played again."""
_MOST_STARTS = 3
"""How often in a row a worker may end before it has connected."""
_SECONDS_TO_END = 10.0
"""How long workers have to end when the run is over."""
_SECONDS_TO_JOIN = 10.0
"""For how long rollouts are kept back for workers that have not connected yet."""
_SECONDS_UNTIL_WARNING = 60.0
"""How long it may take until a first worker is there, before a warning says that there is none."""
_MOST_STRANGERS = 64
"""How many connections there may be of those who have not proved yet that they know the run's token."""
_SECONDS_TO_CLOSE = 5.0
"""How long the connection of a worker whose task has ended may stay open."""


@dataclass(frozen=True, kw_only=True)
class WorkerOrder:
    """What the workers of a run are told."""

    run: TravellingRun
    env_id: str
    """What rows call the environment."""
    registered: Sequence[tuple[str, bool]]
    """The ids that are registered here, as `travelling.registered_here` gives them."""
    most_at_once: int
    """Most rollouts at once, in all workers together: as many as there are workers, or more."""
    has_cache: bool
    state_columns: Sequence[str]
    types: MessageTypes
    """The message class for each role."""


@dataclass(slots=True)
class _Job:
    """Rollouts that one worker plays: a group that is scored together, or one rollout."""

    group: GroupJob
    deaths: int = 0
    """How many workers died while they played it."""


@dataclass(slots=True, eq=False)
class _Worker:
    """A worker that is connected."""

    number: int
    link: WorkerLink
    jobs: dict[int, _Job] = field(default_factory=dict)
    """What it plays, by the number under which it was sent."""
    wanted: int = 0
    """Rollouts that it has asked for and not been given."""
    is_isolated: bool = False
    """Whether it plays one job alone, which may be what kills workers."""
    spent: Spending = field(default_factory=Spending)
    granted: int = 0
    """Requests that were let begin."""
    held: int = 0
    """Requests that may be under way."""
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def num_playing(self) -> int:
        return sum(len(job.group.numbers) for job in self.jobs.values())


class Coordinator:
    """Lets the workers of an executor play a run."""

    def __init__(
        self,
        on: OpenExecutor,
        order: WorkerOrder,
        spending: RunSpending,
        *,
        num_workers: int,
        keep: Callable[[list[RolloutOutput]], None],
        give_up: Callable[[GroupJob, Exception], None],
        note_columns: Callable[[Sequence[str], Sequence[str]], None],
        note_redone: Callable[[int], None],
    ) -> None:
        """Prepare a run.

        Args:
            on: Starts workers. It is not shut down here.
            order: What workers are told.
            spending: What the run may spend.
            num_workers: How many workers there are to be.
            keep: Takes the rows of what was played.
            give_up: Takes rollouts that are not played again, and why.
            note_columns: Takes which state columns a worker has not seen so far, and what it has seen instead.
            note_redone: Takes how many rollouts are played again, each time that a worker has died.
        """
        self._on, self._order, self._spending, self._num_workers = on, order, spending, num_workers
        self._keep, self._give_up, self._note_columns = keep, give_up, note_columns
        self._note_redone = note_redone
        self._token = secrets.token_hex(32)
        self._addresses: list[str] = []
        self._fresh: Iterator[GroupJob] = iter(())
        self._again: deque[_Job] = deque()
        self._suspects: deque[_Job] = deque()
        """What was running at all deaths but one that it may: each is played again alone, so that it is clear whose doing a death is."""
        self._isolating: set[_Worker] = set()
        """The workers that play a suspect, or will once they have finished what they play: one of them while there is anything else."""
        self._left = 0
        """Rollouts that are not done."""
        self._workers: dict[int, _Worker] = {}
        self._links: set[_Worker] = set()
        self._strangers: dict[WorkerLink, None] = {}
        """Connections of those who have not proved yet that they know the token, the oldest first."""
        self._num_usable = num_workers
        """Workers that are not given up."""
        self._futures: dict[int, concurrent.futures.Future[None]] = {}
        self._joined: set[int] = set()
        """Workers that have connected since they were started."""
        self._reasons: dict[int, str] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._numbers = 0
        self._is_used_up = False
        self._not_metrics = STANDARD_KEYS.union(order.state_columns)

    async def play(self, jobs: Iterable[GroupJob], num_rollouts: int) -> None:
        """Let all rollouts be played.

        Args:
            jobs: What is played: each goes to one worker.
            num_rollouts: How many rollouts that are.

        Raises:
            WorkersLost: If no worker is left.
            vfgym.errors.Error: What a worker says that ends the run.
        """
        loop = asyncio.get_running_loop()
        self._fresh, self._left = iter(jobs), num_rollouts
        self._over: asyncio.Future[None] = loop.create_future()
        self._may_wait_until = loop.time() + _SECONDS_TO_JOIN
        server = await asyncio.start_server(self._serve, "127.0.0.1" if self._on.is_local else "0.0.0.0", 0)
        self._addresses = addresses_of(server.sockets[0].getsockname()[1], is_local=self._on.is_local)
        later = [loop.call_later(_SECONDS_TO_JOIN, self._feed_all), loop.call_later(_SECONDS_UNTIL_WARNING, self._warn_if_alone)]
        keepers = [asyncio.create_task(self._keep_worker(number)) for number in range(self._num_workers)]
        try:
            await self._over
        finally:
            for timer in later:
                timer.cancel()
            if not self._over.done():
                self._over.cancel()
            elif not self._over.cancelled():
                self._over.exception()
            try:
                await self._end(keepers)
            finally:
                server.close()  # not before: a worker that has only just started is told that the run is over

    async def _end(self, keepers: Sequence[asyncio.Task[None]]) -> None:
        """Let all workers end, and wait until they have."""
        for task in (*keepers, *self._answering):
            task.cancel()
        for future in self._futures.values():
            future.cancel()
        for worker in self._links:
            worker.link.send({"over": True})
        try:
            async with asyncio.timeout(_SECONDS_TO_END):
                for worker in tuple(self._links):
                    await worker.closed.wait()
                for number, future in self._futures.items():
                    if number in self._joined or not self._on.is_own:  # others need not come any more: they are killed
                        await _ended(future)
        except TimeoutError:
            logger.warning("workers of the run have not ended within %.0f s", _SECONDS_TO_END)
        finally:
            for worker in tuple(self._links):
                worker.link.abort()

    def _fail(self, error: BaseException) -> None:
        """End the run with an error."""
        if not self._over.done():
            self._over.set_exception(error)

    # Workers

    async def _keep_worker(self, number: int) -> None:
        """Start a worker, and start it again when it ends before the run is over."""
        num_starts = 0
        while not self._over.done():
            self._joined.discard(number)
            try:
                future = self._on.executor.submit(serve_rollouts, self._addresses, self._token, number)
            except Exception as error:
                self._retire(number, f"{type(self._on.executor).__name__} starts none: {str(error) or type(error).__name__}")
                return
            self._futures[number] = future
            self._reasons[number] = await _ended(future)
            worker = self._workers.get(number)
            if worker is not None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_SECONDS_TO_CLOSE):
                        await worker.closed.wait()
                worker.link.abort()
            num_starts = 0 if number in self._joined else num_starts + 1
            if num_starts == _MOST_STARTS:
                self._retire(number, f"worker {number} ended {num_starts} times before it had connected: {self._reasons[number]}")
                return

    def _warn_if_alone(self) -> None:
        """Say that nobody plays, if nobody does."""
        if not self._workers:
            logger.warning(
                "no worker has connected within %.0f s: is there room for one in the executor, and can it reach this process at %s?",
                _SECONDS_UNTIL_WARNING,
                " or ".join(self._addresses),
            )

    def _retire(self, number: int, reason: str) -> None:
        """Go on without a worker that cannot be started."""
        self._num_usable -= 1
        if self._over.done():
            return
        if self._num_usable:
            logger.warning("the run goes on with fewer workers: %s", reason)
        else:
            self._fail(WorkersLost(f"no worker is left to play the run: {reason}"))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talk to whoever has connected."""
        link = WorkerLink(reader, writer)
        worker: _Worker | None = None
        try:
            hello = await self._greet(link)
            worker = self._admit(link, hello)
            if worker is None:
                link.send({"over": True})
                return
            while True:
                self._take(worker, await link.receive())
        except LinkClosed as error:
            logger.debug("a connection is over: %s", error)
        except BaseException as error:
            self._fail(error)
            if not isinstance(error, Exception):
                raise
        finally:
            if worker is not None:
                await self._lose(worker)
            await link.close()

    async def _greet(self, link: WorkerLink) -> dict[str, Any]:
        """Return what a worker says of itself once it has proved to know the token; where too many have not, the oldest of them makes room.

        Raises:
            LinkClosed: If it does not know the token, or is gone.
        """
        if len(self._strangers) >= _MOST_STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.abort()
        self._strangers[link] = None
        try:
            return await link.greet(self._token, this_process(), is_coordinator=True)
        finally:
            self._strangers.pop(link, None)

    def _admit(self, link: WorkerLink, hello: Mapping[str, Any]) -> _Worker | None:
        """Return a worker that has connected; None where the run has no use for it."""
        own, where = this_process(), f"the worker on {hello['host']}"
        if hello["version"] != own["version"]:
            self._fail(
                ConfigurationError(
                    f"{where} has vfgym {hello['version']}, and this process {own['version']}: install the same version in both places"
                )
            )
        elif self._order.run.has_secrets and not link.is_local:
            self._fail(
                ConfigurationError(
                    f"{where} would be sent secrets of the run in the clear: leave them out of env_args, sampling_args and the client, and"
                    " name the environment variable that holds the API key there (api_key_var)"
                )
            )
        if self._over.done():
            return None
        number = int(hello["number"])
        before = self._workers.get(number)
        if before is not None:
            before.link.abort()
        worker = self._workers[number] = _Worker(number, link)
        self._links.add(worker)
        self._joined.add(number)
        order = self._order
        link.send(
            {
                "run": order.run.data,
                "opened_by": order.run.opened_by,
                "env_id": order.env_id,
                "made_as": order.run.made_as,
                "env_module": order.run.env_module,
                "registered": [text for text, has_secrets in order.registered if link.is_local or not has_secrets],
                "slots": order.most_at_once // self._num_workers + (number < order.most_at_once % self._num_workers),
                "has_cache": order.has_cache,
            }
        )
        return worker

    async def _lose(self, worker: _Worker) -> None:
        """Take note that a worker is gone, and let others play what it was playing."""
        jobs, worker.jobs = list(worker.jobs.values()), {}
        self._links.discard(worker)
        if self._workers.get(worker.number) is worker:
            del self._workers[worker.number]
        self._isolating.discard(worker)
        meter = self._spending.meter
        if meter is not None and worker.held:
            meter.end(worker.held)
            for _ in range(worker.held):  # nobody tells what came of them
                meter.count_given_up()
            worker.held = 0
        worker.closed.set()
        if self._over.done():
            return
        if jobs:
            self._play_again(jobs, await self._reason(worker.number))
        self._feed_all()

    async def _reason(self, number: int) -> str:
        """Return why a worker has ended, where its executor tells soon."""
        future = self._futures.get(number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS_TO_CLOSE):
                return await _ended(future) if future is not None else ""
        return "its connection broke"

    def _play_again(self, jobs: Sequence[_Job], reason: str) -> None:
        again = sum(len(job.group.numbers) for job in jobs if job.deaths + 1 < MOST_DEATHS)
        logger.warning("a worker died (%s): of the rollouts that it was playing, %d are played again", reason, again)
        for job in jobs:
            job.deaths += 1
            if job.deaths >= MOST_DEATHS:
                error = WorkerDied(f"{job.deaths} workers died while they played it, the last one so: {reason}")
                self._done(job, lambda job=job, error=error: self._give_up(job.group, error))  # type: ignore[misc]
                continue
            (self._suspects if job.deaths == MOST_DEATHS - 1 else self._again).append(job)
        self._note_redone(again)

    # What workers say

    def _take(self, worker: _Worker, message: Mapping[str, Any]) -> None:
        """Do what a worker's message wants."""
        if "spent" in message:
            self._count(worker, message)
        if "log" in message:
            log_again(message)
        if self._over.done():
            return
        if "want" in message:
            worker.wanted += message["want"]
            self._feed(worker)
        elif "rows" in message:
            self._take_rows(worker, message)
        elif "ask" in message:
            self._let_begin(worker, message["ask"])
        elif "question" in message:
            task = asyncio.create_task(self._answer(worker, message))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        elif "busy" in message:
            for other in self._links - {worker}:
                other.link.send({"busy": message["busy"]})
        elif "refused" in message:
            self._refuse(LimitReached(**message["refused"]))
        elif "error" in message:
            self._fail(from_data(message["error"]))

    def _feed_all(self) -> None:
        for worker in tuple(self._workers.values()):
            self._feed(worker)

    def _feed(self, worker: _Worker) -> None:
        """Give a worker what it wants, as far as it is its turn."""
        waits = asyncio.get_running_loop().time() < self._may_wait_until
        num_workers = max(1, self._num_usable if waits else len(self._workers))
        while worker.wanted > 0 and not self._over.done():
            if worker.num_playing >= -(-self._left // num_workers):  # so that no worker has all that is left
                return
            job = self._next_job(worker)
            if job is None:
                return
            try:
                self._spending.check_may_begin()
            except LimitReached as error:
                self._fail(error)
                return
            self._numbers += 1
            worker.jobs[self._numbers] = job
            worker.wanted -= len(job.group.numbers)
            example = job.group.example
            worker.link.send(
                {
                    "job": self._numbers,
                    "attempt": job.deaths + 1,
                    "example": [example.example_id, example.rows, example.num_rollouts, example.place],
                    "numbers": list(job.group.numbers),
                }
            )

    def _next_job(self, worker: _Worker) -> _Job | None:
        """Return what a worker plays next; None where it has to wait, or nothing is left."""
        if worker.is_isolated:
            return None
        if self._suspects and (not self._isolating or worker in self._isolating):
            return self._next_suspect(worker)
        self._isolating.discard(worker)
        if self._again:
            return self._again.popleft()
        group = next(self._fresh, None)
        if group is not None:
            return _Job(group)
        return self._next_suspect(worker) if self._suspects else None

    def _next_suspect(self, worker: _Worker) -> _Job | None:
        """Return what a worker plays alone; None while it has something else to finish."""
        self._isolating.add(worker)
        if worker.jobs:
            return None
        worker.is_isolated = True
        return self._suspects.popleft()

    def _take_rows(self, worker: _Worker, message: Mapping[str, Any]) -> None:
        job = worker.jobs.pop(message["job"], None)
        if job is None:
            return
        was_isolated = worker.is_isolated
        if was_isolated:
            worker.is_isolated = False
            self._isolating.discard(worker)
        rows = [read_row(data, self._not_metrics) for data in message["rows"]]
        for row in rows:
            take_messages(row, self._order.types)
        self._note_columns(message["unseen"], message["known"])
        self._done(job, lambda: self._keep(rows))
        if was_isolated:  # another one may have a suspect now
            self._feed_all()
        else:
            self._feed(worker)

    def _done(self, job: _Job, keep: Callable[[], None]) -> None:
        """Take note that a job is done, once what came of it is kept."""
        try:
            keep()
        except BaseException as error:  # it cannot be written, or whoever is told of it raised
            self._fail(error)
            if not isinstance(error, Exception):
                raise
            return
        self._left -= len(job.group.numbers)
        if not self._left and not self._over.done():
            self._over.set_result(None)

    # Spending

    def _count(self, worker: _Worker, message: Mapping[str, Any]) -> None:
        """Count what a worker has spent since it reported last."""
        meter = self._spending.meter
        if meter is None:
            return
        spent, before = Spending(**message["spent"]), worker.spent
        new = Spending(
            requests=spent.requests - before.requests,
            input_tokens=spent.input_tokens - before.input_tokens,
            output_tokens=spent.output_tokens - before.output_tokens,
            cost=None if spent.cost is None or before.cost is None else spent.cost - before.cost,
            abandoned=spent.abandoned - before.abandoned,
        )
        meter.spent.add(new)
        worker.spent = spent
        held = worker.granted - message["leaves"] + message["under_way"] if worker.granted else message["under_way"]
        meter.end(worker.held - held)
        worker.held = held
        found = meter.find_used_up()
        if found is not None and not self._is_used_up:
            self._is_used_up = True
            for each in self._links:
                each.link.send({"used_up": found.as_dict()})

    def _let_begin(self, worker: _Worker, requests: int) -> None:
        """Let requests begin, if no limit is used up."""
        meter = self._spending.meter
        for _ in range(requests):
            if meter is not None:
                try:
                    meter.hold_place()
                except LimitReached as error:
                    self._fail(error)
                    return
            worker.granted += 1
            worker.held += 1
            worker.link.send({"leave": 1})

    def _refuse(self, error: LimitReached) -> None:
        """End the run, since a limit is used up that a worker has met."""
        if self._spending.meter is None:
            self._fail(error)
            return
        try:
            self._spending.meter.refuse(error)
        except LimitReached as reached:
            self._fail(reached)

    async def _answer(self, worker: _Worker, message: Mapping[str, Any]) -> None:
        """Look into the run's cache for a worker, or keep an answer in it."""
        cache = self._spending.budget.cache
        found: Response | None = None
        if cache is not None and "find" in message:
            found = await cache.find(message["find"])
        elif cache is not None:
            found = await cache.keep(message["keep"], Response.model_validate(message["response"]))
        worker.link.send({"question": message["question"], "answer": None if found is None else found.model_dump()})


async def _ended(future: concurrent.futures.Future[Any]) -> str:
    """Wait until the task of a worker has ended, and return how, in words."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def note(_: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(ended.set)

    future.add_done_callback(note)
    await ended.wait()
    if future.cancelled():
        return "its task was cancelled"
    error = future.exception()
    return "its task ended" if error is None else str(error) or type(error).__name__
