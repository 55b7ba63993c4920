"""Exceptions that end a run, as data: a worker raises them, and its coordinator raises them again."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Mapping
from typing import Any

from vfgym.errors import Error
from vfgym.output.redaction import redact

_SDKS = frozenset({"openai", "anthropic"})
"""Packages whose errors say that a key or a model is refused (see `vfgym.clients.faults`)."""
_ATTRIBUTES = ("status_code", "failure_cause", "extra", "needed_for")
"""What is kept of an exception besides its text, where it has it."""
_LONGEST = 10_000
"""Characters of a text or a traceback."""


def as_data(error: BaseException) -> dict[str, Any]:
    """Return what a coordinator is told of an exception, without secrets."""
    kept = {name: value for name in _ATTRIBUTES if isinstance(value := vars(error).get(name), str | int)}
    return {
        "module": type(error).__module__,
        "name": type(error).__qualname__,
        "text": redact(str(error))[:_LONGEST],
        "notes": [redact(note)[:_LONGEST] for note in getattr(error, "__notes__", ())],
        "attributes": kept,
        "traceback": "" if isinstance(error, Error) else redact("".join(traceback.format_exception(error)))[-_LONGEST:],
    }


def from_data(data: Mapping[str, Any]) -> Exception:
    """Return an exception like the one that a worker told of: of its class, where that is known here, else an `Error`."""
    found = _class_of(data["module"], data["name"])
    text = data["text"]
    error = Error(f"{data['name']}: {text}") if found is None else found.__new__(found, text)
    if found is not None:
        error.args = (text,)
        vars(error).update(data["attributes"])
    for note in data["notes"]:
        error.add_note(note)
    if data["traceback"]:
        error.add_note(f"in a worker:\n{data['traceback']}")
    return error


def _class_of(module: str, name: str) -> type[Exception] | None:
    if module.partition(".")[0] in _SDKS:
        try:
            importlib.import_module(module)
        except ImportError:
            return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None
