"""Whatever a state may hold, as plain JSON data."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import PurePath
from typing import Any

import numpy as np

from vfgym.bounded_json import is_deep, may_be_deep
from vfgym.output.redaction import Secret, redact
from vfgym.results.dropped_values import Place, StandIn, resolve_stand_ins


class NotPlain(TypeError):
    """A value has no form in JSON."""


DEEPEST = 100
"""Levels of data that `as_json` goes through."""


def as_json(value: Any, fallback: Callable[[Any], Any] | None = None, *, depth: int = 0) -> Any:
    """Return `value` as data that JSON can hold: dicts with string keys, lists, text, numbers, booleans and None.

    Numbers that JSON does not know (infinity, not a number) become None; see `number_as_text` for those that must come back.

    Args:
        value: Mappings, sequences, sets (which become sorted lists), NumPy values, dataclasses, pydantic models, exceptions,
            dates, paths, enums.
        fallback: Gives what stands for a value of any other type.
        depth: Levels of data that the value is inside of.

    Raises:
        NotPlain: If there is a value of another type and no fallback, or data are nested more deeply than `DEEPEST`.
    """
    if depth > DEEPEST:
        raise NotPlain(f"it is nested more than {DEEPEST} levels deep")
    if value is None or isinstance(value, str | bool):
        return value.display if isinstance(value, Secret) else value
    if isinstance(value, enum.Enum):
        return as_json(value.value, fallback, depth=depth + 1)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_key(key): as_json(item, fallback, depth=depth + 1) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist(), fallback, depth=depth + 1)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return [as_json(item, fallback, depth=depth + 1) for item in value]
    if isinstance(value, Set):  # in an order of its own: that of a set of strings differs from process to process
        return sorted((as_json(item, fallback, depth=depth + 1) for item in value), key=_LINE.encode)
    if hasattr(value, "model_dump"):
        return as_json(value.model_dump(), fallback, depth=depth + 1)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_json(getattr(value, field.name), fallback, depth=depth + 1) for field in dataclasses.fields(value)}
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, BaseException):
        return redact(repr(value))
    if fallback is None:
        raise NotPlain(f"{type(value).__name__} has no form in JSON")
    return fallback(value)


_UNKNOWN_TO_JSON = ("nan", "inf", "-inf")


def number_as_text(value: Any) -> Any:
    """Return a number that JSON does not know as text: ``"nan"``, ``"inf"``, ``"-inf"``. Anything else stays as it is.

    >>> number_as_text(float("-inf")), number_as_text(0.5), number_as_text(None)
    ('-inf', 0.5, None)
    """
    return str(float(value)) if isinstance(value, float) and not math.isfinite(value) else value


def read_number(value: Any) -> Any:
    """Return the number that `number_as_text` wrote as text. Anything else stays as it is."""
    return float(value) if value in _UNKNOWN_TO_JSON else value


def _key(key: Any) -> str:
    return key if type(key) is str else str(key)


_LINE = json.JSONEncoder(allow_nan=False)  # made once: json.dumps makes one a call where any option is given
_INDENTED = json.JSONEncoder(allow_nan=False, indent=2)


def json_text(value: Any, *, is_indented: bool = False) -> str:
    """Return `value` as strict JSON text; what has no form in JSON stands as its ``repr``."""
    encode = (_INDENTED if is_indented else _LINE).encode
    try:
        text = encode(value)
    except (TypeError, ValueError, RecursionError):
        return encode(as_json(value, fallback=repr))
    return encode(as_json(value, fallback=repr)) if may_be_deep(text) and is_deep(value) else text


def line_of(row: Mapping[str, Any], places: list[Place]) -> str:
    """Return a row as one line of JSON, whatever its values are: one that even `as_json` cannot read stands as its ``repr``.

    Args:
        row: The row.
        places: Gets the places of what stands as its ``repr``.
    """
    try:
        text = _LINE.encode(row)
        if may_be_deep(text) and is_deep(row):  # it could not be read back
            raise RecursionError
        return text
    except (TypeError, ValueError, RecursionError):
        return _LINE.encode({_key(key): _report(value, _key(key), places) for key, value in _with_written_numbers(row).items()})


def _with_written_numbers(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row in which rewards and metrics that JSON does not know are text, so that they can be read back."""
    metrics = row.get("metrics")
    names = ("reward", "counted_reward", "return")
    if isinstance(metrics, Mapping):
        names = (*names, *metrics)
        row = {**row, "metrics": {name: number_as_text(value) for name, value in metrics.items()}}
    return {**row, **{name: number_as_text(row[name]) for name in names if name in row}}


def _report(value: Any, path: str, places: list[Place]) -> Any:
    try:
        return resolve_stand_ins(as_json(value, fallback=_as_text), path, places)
    except Exception as error:  # an object that holds itself, or whose own code raises
        places.append(Place(path, str(error) or repr(error)))
        try:
            return repr(value)
        except RecursionError:
            return "(data that are nested too deeply to be shown)"


def _as_text(value: Any) -> StandIn:
    return StandIn.of(repr(value), f"{type(value).__name__} has no form in JSON")
