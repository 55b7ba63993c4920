"""The process that verifies mathematical answers: a supervisor, and the workers that it forks.

`math_workers` runs this file as a script, so it imports nothing of the library, and the program that asks is not imported again.
The supervisor loads math-verify once and forks workers off itself, each for one question at a time. It never computes, so it
always answers, and a worker that had to be killed is replaced within milliseconds.

A line on standard input is a question, ``<number> <at once> <JSON of [answer, response, seconds]>``, or takes one back,
``<number>``. A line on standard output is a verdict, ``<number> <verdict>`` (see `VERDICTS`). The end of the input ends everything.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import resource
import selectors
import signal
import socket
import time
from collections import OrderedDict
from dataclasses import dataclass

VERDICTS = (b"right", b"wrong", b"timeout", b"died")
"""``timeout``: a worker used up the seconds of CPU time. ``died``: two workers died over the question, who knows why."""

_MEMORY = 4 << 30
"""Bytes that a worker may map. What needs more counts as wrong, as everything does that math-verify fails on."""

_SLOW = 0.25
"""Seconds after which a question no longer counts among those that are worked on at once, so that others do not wait for it."""

_SLOW_FACTOR = 4
"""How many times the workers there may be, at most, while questions are slow."""


def is_right(answer: str, response: str) -> bool:
    """Say whether math-verify finds a response equal to the answer."""
    from math_verify import parse, verify

    try:
        # Its own time-outs are signal handlers, which cannot interrupt a long operation on integers: the kernel's timer can.
        gold, candidate = (parse(f"\\boxed{{{text}}}", parsing_timeout=None) for text in (answer, response))
        return bool(verify(gold, candidate, timeout_seconds=None))
    except Exception:
        return False


def work(channel: socket.socket) -> None:
    """Answer questions, one after another, until the channel is closed or a question takes too long."""
    try:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    except (OSError, ValueError):  # macOS cannot limit it
        pass
    with channel.makefile("rb") as questions:
        for question in questions:
            answer, response, seconds = json.loads(question)
            # CPU time, so that a machine under load judges like an idle one. SIGPROF ends the process.
            signal.setitimer(signal.ITIMER_PROF, seconds)
            verdict = b"1" if is_right(answer, response) else b"0"
            signal.setitimer(signal.ITIMER_PROF, 0)
            channel.sendall(verdict)


@dataclass(slots=True)
class Question:
    """Something that is to be verified."""

    number: bytes
    body: bytes
    deaths: int = 0
    """How many workers died over it."""
    is_taken_back: bool = False


@dataclass(slots=True, eq=False)
class Worker:
    """A worker process as the supervisor sees it."""

    pid: int
    channel: socket.socket
    question: Question | None = None
    since: float = 0.0
    """When it got its question, on the monotonic clock."""


class Supervisor:
    """Hands questions to workers, and their verdicts back."""

    def __init__(self, questions: int, verdicts: int) -> None:
        """Listen and answer.

        Args:
            questions: File descriptor that questions are read from.
            verdicts: File descriptor that verdicts are written to.
        """
        self._questions = questions
        self._verdicts = verdicts
        self._at_once = 1
        self._waiting: OrderedDict[bytes, Question] = OrderedDict()
        self._workers: set[Worker] = set()
        self._idle: list[Worker] = []
        self._unread = b""
        self._unsent: list[bytes] = []
        self._selector = selectors.DefaultSelector()
        self._selector.register(questions, selectors.EVENT_READ)

    def run(self) -> None:
        """Serve until the input ends."""
        while True:
            for key, _ in self._selector.select(self._patience()):
                if key.data is not None:
                    self._hear(key.data)
                elif not self._read():
                    return
            self._hand_out()
            self._send()

    def kill_workers(self) -> None:
        """End every worker, whatever it does."""
        for worker in self._workers:
            os.kill(worker.pid, signal.SIGKILL)

    def _read(self) -> bool:
        """Take new questions in. False at the end of the input."""
        received = os.read(self._questions, 1 << 20)
        *lines, self._unread = (self._unread + received).split(b"\n")
        for line in lines:
            number, _, rest = line.partition(b" ")
            if rest:
                at_once, _, body = rest.partition(b" ")
                self._at_once = max(self._at_once, int(at_once))
                self._waiting[number] = Question(number, body + b"\n")
            elif self._waiting.pop(number, None) is None:
                self._give_up(number)
        return bool(received)

    def _give_up(self, number: bytes) -> None:
        """End the work on a question that was taken back."""
        for worker in self._workers:
            if worker.question is not None and worker.question.number == number:
                worker.question.is_taken_back = True
                os.kill(worker.pid, signal.SIGKILL)

    def _hear(self, worker: Worker) -> None:
        """Take what a worker says: a verdict, or with its end that it died."""
        try:
            said = worker.channel.recv(1)
        except ConnectionError:
            said = b""
        question, worker.question = worker.question, None
        if said and question is not None:
            self._idle.append(worker)
            self._answer(question, b"right" if said == b"1" else b"wrong")
            return
        self._selector.unregister(worker.channel)
        worker.channel.close()
        self._workers.remove(worker)
        if question is None:
            self._idle.remove(worker)
        _, status = os.waitpid(worker.pid, 0)
        if question is None or question.is_taken_back:
            return
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
            self._answer(question, b"timeout")
        elif question.deaths:
            self._answer(question, b"died")
        else:
            question.deaths = 1
            self._waiting[question.number] = question
            self._waiting.move_to_end(question.number, last=False)

    def _answer(self, question: Question, verdict: bytes) -> None:
        self._unsent.append(question.number + b" " + verdict + b"\n")

    def _hand_out(self) -> None:
        """Give waiting questions to workers, as many as are worked on at once; the slow ones do not count."""
        if not self._waiting:
            return
        now = time.monotonic()
        at_work = sum(worker.question is not None and now - worker.since < _SLOW for worker in self._workers)
        while self._waiting and at_work < self._at_once:
            if not self._idle:
                if len(self._workers) >= _SLOW_FACTOR * self._at_once:
                    return
                self._fork()
            worker = self._idle.pop()
            _, worker.question = self._waiting.popitem(last=False)
            worker.since = now
            at_work += 1
            try:
                worker.channel.sendall(worker.question.body)
            except ConnectionError:  # it died while it was idle, which `_hear` is told next
                pass

    def _patience(self) -> float | None:
        """Return the seconds until a question becomes slow that others wait for."""
        if not self._waiting:
            return None
        now = time.monotonic()
        left = [worker.since + _SLOW - now for worker in self._workers if worker.question is not None]
        return min((seconds for seconds in left if seconds > 0), default=None)

    def _send(self) -> None:
        unsent = memoryview(b"".join(self._unsent))
        self._unsent.clear()
        while unsent:
            unsent = unsent[os.write(self._verdicts, unsent) :]

    def _fork(self) -> None:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            try:
                # A worker that held the others' channels would keep them from seeing the supervisor's end.
                for worker in self._workers:
                    worker.channel.close()
                for descriptor in (self._questions, self._verdicts, self._selector.fileno()):
                    os.close(descriptor)
                ours.close()
                work(theirs)
            finally:
                os._exit(0)
        theirs.close()
        worker = Worker(pid, ours)
        self._workers.add(worker)
        self._idle.append(worker)
        self._selector.register(ours, selectors.EVENT_READ, worker)


def main() -> None:
    """Serve on standard input and output."""
    logging.disable(logging.CRITICAL)  # math-verify logs what it cannot parse
    for number in (signal.SIGPROF, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)  # a program may have started us with signals ignored
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    questions, verdicts = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what somebody prints must not come between the verdicts
    is_right(r"\frac{1}{2}", "0.5")  # fills the parsers' caches, which every worker then has
    gc.freeze()  # a collection in a worker would copy the memory that it shares with the others
    supervisor = Supervisor(questions, verdicts)
    try:
        supervisor.run()
    except BrokenPipeError:
        pass  # nobody reads the verdicts any more
    finally:
        supervisor.kill_workers()


if __name__ == "__main__":
    main()
