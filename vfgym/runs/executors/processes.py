"""Processes of this machine as an executor: each call has one of its own, so that one that dies takes no other with it."""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from typing import Any, Literal, TypeVar

from vfgym.errors import InfraError, WorkerDied

T = TypeVar("T")

_LOST = 3
"""Exit code of a process that had nobody to work for."""
_SECONDS_AFTER_PARENT = 5.0
"""How long a process goes on by itself when the one that started it is gone."""


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ProcessExecutor(concurrent.futures.Executor):
    """Carries out each call in a new process, which ends with it. Its result is None.

    A process begins with nothing of this one: what is called is imported there. Ctrl-C does not reach it.
    """

    def __init__(self, start_method: Literal["spawn", "forkserver"] = "spawn") -> None:
        """Start none yet.

        Args:
            start_method: How processes begin (see `multiprocessing`).
        """
        self._context: Any = multiprocessing.get_context(start_method)
        self._running: dict[int, Any] = {}
        self._is_shut_down = False

    def submit(self, func: Callable[..., T], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[T]:
        """Start a process that calls a function.

        Raises:
            RuntimeError: If this was shut down.
        """
        if self._is_shut_down:
            raise RuntimeError("it was shut down")
        process = self._context.Process(target=_call, args=(func, args, kwargs), name="vfgym-worker")
        with _without_interruption():
            process.start()
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        future.set_running_or_notify_cancel()
        self._running[id(process)] = process
        threading.Thread(target=self._await_end, args=(process, future), daemon=True, name="vfgym-worker-end").start()
        return future

    def _await_end(self, process: Any, future: concurrent.futures.Future[Any]) -> None:
        multiprocessing.connection.wait([process.sentinel])
        while (code := process.exitcode) is None:  # another thread that looks after processes has it first, and is about to note it
            time.sleep(0.01)
        self._running.pop(id(process), None)
        if code == 0:
            future.set_result(None)
        else:
            future.set_exception(WorkerDied(f"the process {process.pid} {_describe_end(code)}"))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Kill what is still running. Nothing can be submitted any more."""
        self._is_shut_down = True
        running = list(self._running.values())
        for process in running:
            process.kill()
        for process in running if wait else ():
            process.join()


def _describe_end(code: int) -> str:
    if code == 1:  # its script, which it imports first, raised something
        return 'ended with exit code 1 (a script that starts processes does so below `if __name__ == "__main__":`)'
    if code >= 0:
        return f"ended with exit code {code}"
    with contextlib.suppress(ValueError):
        name = signal.Signals(-code).name
        return f"was ended by {name}" + (" (was there enough memory?)" if name == "SIGKILL" else "")
    return f"was ended by signal {-code}"


@contextlib.contextmanager
def _without_interruption() -> Iterator[None]:
    """Let a process that is started inside begin with Ctrl-C blocked: it would end in a traceback before it can ignore it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would let it through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _call(func: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Call a function in a process that was started for it."""
    signal.signal(signal.SIGINT, lambda *_: None)  # a handler, and not SIG_IGN, which all programs that are started here would inherit
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_after_parent, daemon=True).start()
    try:
        func(*args, **kwargs)
    except InfraError as error:  # one line says what happened
        print(f"{multiprocessing.current_process().name}: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(_LOST)


def _end_after_parent() -> None:
    """End this process when the one that started it is gone, and what is called does not end by itself."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        time.sleep(_SECONDS_AFTER_PARENT)
        os._exit(1)
