"""When a request is sent again, and after how long: the rules of the OpenAI and Anthropic SDKs, with an end to every pause.

All clients go by them. Those that are made of a configuration repeat requests here, and leave the SDKs no retries of their own.
"""

from __future__ import annotations

import asyncio
import email.utils
import math
import random
import time
from collections.abc import Mapping

from vfgym.clients.pacing import BUSY
from vfgym.context import in_force

_REPEATED = frozenset({408, 409, 429})
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 8.0
_LONGEST_OBEYED = 120.0
"""Seconds; a server that wants a longer pause gets no second request."""


async def repeats(retries: int, max_retries: int, status: int | None = None, headers: Mapping[str, str] | None = None) -> bool:
    """Decide whether a request that failed is sent again and, if so, wait until it is time for that.

    Args:
        retries: How often it was sent again already.
        max_retries: How often it may be.
        status: HTTP status of the answer; None where there was none.
        headers: Headers of the answer.
    """
    if retries >= max_retries or (status is not None and not should_retry(status, headers or {})):
        return False
    pause = pause_before_retry(retries, headers)
    if pause > _seconds_left():
        return False
    pace = in_force().pace if status in BUSY else None
    await (asyncio.sleep(pause) if pace is None else pace.pause(pause))
    return True


def should_retry(status: int, headers: Mapping[str, str]) -> bool:
    """Say whether a request that was answered with an error is sent again.

    Args:
        status: HTTP status of the answer.
        headers: Its headers, in whatever case the mapping takes. ``x-should-retry`` decides where it is given, but for a pause
            that is too long.
    """
    if too_long_a_pause(headers) is not None:
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


def too_long_a_pause(headers: Mapping[str, str]) -> str | None:
    """Say why a pause that a server asks for is not waited for; None where it is, or where it asks for none."""
    pause = _requested_pause(headers)
    if pause is None:
        return None
    if pause > _LONGEST_OBEYED:
        return f"it asked to wait {pause:.0f} s, and {_LONGEST_OBEYED:.0f} s is the longest that a request waits"
    left = _seconds_left()
    return f"it asked to wait {pause:.3g} s, and the rollout's deadline is in {max(left, 0):.3g} s" if pause > left else None


def describe_refusal_to_wait(error: object) -> str | None:
    """Say what too long a pause the server asked for whose answer an SDK's error tells of; None where it asked for none."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    return too_long_a_pause(headers) if isinstance(headers, Mapping) else None


def _seconds_left() -> float:
    deadline = in_force().deadline
    return math.inf if deadline is None else deadline - time.monotonic()


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
