"""No log record of the process holds a secret that it knows; those of this library hold no control characters either."""

from __future__ import annotations

import logging

import pytest

import vfgym  # which protects records
from vfgym.output.log_records import protect_log_records
from vfgym.output.redaction import Secret


@pytest.mark.parametrize(("logger", "is_own"), [("vfgym.runs", True), ("verifiers_compat", True), ("verifiers", True), ("somebody", False)])
def test_records_hold_no_secret(logger: str, is_own: bool, caplog: pytest.LogCaptureFixture) -> None:
    secret = str.__str__(Secret("sk-record-1234567890"))
    logging.getLogger(logger).warning("the key %s was refused\x1b", secret)
    assert caplog.messages == ["the key *** was refused" + (r"\x1b" if is_own else "\x1b")]


def test_tracebacks_in_records_hold_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    secret = str.__str__(Secret("sk-traceback-1234567890"))
    try:
        raise RuntimeError(secret)
    except RuntimeError:
        logging.getLogger("vfgym.test").exception("it failed")
    assert "RuntimeError: ***" in caplog.text
    assert secret not in caplog.text


def test_a_record_without_a_secret_keeps_its_parts_whether_they_fit_or_not(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("vfgym.test").warning("%s of %d", "one", 2)
    (record,) = caplog.records
    assert (record.msg, record.args) == ("%s of %d", ("one", 2))
    record = logging.getLogRecordFactory()("vfgym", logging.INFO, "file", 1, "%d", ("text",), None)
    assert (record.msg, record.args) == ("%d", ("text",))


def test_protecting_twice_changes_nothing() -> None:
    assert vfgym.__version__
    factory = logging.getLogRecordFactory()
    protect_log_records()
    assert logging.getLogRecordFactory() is factory
