"""How many requests of a run are under way at once: fewer while its provider says that it is busy, and more again afterwards.

One `Pace` holds for all rollouts of a run. A refusal (HTTP 429, or 529 of a provider that is overloaded) halves the number, once for
all requests that were under way, and lets nothing begin for as long as the provider asks to wait; each answer raises it, by one for as
many answers as there may be requests (additive increase, multiplicative decrease, as TCP does).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections import deque

logger = logging.getLogger(__name__)

BUSY = frozenset({429, 529})
"""HTTP statuses that say that there are too many requests."""

_SECONDS_BETWEEN_CUTS = 1.0
"""The refusals of requests that were under way together come within this time, and count as one."""


class Pace:
    """Lets requests begin, as many at once as the provider bears."""

    def __init__(self, most: float = math.inf) -> None:
        """Begin with as many as are allowed.

        Args:
            most: From how many requests at once on there is no limit again, once there was one.
        """
        self.most = most
        self.allowed = math.inf
        """Requests that may be under way at once now; no limit until the provider refuses one."""
        self.num_refusals = 0
        """How often the provider refused one."""
        self._running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._held_until = -math.inf
        self._next_cut = -math.inf

    async def enter(self) -> None:
        """Wait until one more request may begin, and count it as under way."""
        await self._enter()

    async def _enter(self) -> None:
        while self.allowed < math.inf:
            held = self._held_until - time.monotonic()
            if held > 0:
                await self._sleep(held)
            elif self._running < self.allowed:
                break
            else:
                await self._wait()
        self._running += 1

    def leave(self) -> None:
        """Count a request as over."""
        self._running -= 1
        if self._waiting and self._running < self.allowed:
            self._wake_next()

    async def pause(self, seconds: float) -> None:
        """Wait before a request that was refused is sent again; meanwhile it is not under way.

        Args:
            seconds: How long the provider wants it to wait.
        """
        self._note_refusal(seconds)
        self.leave()
        try:
            await asyncio.sleep(seconds)
            await self._enter()
        except BaseException:
            self._running += 1  # whoever made the request leaves for it
            raise

    def note_answer(self) -> None:
        """Allow more, after an answer."""
        if self.allowed < math.inf:
            raised = self.allowed + 1 / self.allowed
            if raised < self.most:
                self.allowed = raised
            else:  # no limit again, but not while the provider wants to be left alone: nothing is held back where there is no limit
                self.allowed = self.most if time.monotonic() < self._held_until else math.inf
            if self._waiting and self._running < self.allowed:
                self._wake_next()

    def note_failure(self, error: BaseException) -> None:
        """Allow less where a failure is a refusal that a client did not wait for: an error of an SDK, or one that it caused."""
        link: BaseException | None = error
        while link is not None:
            if getattr(link, "status_code", None) in BUSY:
                self._note_refusal(0.0)
                return
            link = link.__cause__

    def _note_refusal(self, seconds: float) -> None:
        self.num_refusals += 1
        now = time.monotonic()
        self._held_until = max(self._held_until, now + seconds)
        if now < self._next_cut:
            return
        self._next_cut = now + max(seconds, _SECONDS_BETWEEN_CUTS)
        self.allowed = max(1.0, min(self.allowed, self.most, float(self._running)) / 2)
        logger.info("the provider is busy: %d requests at once, until it answers again", self.allowed)

    async def _sleep(self, seconds: float) -> None:
        """Sleep before entering; who does not wake up passes on the turn that it may have had."""
        try:
            await asyncio.sleep(seconds)
        except BaseException:
            if self._waiting and self._running < self.allowed:
                self._wake_next()
            raise

    async def _wait(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled() and self._waiting:
                self._wake_next()  # it was this one's turn, and it does not take it
            raise
        finally:
            with contextlib.suppress(ValueError):
                self._waiting.remove(turn)

    def _wake_next(self) -> None:
        turn = self._waiting.popleft()
        loop = turn.get_loop()
        if loop.is_closed():
            return
        loop.call_soon_threadsafe(_wake, turn)  # judges may be asked on another loop than models


def _wake(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
