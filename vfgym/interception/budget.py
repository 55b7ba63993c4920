"""What the requests of one program may take of this process's memory: while they wait for an answer, and in what is kept of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from vfgym.aio.bounds import TooMuch, fair_share
from vfgym.interception.wire import plain_data
from vfgym.messages import Message

LARGEST_BODY = 32 * 2**20
"""Bytes of one request, as at Anthropic."""
MOST_WAITING = 64 * 2**20
"""Bytes that the requests of one program take which are read or wait for an answer."""
_LEAST_WAITING = 4 * 2**20
_ALL_WAITING = 2**30
"""The same of all programs together, as long as each may have the least."""
MOST_KEPT = 256 * 2**20
"""Bytes of what a rollout keeps of its program's requests: its messages, each once, and which of them each request had."""
_OF_A_VALUE = 128
"""Bytes that a list or an object takes in memory beside its text, with its place in what holds it."""
_OF_A_PLACE = 16


def size_in_memory(text: bytes) -> int:
    """Return how many bytes JSON may take once it is read: ``[[],[],...]`` takes many times what its text does."""
    return len(text) + _OF_A_VALUE * (text.count(b",") + text.count(b"[") + text.count(b"{"))


class MemoryBudget:
    """Counts what the requests of one program take."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.waiting = 0
        self.kept = 0
        self._known: dict[bytes, Message] = {}
        """The messages that are kept, by a digest of what they say."""

    @contextmanager
    def request(self, num_programs: int) -> Iterator[Waiting]:
        """Count a request until it is answered, or refused.

        Args:
            num_programs: How many programs there are.
        """
        waiting = Waiting(self, fair_share(_ALL_WAITING, num_programs, least=_LEAST_WAITING, most=MOST_WAITING))
        try:
            yield waiting
        finally:
            waiting.release()

    def keep(self, messages: Sequence[Message]) -> list[Message]:
        """Return the messages of a request, those that were asked before as the same objects.

        Raises:
            TooMuch: If the rollout would keep more than it may.
        """
        own: list[Message] = []
        self.kept += _OF_A_PLACE * len(messages)
        for message in messages:
            text = json.dumps(plain_data(message)).encode()
            digest = hashlib.blake2b(text, digest_size=16).digest()
            if digest not in self._known:
                self.kept += size_in_memory(text)
                self._check_kept()
                self._known[digest] = message
            own.append(self._known[digest])
        self._check_kept()
        return own

    def _check_kept(self) -> None:
        if self.kept > MOST_KEPT:
            raise TooMuch(413, f"the conversations of a rollout may have {MOST_KEPT:,} bytes, and those of this one have more")


class Waiting:
    """What one request takes while it is read and waits."""

    def __init__(self, budget: MemoryBudget, limit: int) -> None:
        """Take nothing yet."""
        self._budget, self._limit, self._taken = budget, limit, 0

    def take(self, size: int) -> None:
        """Count so many bytes more.

        Raises:
            TooMuch: If the program's requests take more than they may.
        """
        if self._budget.waiting + size > self._limit:
            raise TooMuch(429, f"the requests of a program that wait may take {self._limit:,} bytes of memory together")
        self._budget.waiting += size
        self._taken += size

    def read(self, text: bytes) -> None:
        """Count what JSON takes once it is read, in place of its text.

        Raises:
            TooMuch: If the program's requests take more than they may.
        """
        self.take(size_in_memory(text) - len(text))

    def release(self) -> None:
        """Count nothing of it any more."""
        self._budget.waiting -= self._taken
        self._taken = 0
