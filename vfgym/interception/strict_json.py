"""Reads JSON that a program wrote: only what every provider's JSON can say again.

What Python reads beside the standard (``NaN``, halves of a character) it can't write for each provider, and what is nested too deeply for
one writer is not for another: then a request would fail where it is sent, as if it was the provider's doing.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from vfgym.bounded_json import parse_json

MOST_LEVELS = 100
"""Lists and objects inside each other that a program may send."""

_SURROGATE = re.compile(rb"\\u[dD][89abAB]", re.ASCII)


def read_json(data: bytes) -> Any:
    """Return the value that JSON in UTF-8 stands for.

    Raises:
        ValueError: If it is not JSON, has a number that is not finite, text that is not Unicode, or more than `MOST_LEVELS` levels.
    """
    value = parse_json(data.decode("utf-8-sig"), parse_constant=_refuse, parse_float=_finite, most_levels=MOST_LEVELS)
    if _SURROGATE.search(data):  # pairs are fine, and nearly all are pairs
        json.dumps(value, ensure_ascii=False).encode()
    return value


def check_arguments(text: str) -> None:
    """Refuse arguments of a tool that are JSON for Python alone. Text that is not JSON at all passes: models write such arguments, too.

    Raises:
        ValueError: If only Python reads them as JSON.
    """
    try:
        parse_json(text)
    except json.JSONDecodeError:
        return
    read_json(text.encode())


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]} is too large")
    return value
