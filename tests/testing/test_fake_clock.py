"""`FakeClock`: deadlines without waiting."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

import vfgym
from tests.environments import Talk
from vfgym.testing import FakeClock, play


def test_clocks_stand_still_and_move_together() -> None:
    real = time.monotonic, time.time, time.perf_counter
    with FakeClock() as clock:
        before = [read() for read in (time.monotonic, time.time, time.perf_counter)]
        assert [read() for read in (time.monotonic, time.time, time.perf_counter)] == before
        clock.advance(2.5)
        clock.advance(0)
        assert clock.elapsed == 2.5
        assert [read() for read in (time.monotonic, time.time, time.perf_counter)] == [at + 2.5 for at in before]
    assert (time.monotonic, time.time, time.perf_counter) == real
    with clock:
        assert clock.elapsed == 0.0, "it begins anew"


def test_clocks_run_again_after_an_error() -> None:
    real = time.monotonic
    with pytest.raises(KeyError), FakeClock():
        raise KeyError
    assert time.monotonic is real


@pytest.mark.parametrize("seconds", [-1, float("nan")])
def test_time_does_not_run_backwards(seconds: float) -> None:
    with FakeClock() as clock, pytest.raises(ValueError, match="0 seconds or more"):
        clock.advance(seconds)


def test_one_clock_is_entered_once() -> None:
    with FakeClock() as clock:
        with pytest.raises(RuntimeError, match="entered already"):
            clock.__enter__()
        with FakeClock() as inner:
            inner.advance(5)
            assert clock.elapsed == 0.0
        began = time.monotonic()
        clock.advance(1)
        assert time.monotonic() == began + 1


@pytest.mark.parametrize(("seconds", "stop_condition"), [(59, None), (60, "timeout_reached")])
def test_a_late_answer_is_out_of_time(seconds: float, stop_condition: str | None) -> None:
    with FakeClock() as clock:

        def late(observation: Any, info: Any) -> str:
            clock.advance(seconds)
            return "late"

        played = play(Talk(timeout_seconds=60), ["at once", late])
    assert played.stop_condition == stop_condition


class Slow(Talk):
    def __init__(self, clock: FakeClock, seconds: float, **kwargs: Any) -> None:
        super().__init__(timeout_seconds=60, **kwargs)
        self.clock, self.seconds = clock, seconds
        self.cancelled = False

    async def env_response(self, messages: Any, state: vfgym.State) -> Any:
        self.clock.advance(self.seconds)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


def test_a_hook_that_waits_is_cancelled_at_the_deadline() -> None:
    with FakeClock() as clock:
        env = Slow(clock, 61)
        played = play(env, ["a"]).expect(stop_condition="timeout_reached", ending="cut")
    assert played.truncated
    assert env.cancelled


async def test_timers_of_the_running_loop_go_off() -> None:
    with FakeClock() as clock:
        sleeping = asyncio.create_task(asyncio.sleep(3600, "slept"))
        await asyncio.sleep(0)
        clock.advance(3601)
        assert await sleeping == "slept"


def test_time_passes_from_any_thread() -> None:
    """A hook waits on the background loop, which looks at the clock as another thread moves it."""
    waiting = threading.Event()

    class Waiting(Talk):
        async def env_response(self, messages: Any, state: vfgym.State) -> Any:
            waiting.set()
            await asyncio.sleep(3600)
            return [vfgym.UserMessage("after an hour")]

    with FakeClock() as clock:

        def let_pass() -> None:
            waiting.wait(60)
            # The timer may not be set yet: time passes until it has gone off.
            while thread_may_go_on.is_set():
                clock.advance(3600)

        thread_may_go_on = threading.Event()
        thread_may_go_on.set()
        thread = threading.Thread(target=let_pass)
        thread.start()
        try:
            played = play(Waiting(), ["a"])
        finally:
            thread_may_go_on.clear()
            thread.join()
    played.expect(says="after an hour")
