"""JSON that others wrote: models, programs, servers, files. Its levels are bounded, so that no stack ends, whoever goes through it.

Nothing else in the packages parses JSON, but for what runs inside of sandboxes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

MOST_LEVELS = 200
"""Lists and objects inside each other. Python's own limit is about a thousand less the depth of the stack, and whoever goes through data
needs some of the stack for each level. Real arguments, answers and rows have ten levels or less."""


def parse_json(
    text: str | bytes | bytearray,
    *,
    parse_constant: Callable[[str], Any] | None = None,
    parse_float: Callable[[str], Any] | None = None,
    most_levels: int = MOST_LEVELS,
) -> Any:
    """Return the data that JSON text holds.

    Args:
        text: The JSON, as text or in UTF-8, UTF-16 or UTF-32.
        parse_constant: What to do with ``NaN``, ``Infinity`` and ``-Infinity``, which are not JSON; they are numbers by default.
        parse_float: What to do with numbers that have a point or an exponent.
        most_levels: The bound, where it is a smaller one.

    Raises:
        ValueError: If it is not JSON (a `json.JSONDecodeError`), has a number of more digits than Python reads, or is nested more deeply
            than the bound.

    >>> parse_json('{"a": [1]}')
    {'a': [1]}
    >>> parse_json("[" * 201 + "]" * 201)
    Traceback (most recent call last):
        ...
    ValueError: the JSON is nested more than 200 levels deep
    """
    try:
        data = json.loads(text, parse_constant=parse_constant, parse_float=parse_float)
    except RecursionError:
        raise _too_deep(most_levels) from None
    if may_be_deep(text, most_levels) and is_deep(data, most_levels):
        raise _too_deep(most_levels)
    return data


def dump_json(value: Any) -> str:
    """Return data as compact JSON text, in ASCII.

    Raises:
        ValueError: If they are nested more than `MOST_LEVELS` levels deep, or hold themselves.
        TypeError: If they have no form in JSON.
    """
    try:
        text = json.dumps(value, separators=(",", ":"))
    except RecursionError:
        raise _too_deep() from None
    if may_be_deep(text) and is_deep(value):
        raise _too_deep()
    return text


def may_be_deep(text: str | bytes | bytearray, most_levels: int = MOST_LEVELS) -> bool:
    """Say whether JSON text has brackets enough for more levels; most have not, and that is known at once."""
    if isinstance(text, str):
        return text.count("[") + text.count("{") > most_levels
    return text.count(b"[") + text.count(b"{") > most_levels


def is_deep(data: Any, most_levels: int = MOST_LEVELS) -> bool:
    """Say whether data as `json.loads` returns them have more levels; it looks at each of them once."""
    level, depth = [data], 0
    while level := [each for each in level if isinstance(each, dict | list | tuple)]:
        depth += 1
        if depth > most_levels:
            return True
        level = [item for each in level for item in (each.values() if isinstance(each, dict) else each)]
    return False


def _too_deep(most_levels: int = MOST_LEVELS) -> ValueError:
    return ValueError(f"the JSON is nested more than {most_levels} levels deep")
