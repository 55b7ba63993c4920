"""What a model is told about a callable: the schema follows the signature, the descriptions follow the docstring."""

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import pytest
from pydantic import Field, ValidationError

from tests.tools.making import Address, Color, Options, Point, parameters_of
from vfgym.tools import Tool, ToolFunction
from vfgym.tools.schema import plan_definition

if TYPE_CHECKING:
    pass


def property_of(annotation: Any) -> dict[str, Any]:
    """Return the schema of one parameter `x` with this annotation, without its title."""

    def func(x):
        return x

    func.__annotations__["x"] = annotation
    return {key: value for key, value in parameters_of(func)["properties"]["x"].items() if key != "title"}


def test_whole_definition():
    def search(query: str, limit: int = 5, exact: bool = False):
        """Search the library.

        Looks at titles
        and authors.

        Args:
            query: What to look for,
                in any language.
            limit (int): Most results: at least 1.

        Returns:
            The titles.
        """

    assert ToolFunction(search).definition == Tool(
        name="search",
        description="Search the library.\n\nLooks at titles\nand authors.",
        parameters={
            "type": "object",
            "properties": {
                "query": {"title": "Query", "type": "string", "description": "What to look for,\nin any language."},
                "limit": {"title": "Limit", "type": "integer", "description": "Most results: at least 1.", "default": 5},
                "exact": {"title": "Exact", "type": "boolean", "default": False},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    )


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        *[(str, {"type": "string"}), (int, {"type": "integer"}), (float, {"type": "number"}), (bool, {"type": "boolean"}), (Any, {})],
        (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}),
        (Literal[1, 2], {"enum": [1, 2], "type": "integer"}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (list, {"type": "array", "items": {}}),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        (tuple[int, str], {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2}),
        (dict, {"type": "object", "additionalProperties": True}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        *[(Color, {"$ref": "#/$defs/Color"}), (Point, {"$ref": "#/$defs/Point"}), (Address, {"$ref": "#/$defs/Address"})],
        (Options, {"$ref": "#/$defs/Options"}),
        (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
        (Annotated[int, Field(ge=1, description="How many.")], {"type": "integer", "minimum": 1, "description": "How many."}),
        ("int", {"type": "integer"}),
        ("list[Color]", {"type": "array", "items": {"$ref": "#/$defs/Color"}}),
    ],
    ids=str,
)
def test_types(annotation, expected):
    assert property_of(annotation) == expected


def test_definitions_of_named_types():
    def paint(color: Color, at: Point, where: Address): ...

    definitions = parameters_of(paint)["$defs"]
    assert definitions["Color"] == {"enum": ["red", "blue"], "title": "Color", "type": "string"}
    assert (definitions["Point"]["required"], definitions["Address"]["properties"]["street"]["type"]) == (["x"], "string")


def test_parameters_without_annotation_or_parameters():
    def nothing(): ...

    def anything(value): ...

    assert parameters_of(nothing) == {"type": "object", "properties": {}, "additionalProperties": False}
    assert parameters_of(anything)["properties"] == {"value": {"title": "Value"}}


@pytest.mark.parametrize(("extra", "expected"), [(None, True), (Any, True), (int, {"type": "integer"})])
def test_keyword_arguments_open_the_object(extra, expected):
    def tool(a: int, **options): ...

    if extra is not None:
        tool.__annotations__["options"] = extra
    assert (parameters_of(tool)["additionalProperties"], list(parameters_of(tool)["properties"])) == (expected, ["a"])


def test_defaults_are_emitted_as_json():
    sentinel = object()

    def tool(a: Color = Color.RED, b: Point = Point(1), c: list[int] = [1], d: int | None = None, e=sentinel, f: float = math.inf): ...  # noqa: B006, B008
    def falsy(a: int = 0, b: str = "", c: bool = False, d: list[int] = [], e: float = 0.0): ...  # noqa: B006

    properties = parameters_of(tool)["properties"]
    assert {name: p["default"] for name, p in properties.items() if "default" in p} == {"a": "red", "b": {"x": 1, "y": 0}, "c": [1]}
    properties = parameters_of(falsy)["properties"]
    assert {name: p["default"] for name, p in properties.items()} == {"a": 0, "b": "", "c": False, "d": [], "e": 0.0}
    assert "required" not in parameters_of(tool)


def test_a_description_of_the_type_wins_over_the_docstring():
    def tool(a: Annotated[int, Field(description="of the type")], b: Annotated[int, "of the type"], c: int):
        """Do it.

        Args:
            a: of the docstring
            b: of the docstring
            c: of the docstring
        """

    properties = parameters_of(tool)["properties"]
    assert [properties[name]["description"] for name in "abc"] == ["of the type", "of the type", "of the docstring"]


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        *[("string", ["", "a"], [1, None]), ("integer", [0, 7], ["x", 1.5]), ("number", [0, 1.5], ["x"]), ("boolean", [False], ["x"])],
        *[("array", [[], [1, "a"]], [{}, 0]), ("object", [{}, {"a": [1]}], [[], 0]), ("null", [None], [0, ""])],
        *[
            (["integer", "null"], [None, 0], ["x"]),
            (["array", "object"], [[], {}], [0]),
            ("date", [0, None, "x"], []),
            (None, [0, "x"], []),
        ],
    ],
    ids=str,
)
def test_arguments_of_a_given_schema_are_of_its_simple_types(kind, right, wrong):
    """Nothing is known of a type that JSON schema does not have."""
    properties = {"first": True, "x": {} if kind is None else {"type": kind}}
    plan = plan_definition(Tool(name="t", description="", parameters={"type": "object", "properties": properties}))
    for value in right:
        assert plan.validate({"x": value}) == {"x": value}
    for value in wrong:
        with pytest.raises(ValidationError):
            plan.validate({"x": value})


def test_what_a_given_schema_requires_need_not_be_among_its_properties():
    plan = plan_definition(Tool(name="t", description="", parameters={"properties": {"a": {}}, "required": ["b", "a"]}))
    assert plan.validate({"a": 1, "b": 2, "c": 3}) == {"a": 1, "b": 2, "c": 3}
    for missing in ({"a": 1}, {"b": 1}):
        with pytest.raises(ValidationError):
            plan.validate(missing)
    closed = plan_definition(Tool(name="t", description="", parameters={"properties": {"a": {}}, "additionalProperties": False}))
    assert closed.validate({}) == {}
    with pytest.raises(ValidationError):
        closed.validate({"b": 1})
