"""Helpers around async code: plain or async calls, limits, retries, the loop's lag."""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
from typing import Any

import pytest

from verifiers_compat.types import ErrorInfo, State
from verifiers_compat.utils.async_utils import (
    EventLoopLagMonitor,
    EventLoopLagStats,
    NullAsyncContext,
    NullContext,
    maybe_await,
    maybe_call_with_named_args,
    maybe_retry,
    maybe_semaphore,
    with_sem,
)
from vfgym.errors import EmptyModelResponseError, ModelError, SandboxError, ToolError


async def _plus_one(number: int) -> int:
    return number + 1


async def test_plain_and_async_functions_get_the_arguments_that_they_name() -> None:
    assert await maybe_await(lambda number: number + 1, 1) == await maybe_await(_plus_one, number=1) == 2
    assert await maybe_await(functools.partial(_plus_one, 1)) == 2

    async def reward(completion: str, *, answer: str = "none", **kwargs: Any) -> list[Any]:
        return [completion, answer, sorted(kwargs)]

    assert await maybe_call_with_named_args(reward, completion="c", answer="a", info=1) == ["c", "a", ["info"]]
    assert await maybe_call_with_named_args(lambda answer="none": answer, completion="c") == "none"


async def test_contexts_that_do_nothing() -> None:
    with NullContext():
        pass
    async with NullAsyncContext():
        pass
    with pytest.raises(KeyError), NullContext():
        raise KeyError
    with pytest.raises(KeyError):
        async with NullAsyncContext():
            raise KeyError


@pytest.mark.parametrize("limit", [None, 0, -1])
async def test_no_limit_is_no_semaphore(limit: int | None) -> None:
    assert isinstance(await maybe_semaphore(limit), NullAsyncContext)


async def test_a_semaphore_limits_and_waiting_for_it_can_be_cancelled() -> None:
    sem = await maybe_semaphore(2)
    running, most = 0, 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    await asyncio.gather(*(with_sem(sem, work()) for _ in range(10)))
    assert most == 2
    sem = asyncio.Semaphore(0)
    never = _plus_one(1)
    task = asyncio.ensure_future(with_sem(sem, never))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert inspect.getcoroutinestate(never) == inspect.CORO_CLOSED


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError])
async def test_a_semaphore_is_free_again_whatever_happened_while_it_was_held(error: type[BaseException]) -> None:
    async def broken() -> None:
        raise error

    sem = asyncio.Semaphore(1)
    with pytest.raises(error):
        await with_sem(sem, broken())
    assert (sem.locked(), await with_sem(sem, _plus_one(0))) == (False, 1)


def _state(error: Any = None) -> State:
    return State(error=error)


INFO = ErrorInfo.of(SandboxError("x"))


@pytest.mark.parametrize(
    "failed",
    [
        _state(SandboxError("x")),
        _state(EmptyModelResponseError("x")),
        {"error": INFO},
        {"error": {"error": "EmptyModelResponseError", "error_chain_repr": "", "error_chain_str": "EmptyModelResponseError"}},
        [_state(), _state(SandboxError("x"))],
        (None, {"error": {"error_chain_str": "ToolError -> EmptyModelResponseError"}}),
        SandboxError("raised"),
    ],
)
async def test_failures_that_may_pass_are_repeated(failed: Any) -> None:
    """They are raised, or stand in a state, in an output, or in a member of a group. The whole attempt is repeated."""
    outcomes = [failed, failed, "done"]

    async def attempt(name: str) -> Any:
        assert name == "a"
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    assert await maybe_retry(attempt, max_retries=5, initial=0)("a") == "done"
    assert outcomes == []


@pytest.mark.parametrize("error", [ModelError("x"), ToolError("x"), None])
async def test_other_results_are_returned_at_once(error: Exception | None) -> None:
    calls = []

    async def attempt() -> State:
        calls.append(1)
        return _state(error)

    assert (await maybe_retry(attempt, max_retries=3, initial=0)())["error"] is error
    assert len(calls) == 1


async def test_when_no_attempt_is_left_the_last_one_counts() -> None:
    errors = [SandboxError(str(number)) for number in range(3)]

    returned = iter(errors)

    async def returning() -> State:
        return _state(next(returned))

    assert (await maybe_retry(returning, max_retries=2, initial=0)())["error"] is errors[2]

    raised = iter(errors)

    async def raising() -> State:
        raise next(raised)

    with pytest.raises(SandboxError, match="2"):
        await maybe_retry(raising, max_retries=2, initial=0)()


async def test_the_waits_between_attempts_double_up_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """They begin with `initial` seconds, end with `max_wait`, and each is made up to a half shorter by chance."""
    waits: list[float] = []

    async def note(seconds: float) -> None:
        waits.append(seconds)

    async def attempt() -> State:
        return _state(SandboxError("x"))

    monkeypatch.setattr(asyncio, "sleep", note)
    await maybe_retry(attempt, max_retries=6, initial=3.0, max_wait=40.0)()
    longest = [3.0, 6.0, 12.0, 24.0, 40.0, 40.0]
    assert len(waits) == len(longest)
    assert all(most / 2 <= wait <= most for wait, most in zip(waits, longest, strict=True)), waits


async def test_other_exceptions_and_no_retries() -> None:
    async def broken() -> None:
        raise KeyError("bug")

    assert maybe_retry(broken) is broken
    with pytest.raises(KeyError):
        await maybe_retry(broken, max_retries=3, initial=0)()
    assert maybe_retry(broken, max_retries=1).__name__ == "broken"
    for given in ({"max_retries": -1}, {"initial": -0.5}, {"max_wait": -2.0}):
        numbers = {"max_retries": 0, "initial": 1.0, "max_wait": 60.0, **given}
        told = "max_retries, initial and max_wait must not be negative, got {max_retries}, {initial} and {max_wait} (seconds)"
        with pytest.raises(ValueError, match=re.escape(told.format(**numbers))):
            maybe_retry(broken, **given)  # type: ignore[arg-type]


async def test_only_the_given_errors_are_repeated_and_each_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    written = [
        {"error_chain_repr": "", "error_chain_str": "KeyError"},
        {"error_chain_repr": "KeyError('x')", "error_chain_str": "KeyError"},
    ]
    outcomes: list[Any] = [KeyError("raised"), *({"error": each} for each in written), SandboxError("x")]

    async def attempt(*, key: int) -> Any:
        if isinstance(outcomes[0], Exception):
            raise outcomes.pop(0)
        return outcomes.pop(0)

    with pytest.raises(SandboxError):
        await maybe_retry(attempt, 5, initial=0, error_types=(KeyError, OSError))(key=0)
    begun = [record.getMessage().partition(" failed, the next begins in 0.0 s: ")[::2] for record in caplog.records]
    failures = ("KeyError('raised')", "KeyError", "KeyError('x')")
    assert begun == [(f"attempt {number} of 6", failure) for number, failure in enumerate(failures, 1)]


async def test_the_lag_is_measured_again_after_a_stop() -> None:
    """A monitor that was stopped can be started again, and stopped again."""
    monitor = EventLoopLagMonitor(interval=0.001)
    measured = 0
    for _ in range(2):
        async with asyncio.timeout(60), monitor:
            while monitor.get_stats().count == measured:
                await asyncio.sleep(0)
        measured = monitor.get_stats().count
        assert len(asyncio.all_tasks()) == 1


async def test_the_lag_is_by_how_much_a_sleep_was_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
    async with EventLoopLagMonitor(interval=1.0) as monitor:
        for step in (0.0, 3.0, 1.0):
            now[0] += step
            for _ in range(9):
                await asyncio.sleep(0)
        assert monitor.get_stats() == EventLoopLagStats.of([2.0, 0.0])


def test_lag_statistics() -> None:
    stats = EventLoopLagStats.of(number / 100 for number in range(100, 0, -1))
    assert (stats.count, stats.median, stats.p90, stats.p99, stats.max) == (100, 0.5, 0.9, 0.99, 1.0)
    assert stats.mean == pytest.approx(0.505)
    assert EventLoopLagStats.of([]) == EventLoopLagStats(0, 0, 0, 0, 0, 0)


async def test_a_monitor_keeps_the_newest_and_measures_once() -> None:
    monitor = EventLoopLagMonitor(interval=0.0001, max_measurements=2)
    assert await monitor.stop() == EventLoopLagStats(0, 0, 0, 0, 0, 0)
    monitor.start()
    monitor.start()
    assert len(asyncio.all_tasks()) == 2
    while monitor.get_stats().count < 2:
        await asyncio.sleep(0)
    for _ in range(3):
        await asyncio.sleep(monitor.interval)
    stats = await monitor.stop()
    assert (stats.count, stats == monitor.get_stats(), len(asyncio.all_tasks())) == (2, True, 1)
    with pytest.raises(KeyError):
        async with monitor:
            raise KeyError
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("given", [{"interval": 0}, {"interval": -1}, {"max_measurements": 0}])
def test_a_monitor_that_cannot_measure_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="interval and max_measurements must be positive, got"):
        EventLoopLagMonitor(**given)
