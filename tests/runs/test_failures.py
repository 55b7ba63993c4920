"""Failures in the log: the first as a warning, further ones for those who look closer, and a traceback where words don't say enough."""

from __future__ import annotations

import logging

import pytest

from vfgym.errors import InfraError
from vfgym.runs.failures import FailureLog


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


def test_only_the_first_of_a_run_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "vfgym.runs.failures")
    for log in (FailureLog(), FailureLog()):
        log.note(7, 0, ValueError("one"))
        log.note(7, 1, ValueError("two"))
        log.note(0, 2, ValueError("three"))
    assert [record.levelname for record in caplog.records] == ["WARNING", "DEBUG", "DEBUG"] * 2
    assert "rollout 1 of example 7 failed: ValueError('two')" in caplog.records[1].getMessage()
    assert "rollout 2 of example 0 failed" in caplog.records[2].getMessage()


@pytest.mark.parametrize(("error", "has_traceback"), [(LookupError("a bug"), True), (InfraError("no disk"), False)])
def test_an_error_of_the_library_needs_no_traceback(error: Exception, has_traceback: bool, caplog: pytest.LogCaptureFixture) -> None:
    FailureLog().note(0, 0, raised(error))
    (record,) = caplog.records
    assert str(error) in record.getMessage()
    assert ((record.exc_info or (None, None))[1] is error) is has_traceback
