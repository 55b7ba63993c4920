"""Sampled arguments fit: they bind to the tool, and validate against its schema."""

import dataclasses
import datetime
import enum
import json
import math
import uuid
from typing import Annotated, Any, Literal

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypedDict  # pydantic takes that of typing from Python 3.12 on

from vfgym.errors import ConfigurationError
from vfgym.tools import ToolFunction, sample_arguments
from vfgym.tools.sampling import FORMATS, SPAN, WORDS

SEEDS = st.integers(0, 2**32)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Annotated[int, Field(ge=1, le=9)]


class Dog(BaseModel):
    kind: Literal["dog"]
    good: bool = True


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []
    twin: "Tree | None" = None
    pair: "tuple[int, Tree | int]"


class Options(TypedDict):
    verbose: bool
    level: int | None


def nothing(): ...


def plain(a: int, b: str, c: float, d: bool, e: None, f: int = 1, g: str = "x"): ...


def choices(a: Literal["x", "y", 3], b: Color, c: int | str | None, d: Color | None = None): ...


def bounds(
    a: Annotated[int, Field(ge=3, le=3)],
    b: Annotated[int, Field(gt=3)],
    c: Annotated[int, Field(lt=-30)],
    d: Annotated[float, Field(gt=0, lt=1)],
    e: Annotated[int, Field(multiple_of=7, gt=7, lt=22)],
    f: Annotated[float, Field(multiple_of=0.5, ge=0)],
    g: Annotated[str, Field(min_length=12, max_length=13)],
    h: Annotated[str, Field(max_length=2)],
    i: Annotated[int, Field(ge=2**80, le=2**80 + 5)],
    j: Annotated[float, Field(ge=-1.7e308, le=1.7e308)],
    k: Annotated[float, Field(gt=0, lt=1e-9)],
): ...


def containers(
    a: list[int],
    b: Annotated[list[str], Field(min_length=2, max_length=2)],
    c: Annotated[set[int], Field(min_length=4)],
    d: tuple[int, str],
    e: tuple[int, ...],
    f: dict[str, float],
    g: Annotated[dict[str, int], Field(min_length=2, max_length=3)],
    h: dict[Color, int],
    i: list,
    j: dict,
    k: list[list[Point]],
    m: set[bool],
): ...


def named(a: Point, b: Options, c: Cat | Dog, d: Annotated[Cat | Dog, Field(discriminator="kind")], e: list[Cat] | None = None): ...


def recursive(tree: Tree): ...


def scalars(a: datetime.date, b: datetime.datetime, c: datetime.time, d: datetime.timedelta, e: uuid.UUID): ...


def anything(a, b: Any, **options: int): ...


TOOLS = [ToolFunction(func) for func in (nothing, plain, choices, bounds, containers, named, recursive, scalars, anything)]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
@settings(max_examples=30)
@given(seed=SEEDS)
def test_sampled_arguments_bind_and_validate(tool, seed):
    arguments = sample_arguments(tool.definition.parameters, np.random.default_rng(seed))
    jsonschema.validate(arguments, tool.definition.parameters)
    tool.bind(tool.decode(json.dumps(arguments)))


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_same_state_gives_the_same_arguments(tool):
    first, second = (sample_arguments(tool.definition.parameters, np.random.default_rng(5)) for _ in range(2))
    assert first == second


def sample_many(described: dict[str, Any], **document: Any) -> list[Any]:
    """Return a hundred samples of one property with this schema, each validated."""
    schema = {"type": "object", "properties": {"x": described}, "required": ["x"], **document}
    rng = np.random.default_rng(0)
    samples = [sample_arguments(schema, rng) for _ in range(100)]
    for sample in samples:
        jsonschema.validate(sample, schema)
    return [sample["x"] for sample in samples]


@pytest.mark.parametrize(
    "described",
    [
        *[{"const": {"a": 1}}, {"enum": [1, "a", None]}, {"type": ["integer", "null"]}],
        {"type": "integer", "minimum": 0.5, "maximum": 1.5},
        {"type": "integer", "multipleOf": 2.5},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
        {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "null"}, "minItems": 3},
        {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 3},
        {"type": "array", "items": False},
        {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2, "maxProperties": 2},
        {"type": "object", "required": ["free"]},
        {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": True},
        {"type": "object", "properties": {"a": True, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        *[{"properties": {"a": {"type": "null"}}, "required": ["a"]}, {"items": {"type": "null"}}, {"minLength": 9}, {"minimum": 4}],
        {"allOf": [{"$ref": "#/$defs/Small"}], "description": "as pydantic 1 wrote it"},
        {"anyOf": [{"type": "string", "pattern": "^z+$"}, {"type": "integer"}]},
        {"$ref": "#/definitions/a~1b"},
        True,
    ],
    ids=json.dumps,
)
def test_schemas_that_servers_write(described):
    definitions = {"$defs": {"Small": {"type": "integer", "maximum": 3}}, "definitions": {"a/b": {"type": "boolean"}}}
    assert len(sample_many(described, **definitions)) == 100


def test_item_lists_of_older_drafts():
    described = {"type": "array", "items": [{"type": "integer"}, {"type": "null"}], "additionalItems": {"type": "boolean"}, "minItems": 3}
    rng = np.random.default_rng(0)
    sample = sample_arguments({"properties": {"x": described}, "required": ["x"]}, rng)["x"]
    assert [type(item) for item in sample] == [int, type(None), bool]


def test_samples_cover_the_choices():
    assert set(sample_many({"enum": ["a", "b", "c"]})) == {"a", "b", "c"}
    assert set(sample_many({"anyOf": [{"const": 1}, {"const": "x"}]})) == {1, "x"}
    assert set(sample_many({"type": "integer", "minimum": 1, "maximum": 4})) == {1, 2, 3, 4}
    assert {len(sample) for sample in sample_many({"type": "array", "items": {"type": "null"}})} == {0, 1, 2, 3}


def test_optional_arguments_come_and_go():
    schema = {"type": "object", "properties": {"a": {"type": "null"}}}
    rng = np.random.default_rng(0)
    assert {"a" in sample_arguments(schema, rng) for _ in range(50)} == {True, False}


def test_samples_are_plain_python():
    sample = sample_many({"type": "array", "items": {"enum": [1, 0.5, True, "x"]}, "minItems": 9})[0]
    assert {type(item) for item in sample} <= {int, float, bool, str}


def test_recursion_ends():
    def depth(value: Any) -> float:
        children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return 1 + max(map(depth, children), default=0)

    schema = ToolFunction(recursive).definition.parameters
    rng = np.random.default_rng(0)
    assert max(depth(sample_arguments(schema, rng)) for _ in range(100)) < 20


@pytest.mark.parametrize(
    "described",
    [
        {"type": "integer", "minimum": 2, "maximum": 1},
        {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
        *[{"type": "number", "exclusiveMinimum": 1, "maximum": 1}, {"type": "array", "minItems": 2, "maxItems": 1}, {"enum": []}],
        *[{"$ref": "#/$defs/Missing"}, {"$ref": "https://example.com/schema.json"}, {"$ref": "#/properties/x"}],
        {"type": "object", "properties": {"again": {"$ref": "#"}}, "required": ["again"]},
    ],
    ids=json.dumps,
)
def test_schemas_without_an_instance(described):
    schema = {"type": "object", "properties": {"x": described}, "required": ["x"]}
    with pytest.raises(ConfigurationError):
        sample_arguments(schema, np.random.default_rng(0))


@settings(max_examples=30)
@given(seed=SEEDS, low=st.floats(-1e6, 1e6), width=st.floats(0, 1e6))
def test_numbers_stay_within_their_bounds(seed, low, width):
    described = {"type": "number", "minimum": low, "maximum": low + width}
    sample = sample_arguments({"properties": {"x": described}, "required": ["x"]}, np.random.default_rng(seed))["x"]
    assert low <= sample <= low + width
    assert math.isfinite(sample)


@pytest.mark.parametrize("name", [*FORMATS, "regex"])
def test_each_format_has_its_examples(name):
    assert {*sample_many({"type": "string", "format": name})} == {*FORMATS.get(name, WORDS)}


@pytest.mark.parametrize(
    ("keywords", "kinds"),
    [
        *(({key: value}, {dict}) for key, value in {"properties": {}, "required": ["a"], "additionalProperties": False}.items()),
        *(({key: value}, {list}) for key, value in {"items": True, "prefixItems": [{}], "minItems": 0}.items()),
        *(({key: value}, {str}) for key, value in {"minLength": 0, "maxLength": 3, "format": "date", "pattern": "."}.items()),
        *(({key: 0.5}, {float}) for key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
        *(({"type": kind}, {found}) for kind, found in {"boolean": bool, "null": type(None), "integer": int, "number": float}.items()),
        *((anything, {str, int, bool}) for anything in ({}, True, {"title": "x"})),
    ],
)
def test_a_schema_without_a_type_is_of_what_its_keywords_are_about(keywords, kinds):
    assert {type(sample) for sample in sample_many(keywords)} == kinds


@pytest.mark.parametrize(
    ("described", "least", "most"),
    [
        ({}, -SPAN, SPAN),
        ({"minimum": 0}, 0, 2 * SPAN),
        ({"maximum": 0}, -2 * SPAN, 0),
        ({"minimum": 0, "maximum": 0}, 0, 0),
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 2}, 1, 1),
        ({"minimum": 1, "exclusiveMinimum": 1, "maximum": 3, "exclusiveMaximum": 3}, 2, 2),
        ({"minimum": 3, "exclusiveMinimum": 0, "maximum": 4, "exclusiveMaximum": 9}, 3, 4),
        ({"multipleOf": 7}, -70, 70),
        ({"multipleOf": 7, "minimum": 1, "maximum": 14}, 7, 14),
    ],
)
def test_numbers_reach_both_of_their_bounds_and_no_further(described, least, most):
    samples = {value for _ in range(4) for value in sample_many({"type": "integer", **described})}
    assert (min(samples), max(samples)) == (least, most)


@pytest.mark.parametrize(
    ("described", "lengths"),
    [
        ({"minItems": 2, "maxItems": 2}, {2}),
        ({"maxItems": 0}, {0}),
        ({"maxItems": 1}, {0, 1}),
        ({"minItems": 1}, {1, 2, 3, 4}),
        ({"prefixItems": [{}, {}]}, {2}),
        ({"prefixItems": [{}, {}], "minItems": 0}, {0, 1, 2}),
        ({"prefixItems": [{}], "minItems": 2}, {2}),
        ({"items": False}, {0}),
    ],
)
def test_lists_have_between_the_least_and_three_more_items(described, lengths):
    assert {len(sample) for sample in sample_many({"type": "array", **described})} == lengths


@pytest.mark.parametrize(
    ("described", "lengths"),
    [({"minLength": 12, "maxLength": 12}, {12}), ({"maxLength": 0}, {0}), ({"maxLength": 4}, {4}), ({"minLength": 5}, {5})],
)
def test_texts_are_as_long_as_they_must_be(described, lengths):
    assert {len(sample) for sample in sample_many({"type": "string", **described})} == lengths


@pytest.mark.parametrize(
    ("described", "sizes"),
    [
        ({"minProperties": 2}, {2}),
        ({"additionalProperties": True}, {0, 1, 2}),
        ({"additionalProperties": True, "minProperties": 1}, {1, 2, 3}),
        ({"additionalProperties": {}, "maxProperties": 1}, {0, 1}),
        ({"additionalProperties": False}, {0}),
        ({"additionalProperties": True, "required": ["a", "b"], "maxProperties": 2}, {2}),
    ],
)
def test_objects_have_as_many_members_as_they_may(described, sizes):
    assert {len(sample) for sample in sample_many({"type": "object", **described})} == sizes


def test_deep_down_samples_are_as_small_as_they_may_be():
    described: dict[str, Any] = {
        "type": "object",
        "properties": {"list": {"type": "array", "minItems": 1, "items": {"const": 0}}, "more": {"const": 1}, "none": {"const": 2}},
        "required": ["list", "more"],
        "additionalProperties": {"const": 3},
    }
    near, deep = described, {"type": "array", "minItems": 1, "maxItems": 1, "items": described}
    deep = {**deep, "items": {**deep, "items": described}}
    assert sample_many(deep) == [[[{"list": [0], "more": 1}]]] * 100
    assert len({json.dumps(sample) for sample in sample_many(near)}) > 5


NULL = {"type": "null"}


def test_what_stands_beside_a_reference_or_in_several_parts_counts():
    definitions = {"$defs": {"Small": {"type": "integer", "minimum": 0, "maximum": 3}, "Five": {"const": 5}}}
    rows = [
        ({"$ref": "#/$defs/Small", "minimum": 3}, {3}),
        ({"allOf": [{"$ref": "#/$defs/Small"}, {"minimum": 2}], "maximum": 2}, {2}),
        ({"oneOf": [{"$ref": "#/$defs/Five"}, {"const": 6}]}, {5, 6}),
        ({"type": ["integer", "number"], "minimum": 4, "maximum": 4}, {4}),
    ]
    for described, found in rows:
        schema = {"properties": {"x": described}, "required": ["x"], **definitions}
        rng = np.random.default_rng(0)
        assert {sample_arguments(schema, rng)["x"] for _ in range(50)} == found


@pytest.mark.parametrize(
    ("described", "keys"),
    [
        ({"allOf": [{"properties": {"a": NULL}, "required": ["a"]}, {"properties": {"b": NULL}, "required": ["b"]}]}, {"a b"}),
        ({"properties": {"c": NULL}, "required": ["c"], "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a c", "b c"}),
        ({"$ref": "#/$defs/A", "properties": {"b": NULL}, "required": ["b"]}, {"a b"}),
        ({"$ref": "#/$defs/Both", "allOf": [{"required": ["b"]}]}, {"a b"}),
    ],
)
def test_all_members_that_the_parts_of_a_schema_require_are_there(described, keys):
    definitions = {"A": {"properties": {"a": NULL}, "required": ["a"]}, "Both": {"allOf": [{"$ref": "#/$defs/A"}]}}
    samples = sample_many({"type": "object", **described}, **{"$defs": definitions})
    assert {" ".join(sorted(sample)) for sample in samples} == keys


@pytest.mark.parametrize("kind", ["integer", "string", "array", "object"])
def test_the_narrower_bounds_of_the_parts_of_a_schema_hold(kind):
    least, most = {"integer": ("minimum", "maximum"), "string": ("minLength", "maxLength")}.get(kind, ("minItems", "maxItems"))
    least, most = ("minProperties", "maxProperties") if kind == "object" else (least, most)
    wide, narrow = {least: 1, most: 9}, {least: 3, most: 4}
    for parts in ([wide, narrow], [narrow, wide]):
        sample_many({"type": kind, "additionalProperties": True, "allOf": parts})  # which validates them


def test_distinct_items_that_there_are_not_are_left_out():
    schema = {"properties": {"x": {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "minItems": 3}}, "required": ["x"]}
    assert sorted(sample_arguments(schema, np.random.default_rng(0))["x"]) == [1, 2]


@pytest.mark.parametrize(
    ("described", "problem"),
    [
        ({"type": "integer", "minimum": 2, "maximum": 1}, "no number satisfies the schema {"),
        ({"type": "number", "minimum": 2, "maximum": 1}, "no number lies between 2 and 1"),
        ({"type": "number", "exclusiveMinimum": 1, "maximum": 1}, "no number lies between 1 and 1"),
        ({"type": "array", "minItems": 2, "maxItems": 1}, "no array satisfies the schema {"),
        ({"enum": []}, "the schema has an empty list of choices"),
        ({"$ref": "#/$defs/Missing"}, "the schema refers to '#/$defs/Missing', which is not in it"),
        ({"$ref": "#/properties/x"}, "the reference '#/properties/x' leads back to itself"),
        (
            {"type": "object", "properties": {"again": {"$ref": "#/properties/x"}}, "required": ["again"]},
            "the schema needs itself and has no",
        ),
    ],
)
def test_why_a_schema_has_no_instance_is_said(described, problem):
    with pytest.raises(ConfigurationError) as caught:
        sample_many(described)
    assert str(caught.value).startswith(problem)
