"""Deadlines: an awaitable that must be done by a time, and what is awaited inside knows that time."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from typing import Any

import pytest

from vfgym.aio.deadlines import Before, DeadlinePassed, ends_at
from vfgym.context import in_force


async def later(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


async def failing(error: BaseException) -> Any:
    await asyncio.sleep(0)
    raise error


async def test_a_deadline_cancels_what_is_awaited() -> None:
    ended = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    with pytest.raises(DeadlinePassed):
        await Before(time.monotonic() + 0.01, endless())
    assert ended == [True]
    assert await Before(time.monotonic() + 60, later(5)) == 5
    with pytest.raises(TimeoutError):
        await Before(time.monotonic() + 60, failing(TimeoutError()))


async def test_after_the_rollout_its_deadline_is_forgotten() -> None:
    async def seen() -> float | None:
        return in_force().deadline

    async def inner(deadline: float) -> Any:
        return await Before(deadline, seen())

    now = time.monotonic()
    assert await Before(now + 60, seen()) == now + 60
    assert await Before(now + 60, inner(now + 90)) == now + 60
    assert await Before(now + 60, inner(now + 30)) == now + 30
    assert in_force().deadline is None


async def test_an_earlier_deadline_around_it_still_holds_and_ends_with_its_block() -> None:
    with ends_at(20.0):
        with ends_at(30.0):
            assert in_force().deadline == 20.0
        with contextlib.suppress(KeyError), ends_at(10.0):
            raise KeyError
        assert in_force().deadline == 20.0
    assert in_force().deadline is None


async def test_a_deadline_that_is_over_already_still_lets_what_is_ready_be() -> None:
    async def ready() -> int:
        return 1

    assert await Before(time.monotonic() - 5, ready()) == 1
    with pytest.raises(DeadlinePassed):
        await Before(time.monotonic() - 5, asyncio.Event().wait())


async def test_what_is_given_up_is_closed() -> None:
    coroutine = later(1)
    Before(0.0, coroutine).close()
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED


async def test_a_cancellation_from_outside_is_not_a_deadline() -> None:
    async def play() -> None:
        await Before(time.monotonic() + 60, asyncio.Event().wait())

    task = asyncio.ensure_future(play())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
