"""What the library logs while a check runs: it is kept for the check, and not shown."""

from __future__ import annotations

import contextlib
import contextvars
import logging
import threading
from collections.abc import Iterator

_RECORDS: contextvars.ContextVar[list[logging.LogRecord] | None] = contextvars.ContextVar("records", default=None)
"""What was logged for the check that the running code is part of; None where it is part of none."""


@contextlib.contextmanager
def log_kept() -> Iterator[list[logging.LogRecord]]:
    """Keep what the library logs for a check, instead of showing it.

    Context variables tell what is for the check: they reach the tasks that it starts, on the background loop too, and the threads
    of `vfgym.aio.threads`. Threads that an environment starts itself do not have them, nor do tasks that were running before: what is
    logged there is shown, as is all that others log meanwhile.
    """
    records: list[logging.LogRecord] = []
    token = _RECORDS.set(records)
    try:
        with _SORTER.installed():
            yield records
    finally:
        _RECORDS.reset(token)


class _Sorter(logging.Handler):
    """Takes the place of the handlers of the library's logger: keeps the records of checks, and hands on all others."""

    def __init__(self) -> None:
        super().__init__()
        self._library = logging.getLogger("vfgym")
        self._usual = logging.Logger(self._library.name)
        """A logger with the handlers that the library's has at other times."""
        self._num_checks = 0
        self._installing = threading.Lock()

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Sort what is logged until the last of the checks that run at once is done."""
        library, usual = self._library, self._usual
        with self._installing:
            if self._num_checks == 0:
                usual.parent, usual.handlers, usual.propagate = library.parent, library.handlers, library.propagate
                library.handlers, library.propagate = [self], False
            self._num_checks += 1
        try:
            yield
        finally:
            with self._installing:
                self._num_checks -= 1
                if self._num_checks == 0:
                    library.handlers, library.propagate = usual.handlers, usual.propagate

    def handle(self, record: logging.LogRecord) -> bool:
        """Sort a record, without this handler's lock: those behind it lock what they need to."""
        self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record, or do with it what the library's logger would."""
        records = _RECORDS.get()
        if records is None:
            self._usual.callHandlers(record)
        else:
            records.append(record)


_SORTER = _Sorter()
