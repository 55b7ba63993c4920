"""`Workers`: a thread hands jobs to each worker process, so no event loop waits for a pipe, and any loop or thread may call."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
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

from vfgym.bounded_json import parse_json
from vfgym.errors import WorkerDied, WorkerTimeout
from vfgym.output.redaction import excerpt

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


class RemoteError(Exception):
    """What a function raised whose worker speaks JSON.

    Attributes:
        kind: The name of the exception's class.
        text: What it says.
    """

    def __init__(self, kind: str, text: str, display: str, trace: str) -> None:
        """Tell of an exception by its texts."""
        super().__init__(display)
        self.kind, self.text = kind, text
        self.add_note(f"In a worker process: {trace}")


_MOST_SAID = 1 << 26
"""Bytes of what a worker that speaks JSON says at once."""
_GRACE = 1.0
"""Seconds after which a worker that speaks JSON is killed from outside, where it has seen to it that its own clock does not."""


class Workers:
    """Processes that call functions of a module: one for each core, and more beside calls that take long.

    They start with the first call, and end with this object and with this process, however that ends. Where a call reaches a limit its
    worker is replaced. All are forked off a program that has imported the module, which may warm things up, and must start no threads.
    """

    def __init__(self, module: str, *, is_single: bool = False, speaks_json: bool = False) -> None:
        """Name the module.

        Args:
            module: Its functions may be called.
            is_single: Whether one worker does one call after the other, and keeps what they leave in its memory.
            speaks_json: Whether results come back as JSON data, and exceptions as a `RemoteError`. Nothing that a worker says is
                unpickled then: one that runs what nobody trusts could have code run here that way.
        """
        self._module, self._is_single, self._pid = module, is_single, 0
        self._speaks_json = speaks_json
        self._jobs: SimpleQueue[Any] = SimpleQueue()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """End the workers that have nothing to do, and each of the others after its call. None is there for a call after this."""
        self._jobs.put(None)

    async def call(self, function: str, *arguments: Any, **limits: Unpack[Limits]) -> Any:
        """Call a function with arguments, and return its result (all picklable). Cancelling this ends the call's worker.

        Raises:
            WorkerTimeout: If it uses up its time.
            WorkerDied: If its process ends, or cannot be started.
            RemoteError: What the function raises, where the worker speaks JSON.
            Exception: What the function raises; a `RuntimeError` that tells of it, where that cannot be pickled.
        """
        return self._read(function, limits, await asyncio.wrap_future(self._ask(function, arguments, limits)))

    def call_sync(self, function: str, *arguments: Any, **limits: Unpack[Limits]) -> Any:
        """Do what `call` does, while the calling thread waits."""
        answer = self._ask(function, arguments, limits)
        try:
            return self._read(function, limits, answer.result())
        finally:
            answer.cancel()  # after Ctrl-C

    def _ask(self, function: str, arguments: tuple[Any, ...], limits: Limits) -> _Answer:
        answer: _Answer = Future()
        with _lock:
            if self._pid != os.getpid():  # at first, and in a forked child, which inherits no threads
                self._pid, self._jobs = os.getpid(), SimpleQueue()
                serving = self._module, self._jobs, None if self._is_single else _QUICK, threading.Semaphore(32), self._speaks_json
                cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
                for _ in range(1 if self._is_single else cores):
                    threading.Thread(target=_serve, args=serving, daemon=True).start()
        self._jobs.put((answer, (pickle.dumps((self._module, function, arguments)), limits)))
        return answer

    def _read(self, function: str, limits: Limits, answer: bytes | str) -> Any:
        if isinstance(answer, str):
            limit = limits.get(answer)
            raise WorkerDied(f"{function}: {answer}") if limit is None else WorkerTimeout(f"{function} took more than {limit:g} {answer}")
        if self._speaks_json:
            return read_json_outcome(answer)
        result, error = pickle.loads(answer)
        if error is not None:
            raise error
        return result


def read_json_outcome(answer: bytes) -> Any:
    """Return the result that JSON tells of.

    Raises:
        RemoteError: If it tells of an exception.
        WorkerDied: If it is something else.
    """
    try:
        said = parse_json(answer)
        if "error" not in said:
            return said["result"]
        texts = [str(said["error"][name]) for name in ("kind", "text", "repr", "traceback")]
    except (ValueError, LookupError, TypeError) as error:
        raise WorkerDied(f"its process said something that is no outcome of a call: {excerpt(answer, 200)}") from error
    raise RemoteError(*texts)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, SIGKILL)


def _serve(module: str, jobs: SimpleQueue[Any], quick: float | None, may_be_slow: threading.Semaphore, as_json: bool) -> None:
    """Hand jobs to a worker, one after the other, until one is slow: then another thread goes on."""
    channel, group, is_slow = None, 0, False
    for answer, job in iter(jobs.get, None):
        if answer.cancelled():
            continue
        overdue = _Overdue(0, None)
        try:
            if channel is None:
                channel, group = _fork_worker(module)
            answer.add_done_callback(lambda done, group=group: done.cancelled() and _kill(group))  # type: ignore[func-returns-value]
            overdue = _Overdue(group, job[1].get("wall_seconds") if as_json else None)
            channel.send((*job, as_json))
            if is_slow := not channel.poll(quick):
                may_be_slow.acquire()
                threading.Thread(target=_serve, args=(module, jobs, quick, may_be_slow, as_json), daemon=True).start()
                os.setpriority(os.PRIO_PGRP, group, 19)
            data = channel.recv_bytes(_MOST_SAID if as_json else None)
            said, is_spent = (data[1:].decode("utf-8", "replace") if data[:1] == b"!" else data[1:]), data[:1] != b"0"
        except (EOFError, OSError) as error:
            said, is_spent = f"its process has ended, or could not be started ({error!r})", True
        if overdue.is_over():
            said, is_spent = "wall_seconds", True
        if is_spent:
            channel = None  # closed with this, it ends what there still is of the worker
        if answer.set_running_or_notify_cancel():
            answer.set_result(said)
        if is_slow:
            may_be_slow.release()
            break
    else:
        jobs.put(None)  # for the next thread


class _Overdue:
    """The kill of a worker some time after the time of its call is up."""

    def __init__(self, group: int, seconds: float | None) -> None:
        self._has_killed = False
        self._group = group
        self._timer = None if seconds is None else threading.Timer(seconds + _GRACE, self._kill)
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def _kill(self) -> None:
        self._has_killed = True
        _kill(self._group)

    def is_over(self) -> bool:
        """Kill nothing any more, and say whether it was done."""
        if self._timer is not None:
            self._timer.cancel()
        return self._has_killed


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
    return channel, int(channel.recv_bytes())


def _let_go() -> None:
    """End the programs; in a forked child, whose they are not, let go of them."""
    for process, asking in _programs.values():
        asking.close()
        process.wait()
    _programs.clear()


atexit.register(_let_go)
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
os.register_at_fork(after_in_child=_let_go)
