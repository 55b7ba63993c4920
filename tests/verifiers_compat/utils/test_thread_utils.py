"""What belongs to one thread, and executors that grow with the rollouts."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from verifiers_compat.utils import thread_utils


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
def test_executors_are_replaced_by_name_have_a_worker_and_can_be_scaled() -> None:
    class Other(concurrent.futures.Executor):
        pass

    with pytest.raises(ValueError, match="Other"):
        thread_utils.register_executor("other", Other())
    with pytest.raises(ValueError, match="at least 1"):
        thread_utils.scale_executors(0)
    first, second = (concurrent.futures.ThreadPoolExecutor(max_workers=1) for _ in range(2))
    thread_utils.register_executor("name", first)
    thread_utils.register_executor("name", second, lambda rollouts: rollouts - 9)
    thread_utils.scale_executors(3)
    assert (first._max_workers, second._max_workers) == (1, 1)
    thread_utils.scale_executors(11)
    assert (first._max_workers, second._max_workers) == (1, 2)
    first.shutdown()


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


@pytest.mark.usefixtures("_no_executors")
@pytest.mark.parametrize("waits", [True, False])
def test_what_has_not_begun_is_given_up_at_the_end(waits: bool, caplog: pytest.LogCaptureFixture) -> None:
    """One that cannot be shut down keeps none of the others from it."""
    begun, goes_on = threading.Event(), threading.Event()

    class Broken(concurrent.futures.ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            raise OSError("cannot end")

    executor = concurrent.futures.ThreadPoolExecutor(max_workers=1)
    thread_utils.register_executor("broken", Broken(max_workers=1))
    thread_utils.register_executor("works", executor)
    running = executor.submit(lambda: (begun.set(), goes_on.wait(60)))
    waiting = executor.submit(print)
    assert begun.wait(60)
    if waits:
        goes_on.set()
    thread_utils.shutdown_executors(wait=waits)
    assert (waiting.cancelled() or waits, running.done()) == (True, waits)
    goes_on.set()
    assert "the executor 'broken' could not be shut down" in caplog.text
    assert thread_utils._executors == {}


def test_an_attribute_that_is_none_is_made_once_too() -> None:
    made: list[tuple[Any, ...]] = []

    def make(*args: Any, **kwargs: Any) -> None:
        made.append((args, kwargs))

    for _ in range(2):
        assert thread_utils.get_or_create_thread_attr("nothing", make, 0, more="") is None
    assert made == [((0,), {"more": ""})]
    del thread_utils.get_thread_local_storage().nothing


@pytest.mark.usefixtures("_no_executors")
def test_executors_of_processes_are_scaled_and_one_that_fails_to_be_registered_is_not() -> None:
    processes = concurrent.futures.ProcessPoolExecutor(max_workers=1)
    thread_utils.register_executor("processes", processes)
    thread_utils.scale_executors(1)
    thread_utils.scale_executors(5)
    with pytest.raises(ValueError, match="concurrency must be at least 1, got -1"):
        thread_utils.scale_executors(-1)
    late = concurrent.futures.ThreadPoolExecutor(max_workers=1)
    thread_utils.register_executor("late", late)
    assert (processes._max_workers, late._max_workers) == (5, 5)
    with pytest.raises(ValueError, match="only a ThreadPoolExecutor or a ProcessPoolExecutor can be scaled, got object"):
        thread_utils.register_executor("late", object())  # type: ignore[arg-type]
    thread_utils.scale_executors(6)
    assert late._max_workers == 6
