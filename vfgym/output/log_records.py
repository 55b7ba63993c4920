"""Log records: without the secrets that the process knows, those of this library with control characters escaped.

The SDKs log the headers and URLs of requests at DEBUG, and their loggers are not the only ones. So it is done where records are
made, for all loggers; a record without a secret is left as it is.
"""

from __future__ import annotations

import functools
import logging
import traceback
from collections.abc import Callable
from typing import Any

from vfgym.output.redaction import redact
from vfgym.output.terminal import display_text

OWN_LOGGERS = frozenset({"vfgym", "verifiers_compat", "verifiers"})
"""The first names of loggers whose records hold what models answered."""


def protect_log_records() -> None:
    """Make every log record of this process safe to show. A second call does nothing."""
    made_before = logging.getLogRecordFactory()
    if not getattr(made_before, "is_protecting", False):
        factory = functools.partial(_safe_record, made_before)
        factory.is_protecting = True  # type: ignore[attr-defined]
        logging.setLogRecordFactory(factory)


def _safe_record(make: Callable[..., logging.LogRecord], *arguments: Any, **fields: Any) -> logging.LogRecord:
    record = make(*arguments, **fields)
    protect = display_text if str(record.name).partition(".")[0] in OWN_LOGGERS else redact
    try:
        message = record.getMessage()
    except Exception:  # the arguments do not fit the text: the handler that shows it says so
        return record
    safe = protect(message)
    if safe != message:
        record.msg, record.args = safe, ()
    if record.exc_info and record.exc_info[0] is not None:
        text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        safe = protect(text)
        if safe != text:
            # The text, which formatters take if there is one. Not the exception, which some format themselves.
            record.exc_info, record.exc_text = None, safe
    return record
