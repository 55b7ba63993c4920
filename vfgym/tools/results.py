"""What a tool returned, as the content of the message that the model reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set, ValuesView
from enum import Enum
from typing import TypeGuard

from pydantic_core import to_json

CONTENT_PART_TYPES = ("text", "image_url", "input_audio")
"""Content parts a tool message may hold. Each carries its payload under a key of the same name."""


def result_content(value: object) -> str | list[dict[str, object]]:
    """Return the content of the tool message that reports `value`.

    Text stays as it is, a list of content parts stays a list of content parts, and everything else becomes compact
    JSON text, so that a model never reads a Python `repr` of a dict.

    >>> result_content({"done": True, "left": None})
    '{"done":true,"left":null}'
    >>> result_content([{"type": "text", "text": "hi"}])
    [{'type': 'text', 'text': 'hi'}]
    """
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return value
    if are_content_parts(value):
        return [dict(part) for part in value]
    return compact_json(value)


def are_content_parts(value: object) -> TypeGuard[list[Mapping[str, object]]]:
    """Say whether a value is a list of content parts. An empty one is not: providers refuse content without a part."""
    return isinstance(value, list) and bool(value) and all(map(_is_content_part, value))


def compact_json(value: object) -> str:
    """Return `value` as compact JSON text, and what JSON cannot express as a string."""
    try:
        return to_json(value, fallback=_jsonable, inf_nan_mode="strings").decode()
    except ValueError:
        # Bytes or text that are not valid Unicode, which pydantic-core refuses even below a fallback, or a cycle.
        pass
    try:
        return json.dumps(value, default=str, separators=(",", ":"))
    except RecursionError:
        return "(data that are nested too deeply to be shown)"
    except (TypeError, ValueError):
        return str(value)


def _is_content_part(item: object) -> bool:
    """Tell parts from records that merely have a field called `type`."""
    return isinstance(item, Mapping) and item.get("type") in CONTENT_PART_TYPES and item["type"] in item


def _jsonable(value: object) -> object:
    """Stand in for an object that pydantic-core does not know: arrays, views and foreign containers, else its text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence | Set | ValuesView):
        return list(value)
    return str(value)
