"""Calling what may be plain or async, limits on concurrency, retries, and how late the event loop is."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np

from verifiers_compat.utils.error_utils import error_type_names
from vfgym.aio.background import close_unawaited
from vfgym.calls import CallPlan
from vfgym.calls import maybe_await as maybe_await
from vfgym.errors import ConfigurationError
from vfgym.runs.retries import RETRYABLE

logger = logging.getLogger(__name__)

T = TypeVar("T")

ErrorTypes: TypeAlias = "tuple[type[BaseException], ...]"


async def maybe_call_with_named_args(func: Callable[..., Any], **objects: Any) -> Any:
    """Call a plain or async function with those of `objects` that its signature asks for; all of them if it takes ``**kwargs``."""
    return await maybe_await(CallPlan(func), objects)


NullContext = NullAsyncContext = contextlib.nullcontext
"""A context that does nothing, for ``with`` and for ``async with``."""


async def maybe_semaphore(limit: int | None = None) -> asyncio.Semaphore | contextlib.nullcontext[None]:
    """Return a semaphore for `limit` holders at once, or a context that does nothing where there is no limit.

    Args:
        limit: How many; None, 0 or a negative number for no limit.
    """
    return NullAsyncContext() if limit is None or limit <= 0 else asyncio.Semaphore(limit)


async def with_sem(sem: contextlib.AbstractAsyncContextManager[Any], coro: Awaitable[T]) -> T:
    """Await `coro` while holding `sem`. If the wait for `sem` is cancelled, `coro` is closed and never runs."""
    begun = False
    try:
        async with sem:
            begun = True
            return await coro
    finally:
        if not begun:
            close_unawaited(coro)


def maybe_retry(
    func: Callable[..., Awaitable[T]],
    max_retries: int = 0,
    initial: float = 1.0,
    max_wait: float = 60.0,
    error_types: ErrorTypes = RETRYABLE,
) -> Callable[..., Awaitable[T]]:
    """Return `func`, repeated after errors that may pass.

    An attempt has failed if it raises one of `error_types`, or returns a state or an output (or a list of them) whose ``error``
    is one. The waits between attempts double from `initial` seconds up to `max_wait`, each made up to a half shorter by chance.

    Args:
        func: An async function.
        max_retries: How often a failed attempt is repeated; 0 returns `func` itself.
        initial: Seconds before the first repetition.
        max_wait: The longest wait, in seconds.
        error_types: The errors after which it is worth it.

    Returns:
        An async function that gives what the last attempt gave: its result, which may hold an error, or its exception.

    Raises:
        ConfigurationError: If a number is negative.
    """
    if max_retries < 0 or initial < 0 or max_wait < 0:
        raise ConfigurationError(
            f"max_retries, initial and max_wait must not be negative, got {max_retries}, {initial} and {max_wait} (seconds)"
        )
    if max_retries == 0:
        return func

    @functools.wraps(func)
    async def attempts(*args: Any, **kwargs: Any) -> T:
        for attempt in range(max_retries):
            try:
                result = await func(*args, **kwargs)
            except error_types as error:
                failure: str | None = repr(error)
            else:
                failure = _find_failure(result, error_types)
                if failure is None:
                    return result
            wait = min(max_wait, initial * 2**attempt) * random.uniform(0.5, 1.0)
            logger.warning("attempt %d of %d failed, the next begins in %.1f s: %s", attempt + 1, max_retries + 1, wait, failure)
            await asyncio.sleep(wait)
        return await func(*args, **kwargs)

    return attempts


def _find_failure(result: Any, error_types: ErrorTypes) -> str | None:
    """Return what went wrong in a result that holds one of the errors, else None."""
    for each in result if isinstance(result, list | tuple) else [result]:
        error = each.get("error") if isinstance(each, Mapping) else None
        if isinstance(error, error_types):
            return repr(error)
        if isinstance(error, Mapping) and _is_named(error, error_types):
            return str(error.get("error_chain_repr") or error.get("error_chain_str"))
    return None


def _is_named(error: Mapping[str, Any], error_types: ErrorTypes) -> bool:
    """Say whether an error that was written down is of one of the types, by the names of those and of what derives from them."""
    names = {name for kind in error_types for name in error_type_names(kind)}
    return not names.isdisjoint(str(error.get("error_chain_str", "")).split(" -> "))


@dataclass(frozen=True)
class EventLoopLagStats:
    """How late the event loop called back, in seconds."""

    count: int
    """How often it was measured."""
    mean: float
    median: float
    p90: float
    p99: float
    max: float

    @classmethod
    def of(cls, lags: Iterable[float]) -> EventLoopLagStats:
        """Sum up measured lags, in seconds; all 0 where there are none."""
        measured = np.fromiter(lags, float)
        if not measured.size:
            return cls(0, 0.0, 0.0, 0.0, 0.0, 0.0)
        median, p90, p99, largest = np.percentile(measured, (50, 90, 99, 100), method="inverted_cdf").tolist()
        return cls(measured.size, float(measured.mean()), median, p90, p99, largest)


class EventLoopLagMonitor:
    """Measures how late the event loop is: how much longer than asked a sleep takes.

    A lag of more than some milliseconds says that something blocks the loop, and with it every rollout.

    Examples:
        async with EventLoopLagMonitor() as monitor:
            await env.generate(...)
        print(monitor.get_stats())
    """

    def __init__(self, interval: float = 0.1, max_measurements: int = 1000) -> None:
        """Measure nothing yet.

        Args:
            interval: Seconds between two measurements.
            max_measurements: How many of the newest are kept.

        Raises:
            ConfigurationError: If a number is not positive.
        """
        if interval <= 0 or max_measurements < 1:
            raise ConfigurationError(f"interval and max_measurements must be positive, got {interval} and {max_measurements}")
        self.interval = interval
        self._lags: deque[float] = deque(maxlen=max_measurements)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to measure the running loop. A second call does nothing."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._measure())

    async def stop(self) -> EventLoopLagStats:
        """Stop measuring, and return the statistics."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        return self.get_stats()

    def get_stats(self) -> EventLoopLagStats:
        """Return the statistics of the measurements that are kept."""
        return EventLoopLagStats.of(self._lags)

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        await self.stop()

    async def _measure(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + self.interval
            await asyncio.sleep(self.interval)
            self._lags.append(max(0.0, loop.time() - due))
