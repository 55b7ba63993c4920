"""Ctrl-C inside the process that runs the tests."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def ctrl_c() -> Iterator[Callable[[], None]]:
    """Give a function that interrupts the main thread as Ctrl-C does, called in any thread, also where SIGINT was ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
