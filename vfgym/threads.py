"""Plain functions that may block: called in place and watched, on a pool's thread, or on one thread of their own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
import logging
import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

from vfgym.concurrency import in_event_loop

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


async def _on(executor: concurrent.futures.ThreadPoolExecutor, func: Callable[..., T], args: tuple[Any, ...]) -> T:
    """Call a function on a thread of `executor`, with the caller's context variables."""
    call = functools.partial(contextvars.copy_context().run, _outcome, func, *args)
    outcome = await asyncio.get_running_loop().run_in_executor(executor, call)
    result, error = outcome
    outcome.clear()
    try:
        if error is not None:
            raise error
    finally:
        del error  # else its traceback would keep this frame, which keeps it
    return result  # type: ignore[no-any-return]


_SLOW = 0.1
"""Seconds for which a plain function may hold up an event loop before it is named in a warning."""

_named_as_slow: set[str] = set()
_pool: concurrent.futures.ThreadPoolExecutor | None = None
_most_workers = 128


def _forget_pool() -> None:
    # A forked child inherits the object but not its threads.
    global _pool
    _pool = None


os.register_at_fork(after_in_child=_forget_pool)


def in_place(name: str, func: Callable[..., T], *args: Any) -> T:
    """Call a plain tool or reward function where we are; the first that holds up a running loop is named in a warning."""
    started = time.perf_counter()
    try:
        return func(*args)
    finally:
        took = time.perf_counter() - started
        if took > _SLOW and in_event_loop() and name not in _named_as_slow:
            _named_as_slow.add(name)
            logger.warning(
                "%s held up the event loop, and every episode on it, for %.0f ms: make it async, or mark it with @vfgym.blocking",
                name,
                took * 1e3,
            )


def allow_workers(count: int) -> None:
    """Let at least `count` blocking calls run at once, in the whole process."""
    global _pool, _most_workers
    if count > _most_workers:
        _most_workers, _pool = count, None  # what runs on the smaller pool ends there


async def on_thread(func: Callable[..., T], *args: Any) -> T:
    """Call a blocking function on a thread of the process-wide pool, with the caller's context variables."""
    global _pool
    if _pool is None:
        _pool = concurrent.futures.ThreadPoolExecutor(max_workers=_most_workers, thread_name_prefix="vfgym-blocking")
    return await _on(_pool, func, args)


class Worker:
    """One thread that blocking calls are sent to, always the same one (many games are bound to their thread)."""

    def __init__(self) -> None:
        """Make a worker; its thread starts with the first call."""
        self._executor = concurrent.futures.ThreadPoolExecutor(max_workers=1, thread_name_prefix="vfgym-worker")

    async def run(self, func: Callable[..., T], *args: Any) -> T:
        """Call `func` on the worker's thread, with the caller's context variables."""
        return await _on(self._executor, func, args)

    def close(self) -> None:
        """Let the thread end once it is idle."""
        self._executor.shutdown(wait=False)
