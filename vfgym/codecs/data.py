"""JSON data as text, and the shapes in which models write it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from vfgym.codecs.problems import ActionNotFound
from vfgym.codecs.relaxed import read_json
from vfgym.codecs.thinking import MARKUP

_STARTS_OF_MARKUP = re.compile(r"[<\[\u25c1]")


def json_text(data: Any) -> str:
    r"""Return JSON data as text in which whole numbers have no fraction and nothing can be taken for a message's markup.

    >>> json_text([0.5, -1.0, {"say": "</action>"}])
    '[0.5, -1, {"say": "\\u003c/action>"}]'
    """
    if type(data) is float:
        return number_text(data)
    if isinstance(data, list):
        return "[" + ", ".join([json_text(item) for item in data]) + "]"
    if isinstance(data, dict):
        return "{" + ", ".join([f"{json_text(key)}: {json_text(value)}" for key, value in data.items()]) + "}"
    text = json.dumps(data, ensure_ascii=False)
    return _STARTS_OF_MARKUP.sub(lambda start: f"\\u{ord(start[0]):04x}", text) if MARKUP.search(text) else text


def number_text(number: float) -> str:
    """Return a number in its shortest form: -1 for -1.0, but -0.0 for -0.0, which is another number."""
    if number.is_integer() and abs(number) < 1e15 and (number or math.copysign(1.0, number) > 0):
        return str(int(number))
    return repr(number)


def quote_data(data: Any) -> str:
    """Return data as an error message shows it."""
    try:
        text = json.dumps(data, ensure_ascii=False)
    except RecursionError:
        return "data that are nested too deeply"
    except (TypeError, ValueError):
        text = repr(data)
    return text if len(text) <= 60 else f"{text[:50]}..."


def sequence_of(data: Any) -> Sequence[Any] | None:
    """Return data that is a list (a tuple or the text of a list will do), or ``None``."""
    if isinstance(data, list | tuple):
        return data
    opened = _from_text(data, "[(")
    return opened if isinstance(opened, list) else None


def elements_of(data: Any, count: int) -> Sequence[Any]:
    """Return data that is a list of `count` elements.

    Raises:
        ActionNotFound: If it is not.
    """
    items = sequence_of(data)
    elements = f"{count} element{'' if count == 1 else 's'}"
    if items is None:
        raise ActionNotFound(f"must be a list of {elements}, got {quote_data(data)}")
    if len(items) != count:
        raise ActionNotFound(f"must have {elements}, got {len(items)}")
    return items


def mapping_of(data: Any) -> Mapping[str, Any] | None:
    """Return data that is an object (the text of one will do), or ``None``."""
    if isinstance(data, Mapping):
        return data
    opened = _from_text(data, "{")
    return opened if isinstance(opened, Mapping) else None


def _from_text(data: Any, openers: str) -> Any:
    """Return the data inside a string: models put lists and objects in quotes when they call tools."""
    if isinstance(data, str) and data.strip()[:1] in tuple(openers):
        try:
            return read_json(data)
        except ValueError:
            return None
    return None
