"""Deadlines: an awaitable that must be done by a time, and what is awaited inside knows that time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from vfgym.aio.background import close_unawaited

rollout_deadline: ContextVar[float | None] = ContextVar("rollout_deadline", default=None)
"""When what is awaited here is cancelled, as a time of `time.monotonic`; None where there is no limit. Clients ask for it, so that they
begin no pause that could not end in time."""


@contextmanager
def ends_at(deadline: float) -> Iterator[None]:
    """Let what is awaited inside know its deadline (see `rollout_deadline`). An earlier one around it still holds."""
    outer = rollout_deadline.get()
    rollout_deadline.set(deadline if outer is None else min(outer, deadline))
    try:
        yield
    finally:
        rollout_deadline.set(outer)  # not by a token, which would be of another context where a coroutine is closed from outside


class Before:
    """An awaitable that must be done before a deadline, else it is cancelled and `DeadlinePassed` raised."""

    __slots__ = ("_awaitable", "_deadline")

    def __init__(self, deadline: float, awaitable: Awaitable[Any]) -> None:
        """Bound an awaitable.

        Args:
            deadline: A time of `time.monotonic`.
            awaitable: What to await.
        """
        self._deadline = deadline
        self._awaitable = awaitable

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._await_in_time().__await__()

    async def _await_in_time(self) -> Any:
        scope = asyncio.timeout(max(0.0, self._deadline - time.monotonic()))
        try:
            async with scope:
                with ends_at(self._deadline):
                    return await self._awaitable
        except TimeoutError:
            if scope.expired():
                raise DeadlinePassed from None
            raise

    def close(self) -> None:
        """Give it up."""
        close_unawaited(self._awaitable)


class DeadlinePassed(TimeoutError):
    """The deadline of an episode came before something that it waited for."""
