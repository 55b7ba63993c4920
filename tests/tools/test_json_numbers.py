"""Truth values and numbers that are not finite, where a schema wants something else."""

from __future__ import annotations

import math
from typing import Any

import pytest

from vfgym.tools.json_numbers import admitted_types, no_json_numbers, resolve_reference

POINT = {"type": "object", "properties": {"x": {"type": "number"}, "on": {"type": "boolean"}}}
ROOT = {
    "properties": {
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "on": {"type": "boolean"},
        "text": {"type": "string"},
        "either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
        "number_or_text": {"type": ["number", "string"]},
        "points": {"type": "array", "items": {"$ref": "#/$defs/Point"}},
        "pair": {"type": "array", "prefixItems": [{"type": "boolean"}, {"type": "integer"}], "items": {"type": "boolean"}},
        "choice": {"enum": [1, 2]},
        "one": {"const": True},
        "wrapped": {"allOf": [{"type": "integer"}]},
        "tree": {"oneOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/properties/tree"}}]},
        "form": {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "object", "properties": {"x": {"type": "boolean"}}}]},
        "anything": {},
        "both": {"allOf": [{"type": "integer"}, {"minimum": 0}]},
        "many": {"type": "object", "additionalProperties": {"type": "integer"}},
        "closed": {"type": "object", "additionalProperties": False},
        "open": {"type": "object", "additionalProperties": True},
        "bits": {"type": "array", "items": {"enum": [0, "x", None]}},
        "plain": {"type": "array", "prefixItems": [{"type": "integer"}]},
        "nothing": {"const": None},
        "odd": {"type": "decimal"},
    },
    "additionalProperties": {"type": "integer"},
    "$defs": {"Point": POINT},
}


def problems(**arguments: Any) -> list[tuple[str, list[str]]]:
    return [(each.path, each.expectations) for each in no_json_numbers(arguments, ROOT)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"count": 0, "ratio": 0.5, "on": False, "text": "NaN", "either": True, "number_or_text": "nan"},
        {"points": [{"x": 1, "on": True}, {}], "pair": [True, 0, False, True], "choice": 1, "one": True},
        {"tree": [[], [[None]]], "form": {"x": True}, "anything": [True, {"a": 1.5}], "more": 7},
        {"count": "nan", "choice": "inf", "one": False, "many": {"a": "nan"}, "either": False, "pair": []},
        {"both": True, "closed": {"a": True}, "open": {"a": [True]}, "bits": [0, "x", None]},
        {"count": "7", "ratio": "1.5", "points": "no list"},
        {},
    ],
)
def test_what_is_sound(arguments: dict[str, Any]) -> None:
    assert problems(**arguments) == []


@pytest.mark.parametrize(
    ("arguments", "path", "expectations"),
    [
        ({"count": True}, "count", ["be an integer"]),
        ({"ratio": False}, "ratio", ["be a number"]),
        ({"ratio": math.nan}, "ratio", ["be a finite number"]),
        ({"ratio": "Infinity"}, "ratio", ["be a finite number"]),
        ({"ratio": "-inf"}, "ratio", ["be a finite number"]),
        ({"text": True}, "text", ["be a string"]),
        ({"either": math.inf}, "either", ["be an integer", "be true or false"]),
        ({"points": [{"x": 1}, {"x": True}]}, "points[1].x", ["be a number"]),
        ({"pair": [True, True]}, "pair[1]", ["be an integer"]),
        ({"choice": True}, "choice", ["be 1 or 2"]),
        ({"wrapped": True}, "wrapped", ["be an integer"]),
        ({"tree": [[True]]}, "tree[0][0]", ["be null", "be a list"]),
        ({"form": {"x": math.nan}}, "form.x", ["be a finite number"]),
        ({"anything": {"a": [0, {"b": math.inf}]}}, "anything.a[1].b", ["be a finite number"]),
        ({"anything": -math.inf}, "anything", ["be a finite number"]),
        ({"on": math.nan}, "on", ["be true or false"]),
        ({"number_or_text": math.nan}, "number_or_text", ["be a finite number", "be a string"]),
        ({"number_or_text": False}, "number_or_text", ["be a number", "be a string"]),
        ({"many": {"a": 1, "b": True}}, "many.b", ["be an integer"]),
        ({"bits": [0, False]}, "bits[1]", ["be 0 or 'x' or None"]),
        ({"plain": [1, math.nan]}, "plain[1]", ["be a finite number"]),
        ({"plain": [True, True]}, "plain[0]", ["be an integer"]),
        ({"nothing": False}, "nothing", ["be None"]),
        ({"odd": True}, "odd", ["be of type decimal"]),
        ({"points": {"a": math.nan}}, "points.a", ["be a finite number"]),
        ({"form": [math.nan]}, "form[0]", ["be a finite number"]),
        ({"more": True}, "more", ["be an integer"]),
    ],
)
def test_what_is_not(arguments: dict[str, Any], path: str, expectations: list[str]) -> None:
    assert problems(**arguments) == [(path, expectations)]


def test_every_one_is_found_in_order() -> None:
    assert [path for path, _ in problems(count=True, points=[{"x": True}, {"x": math.nan}], text="", ratio=math.inf)] == [
        "count",
        "points[0].x",
        "points[1].x",
        "ratio",
    ]


def test_what_is_nested_deeply_is_looked_through_for_numbers_that_are_not_finite() -> None:
    value: Any = [True, math.nan]
    for _ in range(150):
        value = [value]
    assert [path.count("[0]") for path, _ in problems(anything=value)] == [150]


def test_a_thousand_places_in_one_value_are_told() -> None:
    assert [len(problems(anything=[math.nan] * count)) for count in (1000, 1001)] == [1000, 1000]
    assert len(problems(anything=[math.nan], more=math.nan)) == 2


@pytest.mark.parametrize(
    ("reference", "found"),
    [("#/$defs/Point", POINT), ("#", ROOT), ("#/a~1b/c~0d", 7), ("#/nothing", None), ("other.json#/a", None), ("#/$defs/Point/x/y", None)],
)
def test_references(reference: str, found: Any) -> None:
    assert resolve_reference(reference, ROOT if found != 7 else {"a/b": {"c~d": 7}}) == found


def test_the_types_that_a_schema_admits() -> None:
    kinds = {"integer", "number", "boolean", "string", "array", "object", "null"}
    for schema, types in (
        ({"type": "integer"}, {"integer"}),
        ({"type": ["integer", "null"]}, {"integer", "null"}),
        ({"enum": [1, "a", None]}, {"integer", "string", "null"}),
        ({"const": 0.5}, {"number"}),
        *[({"$ref": "#/properties/either"}, {"integer", "boolean"}), ({}, kinds), (None, kinds), ({"$ref": "#/nothing"}, kinds)],
    ):
        assert admitted_types(schema, ROOT) == types
