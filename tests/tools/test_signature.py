"""What is read of a callable: its parameters, their types, and what its docstring says about them."""

import functools
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from tests.tools.making import Connection, Point, parameters_of
from vfgym.errors import ConfigurationError
from vfgym.tools import ToolFunction

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForTypeCheckers


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


def test_text_of_an_annotation_need_not_come_first():
    def tool(a: Annotated[int, Field(ge=1), "How many.", "Not read."]): ...

    assert parameters_of(tool)["properties"]["a"]["description"] == "How many."


def test_a_callable_object_is_described_by_its_call():
    class Adder:
        """Holds what is added."""

        def __call__(self, by: int):
            """Add a number."""

    assert ToolFunction(Adder()).definition.description == "Add a number."


def test_types_as_text_resolve_where_a_wrapped_function_was_written():
    module = {"Kind": int}
    exec("def tool(x: 'Kind'): ...", module)
    wrapped = functools.wraps(module["tool"])(lambda *args, **kwargs: None)
    assert parameters_of(wrapped)["properties"]["x"]["type"] == "integer"


def test_a_function_may_use_what_its_enclosing_function_defines_later():
    def tool(x: "int"):
        return x + later

    assert parameters_of(tool)["properties"]["x"]["type"] == "integer"
    later = 1
    assert tool(1) == 2
