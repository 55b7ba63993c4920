"""`Workers`: a thread hands jobs to each worker process, so no event loop waits for a pipe, and any loop or thread may call."""

from __future__ import annotations

import asyncio
import atexit
import os
import pickle
import socket
import sys
import threading
from concurrent.futures import Future
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from queue import SimpleQueue
from signal import SIGKILL
from subprocess import DEVNULL, Popen
from typing import Any, TypeAlias, TypedDict, Unpack

from vfgym.errors import WorkerDied, WorkerTimeout

_QUICK = 0.25
"""Seconds after which a call goes on in the background, one of at most 32: at the lowest priority, beside another worker."""
_Answer: TypeAlias = "Future[bytes | str]"
"""The pickled pair of a result and an exception; where there is none, the limit that was reached, or how the process ended."""
_lock = threading.Lock()
_programs: dict[str, tuple[Popen[bytes], socket.socket]] = {}


class Limits(TypedDict, total=False):
    """What a call may use, if not all there is. More memory (that its process maps, on Linux) is a `MemoryError` or the process's end."""

    cpu_seconds: float
    wall_seconds: float
    memory_mb: int


class Workers:
    """Processes that call functions of a module: one for each core, and more beside calls that take long.

    They start with the first call, and end with this object and with this process, however that ends. Where a call reaches a limit its
    worker is replaced. All are forked off a program that has imported the module, which may warm things up, and must start no threads.
    """

    def __init__(self, module: str, *, is_single: bool = False) -> None:
        """Name the module; a single worker does one call after the other, and keeps what they leave in its memory."""
        self._module, self._is_single, self._pid = module, is_single, 0
        self._jobs: SimpleQueue[Any] = SimpleQueue()

    def __del__(self) -> None:
        self._jobs.put(None)

    async def call(self, function: str, *arguments: Any, **limits: Unpack[Limits]) -> Any:
        """Call a function with arguments, and return its result (all picklable). Cancelling this ends the call's worker.

        Raises:
            WorkerTimeout: If it uses up its time.
            WorkerDied: If its process ends, or cannot be started.
            Exception: What the function raises; a `RuntimeError` that tells of it, where that cannot be pickled.
        """
        return _read(function, limits, await asyncio.wrap_future(self._ask(function, arguments, limits)))

    def call_sync(self, function: str, *arguments: Any, **limits: Unpack[Limits]) -> Any:
        """Do what `call` does, while the calling thread waits."""
        answer = self._ask(function, arguments, limits)
        try:
            return _read(function, limits, answer.result())
        finally:
            answer.cancel()  # after Ctrl-C

    def _ask(self, function: str, arguments: tuple[Any, ...], limits: Limits) -> _Answer:
        answer: _Answer = Future()
        with _lock:
            if self._pid != os.getpid():  # at first, and in a forked child, which inherits no threads
                self._pid, self._jobs = os.getpid(), SimpleQueue()
                serving = self._module, self._jobs, None if self._is_single else _QUICK, threading.Semaphore(32)
                cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
                for _ in range(1 if self._is_single else cores):
                    threading.Thread(target=_serve, args=serving, daemon=True).start()
        self._jobs.put((answer, (pickle.dumps((self._module, function, arguments)), limits)))
        return answer


def _read(function: str, limits: Limits, answer: bytes | str) -> Any:
    if isinstance(answer, str):
        limit = limits.get(answer)
        raise WorkerDied(f"{function}: {answer}") if limit is None else WorkerTimeout(f"{function} took more than {limit:g} {answer}")
    result, error = pickle.loads(answer)
    if error is not None:
        raise error
    return result


def _serve(module: str, jobs: SimpleQueue[Any], quick: float | None, may_be_slow: threading.Semaphore) -> None:
    """Hand jobs to a worker, one after the other, until one is slow: then another thread goes on."""
    channel, group, is_slow = None, 0, False
    for answer, job in iter(jobs.get, None):
        if answer.cancelled():
            continue
        try:
            if channel is None:
                channel, group = _fork_worker(module)
            answer.add_done_callback(lambda done, group=group: done.cancelled() and os.killpg(group, SIGKILL))  # type: ignore[func-returns-value]
            channel.send(job)
            if is_slow := not channel.poll(quick):
                may_be_slow.acquire()
                threading.Thread(target=_serve, args=(module, jobs, quick, may_be_slow), daemon=True).start()
                os.setpriority(os.PRIO_PGRP, group, 19)
            said, is_spent = channel.recv()
        except (EOFError, OSError) as error:
            said, is_spent = f"its process has ended, or could not be started ({error!r})", True
        if is_spent:
            channel = None  # closed with this, it ends what there still is of the worker
        if answer.set_running_or_notify_cancel():
            answer.set_result(said)
        if is_slow:
            may_be_slow.release()
            break
    else:
        jobs.put(None)  # for the next thread


def _fork_worker(module: str) -> tuple[Connection, int]:
    """Return the channel to a new worker, and its process group."""
    channel, theirs = Pipe()
    with _lock, theirs:
        if module in _programs and _programs[module][0].poll() is not None:
            _programs.pop(module)[1].close()
        if module not in _programs:
            asking, asked = socket.socketpair()
            command = [sys.executable, "-uP", "-W", "ignore", str(Path(__file__).with_name("forking.py")), module, str(asked.fileno())]
            # One thread, since a process with several cannot be forked.
            env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
            with asking, asked:  # in a session of its own, for Ctrl-C in the terminal is not for workers
                program = Popen(command, stdin=DEVNULL, stdout=2, env=env, pass_fds=[asked.fileno()], start_new_session=True)
                _programs[module] = program, asking.dup()
        socket.send_fds(_programs[module][1], [b"."], [theirs.fileno()])
    return channel, channel.recv()


def _let_go() -> None:
    """End the programs; in a forked child, whose they are not, let go of them."""
    for process, asking in _programs.values():
        asking.close()
        process.wait()
    _programs.clear()


atexit.register(_let_go)
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
os.register_at_fork(after_in_child=_let_go)
