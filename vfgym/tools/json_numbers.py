"""What Python takes for numbers and JSON does not: truth values, ``NaN`` and ``Infinity``.

To Python `True` is an int, and `json.loads` reads ``NaN``; so pydantic takes both for numbers, also in models of the author's. What a
model was told decides instead: a truth value is wrong where the JSON schema admits no boolean, and a number that is not finite is
wrong everywhere, as is a text that stands for one where a number is wanted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

EXPECTED = {
    "integer": "be an integer",
    "number": "be a number",
    "boolean": "be true or false",
    "string": "be a string",
    "array": "be a list",
    "object": "be an object",
    "null": "be null",
}
"""What a value should do to be of a type of JSON, as messages say it."""

_NAMES: dict[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}

_ANYTHING: Mapping[str, Any] = {}

_DEEPEST = 100
"""Levels of arguments that are compared with their schema: deeper down only numbers that are not finite are wrong."""

_MOST_FOUND = 1000
"""Numbers that are not finite of which the places are told, in one value of any form."""

_Place: TypeAlias = "tuple[_Place, str | int] | None"
"""Where a value stands: the place of what it is in, and its key or index there. Written out only where something is wrong."""


class NoJsonNumber(NamedTuple):
    """A value that is not what the schema asks for at its place, although Python would take it for that."""

    path: str
    """Where it stands, as ``point.x`` or ``items[0]``."""
    value: object
    expectations: list[str]
    """What it should be, such as ``be an integer``: each alternative."""


def no_json_numbers(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> list[NoJsonNumber]:
    """Return the truth values, and the numbers that are not finite, in arguments where the schema wants something else.

    Args:
        arguments: Arguments as JSON data.
        schema: JSON schema of an object.
    """
    return _Search(schema).members(arguments, schema, None, 0)


class _Search:
    """Looks through the arguments of one call.

    A list or an object that fits several forms of a union is looked through once for each form, wherever these stand in each other: else
    the time would double with each level of a union that has itself as a member.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._known: dict[tuple[int, int], list[NoJsonNumber]] = {}
        """What was found in a list or an object, by its id and that of the form."""

    def find(self, value: object, schema: object, place: _Place, depth: int) -> list[NoJsonNumber]:
        """Return what is wrong in a value of which the schema describes the forms."""
        if isinstance(value, list | Mapping):
            kind = "array" if isinstance(value, list) else "object"
            # A value of a union is sound if it is so in one of the forms that it may have.
            forms = [form for form in _forms(schema, self._root) if kind in admitted_types(form, self._root)]
            return min([self._find_in(value, form, place, depth) for form in forms or [_ANYTHING]], key=len)
        if _is_wrong(value, admitted_types(schema, self._root)):
            return [NoJsonNumber(_path(place), value, _expectations(value, schema, self._root))]
        return []

    def _find_in(self, value: object, form: Mapping[str, Any], place: _Place, depth: int) -> list[NoJsonNumber]:
        key = id(value), id(form)
        if key not in self._known:
            is_described = form and depth < _DEEPEST
            self._known[key] = (
                self.members(value, form, place, depth) if is_described else list(islice(_not_finite(value, place), _MOST_FOUND))
            )
        return self._known[key]

    def members(self, value: Any, schema: Mapping[str, Any], place: _Place, depth: int) -> list[NoJsonNumber]:
        """Return what is wrong in the members of a list or an object, of which the schema describes the form."""
        found: list[NoJsonNumber] = []
        if isinstance(value, Mapping):
            described, others = schema.get("properties", {}), schema.get("additionalProperties")
            for name, member in value.items():
                found += self.find(member, described.get(name, others), (place, name), depth + 1)
        else:
            first, others = schema.get("prefixItems", []), schema.get("items")
            for index, member in enumerate(value):
                found += self.find(member, first[index] if index < len(first) else others, (place, index), depth + 1)
        return found


def _path(place: _Place) -> str:
    """Return where a value stands, as ``point.x`` or ``items[0]``."""
    parts: list[str] = []
    while place is not None:
        place, key = place
        parts.append(f"[{key}]" if isinstance(key, int) else f".{key}")
    return "".join(reversed(parts)).removeprefix(".")


def _not_finite(value: object, place: _Place) -> Iterator[NoJsonNumber]:
    """Find numbers that are not finite in data of any form, which may be nested as deep as Python's reader goes."""
    waiting = [(place, value)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += [((place, name), member) for name, member in reversed([*value.items()])]
        elif isinstance(value, list):
            waiting += [((place, index), member) for index, member in reversed([*enumerate(value)])]
        elif isinstance(value, float) and not math.isfinite(value):
            yield NoJsonNumber(_path(place), value, _finite([EXPECTED["number"]]))


def _finite(expectations: list[str]) -> list[str]:
    return [text.replace("a number", "a finite number") for text in expectations]


def _is_wrong(value: object, types: frozenset[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" not in types
    if isinstance(value, float):
        return not math.isfinite(value)
    return isinstance(value, str) and "number" in types and "string" not in types and _stands_for_no_finite_number(value)


def _stands_for_no_finite_number(text: str) -> bool:
    try:
        return not math.isfinite(float(text))
    except ValueError:
        return False


def _forms(schema: object, root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what a schema consists of: the members of a union, each without references."""
    if not isinstance(schema, Mapping):
        return [_ANYTHING]
    if "$ref" in schema:
        return _forms(resolve_reference(schema["$ref"], root), root)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return [form for option in schema[key] for form in _forms(option, root)]
    if len(schema.get("allOf", ())) == 1:
        return _forms(schema["allOf"][0], root)
    return [schema]


def resolve_reference(reference: object, root: Mapping[str, Any]) -> object:
    """Return the schema that a reference such as ``#/$defs/Point`` stands for; None where `root` has none, as for any other document."""
    document, _, pointer = str(reference).partition("#")
    found: object = None if document else root
    for name in pointer.split("/")[1:]:
        found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found


def admitted_types(schema: object, root: Mapping[str, Any]) -> frozenset[str]:
    """Return the types of JSON that a schema admits."""
    return frozenset(kind for form in _forms(schema, root) for kind in _types_of_form(form))


def _types_of_form(form: Mapping[str, Any]) -> list[str]:
    kind = form.get("type")
    if isinstance(kind, str):
        return [kind]
    if isinstance(kind, list):
        return kind
    values = _values(form)
    return list(EXPECTED) if values is None else [_NAMES.get(type(value), "object") for value in values]


def _values(form: Mapping[str, Any]) -> list[object] | None:
    """Return the values to which a form is limited; None if it is not."""
    return [form["const"]] if "const" in form else form.get("enum")


def _expectations(value: object, schema: object, root: Mapping[str, Any]) -> list[str]:
    expected = []
    for form in _forms(schema, root):
        values = _values(form)
        if values is not None:
            expected.append(f"be {' or '.join(map(repr, values))}")
        elif len(kinds := _types_of_form(form)) < len(EXPECTED):
            expected.extend(EXPECTED.get(kind, f"be of type {kind}") for kind in kinds)
        else:
            expected.append(EXPECTED["number"])
    return expected if isinstance(value, bool) else _finite(expected)
