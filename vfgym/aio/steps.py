"""Steps: what the library does for sync and async callers, written once.

Steps are generators that yield what must be awaited and are sent the result. `run_async` drives them on the running loop. `run_sync`
drives them in the calling thread: what is plain runs in place, and only a real awaitable costs a hop to the background loop.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Sequence
from typing import Any, ParamSpec, TypeAlias, TypeVar

from vfgym.aio.background import _check_may_wait, _without_exit, close_unawaited, wait
from vfgym.calls import Ready, ReadyList, ends_run, is_awaitable, rollout_failure
from vfgym.errors import WouldDeadlock

logger = logging.getLogger(__name__)

T = TypeVar("T")

P = ParamSpec("P")

_READY = (Ready, ReadyList)


Steps: TypeAlias = Generator[Awaitable[Any], Any, T]
"""A computation that yields each awaitable it needs and is sent the result."""


async def all_of(coroutines: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run coroutines together. The first that raises cancels the others; this returns once all have ended."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    if not tasks:
        return
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.exception()  # else asyncio reports that nobody asked for those of the others


def run_sync(steps: Steps[T]) -> T:
    """Drive `steps` in the calling thread."""
    try:
        return drive_on(steps, steps.send(None))
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def drive_on(steps: Steps[T], awaitable: Awaitable[Any]) -> T:
    """Drive steps that have begun, and wait for `awaitable`, to their end in the calling thread."""
    try:
        while True:
            if isinstance(awaitable, _READY):
                awaitable = steps.send(awaitable.value)
                continue
            try:
                _check_may_wait()
            except WouldDeadlock:
                # Not thrown into the steps, which would take it for an error of what they do.
                close_unawaited(awaitable)
                steps.close()
                raise
            try:
                value = wait(awaitable)
            except BaseException as error:
                awaitable = steps.throw(error)
            else:
                awaitable = steps.send(value)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


async def run_async(steps: Steps[T]) -> T:
    """Drive `steps` on the running event loop."""
    return await begin(steps)  # type: ignore[no-any-return]


class Pending:
    """Steps that have begun and now wait for something: a coroutine to await, or to make a task of, to go on."""

    __slots__ = ("_awaitable", "_run", "_steps")

    def __init__(self, steps: Steps[Any], awaitable: Awaitable[Any]) -> None:
        self._steps = steps
        self._awaitable = awaitable
        self._run: Generator[Any, Any, Any] | None = None
        """What a task drives, which calls `send` instead of awaiting."""

    def __await__(self) -> Generator[Any, Any, Any]:
        steps, awaitable = self._steps, self._awaitable
        try:
            while True:
                try:
                    value = yield from awaitable.__await__()
                except BaseException as error:
                    awaitable = steps.throw(error)
                else:
                    awaitable = steps.send(value)
        except StopIteration as stop:
            return stop.value

    def send(self, value: Any) -> Any:
        """Go on to where it waits next."""
        if self._run is None:
            self._run = self.__await__()
        return self._run.send(value)

    def throw(self, error: BaseException, *_: Any) -> Any:
        """Raise an error where it waits."""
        if self._run is None:
            self.close()
            raise error
        return self._run.throw(error)

    def close(self) -> None:
        """Give up what was begun."""
        if self._run is not None:
            self._run.close()
            return
        self._steps.close()
        close_unawaited(self._awaitable)


def begin(steps: Steps[Any]) -> Any:
    """Run `steps` as far as they go without waiting.

    Returns:
        A `Ready` (a list: a `ReadyList`) when they are done, else a `Pending`. All of them can be awaited.
    """
    try:
        awaitable = steps.send(None)
        while isinstance(awaitable, _READY):
            awaitable = steps.send(awaitable.value)
    except StopIteration as stop:
        value = stop.value
        return ReadyList(value) if isinstance(value, list) else Ready(value)
    return Pending(steps, awaitable)


def begin_to_end(steps: Steps[None]) -> Pending | None:
    """Run steps without a result as far as they go without waiting, as `begin` does, in less time. None when they are done."""
    for awaitable in steps:
        try:
            while isinstance(awaitable, _READY):
                awaitable = steps.send(awaitable.value)
        except StopIteration:
            return None
        return Pending(steps, awaitable)
    return None


def run_handlers(handlers: Iterable[tuple[str, Callable[..., Any]]], *args: Any, errors: dict[str, Exception] | None = None) -> Steps[None]:
    """Call handlers in order, each with `args`.

    One that fails is logged and does not keep the others from running; nor does what ends the run (see `ends_run`), which is raised when
    all have run.

    Args:
        handlers: Names and handlers.
        *args: What each is called with.
        errors: Gets what those raised that failed, by name, as they fail: also where something is raised in the end.
    """
    interruption: BaseException | None = None
    for name, call in handlers:
        try:
            result = call(*args)
            if result.__class__ is not Ready and is_awaitable(result):
                yield result
        except GeneratorExit:
            raise
        except BaseException as error:
            if ends_run(error):
                interruption = error
                continue
            logger.exception("handler %s failed", name)
            if errors is not None:
                errors[name] = rollout_failure(error)
    if interruption is not None:
        raise interruption


def run_each(several: Iterable[Steps[None]]) -> Steps[None]:
    """Run steps one after another. One that raises keeps none of the others from running; what the first raised is raised in the end."""
    failure: BaseException | None = None
    for steps in several:
        try:
            yield from steps
        except GeneratorExit:
            raise
        except BaseException as error:
            failure = failure or error
    if failure is not None:
        raise failure


class Together:
    """Several awaitables as one: awaited concurrently; an exception takes the place of its result."""

    __slots__ = ("_awaitables",)

    def __init__(self, awaitables: Sequence[Awaitable[Any]]) -> None:
        """Take the awaitables. No loop has to run yet."""
        self._awaitables = awaitables

    def __await__(self) -> Generator[Any, Any, list[Any]]:
        return asyncio.gather(*map(_without_exit, self._awaitables), return_exceptions=True).__await__()

    def close(self) -> None:
        """Give them up."""
        for awaitable in self._awaitables:
            close_unawaited(awaitable)


def eager(func: Callable[P, Steps[Any]]) -> Callable[P, Any]:
    """Make a method written as `Steps` callable from plain and async code alike (see `begin`)."""

    @functools.wraps(func)
    def call(*args: P.args, **kwargs: P.kwargs) -> Any:
        return begin(func(*args, **kwargs))

    return call
