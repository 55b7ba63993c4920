"""What belongs to one thread, and the thread pools that grow with the number of concurrent rollouts.

`Environment.set_concurrency` calls `scale_executors`. An executor that is registered later is scaled to the last number.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from vfgym.errors import ConfigurationError

logger = logging.getLogger(__name__)

T = TypeVar("T")

DEFAULT_EXECUTOR = "default"
"""Name of the pool that `install_default_executor` makes."""

_storage = threading.local()


def get_thread_local_storage() -> threading.local:
    """Return the storage whose attributes each thread has for itself."""
    return _storage


def get_or_create_thread_attr(key: str, factory: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Return this thread's attribute `key`; where it has none, it is ``factory(*args, **kwargs)``."""
    try:
        return getattr(_storage, key)  # type: ignore[no-any-return]
    except AttributeError:
        value = factory(*args, **kwargs)
        setattr(_storage, key, value)
        return value


def get_or_create_thread_loop() -> asyncio.AbstractEventLoop:
    """Return this thread's own event loop, made where it has none or has closed it. Whoever runs it closes it."""
    loop = get_or_create_thread_attr("loop", asyncio.new_event_loop)
    if loop.is_closed():
        loop = asyncio.new_event_loop()
        _storage.loop = loop
    return loop


@dataclass(frozen=True)
class _Registered:
    executor: Executor
    scaling_fn: Callable[[int], int]

    def scale(self, concurrency: int) -> None:
        # concurrent.futures has no public way to change the size of a pool (Python 3.11 to 3.13).
        self.executor._max_workers = max(1, self.scaling_fn(concurrency))  # type: ignore[attr-defined]


_executors: dict[str, _Registered] = {}
_concurrency: int | None = None
_lock = threading.Lock()


def register_executor(name: str, executor: Executor, scaling_fn: Callable[[int], int] | None = None) -> None:
    """Have an executor's size follow the number of concurrent rollouts.

    Args:
        name: Its name. An executor of that name is replaced.
        executor: A `ThreadPoolExecutor`, or a `ProcessPoolExecutor`. A pool that becomes smaller keeps the workers that it has.
        scaling_fn: From the number of rollouts to the number of workers; by default one worker each.

    Raises:
        ConfigurationError: If it is another kind of executor, whose size cannot be changed.
    """
    if not isinstance(executor, ThreadPoolExecutor | ProcessPoolExecutor):
        raise ConfigurationError(f"only a ThreadPoolExecutor or a ProcessPoolExecutor can be scaled, got {type(executor).__name__}")
    registered = _Registered(executor, scaling_fn or (lambda rollouts: rollouts))
    with _lock:
        _executors[name] = registered
        if _concurrency is not None:
            registered.scale(_concurrency)


def unregister_executor(name: str) -> None:
    """Take an executor off the register, without shutting it down. One that is not there is no error."""
    with _lock:
        _executors.pop(name, None)


def scale_executors(concurrency: int) -> None:
    """Scale every registered executor, and those that come later.

    Raises:
        ConfigurationError: If `concurrency` is below 1.
    """
    global _concurrency
    if concurrency < 1:
        raise ConfigurationError(f"concurrency must be at least 1, got {concurrency}")
    with _lock:
        _concurrency = concurrency
        for registered in _executors.values():
            registered.scale(concurrency)


def install_default_executor() -> Executor:
    """Make a registered thread pool the default of the running event loop, and return it. One that is there already is used again.

    Raises:
        RuntimeError: If no event loop runs.
    """
    loop = asyncio.get_running_loop()
    registered = _executors.get(DEFAULT_EXECUTOR)
    if registered is None:
        register_executor(DEFAULT_EXECUTOR, ThreadPoolExecutor(thread_name_prefix="verifiers-default"))
        registered = _executors[DEFAULT_EXECUTOR]
    loop.set_default_executor(registered.executor)
    return registered.executor


def shutdown_executors(wait: bool = False) -> None:
    """Shut every registered executor down, and empty the register.

    Args:
        wait: Whether to wait for what is running. What has not begun is given up.
    """
    with _lock:
        registered = list(_executors.items())
        _executors.clear()
    for name, each in registered:
        try:
            each.executor.shutdown(wait=wait, cancel_futures=True)
        except Exception:
            logger.exception("the executor %r could not be shut down", name)
