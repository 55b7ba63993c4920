"""Marks for an author's methods (stop conditions, cleanup, teardown, ...) and the process-wide teardown registry."""

from __future__ import annotations

import atexit
import functools
import inspect
import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, overload

from vfgym.aio.steps import Steps, run_handlers
from vfgym.errors import ConfigurationError

logger = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])
Kind: TypeAlias = Literal["stop", "setup", "cleanup", "update", "metric", "reward", "advantage", "teardown"]
Stage: TypeAlias = Literal["rollout", "group"]

_MARKS = "__vfgym_marks__"


class Mark(NamedTuple):
    """What a decorator says about a method."""

    kind: Kind
    priority: int = 0
    """Higher runs first; equal ones run in the order of their names."""
    stage: Stage = "rollout"
    weight: float | None = None
    """Factor in the reward; None for the kind's own: 1.0 for a reward, 0.0 for a metric."""
    range: tuple[float, float] | None = None
    """The lowest and the highest number that a reward function gives; None where that is not said."""


class _Decorator:
    """A decorator usable bare (``@stop``) and with arguments (``@stop(priority=10)``)."""

    def __init__(self, kind: Kind, doc: str) -> None:
        self.kind = kind
        self.__doc__ = doc

    @overload
    def __call__(self, func: F, /) -> F: ...
    @overload
    def __call__(
        self,
        func: None = None,
        /,
        *,
        priority: int = 0,
        stage: Stage = "rollout",
        weight: float | None = None,
        range: tuple[float, float] | None = None,
    ) -> Callable[[F], F]: ...
    def __call__(
        self,
        func: F | None = None,
        /,
        *,
        priority: int = 0,
        stage: Stage = "rollout",
        weight: float | None = None,
        range: tuple[float, float] | None = None,
    ) -> F | Callable[[F], F]:
        mark = Mark(self.kind, priority, stage, weight, range)

        if func is not None and not callable(func):
            raise ConfigurationError(f"@{self.kind} takes its arguments by name (priority=..., ...), got {func!r}")

        def apply(marked: F) -> F:
            setattr(marked, _MARKS, (*getattr(marked, _MARKS, ()), mark))
            return marked

        return apply if func is None else apply(func)


stop = _Decorator("stop", "Mark a method as a stop condition: ``(self, state) -> bool``, checked after each model message.")
setup = _Decorator("setup", "Mark a method that prepares a rollout, before ``setup_state``: ``(self, state)``.")
cleanup = _Decorator("cleanup", "Mark a method that runs after every rollout, however it ended. It should be idempotent.")
update = _Decorator("update", "Mark a method that updates the state of a rollout between playing and scoring: ``(self, state)``.")
metric = _Decorator("metric", "Mark a method of a rubric or an environment that measures a rollout (no weight in the reward).")
reward = _Decorator(
    "reward",
    "Mark a method of a rubric or an environment as a reward function, with a ``weight``. ``range=(lowest, highest)`` says which numbers it"
    " gives, as it does of a function that is given to a rubric.",
)
advantage = _Decorator("advantage", "Mark a method that computes the advantages of a group.")
teardown = _Decorator("teardown", "Mark a method that runs once, when the environment is closed or the process exits.")


_BLOCKING = "__vfgym_blocking__"


def blocking(func: F) -> F:
    """Mark a plain hook, tool, reward function or agent that may take long, so that it never holds up an event loop.

    In async runs it is called on a thread of a pool; anywhere else in place. Where it does not return by its episode's deadline (cleanup
    handlers and reward functions: within the environment's `timeout_seconds`), the thread is left to it, and nobody waits any longer.

    Raises:
        ConfigurationError: If it is async.
    """
    if inspect.iscoroutinefunction(func):
        raise ConfigurationError(f"@blocking is for plain functions; {func.__name__} is async and waits without blocking")
    setattr(func, _BLOCKING, True)
    return func


def is_blocking(func: Callable[..., Any]) -> bool:
    """Say whether a function was marked as `blocking`."""
    while isinstance(func, functools.partial):
        func = func.func
    return bool(getattr(func, _BLOCKING, False) or getattr(type(func).__call__, _BLOCKING, False))


class Marked(NamedTuple):
    """A method (bound, or as its class has it) and the mark that was found on it."""

    name: str
    method: Callable[..., Any]
    mark: Mark


def discover_marks(cls: type, kind: Kind) -> list[Marked]:
    """Return the functions of a class that carry a mark of `kind`, inherited ones included.

    Returns:
        Higher priority first, equal ones by name. A method that is overridden without the mark is out.
    """
    found = []
    for name in dir(cls):
        function = getattr(cls, name, None)
        for mark in getattr(function, _MARKS, ()):
            if function is not None and mark.kind == kind:
                found.append(Marked(name, function, mark))
    return sorted(found, key=lambda marked: (-marked.mark.priority, marked.name))


def declared_range(func: Callable[..., Any]) -> tuple[float, float] | None:
    """Return the range that a `reward` mark on a function declares; None without."""
    while isinstance(func, functools.partial):
        func = func.func
    ranges = [mark.range for mark in getattr(func, _MARKS, ()) if mark.kind == "reward" and mark.range is not None]
    return ranges[-1] if ranges else None


def discover_decorated(obj: object, kind: Kind) -> list[Marked]:
    """Return the bound methods of `obj` that carry a mark of `kind`, in the order of `discover_marks`."""
    return [Marked(name, getattr(obj, name), mark) for name, _, mark in discover_marks(type(obj), kind)]


def run_cleanups(handlers: Iterable[tuple[str, Callable[..., Any]]], state: dict[str, Any], *args: Any) -> Steps[dict[str, Exception]]:
    """Call handlers that end a rollout in order, each with `args` (see `run_handlers`).

    Returns:
        What those raised that failed, by name. It is recorded in ``state["cleanup_errors"]``, too.
    """
    errors: dict[str, Exception] = {}
    try:
        yield from run_handlers(handlers, *args, errors=errors)
    finally:
        if errors:
            dict.setdefault(state, "cleanup_errors", {}).update({name: repr(error) for name, error in errors.items()})
    return errors


class SupportsTeardown(Protocol):
    """Something that holds resources until the process ends or it is closed."""

    def run_teardown(self) -> Any:
        """Release what is held. A second call does nothing."""
        ...


# Strong references on purpose: what is registered holds a resource that only its teardown handler can release.
_to_tear_down: dict[int, SupportsTeardown] = {}
_lock = threading.Lock()


def register_teardown(owner: SupportsTeardown) -> None:
    """Have ``owner.run_teardown()`` called when the process exits, unless `forget_teardown` comes first.

    No signal handler is installed: an application that wants teardown on SIGTERM turns the signal into `SystemExit`.
    """
    with _lock:
        if not _to_tear_down:
            atexit.register(run_all_teardowns)
        _to_tear_down[id(owner)] = owner


def forget_teardown(owner: SupportsTeardown) -> None:
    """Take `owner` off the registry."""
    with _lock:
        _to_tear_down.pop(id(owner), None)


def run_all_teardowns() -> None:
    """Tear down every registered owner, newest first. A failing one is logged and does not keep the others from running."""
    while True:
        with _lock:
            if not _to_tear_down:
                return
            _, owner = _to_tear_down.popitem()
        try:
            owner.run_teardown()
        except (Exception, SystemExit):
            logger.exception("teardown of %r failed", owner)
