"""When a request is sent again, and after how long: the rules of the OpenAI and Anthropic SDKs."""

from __future__ import annotations

import email.utils
import math
import random
import time
from collections.abc import Mapping

_REPEATED = frozenset({408, 409, 429})
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 8.0
_LONGEST_OBEYED = 120.0
"""Seconds; a server that wants a longer pause gets no second request."""


def should_retry(status: int, headers: Mapping[str, str]) -> bool:
    """Say whether a request that was answered with an error is sent again.

    Args:
        status: HTTP status of the answer.
        headers: Its headers, in whatever case the mapping takes. ``x-should-retry`` decides where it is given.
    """
    pause = _requested_pause(headers)
    if pause is not None and pause > _LONGEST_OBEYED:
        return False
    decided = headers.get("x-should-retry")
    if decided in ("true", "false"):
        return decided == "true"
    return status in _REPEATED or status >= 500


def pause_before_retry(retries: int, headers: Mapping[str, str] | None = None) -> float:
    """Return the seconds to wait before a request is sent again.

    Args:
        retries: How often it was sent again already.
        headers: Those of the answer, if there was one: ``retry-after-ms`` and ``Retry-After`` are obeyed.
    """
    requested = _requested_pause(headers) if headers is not None else None
    if requested is not None and 0 < requested <= _LONGEST_OBEYED:
        return requested
    pause = min(_FIRST_PAUSE * 2.0 ** min(retries, 10), _LONGEST_PAUSE)
    return pause * random.uniform(0.75, 1.0)


def _requested_pause(headers: Mapping[str, str]) -> float | None:
    for name, seconds in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            pause = float(value) * seconds
        except ValueError:
            continue
        if not math.isnan(pause):
            return pause
    try:
        return email.utils.parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time()
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
