"""What a model is told about a callable: the schema follows the signature, the descriptions follow the docstring."""

import dataclasses
import enum
import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypedDict  # pydantic takes that of typing from Python 3.12 on

from vfgym.errors import ConfigurationError
from vfgym.tools import Tool, ToolFunction

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForTypeCheckers


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Address(BaseModel):
    street: str
    number: int | None = None


class Options(TypedDict):
    verbose: bool


class Connection:
    """A type that JSON knows nothing of."""


def parameters_of(func: Callable[..., Any], **kwargs: Any) -> dict[str, Any]:
    return ToolFunction(func, **kwargs).definition.parameters


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

    properties = parameters_of(tool)["properties"]
    assert {name: p["default"] for name, p in properties.items() if "default" in p} == {"a": "red", "b": {"x": 1, "y": 0}, "c": [1]}
    assert "required" not in parameters_of(tool)


def sphinx_style(a: int, b: int):
    """Add numbers.

    Twice.

    :param a: First.
    :param int b: Second
        number.
    :returns: The sum.
    """


def numpy_style(a: int, b: int):
    """Add numbers.

    Twice.

    Parameters
    ----------
    a : int
        First.
    b : int
        Second
        number.

    Returns
    -------
    int
        The sum.
    """


def arguments_only(a: int, b: int):
    """
    Args:
        a: First.
        b: Second
            number.
    """


@pytest.mark.parametrize(
    ("func", "description"), [(sphinx_style, "Add numbers.\n\nTwice."), (numpy_style, "Add numbers.\n\nTwice."), (arguments_only, "")]
)
def test_docstring_styles(func, description):
    definition = ToolFunction(func).definition
    assert definition.description == description
    assert {name: p["description"] for name, p in definition.parameters["properties"].items()} == {"a": "First.", "b": "Second\nnumber."}


def test_a_section_that_does_not_parse_is_text():
    def tool(a: int):
        """Add.

        Args:
            no colon here
        """

    assert ToolFunction(tool).definition.description == "Add.\n\nArgs:\n    no colon here"


def test_annotation_describes_before_docstring():
    def tool(a: Annotated[int, "From the annotation."], b: Annotated[int, Field(description="From the field.")], c: Point):
        """Do it.

        Args:
            a: From the docstring.
            b: From the docstring.
            c: From the docstring.
        """

    descriptions = [p["description"] for p in parameters_of(tool)["properties"].values()]
    assert descriptions == ["From the annotation.", "From the field.", "From the docstring."]


@pytest.mark.parametrize(
    "name",
    [
        *["schema", "json", "copy", "model_config", "model_fields", "_x", "__x", "class_", "validate", "metadata", "title", "type"],
        "default",
        "name",
    ],
)
def test_any_parameter_name(name):
    scope: dict[str, Any] = {}
    exec(f"def tool({name}: int): return {name}", scope)
    tool = ToolFunction(scope["tool"])
    assert (list(tool.definition.parameters["properties"]), tool.invoke(tool.bind({name: "7"}))) == ([name], 7)


def test_hidden_parameters_leave_no_trace():
    def tool(a: int, point: Point, connection: Connection, later: "OnlyForTypeCheckers") -> "OnlyForTypeCheckers": ...

    tool_function = ToolFunction(tool, hidden=["point", "connection", "later"])
    assert tool_function.hidden == {"point", "connection", "later"}
    assert tool_function.definition.parameters == {
        "type": "object",
        "properties": {"a": {"title": "A", "type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }


class Counter:
    """Counts."""

    def increase(self, by: int = 1):
        """Increase it."""
        return by

    async def decrease(self, by: int = 1):
        """Decrease it."""
        return -by

    def __call__(self, by: int):
        return by


def wrapping(func):
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        return func(*args, **kwargs)

    return wrapper


@pytest.mark.parametrize(
    ("func", "name", "description"),
    [
        (Counter().increase, "increase", "Increase it."),
        (Counter().decrease, "decrease", "Decrease it."),
        (Counter(), "Counter", "Counts."),
        (functools.partial(Counter().increase), "increase", "Increase it."),
        (wrapping(Counter().increase), "increase", "Increase it."),
    ],
)
def test_every_kind_of_callable(func, name, description):
    tool = ToolFunction(func)
    assert (tool.name, tool.definition.name, tool.definition.description) == (name, name, description)
    assert list(tool.definition.parameters["properties"]) == ["by"]
    assert tool.func is func


def test_partial_settles_parameters():
    def query(connection: Connection, table: str, limit: int = 3):
        """Query."""

    tool = ToolFunction(functools.partial(query, Connection(), limit=5), name="rows")
    assert (tool.name, tool.definition.description) == ("rows", "Query.")
    assert list(tool.definition.parameters["properties"]) == ["table"]


def test_types_of_an_enclosing_function_resolve_where_it_is_used():
    class Local(BaseModel):
        x: int

    def tool(local: "Local"):
        return Local

    assert parameters_of(tool)["$defs"]["Local"]["required"] == ["x"]


def star(*numbers: int): ...


def unresolvable(a: int, b: "OnlyForTypeCheckers"): ...


def no_schema(a: int, connection: Connection): ...


def no_schema_extra(**connections: Connection): ...


def field_default(a: int = Field(1, ge=0)): ...


@pytest.mark.parametrize(
    ("func", "words"),
    [
        (star, ["`star`", "`*numbers`", "list"]),
        (unresolvable, ["`unresolvable`", "`b`", "OnlyForTypeCheckers"]),
        (no_schema, ["`no_schema`", "`connection`"]),
        (no_schema_extra, ["`no_schema_extra`", "`**kwargs`"]),
        *[(field_default, ["`field_default`", "Annotated"]), (lambda a: a, ["name="]), (Counter, ["Counter"]), (3, ["3"])],
        (getattr, ["`getattr`", "signature"]),
    ],
)
def test_what_cannot_be_a_tool(func, words):
    with pytest.raises(ConfigurationError) as caught:
        ToolFunction(func)
    for word in words:
        assert word in str(caught.value)


@settings(max_examples=30)
@given(st.lists(st.sampled_from([*"a :@-\n\t()", "Args:\n", "\n\n", ":param ", "Parameters\n---\n", "@param ", "    "])).map("".join))
@example("Sum.\n: :")
def test_no_docstring_is_too_strange(docstring):
    def tool(a: int): ...

    tool.__doc__ = docstring
    assert isinstance(ToolFunction(tool).definition.description, str)


def test_hidden_names_must_exist():
    def tool(a: int, state: dict): ...

    with pytest.raises(ConfigurationError, match=r"`stat`.*Did you mean `state`"):
        ToolFunction(tool, hidden=["stat"])
    with pytest.raises(ConfigurationError, match="'state'"):
        ToolFunction(tool, hidden="state")
