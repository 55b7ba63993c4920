"""The arguments of a tool call, as data."""

from __future__ import annotations

from typing import Any

from vfgym.bounded_json import parse_json


def json_args(value: str | None) -> dict[str, Any]:
    """Return the arguments of a tool call, which a model sends as JSON text; none for an empty text.

    Raises:
        ValueError: If the text is not JSON, or not an object.
    """
    arguments = parse_json(value) if value else {}
    if not isinstance(arguments, dict):
        raise ValueError(f"the arguments of a tool call must be a JSON object, got {type(arguments).__name__}: {value!r:.100}")
    return arguments
