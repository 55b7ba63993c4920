"""Executors by their names, and how many workers they have."""

from __future__ import annotations

import concurrent.futures
import contextlib
from collections.abc import Iterator
from typing import NamedTuple

from vfgym.runs.executors.processes import ProcessExecutor, usable_cores


class OpenExecutor(NamedTuple):
    """What starts the workers of a run."""

    executor: concurrent.futures.Executor
    num_workers: int
    is_local: bool
    """Whether workers are on this machine."""


@contextlib.contextmanager
def opened(executor: str | concurrent.futures.Executor, workers: int | None) -> Iterator[OpenExecutor]:
    """Open an executor for a ``with``, and end what runs in it afterwards; one that was given is left as it is.

    Args:
        executor: ``"process"`` or ``"ray"``, or an executor.
        workers: How many workers there are to be.

    Raises:
        MissingExtra: If Ray is not installed.
        ConfigurationError: If there is no cluster.
    """
    if not isinstance(executor, str):
        most = getattr(executor, "_max_workers", None)  # which those of the standard library have, and others like them
        num_workers = workers or (most if isinstance(most, int) and most > 0 else usable_cores())
        is_local = isinstance(executor, concurrent.futures.ThreadPoolExecutor | concurrent.futures.ProcessPoolExecutor)
        yield OpenExecutor(executor, num_workers, is_local)
        return
    if executor == "ray":
        from vfgym.runs.executors.on_ray import RayExecutor

        own: concurrent.futures.Executor = RayExecutor()
        num_workers = workers or RayExecutor.num_cores()
    else:
        own, num_workers = ProcessExecutor(), workers or usable_cores()
    try:
        yield OpenExecutor(own, num_workers, is_local=executor == "process")
    finally:
        own.shutdown()
