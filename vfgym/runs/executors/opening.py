"""Executors by their names, and how many workers they have."""

from __future__ import annotations

import concurrent.futures
import contextlib
from collections.abc import AsyncIterator
from typing import NamedTuple

from vfgym.aio.threads import on_thread
from vfgym.runs.executors.processes import ProcessExecutor, usable_cores


class OpenExecutor(NamedTuple):
    """What starts the workers of a run."""

    executor: concurrent.futures.Executor
    num_workers: int
    is_local: bool
    """Whether workers are on this machine."""
    is_own: bool = False
    """Whether what still runs in it is killed afterwards."""


@contextlib.asynccontextmanager
async def opened(executor: str | concurrent.futures.Executor, workers: int | None) -> AsyncIterator[OpenExecutor]:
    """Open an executor for an ``async with``, and end what runs in it afterwards; one that was given is left as it is.

    Args:
        executor: ``"process"`` or ``"ray"``, or an executor.
        workers: How many workers there are to be.

    Raises:
        MissingExtra: If Ray is not installed.
        ConfigurationError: If there is no cluster.
    """
    if not isinstance(executor, str):
        is_local = isinstance(executor, concurrent.futures.ThreadPoolExecutor | concurrent.futures.ProcessPoolExecutor)
        yield OpenExecutor(executor, workers or _num_workers_of(executor), is_local)
        return
    own: concurrent.futures.Executor
    if executor == "ray":
        from vfgym.runs.executors.on_ray import RayExecutor

        own = await on_thread(RayExecutor)  # it may take seconds to start a cluster
    else:
        own = ProcessExecutor()
    try:
        yield OpenExecutor(own, workers or _num_workers_of(own), is_local=executor == "process", is_own=True)
    finally:
        own.shutdown()


def _num_workers_of(executor: concurrent.futures.Executor) -> int:
    """Return how many workers an executor has, where it tells; else one for each core of this machine."""
    for name in ("num_actors", "_max_workers"):  # the latter is what those of the standard library have, and others like them
        most = getattr(executor, name, None)
        if isinstance(most, int) and most > 0:
            return most
    return usable_cores()
