"""Tools as small forms: the arguments are asked one by one, and each is checked by the tool's schema before it counts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from referencing.exceptions import Unresolvable

from vfgym.bounded_json import parse_json
from vfgym.errors import Error, ToolParseError
from vfgym.play.lines import Answer, PlayerCommand, asks_for_help, read_line
from vfgym.tools.arguments import parse_arguments

_KINDS = {"object": "object, as JSON", "array": "list, as JSON", "string": "text", "boolean": "true | false"}
"""What types of JSON are called, where it is not by their own names."""


class WrongArgument(Error):
    """A value does not fit the schema; the text says what was expected."""


class FormLeft(Exception):
    """The player left the form without calling the tool."""


def fill_form(
    tool: Mapping[str, Any], ask: Callable[[str], str], tell: Callable[[str], None], refuse: Callable[[WrongArgument], None]
) -> dict[str, Any]:
    """Return the arguments of a tool as the player gives them, one by one or as a JSON object on one line.

    Args:
        tool: Its name, description and parameters.
        ask: Shows a prompt and returns the line that is typed.
        tell: Shows a line.
        refuse: Shows why a value does not fit, which is asked for again.

    Raises:
        FormLeft: If the player leaves the form.
    """
    schema = tool.get("parameters") or {}
    properties, required = schema.get("properties") or {}, schema.get("required") or ()
    arguments: dict[str, Any] = {}
    if properties:
        tell("(one value a line, or all as a JSON object; ? explains, /cancel leaves)")
    for name, described in properties.items():
        is_first = not arguments
        while True:
            line = ask(f"{name} ({_kind(described, schema)}{'' if name in required else ', optional'}): ")
            text = line.strip()
            if text.casefold() == "/cancel":
                raise FormLeft
            if not text and name not in required:
                break
            if asks_for_help(text):
                tell(explain(name, described, schema))
                continue
            match read_line(line):
                case PlayerCommand(command):
                    tell(f"(there is no /{command} in a form: /cancel leaves it, and /say {text} gives that text)")
                    continue
                case Answer(said) if text.startswith("/"):
                    text = said
            try:
                if is_first and text.startswith("{") and not _fits(text, described, schema):
                    return read_arguments(tool, text)
                arguments[name] = read_value(text, described, schema)
            except WrongArgument as error:
                refuse(error)
                continue
            break
    return arguments


def read_arguments(tool: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the arguments that a JSON object on one line gives.

    Raises:
        WrongArgument: If they do not fit the tool.
    """
    try:
        arguments = parse_arguments(tool["name"], text)
    except ToolParseError as error:
        raise WrongArgument(str(error)) from error
    problem = _problem(arguments, tool.get("parameters") or {})
    if problem:
        raise WrongArgument(f"{tool['name']}: {problem}")
    return arguments


def read_value(text: str, schema: Any, root: Mapping[str, Any]) -> Any:
    """Return the value that a text stands for: what it is as JSON where that fits the schema, else the text itself.

    Args:
        text: What was typed.
        schema: What the value has to fit.
        root: The schema of all arguments, which has the definitions.

    Raises:
        WrongArgument: If it fits in neither way.

    >>> read_value("5", {"type": "integer"}, {}), read_value("5", {"type": "string"}, {})
    (5, '5')
    """
    whole = _with_definitions(schema, root)
    try:
        value = parse_json(text)
    except ValueError:
        value = text
    problem = _problem(value, whole)
    if not problem:
        return value
    if not _problem(text, whole):
        return text
    raise WrongArgument(f"{problem}; it has to be: {_kind(schema, root)}")


def explain(name: str, schema: Any, root: Mapping[str, Any]) -> str:
    """Return what an argument is, in a line or two."""
    described = schema if isinstance(schema, Mapping) else {}
    text = f"{name}: {_kind(schema, root)}"
    text += f", {json.dumps(described['default'])} by default" if "default" in described else ""
    return f"{text}. {described['description']}" if described.get("description") else text


def signature(tool: Mapping[str, Any]) -> str:
    """Return a tool as it is called, optional arguments with a question mark: ``add(a, b?)``."""
    schema = tool.get("parameters") or {}
    required = schema.get("required") or ()
    return f"{tool['name']}({', '.join(name if name in required else f'{name}?' for name in schema.get('properties') or ())})"


def _fits(text: str, schema: Any, root: Mapping[str, Any]) -> bool:
    try:
        read_value(text, schema, root)
    except WrongArgument:
        return False
    return True


def _with_definitions(schema: Any, root: Mapping[str, Any]) -> Any:
    """Return the schema of one argument with the definitions that it may refer to."""
    definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
    return {**definitions, **schema} if isinstance(schema, Mapping) and definitions else schema


def _problem(value: Any, schema: Any) -> str:
    """Return what is wrong with a value; empty if nothing is, or the schema itself cannot be read (the tool will say)."""
    try:
        found = best_match(Draft202012Validator(schema).iter_errors(value))
    except RecursionError:
        return "it is nested too deeply"
    except (SchemaError, Unresolvable, re.error, LookupError, TypeError, ValueError):
        return ""
    if found is None:
        return ""
    path = ".".join(map(str, found.absolute_path))
    return f"{path}: {found.message}" if path else str(found.message)


def _kind(schema: Any, root: Mapping[str, Any]) -> str:
    """Return in a few words what a value may be."""
    if not isinstance(schema, Mapping):
        return "anything"
    if "$ref" in schema:
        target: Any = root
        for part in str(schema["$ref"]).removeprefix("#/").split("/"):
            target = target.get(part, {}) if isinstance(target, Mapping) else {}
        return _kind({key: value for key, value in target.items() if key != "$ref"}, root)
    if "enum" in schema:
        return " | ".join(value if isinstance(value, str) else json.dumps(value) for value in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_kind(option, root) for option in schema[key]))
    kind = schema.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        return f"list of {_kind(schema['items'], root)}, as JSON"
    return _KINDS.get(str(kind), str(kind))
