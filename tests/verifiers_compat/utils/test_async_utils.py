"""Helpers around async code and threads: plain or async calls, limits, retries, the loop's lag, executors that scale."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from verifiers_compat.types import ErrorInfo, State
from verifiers_compat.utils import thread_utils
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


async def test_plain_and_async_functions_are_called_alike() -> None:
    assert await maybe_await(lambda number: number + 1, 1) == await maybe_await(_plus_one, number=1) == 2
    assert await maybe_await(functools.partial(_plus_one, 1)) == 2


async def test_a_function_gets_the_arguments_that_it_names() -> None:
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


async def test_a_semaphore_limits() -> None:
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


async def test_waiting_for_a_semaphore_can_be_cancelled() -> None:
    """The coroutine that never ran is closed: Python would warn of one that was never awaited."""
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


async def test_the_lag_is_measured_until_it_is_stopped() -> None:
    async with EventLoopLagMonitor(interval=0.001) as monitor:
        monitor.start()
        while not monitor.get_stats().count:
            await asyncio.sleep(0)
    stats = await monitor.stop()
    assert stats == monitor.get_stats()
    assert 0 <= stats.median <= stats.p90 <= stats.p99 <= stats.max
    assert len(asyncio.all_tasks()) == 1
    with pytest.raises(ValueError, match="positive"):
        EventLoopLagMonitor(interval=0)


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


@pytest.fixture
def _no_executors(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(thread_utils, "_executors", {})
    monkeypatch.setattr(thread_utils, "_concurrency", None)
    yield
    thread_utils.shutdown_executors(wait=True)


def _all_meet(executor: concurrent.futures.Executor, workers: int) -> bool:
    """Say whether as many threads run at once: each waits for the others."""
    barrier = threading.Barrier(workers, timeout=5)
    return sorted(future.result() for future in [executor.submit(barrier.wait) for _ in range(workers)]) == list(range(workers))


@pytest.mark.usefixtures("_no_executors")
def test_executors_grow_with_the_rollouts() -> None:
    """Also those that are registered later, each as its function says, and not those that were taken off."""
    early, half, off, late = (concurrent.futures.ThreadPoolExecutor(max_workers=1) for _ in range(4))
    thread_utils.register_executor("early", early)
    thread_utils.register_executor("half", half, lambda concurrency: concurrency // 2)
    thread_utils.register_executor("off", off)
    thread_utils.unregister_executor("off")
    thread_utils.unregister_executor("never there")
    thread_utils.scale_executors(8)
    thread_utils.register_executor("late", late)
    assert _all_meet(early, 8)
    assert _all_meet(half, 4)
    assert _all_meet(late, 8)
    assert off._max_workers == 1
    off.shutdown()


@pytest.mark.usefixtures("_no_executors")
def test_what_cannot_be_scaled_is_refused() -> None:
    class Other(concurrent.futures.Executor):
        pass

    with pytest.raises(ValueError, match="Other"):
        thread_utils.register_executor("other", Other())
    with pytest.raises(ValueError, match="at least 1"):
        thread_utils.scale_executors(0)


@pytest.mark.usefixtures("_no_executors")
async def test_the_default_executor_is_registered() -> None:
    thread_utils.scale_executors(3)
    executor = thread_utils.install_default_executor()
    assert thread_utils.install_default_executor() is executor
    assert (await asyncio.to_thread(lambda: threading.current_thread().name)).startswith("verifiers-default")
    thread_utils.shutdown_executors(wait=True)
    with pytest.raises(RuntimeError):
        executor.submit(print)
    assert thread_utils.install_default_executor() is not executor


def test_each_thread_has_its_own() -> None:
    """Objects are made once a thread; a closed loop is replaced."""

    def made() -> tuple[list[int], bool]:
        first = thread_utils.get_or_create_thread_attr("numbers", list, [1])
        loop = thread_utils.get_or_create_thread_loop()
        is_same = loop is thread_utils.get_or_create_thread_loop() and first is thread_utils.get_thread_local_storage().numbers
        loop.close()
        again = thread_utils.get_or_create_thread_loop()
        again.close()
        return first, is_same and again is not loop

    with concurrent.futures.ThreadPoolExecutor() as pool:
        (first, first_same), (second, second_same) = pool.submit(made).result(), made()
    assert first == second == [1]
    assert first is not second
    assert first_same
    assert second_same
    del thread_utils.get_thread_local_storage().numbers
