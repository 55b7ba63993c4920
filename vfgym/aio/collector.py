"""Collections of garbage while runs play: seldom."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

OBJECTS = 50_000
"""After how many new objects young garbage is collected while a run plays. Python's own 700 took a third of the CPU time of rollouts whose
model is asked over HTTP, 256 at once: 0.68 ms each, where 5,000 took 0.50, 50,000 0.44 and no collection 0.43."""


class _Runs:
    """The runs that play in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._before: tuple[int, int, int] | None = None

    def begin(self) -> None:
        """Note that one begins: with the first, collections get few. Whoever has them fewer yet, or off, keeps that."""
        with self._lock:
            self._count += 1
            first, *others = before = gc.get_threshold()
            if self._count == 1 and 0 < first < OBJECTS:
                self._before = before
                gc.set_threshold(OBJECTS, *others)

    def end(self) -> None:
        """Note that one ends: with the last, collections are as before, unless somebody else has changed them meanwhile."""
        with self._lock:
            self._count -= 1
            if self._count == 0 and self._before is not None:
                if gc.get_threshold()[0] == OBJECTS:
                    gc.set_threshold(*self._before)
                self._before = None


_runs = _Runs()


@contextlib.contextmanager
def seldom_collecting() -> Iterator[None]:
    """Collect garbage seldom inside a ``with``: most of what a run makes stays, and each collection looks at what is being played."""
    _runs.begin()
    try:
        yield
    finally:
        _runs.end()
