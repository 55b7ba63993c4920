"""One machine for sync and async callers: steps, their drivers, the shared event loop and the greenlet bridge.

The library's own logic is written once, as generators (`Steps`) that yield what must be awaited and are sent the result.
`run_async` drives them on the running loop. `run_sync` drives them in the calling thread: what is plain runs in place, and
only a real awaitable costs a hop to the one background loop that every synchronous face of the process shares. Inside a
`bridge`, a synchronous call (a stock Gymnasium wrapper around a chat environment, say) waits on the loop of the task that
made it, without a thread.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeAlias, TypeVar

from greenlet import getcurrent, greenlet

from vfgym.calls import Ready, ReadyList, ends_run, is_awaitable, rollout_failure
from vfgym.errors import WouldDeadlock

logger = logging.getLogger(__name__)

T = TypeVar("T")
P = ParamSpec("P")

_READY = (Ready, ReadyList)

Steps: TypeAlias = Generator[Awaitable[Any], Any, T]
"""A computation that yields each awaitable it needs and is sent the result."""


class _BackgroundLoop:
    """The event loop that all synchronous faces of this process share, on a daemon thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="vfgym-loop", daemon=True)
        try:
            self.thread.start()
        except RuntimeError:
            self.loop.close()
            raise

    def _run(self) -> None:
        while True:
            try:
                self.loop.run_forever()
            except BaseException:  # SystemExit in somebody's task goes through the loop: whoever waits for the task gets it too
                logger.exception("an exception went through the background event loop; it goes on")


_background: _BackgroundLoop | None = None
_background_lock = threading.Lock()


def _forget_background() -> None:
    # A forked child (gymnasium.vector.AsyncVectorEnv) inherits the object but not the thread that runs it.
    global _background, _background_lock
    _background, _background_lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_background)


def background_loop() -> asyncio.AbstractEventLoop:
    """Return the shared background event loop, started on first use."""
    global _background
    if _background is None:
        with _background_lock:
            if _background is None:
                _background = _BackgroundLoop()
    return _background.loop


running_loop = asyncio._get_running_loop
"""Returns the event loop that runs in this thread, or None."""


def in_event_loop() -> bool:
    """Say whether an event loop runs in this thread, so that blocking here would hold it up."""
    return running_loop() is not None


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
    result: Any = child.switch(*args, **kwargs)
    while not child.dead:
        try:
            value = await result
        except BaseException as error:
            result = child.throw(type(error), error, error.__traceback__)  # given the error alone, greenlet drops its traceback
        else:
            result = child.switch(value)
    return result  # type: ignore[no-any-return]


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


async def _without_exit(awaitable: Awaitable[Any]) -> Any:
    """Await something in a task of its own, out of which a `SystemExit` would go through the loop: it is returned."""
    try:
        return await awaitable
    except SystemExit as error:
        return error


def may_wait() -> bool:
    """Say whether synchronous code that is called here may `wait`: anywhere but on the background loop itself, outside a `bridge`."""
    return _background is None or threading.current_thread() is not _background.thread or in_bridge()


def _check_may_wait() -> None:
    """Raise if waiting here would wait for the loop that this very thread runs."""
    if not may_wait():
        raise WouldDeadlock(
            "a synchronous call would wait for the event loop it runs on: from async code call the async twin"
            " (astep, areset, aevaluate, ...), or the synchronous one from another thread"
        )


def close_unawaited(awaitable: object) -> None:
    """Close something that will not be awaited after all."""
    close = getattr(awaitable, "close", None)
    if close is not None:
        close()


def wait(awaitable: Awaitable[T]) -> T:
    """Wait for an awaitable from synchronous code: on the loop of the surrounding `bridge`, else on the background loop.

    An interruption (Ctrl-C) cancels it, and is raised once it has ended.

    Raises:
        WouldDeadlock: If the caller runs on the background loop itself, which could then never get there.
    """
    current = getcurrent()
    if isinstance(current, _Bridged):
        return current.parent.switch(awaitable)  # type: ignore[union-attr, no-any-return]
    try:
        _check_may_wait()
    except WouldDeadlock:
        close_unawaited(awaitable)
        raise
    try:
        loop = background_loop()
    except RuntimeError:  # Python 3.12.1 starts no thread while the process exits, when teardown handlers may want a loop
        return asyncio.run(_awaited(awaitable))
    result = _run_on(loop, _without_exit(awaitable))
    try:
        if isinstance(result, SystemExit):
            raise result
        return result  # type: ignore[no-any-return]
    finally:
        del result  # else its traceback would keep this frame, which keeps it


def _run_on(loop: asyncio.AbstractEventLoop, run: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop of another thread. An interruption here cancels it, and is raised once it has ended.

    Its task is asked for what came of it, since between futures of two threads asyncio makes a new `TimeoutError`, without its
    traceback (Python 3.11).
    """
    task: Any = None
    ended = threading.Event()

    def begin_task() -> None:
        nonlocal task
        if task is None:
            task = loop.create_task(run)
            task.add_done_callback(lambda _: ended.set())

    def cancel_task() -> None:
        begin_task()  # an interruption may come before it has begun
        task.cancel()

    try:
        try:
            loop.call_soon_threadsafe(begin_task)
            ended.wait()
        except BaseException:
            loop.call_soon_threadsafe(cancel_task)
            ended.wait()
            if not task.cancelled():
                task.exception()  # else asyncio reports that nobody asked for it
            raise
        return task.result()  # type: ignore[no-any-return]
    finally:
        task = None  # else the traceback of what it raised would keep this frame, which keeps it


def run_to_end(run: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the background loop from synchronous code, also inside a running loop (a notebook cell).

    An interruption (Ctrl-C) cancels it, waits until it has closed what it opened, and is raised then.
    """
    loop = background_loop()
    if in_bridge() or asyncio._get_running_loop() is loop:
        return wait(run)
    return _run_on(loop, run)


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
    """Steps that have begun and now wait for something: await it to go on."""

    __slots__ = ("_awaitable", "_steps")

    def __init__(self, steps: Steps[Any], awaitable: Awaitable[Any]) -> None:
        self._steps = steps
        self._awaitable = awaitable

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

    def close(self) -> None:
        """Give up what was begun."""
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
        return self._bounded().__await__()

    async def _bounded(self) -> Any:
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


def eager(func: Callable[P, Steps[Any]]) -> Callable[P, Any]:
    """Make a method written as `Steps` callable from plain and async code alike (see `begin`)."""

    @functools.wraps(func)
    def call(*args: P.args, **kwargs: P.kwargs) -> Any:
        return begin(func(*args, **kwargs))

    return call
