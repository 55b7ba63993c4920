"""What hooks return: usable at once, and wherever a coroutine is asked for (`await`, `asyncio.create_task`, `asyncio.run`).

The documented hooks are ``async def`` methods. Those that the machine calls are not, so that it does not pay for coroutines.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from types import MethodType
from typing import Any

from vfgym.aio.steps import Pending
from vfgym.calls import Ready, ReadyList
from vfgym.episode.hooks import MarkedMethod


class _Finished:
    """Makes a value that is there a coroutine that ends at its first step: asyncio looks for these methods."""

    __slots__ = ()
    value: Any

    def send(self, value: Any) -> Any:
        """End with the value."""
        raise StopIteration(self.value)

    def throw(self, error: BaseException, *_: Any) -> Any:
        """Raise the error."""
        raise error

    def close(self) -> None:
        """Do nothing: nothing runs."""


class FinishedList(_Finished, ReadyList):
    """A list that is there."""

    __slots__ = ()


class Holds(_Finished, Ready):
    """Whether a stop condition holds: true or false at once, and when awaited."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return bool(self.value)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == (other.value if isinstance(other, Holds) else other))

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


class Running:
    """Something that has begun and has to wait."""

    __slots__ = ("_pending", "_run")

    def __init__(self, pending: Pending) -> None:
        """Go on with `pending`."""
        self._pending = pending
        self._run: Generator[Any, Any, Any] | None = None

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._pending.__await__()

    def send(self, value: Any) -> Any:
        """Go on to where it waits next."""
        if self._run is None:
            self._run = self._pending.__await__()
        return self._run.send(value)

    def throw(self, error: BaseException, *_: Any) -> Any:
        """Raise an error where it waits."""
        if self._run is None:
            self._pending.close()
            raise error
        return self._run.throw(error)

    def close(self) -> None:
        """Give it up."""
        (self._pending if self._run is None else self._run).close()


def as_coroutine(begun: ReadyList | Pending) -> FinishedList | Running:
    """Return a list of the library's, or what will be one, as something that is a coroutine, too."""
    return Running(begun) if isinstance(begun, Pending) else FinishedList(begun)


_plain_stops: dict[Callable[..., Any], Callable[..., bool]] = {}
"""The plain stop conditions behind those that can be awaited."""


def awaitable_stop(condition: Callable[..., bool]) -> Callable[..., Any]:
    """Make a stop condition one that can be awaited, too, and that takes whatever an author hands on to it."""

    @functools.wraps(condition)
    def call(self: Any, state: Any, **kwargs: Any) -> Holds:
        return Holds(condition(self, state))

    _plain_stops[call] = condition
    return call


def unwrap_stop(handler: MarkedMethod) -> MarkedMethod:
    """Return a stop condition as the machine asks it: where it is an `awaitable_stop`, the plain one behind it."""
    condition = _plain_stops.get(getattr(handler.call, "__func__", None))  # type: ignore[arg-type]
    return handler if condition is None else MarkedMethod(handler.name, MethodType(condition, handler.call.__self__))  # type: ignore[attr-defined]
