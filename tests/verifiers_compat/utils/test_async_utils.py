"""Helpers around async code: plain or async calls, limits, retries, the loop's lag."""

from __future__ import annotations

import asyncio
import functools
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
    task = asyncio.ensure_future(with_sem(sem, _plus_one(1)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


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
    with pytest.raises(ValueError, match="negative"):
        maybe_retry(broken, max_retries=-1)


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


def test_lag_statistics() -> None:
    stats = EventLoopLagStats.of(number / 100 for number in range(100, 0, -1))
    assert (stats.count, stats.median, stats.p90, stats.p99, stats.max) == (100, 0.5, 0.9, 0.99, 1.0)
    assert stats.mean == pytest.approx(0.505)
    assert EventLoopLagStats.of([]) == EventLoopLagStats(0, 0, 0, 0, 0, 0)
