"""The greenlet bridge: synchronous code that waits on the loop of the task that called it, without a thread."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

import pytest
from greenlet import getcurrent

from vfgym.aio.background import wait
from vfgym.aio.bridge import BridgeRunner, bridge, in_bridge
from vfgym.calls import Ready

name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")


async def later(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


async def failing(error: BaseException) -> Any:
    await asyncio.sleep(0)
    raise error


async def test_sync_code_in_a_bridge_waits_on_the_loop_of_its_task() -> None:
    def blocking() -> Any:
        assert in_bridge()
        return [wait(where()), wait(later("x"))]

    async def where() -> Any:
        return asyncio.get_running_loop()

    assert await bridge(blocking) == [asyncio.get_running_loop(), "x"]
    assert not in_bridge()


async def test_a_bridge_passes_arguments_results_and_errors() -> None:
    def catching(error: BaseException, *, text: str) -> str:
        try:
            wait(failing(error))
        except LookupError as caught:
            return f"{text} {caught!r}"
        return "nothing was raised"

    assert await bridge(catching, KeyError("x"), text="caught") == "caught KeyError('x')"
    with pytest.raises(ZeroDivisionError):
        await bridge(catching, ZeroDivisionError(), text="")


async def test_code_in_a_bridge_sees_and_keeps_the_context_of_its_task() -> None:
    def reads() -> str:
        before_waiting = name.get()
        wait(asyncio.sleep(0))
        return f"{before_waiting} {name.get()}"

    async def task(mine: str) -> str:
        name.set(mine)
        return await bridge(reads)

    assert await asyncio.gather(task("ann"), task("bob")) == ["ann ann", "bob bob"]


async def test_bridges_run_side_by_side_without_threads() -> None:
    here = 0
    threads = threading.active_count()

    async def meet() -> None:
        nonlocal here
        here += 1
        while here < 200:
            await asyncio.sleep(0)

    await asyncio.gather(*(bridge(wait, meet()) for _ in range(200)))
    assert threading.active_count() == threads


async def test_cancelling_the_task_of_a_bridge_is_seen_where_the_code_waits() -> None:
    seen: list[str] = []

    def blocking() -> None:
        try:
            wait(asyncio.Event().wait())
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(bridge(blocking), 0.01)
    assert seen == ["cancelled"]

    def going_on() -> Any:
        try:
            wait(asyncio.Event().wait())
        except asyncio.CancelledError as error:
            return [error.args, wait(later("x"))]

    task = asyncio.ensure_future(bridge(going_on))
    await asyncio.sleep(0)
    task.cancel("enough")
    assert await task == [("enough",), "x"]


async def test_what_code_in_a_bridge_returns_is_not_awaited() -> None:
    ready = Ready(1)
    assert await bridge(lambda: ready) is ready
    assert await bridge(lambda: wait(later(ready))) is ready


def runs(*pieces: Callable[[], None]) -> list[Any]:
    """Begin pieces of code with one runner, and return what goes on with each."""
    runner = BridgeRunner()
    return [runner.begin(piece) for piece in pieces]


async def test_a_runner_takes_one_greenlet_for_all_that_does_not_wait() -> None:
    seen: list[Any] = []
    assert runs(*[lambda: seen.append(getcurrent())] * 3) == [None] * 3
    assert len(set(seen)) == 1
    assert seen[0] is not getcurrent()


async def test_a_runner_goes_on_beside_what_waits() -> None:
    seen: list[str] = []
    event = asyncio.Event()

    def waits() -> None:
        seen.append(f"{name.get()} waits")
        wait(event.wait())
        seen.append("waited")

    name.set("ann")
    first, second = runs(waits, lambda: seen.append("meanwhile"))
    assert (seen, second) == (["ann waits", "meanwhile"], None)
    event.set()
    await first
    assert seen[-1] == "waited"


async def test_each_piece_that_a_runner_runs_has_a_context_of_its_own() -> None:
    """That of whoever begins it, as it is then."""
    runner, seen = BridgeRunner(), list[str]()

    def renames() -> None:
        seen.append(name.get())
        name.set("nobody else")

    for mine in ("ann", "bob"):
        name.set(mine)
        assert [runner.begin(renames), runner.begin(renames)] == [None, None]
        assert name.get() == mine
    assert seen == ["ann", "ann", "bob", "bob"]


async def test_what_a_runner_runs_raises_to_whoever_goes_on_with_it() -> None:
    def fails() -> None:
        wait(asyncio.sleep(0))
        raise KeyError("x")

    (rest,) = runs(fails)
    with pytest.raises(KeyError):
        await rest
    runner = BridgeRunner()
    with pytest.raises(ZeroDivisionError):
        runner.begin(lambda: 1 // 0)
    assert runner.begin(lambda: None) is None


async def test_a_runner_may_be_used_from_another_thread_afterwards() -> None:
    runner = BridgeRunner()
    assert runner.begin(lambda: None) is None
    seen: list[int] = []
    await asyncio.to_thread(runner.begin, lambda: seen.append(threading.get_ident()))
    assert seen != [threading.get_ident()]
