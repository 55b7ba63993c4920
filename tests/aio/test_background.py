"""The one background loop of the process, and how synchronous code waits for what is asynchronous."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.interruptions import ctrl_c
from vfgym.aio import background
from vfgym.aio.background import (
    background_loop,
    blocking,
    close_unawaited,
    in_event_loop,
    instead_of_loop,
    may_wait,
    on_background_loop,
    run_to_end,
    wait,
)
from vfgym.aio.bridge import bridge
from vfgym.aio.threads import on_thread
from vfgym.errors import WouldDeadlock


async def later(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


async def failing(error: BaseException) -> Any:
    await asyncio.sleep(0)
    raise error


def test_waiting_on_the_background_loop_itself_raises_instead_of_hanging() -> None:
    async def blocking() -> Any:
        coroutine = later(1)
        with pytest.raises(WouldDeadlock, match="astep"):
            wait(coroutine)
        assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED
        return in_event_loop(), may_wait()

    assert (wait(blocking()), in_event_loop(), may_wait()) == ((True, False), False, True)


def test_every_sync_caller_shares_one_loop() -> None:
    async def loop() -> Any:
        return asyncio.get_running_loop()

    with ThreadPoolExecutor(8) as pool:
        loops = set(pool.map(lambda _: wait(loop()), range(32)))
    assert (loops, sum(thread.name == "vfgym-loop" for thread in threading.enumerate())) == ({background_loop()}, 1)


@pytest.mark.usefixtures("young_heap")
def test_ctrl_c_at_the_very_end_finds_nothing_left_to_stop(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    class InterruptedAtTheEnd(threading.Event):
        is_interrupted = False

        def wait(self, timeout: float | None = None) -> bool:
            super().wait(timeout)
            if not self.is_interrupted:
                self.is_interrupted = True
                raise KeyboardInterrupt
            return True

    wait(later(0))  # the thread of the loop runs
    with monkeypatch.context() as patched:
        patched.setattr(threading, "Event", InterruptedAtTheEnd)
        with pytest.raises(KeyboardInterrupt):
            wait(later(1))
    wait(later(2))
    gc.collect()
    assert caplog.messages == []


class Large:
    """Something that must not outlive the call that made it."""


@pytest.mark.parametrize("way", ["thread", "loop"])
def test_an_error_of_another_thread_keeps_nothing_alive(way: str) -> None:
    kept: list[weakref.ref[Large]] = []

    def fail() -> None:
        large = Large()
        kept.append(weakref.ref(large))
        raise TimeoutError

    async def fail_on_a_loop() -> None:
        fail()

    async def fail_on_a_thread() -> None:
        with contextlib.suppress(TimeoutError):
            await on_thread(fail)

    gc.disable()
    try:
        for _ in range(5):
            if way == "thread":
                asyncio.run(fail_on_a_thread())
            else:
                with contextlib.suppress(TimeoutError):
                    wait(fail_on_a_loop())
        # The last one may still be in the hands of the thread that made it.
        assert sum(ref() is not None for ref in kept[:-1]) == 0
    finally:
        gc.enable()


async def test_what_runs_on_the_background_loop_is_awaited_from_any() -> None:
    async def where(word: str) -> Any:
        return asyncio.get_running_loop(), word

    assert await on_background_loop(where, "a") == (background_loop(), "a")

    async def nested() -> Any:
        return await on_background_loop(where, "b")

    assert await asyncio.to_thread(wait, nested()) == (background_loop(), "b")


async def test_cancelling_who_waits_cancels_what_runs_there() -> None:
    began, ended = threading.Event(), threading.Event()

    async def endless() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.ensure_future(on_background_loop(endless))
    await asyncio.to_thread(began.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(ended.wait)


@pytest.mark.parametrize("error", [KeyError("x"), TimeoutError("x"), asyncio.CancelledError(), SystemExit(3), KeyboardInterrupt()])
def test_what_is_raised_there_is_raised_here_and_the_loop_goes_on(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(type(error)) as caught:
        wait(failing(error))
    assert caught.value is error or isinstance(error, asyncio.CancelledError)
    assert wait(later(1)) == 1


def test_ctrl_c_cancels_what_is_waited_for_and_is_raised_when_it_has_ended() -> None:
    ended: list[str] = []

    async def slow() -> None:
        try:
            interrupt()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("slow")

    for call in (wait, run_to_end):
        with ctrl_c() as interrupt, pytest.raises(KeyboardInterrupt):
            call(slow())  # type: ignore[operator]
    assert ended == ["slow"] * 2


async def test_a_run_to_its_end_may_be_started_inside_a_running_loop() -> None:
    assert run_to_end(later(5)) == 5

    async def there() -> Any:
        with pytest.raises(WouldDeadlock):
            run_to_end(later(5))
        return await bridge(run_to_end, later(6))

    assert await asyncio.to_thread(wait, there()) == 6


def test_who_plays_instead_of_the_loop_hands_over_before_it_waits() -> None:
    seen: list[str] = []
    with instead_of_loop(lambda: seen.append("outer")):
        with contextlib.suppress(KeyError), instead_of_loop(lambda: seen.append("inner")):
            assert (in_event_loop(), may_wait(), wait(later(1))) == (True, False, 1)
            raise KeyError
        wait(later(2))
    assert seen == ["inner", "outer"]
    assert not in_event_loop()


def test_a_blocking_form_passes_what_it_is_called_with_and_has_its_name() -> None:
    async def add(a: int, /, b: int = 0, *, c: int = 0) -> list[int]:
        """Add."""
        return [await later(a), b, c]

    run = blocking(add, "run_add")
    assert (run(1, 2, c=3), run(1), run.__name__, run.__qualname__, run.__doc__) == ([1, 2, 3], [1, 0, 0], "run_add", "run_add", "Add.")


def test_where_no_thread_can_be_started_any_more_a_loop_of_its_own_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Any:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    monkeypatch.setattr(background, "background_loop", refuse)
    assert wait(later(1)) == 1
    with pytest.raises(KeyError):
        wait(failing(KeyError("x")))


def test_what_is_not_awaited_after_all_is_closed() -> None:
    coroutine = later(1)
    close_unawaited(coroutine)
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED
    close_unawaited(object())
