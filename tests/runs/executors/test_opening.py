"""Executors by name: which they are, how many workers they have, and that they end."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os

import pytest

from vfgym.runs.executors.opening import opened
from vfgym.runs.executors.processes import ProcessExecutor, usable_cores


class Own(concurrent.futures.Executor):
    """One of somebody else's."""

    def __init__(self, **said: object) -> None:
        vars(self).update(said)


async def test_that_of_processes_is_made_and_shut_down() -> None:
    async with opened("process", None) as found:
        assert isinstance(found.executor, ProcessExecutor)
        assert (found.num_workers, found.is_local) == (usable_cores(), True)
    with pytest.raises(RuntimeError, match="shut down"):
        found.executor.submit(os.getpid)


async def test_it_is_shut_down_after_an_error_too() -> None:
    with contextlib.suppress(ZeroDivisionError):
        async with opened("process", 3) as found:
            assert found.num_workers == 3
            raise ZeroDivisionError
    with pytest.raises(RuntimeError, match="shut down"):
        found.executor.submit(os.getpid)


async def test_one_that_was_given_is_left_open() -> None:
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        async with opened(threads, None) as found:
            assert found == (threads, 3, True, False)
        assert threads.submit(os.getpid).result() == os.getpid()


@pytest.mark.parametrize(
    ("said", "workers", "number"),
    [
        ({}, None, usable_cores()),
        ({"_max_workers": 7}, None, 7),
        ({"_max_workers": 0}, None, usable_cores()),
        ({"num_actors": 5, "_max_workers": 7}, None, 5),
        ({"_max_workers": 7}, 2, 2),
    ],
)
async def test_how_many_workers_there_are(said: dict[str, object], workers: int | None, number: int) -> None:
    async with opened(Own(**said), workers) as found:
        assert (found.num_workers, found.is_local) == (number, False)
