"""Asking the worker processes that verify mathematical answers.

math-verify can take for ever (``9^{9^{9}}``), and only the end of its process stops it. So one supervisor for each process that
asks (`math_supervisor`) keeps workers that it can kill. It is started with the first question and ends with this process, however
that ends. Two threads talk to it, one for each direction; they move whatever has gathered at once, so that hundreds of questions
cost few switches.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeAlias

from vfgym.errors import Error, InfraError

_SCRIPT = Path(__file__).with_name("math_supervisor.py")


class VerificationTimeout(Error, TimeoutError):
    """math-verify came to no verdict in the time it was given."""


def cores() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


async def verify(answer: str, response: str, seconds: float, at_once: int) -> bool:
    """Ask whether a response is equal to the answer.

    Args:
        answer: LaTeX of the right answer.
        response: LaTeX of the response.
        seconds: CPU time that it may take.
        at_once: How many questions may be worked on at once. The largest number that was ever asked for counts.

    Raises:
        VerificationTimeout: If the time was not enough.
        InfraError: If the worker processes cannot work.
    """
    loop = asyncio.get_running_loop()
    question = _Question(next(_numbers), b"%d " % at_once + json.dumps([answer, response, seconds]).encode(), loop, loop.create_future())
    _ask(question)
    try:
        verdict = await question.verdict
    except asyncio.CancelledError:
        _take_back(question)
        raise
    if verdict == b"timeout":
        raise VerificationTimeout(
            f"math-verify came to no verdict within {seconds:g} s of CPU time on {_short(response)} for {_short(answer)}"
        )
    if verdict == b"died":
        raise InfraError(f"two worker processes died when they verified {_short(response)} for {_short(answer)}")
    return verdict == b"right"


@dataclass(slots=True)
class _Question:
    number: int
    body: bytes
    loop: asyncio.AbstractEventLoop
    verdict: asyncio.Future[bytes]
    losses: int = 0
    """How many supervisors ended before they answered it."""


_Outcome: TypeAlias = "tuple[asyncio.Future[bytes], bytes | Error]"


class _Supervisor:
    """The supervisor process, the questions that it has not answered, and the two threads that talk to it."""

    def __init__(self) -> None:
        self.unanswered: dict[int, _Question] = {}
        self.is_closing = False
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        # Plain descriptors, and no file objects: a forked child must be able to close its copies.
        theirs_in, self._writing = os.pipe()
        self._reading, theirs_out = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-W", "ignore", str(_SCRIPT)],
                stdin=theirs_in,
                stdout=theirs_out,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(str(entry) for entry in sys.path if entry)},
                start_new_session=True,  # Ctrl-C in the terminal is for the program, not for its workers
            )
        except OSError as error:
            os.close(self._writing)
            os.close(self._reading)
            raise InfraError(f"the process that verifies mathematical answers could not be started: {error}") from error
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        threading.Thread(target=self._write, name="vfgym-math-questions", daemon=True).start()
        threading.Thread(target=self._read, name="vfgym-math-verdicts", daemon=True).start()

    def ask(self, question: _Question) -> None:
        self.unanswered[question.number] = question
        self._outgoing.put(b"%d %b\n" % (question.number, question.body))

    def take_back(self, question: _Question) -> None:
        if self.unanswered.pop(question.number, None) is not None:
            self._outgoing.put(b"%d\n" % question.number)

    def close(self) -> None:
        """End the process, and wait for that."""
        self.is_closing = True
        self._outgoing.put(None)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def leave_to_parent(self) -> None:
        """Let go, in a forked child, of what belongs to the parent."""
        self._process.returncode = 0  # else `Popen` warns that nobody waited for it
        os.close(self._writing)
        os.close(self._reading)

    def _write(self) -> None:
        try:
            while (item := self._outgoing.get()) is not None:
                batch = [item]
                try:
                    while (item := self._outgoing.get_nowait()) is not None:
                        batch.append(item)
                except Empty:
                    pass
                rest = memoryview(b"".join(batch))
                while rest:
                    rest = rest[os.write(self._writing, rest) :]
                if item is None:
                    return
        except BrokenPipeError:  # the process ended, which the other thread sees too
            while self._outgoing.get() is not None:
                pass
        finally:
            os.close(self._writing)

    def _read(self) -> None:
        unread = b""
        while received := os.read(self._reading, 1 << 16):
            *lines, unread = (unread + received).split(b"\n")
            self._deliver(lines)
        _has_ended(self, self._process.wait())
        # Closed only now that a forked child does not close them any more: their numbers may be somebody else's by then.
        os.close(self._reading)
        self._outgoing.put(None)

    def _deliver(self, lines: Iterable[bytes]) -> None:
        """Give verdicts to those who wait for them, with one call for each event loop."""
        by_loop: dict[asyncio.AbstractEventLoop, list[_Outcome]] = {}
        for line in lines:
            number, verdict = line.split()
            question = self.unanswered.pop(int(number), None)
            if question is not None:
                by_loop.setdefault(question.loop, []).append((question.verdict, verdict))
        for loop, verdicts in by_loop.items():
            _call(loop, verdicts)


def _call(loop: asyncio.AbstractEventLoop, verdicts: list[_Outcome]) -> None:
    try:
        loop.call_soon_threadsafe(_resolve, verdicts)
    except RuntimeError:
        pass  # the loop was closed: nobody waits any more


def _resolve(verdicts: list[_Outcome]) -> None:
    for future, verdict in verdicts:
        if future.done():
            continue
        if isinstance(verdict, Error):
            future.set_exception(verdict)
        else:
            future.set_result(verdict)


_numbers = itertools.count(1)
_supervisor: _Supervisor | None = None
_lock = threading.Lock()


def _ask(question: _Question) -> None:
    global _supervisor
    with _lock:
        if _supervisor is None:
            _supervisor = _Supervisor()
        _supervisor.ask(question)


def _take_back(question: _Question) -> None:
    with _lock:
        if _supervisor is not None:
            _supervisor.take_back(question)


def _has_ended(supervisor: _Supervisor, code: int) -> None:
    """Ask a new supervisor what an old one left unanswered, once; then give up."""
    global _supervisor
    with _lock:
        if _supervisor is supervisor:
            _supervisor = None
    if supervisor.is_closing:
        return
    for question in supervisor.unanswered.values():
        error: Error
        try:
            if not question.losses:
                question.losses = 1
                _ask(question)
                continue
            error = InfraError(f"the process that verifies mathematical answers ended with exit code {code}; standard error may say why")
        except InfraError as cannot_start:
            error = cannot_start
        _call(question.loop, [(question.verdict, error)])


def _close() -> None:
    global _supervisor
    with _lock:
        supervisor, _supervisor = _supervisor, None
    if supervisor is not None:
        supervisor.close()


def _forget_supervisor() -> None:
    # A forked child inherits the object, but not its threads. What it asks goes to a supervisor of its own.
    global _supervisor, _lock
    _lock = threading.Lock()
    if _supervisor is not None:
        _supervisor.leave_to_parent()
        _supervisor = None


atexit.register(_close)
os.register_at_fork(after_in_child=_forget_supervisor)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "...")
