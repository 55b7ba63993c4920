"""What workers warn of stands in the log of who coordinates."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

import pytest

from vfgym.output.redaction import Secret
from vfgym.runs.executors.link import WorkerLink
from vfgym.runs.executors.worker_log import forwarded_to, log_again


class Wire:
    """Takes what is sent."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, message: Any) -> None:
        """Keep a message."""
        self.sent.append(message)


async def test_warnings_and_errors_are_sent_on_from_any_thread_and_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    wire = Wire()
    key = Secret("sk-0123456789abcdef")
    with forwarded_to(cast(WorkerLink, wire), is_on=True):
        await asyncio.to_thread(logging.getLogger("of.somebody").warning, "%s is refused", str.__str__(key))
        logging.getLogger("of.somebody").info("not told")
        try:
            raise ZeroDivisionError("by zero")
        except ZeroDivisionError:
            logging.getLogger("other").exception("it failed")
        await asyncio.sleep(0)
    logging.getLogger("of.somebody").warning("nobody listens any more")
    await asyncio.sleep(0)
    first, second = wire.sent
    assert first == {"log": "*** is refused", "logger": "of.somebody", "level": logging.WARNING}
    assert second["log"].startswith("it failed\nTraceback")
    caplog.clear()
    log_again(second)
    (record,) = caplog.records
    assert (record.name, record.levelno, record.getMessage()) == ("other", logging.ERROR, second["log"])


async def test_a_worker_in_the_same_process_sends_nothing() -> None:
    wire = Wire()
    with forwarded_to(cast(WorkerLink, wire), is_on=False):
        logging.getLogger("of.somebody").warning("seen here anyway")
        await asyncio.sleep(0)
    assert wire.sent == []
