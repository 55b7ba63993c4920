"""The arguments of a tool call, from the text that a model sent, and what to tell the model when they are wrong."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError

from vfgym.bounded_json import parse_json
from vfgym.errors import ToolParseError, did_you_mean
from vfgym.tools.json_numbers import EXPECTED, NoJsonNumber
from vfgym.tools.results import compact_json

MAX_PROBLEMS = 20
"""Problems that one message spells out; a list of a thousand wrong items must not flood the conversation."""

MAX_SHOWN = 80
"""Characters of a wrong value that a message quotes."""

_TYPES = {
    **{"int": "integer", "float": "number", "bool": "boolean", "string": "string", "none": "null"},
    **dict.fromkeys(("list", "tuple", "set", "frozen_set"), "array"),
    **dict.fromkeys(("dict", "model", "model_attributes", "dataclass"), "object"),
}
"""The types of JSON that pydantic's type errors are about, by their code without its last word (`int_parsing`)."""


def parse_arguments(tool: str, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a model sent as a dict.

    Models send an empty text for tools without arguments, and some encode the object twice: both are understood.

    Args:
        tool: Name of the tool, for the message.
        arguments: JSON text, or arguments that were parsed before.

    Raises:
        ToolParseError: The text is not JSON, or not a JSON object. The message is written for the model.
    """
    value = _parse_json(tool, arguments) if isinstance(arguments, str) else arguments
    cause = None
    if isinstance(value, str):
        try:
            value = _parse_json(tool, value)
        except ToolParseError as error:
            cause = error.__cause__
    if isinstance(value, Mapping):
        return dict(value)
    raise ToolParseError(f"{tool}: the arguments should be a JSON object, got {_shorten(value)}") from cause


def decode_embedded(arguments: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return those of the arguments called `names` that were sent as a text holding JSON, decoded."""
    decoded = {}
    for name in names:
        text = arguments.get(name)
        if isinstance(text, str):
            with contextlib.suppress(ValueError):
                decoded[name] = parse_json(text)
    return {name: value for name, value in decoded.items() if not isinstance(value, str)}


def describe_problems(
    error: ValidationError | None, no_numbers: Sequence[NoJsonNumber], arguments: Mapping[str, Any], expected: Iterable[str]
) -> str:
    """Return every problem in the arguments of one call, in one line for the model.

    Args:
        error: What validation raised, if it did.
        no_numbers: What is not a number although Python takes it for one.
        arguments: The arguments that were validated.
        expected: Names of the arguments that the tool has.
    """
    problems: list[str] = []
    unknown: list[str] = []
    unmet = {each.path: each.expectations for each in no_numbers}
    values = {each.path: each.value for each in no_numbers}
    known = frozenset(unmet)
    for problem in error.errors(include_url=False, include_context=False) if error is not None else ():
        location, code = problem["loc"], problem["type"]
        path = _path(location, arguments)
        if path in known:
            continue
        if code == "missing":
            problems.append(f'missing argument "{f"{path}." if path else ""}{location[-1]}"')
        elif code == "extra_forbidden" and len(location) == 1:
            unknown.append(path)
        elif code == "extra_forbidden":
            problems.append(f'unknown argument "{path}"')
        elif expectation := _expectation(code, problem["msg"]):
            values[path] = problem["input"]
            unmet.setdefault(path, []).append(expectation)
        else:
            remark = problem["msg"].removeprefix("Value error, ")
            problems.append(f'argument "{path}": {remark}, got {_shorten(problem["input"])}')
    # The members of a union each say what they expect: together they are one problem.
    for path, expectations in unmet.items():
        alternatives = " or ".join(dict.fromkeys(expectations)).replace(" or be ", " or ")
        problems.append(f'argument "{path}" should {alternatives}, got {_shorten(values[path])}')
    if unknown:
        problems.append(describe_unknown(unknown, expected))
    if len(problems) > MAX_PROBLEMS:
        problems[MAX_PROBLEMS:] = [f"and {len(problems) - MAX_PROBLEMS} more problems"]
    return "; ".join(problems)


def describe_unknown(unknown: Sequence[str], expected: Iterable[str]) -> str:
    """Return the problem that a tool has no arguments called `unknown`."""
    known = list(expected)
    names = ", ".join(f'"{name}"' for name in unknown)
    hint = did_you_mean(unknown[0], known) if len(unknown) == 1 else ""
    return f"unknown argument{'s' if len(unknown) > 1 else ''} {names} (expected: {', '.join(known) or 'none'}){hint}"


def _parse_json(tool: str, text: str) -> Any:
    """Parse `text`; an empty one is an empty object."""
    try:
        return parse_json(text)
    except json.JSONDecodeError as error:
        if not text.strip():
            return {}
        excerpt = text[max(0, error.pos - MAX_SHOWN // 2) : error.pos + MAX_SHOWN // 2]
        raise ToolParseError(f"{tool}: the arguments are not valid JSON: {error}, at {excerpt!r}") from error
    except ValueError as error:
        # Numbers of more than 4,300 digits and lists nested hundreds deep are JSON, but not to us.
        raise ToolParseError(f"{tool}: the arguments cannot be read: {error}; got {text[:MAX_SHOWN]!r}") from error


def _path(location: Sequence[int | str], arguments: Mapping[str, Any]) -> str:
    """Return where a problem lies, as `point.x` or `items[0]`.

    Pydantic mixes keys with names of union members and of validators: only the keys lead somewhere in the arguments.
    """
    path, value = "", cast(object, arguments)
    for key in location:
        if isinstance(value, Mapping) and key in value:
            path, value = f"{path}.{key}" if path else str(key), value[key]
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            path, value = f"{path}[{key}]", value[key]
    return path


def _expectation(code: str, message: str) -> str:
    """Return what a value should do or be, or an empty string if pydantic's message does not put it so."""
    kind = _TYPES.get("int" if code == "int_from_float" else code.rpartition("_")[0])
    return message.partition(" should ")[2] if kind is None else EXPECTED[kind]


def _shorten(value: object) -> str:
    """Return `value` as JSON text, shortened; NaN and the infinities as Python's reader takes them."""
    text = json.dumps(value) if isinstance(value, float) else compact_json(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
