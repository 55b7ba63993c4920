"""Stop conditions that can be awaited, as the documented ones are ``async def`` methods, and that cost the machine no coroutine."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any

from vfgym.calls import Ready
from vfgym.episode.hooks import MarkedMethod


class Holds(Ready):
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
