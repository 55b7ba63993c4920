"""The one background event loop of the process, and how synchronous code waits for what is asynchronous."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, ParamSpec, TypeVar

from greenlet import getcurrent

from vfgym.aio.bridge import _Bridged, in_bridge
from vfgym.errors import WouldDeadlock

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class _BackgroundLoop:
    """The event loop that all synchronous calls of this process share, on a daemon thread of its own."""

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


async def on_background_loop(func: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Call an async function on the background loop, whichever loop we are on; cancelling us cancels it."""
    loop = background_loop()
    if asyncio.get_running_loop() is loop:
        return await func(*args)

    async def call() -> T:
        return await func(*args)

    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), loop))


running_loop = asyncio._get_running_loop
"""Returns the event loop that runs in this thread, or None."""


class _InsteadOfLoop(threading.local):
    """What a thread does that plays in place what a loop could play, too."""

    hand_over: Callable[[], None] | None = None
    """Lets the background loop go on with the rest, since this thread is going to wait; None where nothing is played so."""


_instead_of_loop = _InsteadOfLoop()


@contextlib.contextmanager
def instead_of_loop(hand_over: Callable[[], None]) -> Iterator[None]:
    """Play in this thread what would else be played on the background loop, by the same rules: what blocks belongs on other threads.

    Args:
        hand_over: Called, each time, when plain code is about to wait here. It lets the loop go on with what is left to play.
    """
    before, _instead_of_loop.hand_over = _instead_of_loop.hand_over, hand_over
    try:
        yield
    finally:
        _instead_of_loop.hand_over = before


def in_event_loop() -> bool:
    """Say whether blocking here would hold up others: an event loop runs in this thread, or something is played instead of one."""
    return running_loop() is not None or _instead_of_loop.hand_over is not None


async def _await(awaitable: Awaitable[T]) -> T:
    return await awaitable


async def _without_exit(awaitable: Awaitable[Any]) -> Any:
    """Await something in a task of its own, out of which a `SystemExit` would go through the loop: it is returned."""
    try:
        return await awaitable
    except SystemExit as error:
        return error


def may_wait() -> bool:
    """Say whether synchronous code that is called here may `wait` and hold up nobody: not on the background loop, outside a `bridge`."""
    return not _would_deadlock() and _instead_of_loop.hand_over is None


def _would_deadlock() -> bool:
    return _background is not None and threading.current_thread() is _background.thread and not in_bridge()


def _check_may_wait() -> None:
    """Raise if waiting here would wait for the loop that this very thread runs."""
    if _would_deadlock():
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
        return asyncio.run(_await(awaitable))
    if _instead_of_loop.hand_over is not None:
        _instead_of_loop.hand_over()
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
        if not ended.is_set():  # an interruption may come when it is over, and before it has begun
            begin_task()
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
        if ended.is_set():  # it is not after a second interruption, while the task is still being cancelled
            task = None  # else the traceback of what it raised would keep this frame, which keeps it


def run_to_end(run: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the background loop from synchronous code, also inside a running loop (a notebook cell).

    An interruption (Ctrl-C) cancels it, waits until it has closed what it opened, and is raised then.
    """
    loop = background_loop()
    if in_bridge() or asyncio._get_running_loop() is loop:
        return wait(run)
    return _run_on(loop, run)


def blocking(func: Callable[P, Coroutine[Any, Any, T]], name: str) -> Callable[P, T]:
    """Return the form of an async function for code that is not async, which does what `run_to_end` does.

    Args:
        func: The async function.
        name: What the other form is called.
    """

    @functools.wraps(func)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return run_to_end(func(*args, **kwargs))

    run.__name__ = run.__qualname__ = name
    return run
