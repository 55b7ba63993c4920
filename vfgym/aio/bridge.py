"""The greenlet bridge: synchronous code that waits on the loop of the task that called it, without a thread.

A stock Gymnasium wrapper around a chat environment is such code.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar

from greenlet import getcurrent, greenlet

T = TypeVar("T")

P = ParamSpec("P")


class _Bridged(greenlet):
    """A greenlet in which synchronous code runs on behalf of an asyncio task, its parent."""

    def __init__(self, func: Callable[..., Any], parent: greenlet) -> None:
        super().__init__(func, parent)
        self.gr_context = parent.gr_context  # the code sees the task's context variables


def in_bridge() -> bool:
    """Say whether the caller runs inside a `bridge`, so that it may `wait` on the running loop."""
    return isinstance(getcurrent(), _Bridged)


async def bridge(func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run synchronous code that may `wait`, without blocking the running event loop.

    Cancelling the task raises `asyncio.CancelledError` at the place where the code waits.
    """
    child = _Bridged(func, getcurrent())
    result = await _go_on(child, child.switch(*args, **kwargs))
    return result  # type: ignore[no-any-return]


async def _go_on(child: _Bridged, result: Any) -> Any:
    """Await what a greenlet waits for, and what it waits for after that, until its code ends; return what it returns."""
    while not child.dead and result is not _IDLE:
        try:
            value = await result
        except BaseException as error:
            result = child.throw(type(error), error, error.__traceback__)  # given the error alone, greenlet drops its traceback
        else:
            result = child.switch(value)
    return result


_IDLE = object()
"""What a greenlet of a `BridgeRunner` switches to its parent with when its code has ended."""


class BridgeRunner:
    """Runs one piece of synchronous code after another that may `wait`: in one greenlet, for as long as none of them does.

    A new greenlet costs 10 µs and more (Python 3.11), since it needs memory for its frames.
    """

    def __init__(self) -> None:
        """Begin without a greenlet."""
        self._idle: _Bridged | None = None

    def begin(self, func: Callable[[], None]) -> Coroutine[Any, Any, None] | None:
        """Run code until it ends or waits.

        Returns:
            What goes on with it, to be awaited on the running loop; None where it has ended.
        """
        child, self._idle = self._idle, None
        if child is None or child.parent is not getcurrent():  # that of another thread is of no use here
            child = _Bridged(_run_what_is_sent, getcurrent())
        child.gr_context = copy_context()
        result = child.switch(func)
        if result is not _IDLE:
            return _go_on(child, result)
        self._idle = child
        return None


def _run_what_is_sent(func: Callable[[], None]) -> None:
    while True:
        func()
        func = getcurrent().parent.switch(_IDLE)  # type: ignore[union-attr]
