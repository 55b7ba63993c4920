"""What reward functions that ask a judge need: the answer as text, and the verdict as data."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

from vfgym.bounded_json import parse_json
from vfgym.messages import content_text

LONGEST_TEXT = 6000
"""Characters that `truncate_text` leaves by default."""

_MARK = "\n...<truncated>"
_RECORDED: Mapping[str, int] = {"command": 2000, "stdout": LONGEST_TEXT, "stderr": LONGEST_TEXT}


def completion_text(completion: Any) -> str:
    """Return the text of the last assistant message of a completion; text as it is, and an empty text for None.

    >>> completion_text([{"role": "assistant", "content": "four"}, {"role": "tool", "content": "4"}])
    'four'
    """
    if completion is None or isinstance(completion, str):
        return completion or ""
    messages = [completion] if isinstance(completion, Mapping) else completion
    if isinstance(messages, Iterable):
        for message in reversed(list(messages)):
            if isinstance(message, Mapping) and message.get("role") == "assistant":
                return content_text(message.get("content"))
        return ""
    return str(completion)


def parse_judge_json(text: str) -> dict[str, Any]:
    """Return the JSON object that a judge wrote, alone, in a fence, or with words around it.

    Returns:
        The object. Where there is none, ``{"score": 0.0, "reason": "judge did not return JSON", "raw": text}``.

    >>> parse_judge_json('My verdict: {"score": 1}')
    {'score': 1}
    """
    for candidate in (text, text[text.find("{") : text.rfind("}") + 1]):
        with contextlib.suppress(ValueError):
            value = parse_json(candidate)
            if isinstance(value, dict):
                return value
    return {"score": 0.0, "reason": "judge did not return JSON", "raw": text}


def clamp_float(value: Any) -> float:
    """Return a number, or one as text, as a float between 0 and 1; 0.0 for anything else.

    >>> [clamp_float(value) for value in (0.5, "0.7", 3, "good")]
    [0.5, 0.7, 1.0, 0.0]
    """
    try:
        number = 0.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return 0.0
    return 0.0 if math.isnan(number) else min(1.0, max(0.0, number))


def truncate_text(text: str, limit: int = LONGEST_TEXT) -> str:
    """Return a text of no more than `limit` characters as it is, a longer one cut there and marked."""
    return text if len(text) <= limit else text[:limit] + _MARK


def truncate_command_record(record: Any) -> Any:
    """Return what was recorded of a command (``state["command"]``) with its command, output and errors as truncated texts."""
    if not isinstance(record, Mapping):
        return record
    return {**record, **{name: truncate_text(str(record.get(name) or ""), limit) for name, limit in _RECORDED.items()}}
