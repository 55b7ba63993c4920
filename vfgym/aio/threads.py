"""Plain functions that may block: called in place and watched, on a pool's thread, or on one thread of their own.

Whoever waits for a thread may give it up (a deadline, a cancellation): the thread goes on with the call by itself, another takes its
place, and nobody waits for it when the process ends. (So these are not threads of a `concurrent.futures` pool, which waits for all.)
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
import gc
import logging
import os
import queue
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from vfgym.aio.background import in_event_loop
from vfgym.calls import function_name

logger = logging.getLogger(__name__)

T = TypeVar("T")


def _outcome(func: Callable[..., T], *args: Any) -> list[Any]:
    """Call `func`, and return what it gave and what it raised: in a list, to be emptied, since asyncio's futures keep each other alive.

    Not all exceptions come through a future as they are: whoever awaits one with a `StopIteration` would wait for ever, and of a
    `TimeoutError` asyncio makes a new one, without its traceback (Python 3.11).
    """
    try:
        return [func(*args), None]
    except StopIteration as error:
        stopped = RuntimeError(f"the function raised {error!r}")
        stopped.__cause__ = error
        return [None, stopped]
    except BaseException as error:
        return [None, error]


# In place


_SLOW = 0.1
"""Seconds for which a plain function may hold up an event loop before it is named in a warning."""

_COLLECTING = 3e-7
"""Seconds that the garbage collector may need for each block of memory, to go through everything; 0.3 to 1.3e-7 were measured."""

_named_as_slow: set[str] = set()


class _Clocks(threading.local):
    """The clocks of one thread, as they stood a moment ago: reading them costs 5 µs, too much for every call. All are in seconds."""

    _LASTS = 0.02

    read_at = until = 0.0
    own = 0.0
    """What the thread had computed."""
    process = 0.0
    """What all threads of the process had."""
    without_core = 0.0
    """How long the thread could have run, and the system gave it no core."""
    collections = 0
    """How often the garbage collector had gone through everything."""

    def read(self) -> float:
        """Read the clocks, for the calls of the next 20 ms, and return the time."""
        self.own, self.process, self.without_core = time.thread_time(), time.process_time(), _seconds_without_core()
        self.collections = _num_collections()
        self.read_at = now = time.perf_counter()
        self.until = now + self._LASTS
        return now


_clocks = _Clocks()


def _num_collections() -> int:
    # A function among `gc.callbacks` could time them, and Ctrl-C would be lost whenever it came during one: what such a function raises
    # is ignored, and it is the first that the signal's handler can interrupt.
    return int(gc.get_stats()[-1]["collections"])


def _seconds_without_core() -> float:
    """Return how long the system gave this thread no core though it could have run; 0.0 where it does not tell (only Linux does)."""
    try:
        file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    except OSError:
        return 0.0
    try:
        return int(os.read(file, 64).split()[1]) / 1e9
    except (OSError, LookupError, ValueError):
        return 0.0
    finally:
        os.close(file)


def in_place(name: str, func: Callable[..., T], *args: Any) -> T:
    """Call a plain tool or reward function where we are; the first that holds up a running loop is named in a warning."""
    started = time.perf_counter()
    if started >= _clocks.until:
        started = _clocks.read()
    try:
        return func(*args)
    finally:
        took = time.perf_counter() - started
        if took > _SLOW and in_event_loop() and name not in _named_as_slow:
            held = _held(started, took)
            if held > _SLOW:
                _named_as_slow.add(name)
                logger.warning(
                    "%s held up the event loop, and every episode on it, for %.0f ms: make it async, or mark it with @vfgym.blocking",
                    name,
                    held * 1e3,
                )


def _held(started: float, took: float) -> float:
    """Return for how many of the seconds that a call took the function itself held up the loop: it computed, slept, or waited for a file.

    Not its own are collections of garbage, for which as much is left out as they may have taken, and the time for which the system gave
    the thread no core. Where other threads computed meanwhile, only what it computed itself counts: else it may have waited for the
    interpreter's lock.
    """
    own = time.thread_time() - _clocks.own
    others = time.process_time() - _clocks.process - own
    collecting = (_num_collections() - _clocks.collections) * sys.getallocatedblocks() * _COLLECTING
    if others > took / 10:
        return own - (started - _clocks.read_at) - collecting  # the thread may have computed before the call, too
    return took - (_seconds_without_core() - _clocks.without_core) - collecting


# On threads


class _Calls:
    """The calls that are sent to one thread."""

    def __init__(self) -> None:
        self.queue: queue.SimpleQueue[tuple[concurrent.futures.Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self.sent = self.done = 0

    def carry_out(self) -> None:
        """Carry them out, one after another: what the thread does until it is sent None."""
        while (sent := self.queue.get()) is not None:
            future, call = sent
            outcome = call() if future.set_running_or_notify_cancel() else None
            self.done += 1  # before anybody is told
            if outcome is not None:
                future.set_result(outcome)
            del sent, future, call, outcome  # else the last call's arguments live until the next one


class Worker:
    """One thread that blocking calls are sent to, always the same one (many games are bound to their thread)."""

    def __init__(self) -> None:
        """Make a worker; its thread starts with the first call."""
        self._calls = _Calls()
        self._thread: threading.Thread | None = None
        weakref.finalize(self, self._calls.queue.put, None).atexit = False

    @property
    def is_busy(self) -> bool:
        """Whether a call has not returned yet, whoever may still wait for it."""
        return self._calls.sent != self._calls.done

    def send(self, func: Callable[..., Any], *args: Any) -> concurrent.futures.Future[list[Any]]:
        """Have a function called on the thread, after those that were sent before, with the caller's context variables.

        Returns:
            What will be what it gave and what it raised (see `_outcome`).
        """
        if self._thread is None:
            # A daemon: a process that ends does not wait for calls that were given up.
            thread = threading.Thread(target=self._calls.carry_out, name="vfgym-worker", daemon=True)
            thread.start()
            self._thread = thread
        future: concurrent.futures.Future[list[Any]] = concurrent.futures.Future()
        self._calls.sent += 1
        self._calls.queue.put((future, functools.partial(contextvars.copy_context().run, _outcome, func, *args)))
        return future

    async def run(self, func: Callable[..., T], *args: Any) -> T:
        """Call `func` on the worker's thread, with the caller's context variables. Cancelling us leaves the call to its thread."""
        outcome = await asyncio.wrap_future(self.send(func, *args))
        result, error = outcome
        outcome.clear()
        try:
            if error is not None:
                raise error
        finally:
            del error  # else its traceback would keep this frame, which keeps it
        return result  # type: ignore[no-any-return]

    def close(self) -> None:
        """Let the thread end once it has carried out what was sent."""
        self._calls.queue.put(None)


class _Pool:
    """The threads of blocking calls: so many at most, not counting those that were given up."""

    def __init__(self) -> None:
        self.most = 128
        self._count = 0
        self._idle: list[Worker] = []
        self._waiting: deque[concurrent.futures.Future[Worker]] = deque()
        self._lock = threading.Lock()

    async def take(self) -> Worker:
        """Return a worker that nobody else has; wait for one where there are as many as there may be."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if self._count < self.most:
                self._count += 1
                return Worker()
            waiting: concurrent.futures.Future[Worker] = concurrent.futures.Future()
            self._waiting.append(waiting)
        try:
            return await asyncio.wrap_future(waiting)
        except BaseException:
            if not waiting.cancel():  # it came in the very moment
                self.give_back(waiting.result())
            raise

    def give_back(self, worker: Worker) -> None:
        """Let others have a worker. Of one that is busy still, its call given up, another takes the place."""
        if worker.is_busy:
            worker.close()
            worker = Worker()
        with self._lock:
            while self._waiting:
                waiting = self._waiting.popleft()
                if waiting.set_running_or_notify_cancel():
                    waiting.set_result(worker)
                    return
            self._idle.append(worker)


_pool = _Pool()


def _forget_pool() -> None:
    # A forked child inherits the object but not its threads.
    global _pool
    _pool = _Pool()


os.register_at_fork(after_in_child=_forget_pool)


def allow_workers(count: int) -> None:
    """Let at least `count` blocking calls run at once, in the whole process."""
    _pool.most = max(_pool.most, count)


_named_as_given_up: set[str] = set()


async def on_thread(func: Callable[..., T], *args: Any, name: str | None = None, limit: float | None = None) -> T:
    """Call a blocking function on a thread of the process-wide pool, with the caller's context variables.

    Where we are cancelled, the thread is given up, and goes on by itself.

    Args:
        func: The function.
        *args: What it is called with.
        name: What it is called in the log; its own name by default.
        limit: Seconds after which it is given up; None for none.

    Raises:
        TimeoutError: If it did not return within the limit.
    """
    pool = _pool
    worker = await pool.take()
    scope = asyncio.timeout(limit)
    try:
        async with scope:
            return await worker.run(func, *args)
    except TimeoutError:
        if scope.expired():
            raise TimeoutError(f"{name or function_name(func)} did not return within {limit:g} s") from None
        raise
    finally:
        if worker.is_busy:
            _tell_given_up(name or function_name(func))
        pool.give_back(worker)


def _tell_given_up(name: str) -> None:
    if name not in _named_as_given_up:
        _named_as_given_up.add(name)
        logger.warning("%s has not returned, and nobody waits for it any longer: its thread is left to it", name)


_OFF_LOOP = "__vfgym_off_loop__"


def off_loop(func: Callable[..., Any]) -> Callable[..., Any]:
    """Make a blocking method of an environment one that runs on a thread, within its `timeout_seconds`, where an event loop runs."""

    @functools.wraps(func)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not in_event_loop():
            return func(self, *args, **kwargs)
        return on_thread(functools.partial(func, self, *args, **kwargs), limit=self.timeout_seconds)

    setattr(call, _OFF_LOOP, call)
    return call


def is_off_loop(func: Callable[..., Any]) -> bool:
    """Say whether `off_loop` made a function (and not what `functools.wraps` made of it)."""
    return getattr(func, _OFF_LOOP, None) is func
