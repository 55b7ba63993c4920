"""Names the function that holds an event loop and does not return.

Nothing on the loop can, so a thread does: it asks the loop for a sign of life now and then, and where none comes it looks at what the
loop's thread is doing. A call costs nothing for that.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

logger = logging.getLogger(__name__)

PATIENCE = 30.0
"""Seconds for which a function may hold a loop before it is named."""

_INTERVAL = 5.0
"""Seconds between two questions."""

_OWN_PACKAGES = frozenset({"vfgym", "verifiers_compat"})

_watches: dict[asyncio.AbstractEventLoop, _Watch] = {}


class _Watch:
    """Watches one loop, as long as somebody has it watched."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.users = 0
        self.has_ended = threading.Event()
        self._loop = loop
        self._thread_id = threading.get_ident()
        threading.Thread(target=self._watch, name="vfgym-loop-watch", daemon=True).start()

    def _watch(self) -> None:
        while not self.has_ended.wait(min(_INTERVAL, PATIENCE)):
            is_alive = threading.Event()
            try:
                self._loop.call_soon_threadsafe(is_alive.set)
            except RuntimeError:  # it was closed
                return
            if not is_alive.wait(PATIENCE):
                self._name_who_holds_it()
                while not is_alive.wait(_INTERVAL) and not self.has_ended.is_set():
                    pass

    def _name_who_holds_it(self) -> None:
        frame = sys._current_frames().get(self._thread_id)
        function = None if frame is None else author_function(frame)
        if function is not None and not self.has_ended.is_set():
            logger.warning(
                "%s has not returned for %g s, and holds up every episode on its event loop. To bound it, make it async or mark it with"
                " @vfgym.blocking, and give the environment timeout_seconds; an agent can run in a process of its own"
                " (vfgym eval --isolate)",
                function,
                PATIENCE,
            )


@contextmanager
def watch_loop() -> Iterator[None]:
    """Have the running loop watched until the block ends."""
    loop = asyncio.get_running_loop()
    watch = _watches.get(loop)
    if watch is None:
        watch = _watches[loop] = _Watch(loop)
    watch.users += 1
    try:
        yield
    finally:
        watch.users -= 1
        if not watch.users:
            watch.has_ended.set()
            del _watches[loop]


def author_function(frame: FrameType) -> str | None:
    """Return the name and place of the function that the library called last, given the innermost frame of a thread.

    Where it called none, it is the one that the event loop called. None where the library imports something: nobody can change that.
    """
    while frame.f_back is not None:
        caller = frame.f_back
        if _module(caller) == "asyncio.events" or (_package(frame) not in _OWN_PACKAGES and _package(caller) in _OWN_PACKAGES):
            break
        frame = caller
    if _package(frame) == "importlib":
        return None
    code = frame.f_code
    return f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _package(frame: FrameType) -> str:
    return _module(frame).partition(".")[0]
