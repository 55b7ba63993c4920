"""Deadlines: an awaitable that must be done by a time, and what is awaited inside knows that time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Generator
from typing import Any

from vfgym.aio.background import close_unawaited
from vfgym.context import given, in_force


def ends_at(deadline: float) -> given:
    """Let what is awaited in a ``with`` know its deadline. An earlier one around it still holds."""
    outer = in_force().deadline
    return given(deadline=deadline if outer is None else min(outer, deadline))


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
