"""What workers log, in the log of their run's coordinator."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from vfgym.output.redaction import redact
from vfgym.runs.executors.link import WorkerLink

_LONGEST = 10_000


class _Forwarding(logging.Handler):
    """Sends warnings and errors to the coordinator."""

    def __init__(self, link: WorkerLink) -> None:
        super().__init__(logging.WARNING)
        self._link = link
        self._loop = asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):  # a record that cannot be written is no reason to fail
            text = redact(self.format(record))[:_LONGEST]
            self._loop.call_soon_threadsafe(self._link.send, {"log": text, "logger": record.name, "level": record.levelno})


@contextlib.contextmanager
def forwarded_to(link: WorkerLink, *, is_on: bool) -> Iterator[None]:
    """Let a worker's warnings be logged by its coordinator, too, where that is another process."""
    if not is_on:
        yield
        return
    handler = _Forwarding(link)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def log_again(message: Mapping[str, Any]) -> None:
    """Log what a worker has logged."""
    logging.getLogger(message["logger"]).log(message["level"], "%s", message["log"])
