"""The way of a tool call: decoding what the model sent, binding it to the signature, calling."""

import asyncio
import copy
import datetime
import enum
import functools
import json
import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field

from tests.tools.making import Color, Point
from vfgym.errors import ConfigurationError, ToolCallError, ToolParseError
from vfgym.tools import Tool, ToolFunction


class Strict(BaseModel):
    model_config = {"extra": "forbid"}
    street: str


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


ADD = ToolFunction(add)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def problems(tool: ToolFunction | Callable[..., Any], arguments: dict[str, Any]) -> str:
    """Return what a model is told about wrong arguments."""
    tool = tool if isinstance(tool, ToolFunction) else ToolFunction(tool)
    with pytest.raises(ToolCallError) as caught:
        tool.bind(arguments)
    return str(caught.value)


@settings(max_examples=30)
@given(st.dictionaries(st.text(), JSON))
def test_decode_reads_objects_once_and_twice_encoded(arguments):
    text = json.dumps(arguments)
    assert (ADD.decode(text), ADD.decode(json.dumps(text)), ADD.decode(arguments)) == (arguments, arguments, arguments)


@settings(max_examples=30)
@given(st.text() | JSON.map(json.dumps))
def test_decode_gives_a_dict_or_a_parse_error(text):
    try:
        assert isinstance(ADD.decode(text), dict)
    except ToolParseError as error:
        assert str(error).startswith("add: ")


@pytest.mark.parametrize(("text", "caused"), [("nope", True), ('"nope"', True), ("[]", False)])
def test_parse_errors_keep_their_cause(text, caused):
    with pytest.raises(ToolParseError) as caught:
        ADD.decode(text)
    assert isinstance(caught.value.__cause__, json.JSONDecodeError) is caused


def test_bind_returns_what_was_given():
    assert (ADD.bind({"a": 1}), ADD.bind({"a": 1, "b": 2})) == ({"a": 1}, {"a": 1, "b": 2})


@pytest.mark.parametrize(
    ("annotation", "sent", "bound"),
    [
        *[(int, "1", 1), (int, 1.0, 1), (float, 1, 1.0), (str, "1", "1"), (bool, "true", True), (Any, "[1]", "[1]")],
        *[(Color, "red", Color.RED), (Point, {"x": "1"}, Point(1)), (Point, '{"x": 1}', Point(1))],
        *[(Strict, {"street": "s"}, Strict(street="s")), (list[int], "[1, 2]", [1, 2]), (list[int] | str, "[1, 2]", "[1, 2]")],
        *[(list[str], ["a"], ["a"]), (set[int], [1, 2], {1, 2}), (tuple[int, str], [1, "a"], (1, "a"))],
        *[(dict[str, int], '{"a": 1}', {"a": 1}), (dict, {"a": [1]}, {"a": [1]}), (int | None, "null", None), (Literal[1, 2], "2", 2)],
        (datetime.date, "2024-02-29", datetime.date(2024, 2, 29)),
    ],
    ids=str,
)
def test_coercion(annotation, sent, bound):
    def tool(x): ...

    tool.__annotations__["x"] = annotation
    result = ToolFunction(tool).bind({"x": sent})["x"]
    assert result == bound
    assert type(result) is type(bound)


@settings(max_examples=30)
@given(a=st.integers(), b=st.floats(allow_nan=False), c=st.text(), d=st.lists(st.booleans()), e=st.dictionaries(st.text(), st.text()))
def test_values_of_the_right_type_arrive_unchanged(a, b, c, d, e):
    def tool(a: int, b: float, c: str, d: list[bool], e: dict[str, str]): ...

    arguments = {"a": a, "b": b, "c": c, "d": d, "e": e}
    tool_function = ToolFunction(tool)
    assert tool_function.bind(tool_function.decode(json.dumps(arguments))) == arguments


def test_one_text_lists_every_problem():
    assert problems(ADD, {"a": "x", "c": 1}) == 'add: argument "a" should be an integer, got "x"; unknown argument "c" (expected: a, b)'
    assert problems(ADD, {"b": 1.5}) == 'add: missing argument "a"; argument "b" should be an integer, got 1.5'
    assert problems(ADD, {"a": 1, "c": 1, "d": 2}) == 'add: unknown arguments "c", "d" (expected: a, b)'


@pytest.mark.parametrize(
    ("annotation", "sent", "expected"),
    [
        (float, "x", 'argument "x" should be a number, got "x"'),
        (str, 5, 'argument "x" should be a string, got 5'),
        (bool, "x", 'argument "x" should be true or false, got "x"'),
        (dict[str, int], {"a": "b"}, 'argument "x.a" should be an integer, got "b"'),
        (list[int], [1, "b"], 'argument "x[1]" should be an integer, got "b"'),
        (list[int], '[1, "b"]', 'argument "x[1]" should be an integer, got "b"'),
        (int | None, "b", 'argument "x" should be an integer, got "b"'),
        (int | bool, [], 'argument "x" should be an integer or true or false, got []'),
        (int | list[int], {}, 'argument "x" should be an integer or a list, got {}'),
        (Literal["a", "b"], "c", "argument \"x\" should be 'a' or 'b', got \"c\""),
        (Color, "green", "argument \"x\" should be 'red' or 'blue', got \"green\""),
        (Point, {"y": 1}, 'missing argument "x.x"'),
        (Point, 3, 'argument "x" should be an object, got 3'),
        (Strict, {"street": "s", "city": "c"}, 'unknown argument "x.city"'),
        (Annotated[int, Field(ge=1)], 0, 'argument "x" should be greater than or equal to 1, got 0'),
        (None, 3, 'argument "x" should be null, got 3'),
    ],
    ids=str,
)
def test_problem_of_one_argument(annotation, sent, expected):
    def tool(x): ...

    tool.__annotations__["x"] = annotation
    assert problems(tool, {"x": sent}) == f"tool: {expected}"


class Order(BaseModel):
    pieces: int
    price: float = 1.0


class Level(enum.IntEnum):
    LOW = 0
    HIGH = 1


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("annotation", "sent", "place", "expected"),
    [
        *[(int, True, "x", "an integer"), (float, False, "x", "a number"), (int | None, True, "x", "an integer or null")],
        *[(int | str, True, "x", "an integer or a string"), (list[int], "[true]", "x[0]", "an integer")],
        *[(tuple[str, int], ["a", True], "x[1]", "an integer"), (tuple[int, ...], [True], "x[0]", "an integer")],
        *[(dict[str, float], {"a": True}, "x.a", "a number"), (list[Order], [{"pieces": True}], "x[0].pieces", "an integer")],
        *[(Order | list[int], [True], "x[0]", "an integer"), (Literal[1, 2], True, "x", "1 or 2"), (Level, True, "x", "0 or 1")],
        *[(Decimal, True, "x", "a number or a string"), (float, NAN, "x", "a finite number"), (float, "nan", "x", "a finite number")],
        *[(float | None, "1e999", "x", "a finite number or null"), (list[float], [1, "-inf"], "x[1]", "a finite number")],
        *[(Order, {"pieces": 1, "price": "Infinity"}, "x.price", "a finite number"), (Any, [{"a": NAN}], "x[0].a", "a finite number")],
    ],
    ids=str,
)
def test_true_is_no_integer_and_nan_no_number(annotation, sent, place, expected):
    """Although Python and pydantic take them for some; at any depth, and in the author's own models."""

    def tool(x): ...

    tool.__annotations__["x"] = annotation
    assert problems(tool, {"x": sent}).startswith(f'tool: argument "{place}" should be {expected}, got ')


@pytest.mark.parametrize(
    ("annotation", "sent"),
    [
        *[(bool, True), (int | bool, True), (Any, True), (list, [True]), (dict[str, Any], {"a": [False]}), (Literal[True, 1], True)],
        *[(str | list[bool | int], [True, 1]), (Annotated[bool, Field(description="sure?")], False), (str, "nan"), (float | str, "nan")],
        (Any, "Infinity"),
    ],
    ids=str,
)
def test_what_may_be_true_or_a_text_arrives_as_it_is(annotation, sent):
    def tool(x): ...

    tool.__annotations__["x"] = annotation
    bound = ToolFunction(tool).bind({"x": sent})["x"]
    assert repr(bound) == repr(sent)


def test_data_of_any_form_may_be_nested_as_deep_as_json_is_read():
    def tool(x: Any): ...

    deep = 1.5
    for _ in range(5_000):
        deep = [deep]
    assert ToolFunction(tool).bind({"x": deep})["x"] is deep


def test_nan_in_the_text_of_a_call_is_a_problem_of_its_argument():
    assert problems(ADD, ADD.decode('{"a": NaN, "b": true}')) == (
        'add: argument "a" should be an integer, got NaN; argument "b" should be an integer, got true'
    )


def test_a_model_that_holds_itself_is_looked_through():
    class Tree(BaseModel):
        value: int = 0
        below: list["Tree"] = []

    def tool(x: Tree): ...

    text = problems(tool, {"x": {"below": [{"below": [{"value": True}]}]}})
    assert text == 'tool: argument "x.below[0].below[0].value" should be an integer, got true'


def test_the_tool_of_a_server_knows_truth_values_from_integers_too():
    tool = ToolFunction.from_definition(SERVER_TOOL, lambda **arguments: arguments)
    assert problems(tool, {"file-path": "f", "lines": True, "ratio": NAN}) == (
        'read-file: argument "lines" should be an integer or null, got true; argument "ratio" should be a finite number, got NaN'
    )
    assert tool.bind({"file-path": "f", "note": True, "lines": None}) == {"file-path": "f", "note": True, "lines": None}


def test_problem_that_a_validator_of_the_author_found():
    def even(value: int) -> int:
        if value % 2:
            raise ValueError("odd numbers are not served")
        return value

    def tool(x: Annotated[int, AfterValidator(even)]): ...

    assert problems(tool, {"x": 3}) == 'tool: argument "x": odd numbers are not served, got 3'


@pytest.mark.parametrize("extra", [False, True])
def test_models_cannot_fill_hidden_parameters(extra):
    def closed(a: int, state: dict): ...

    def opened(a: int, state: dict, **options): ...

    tool = ToolFunction(opened if extra else closed, hidden={"state"})
    assert 'unknown argument "state" (expected: a)' in problems(tool, {"a": 1, "state": {}})


def test_models_cannot_change_what_a_partial_settled():
    def query(table: str, *, user: str, **options): ...

    tool = ToolFunction(functools.partial(query, user="guest"))
    assert 'unknown argument "user"' in problems(tool, {"table": "t", "user": "root"})


def test_keyword_arguments_take_any_name():
    def tool(a: int, **options: int):
        return a, options

    tool_function = ToolFunction(tool)
    assert tool_function.invoke(tool_function.bind({"a": 1, "b": "2"})) == (1, {"b": 2})
    assert problems(tool, {"a": 1, "b": "x"}) == 'tool: argument "b" should be an integer, got "x"'


def test_invoke_injects_hidden_values():
    def tool(a: int, state: dict[str, int], arguments: str = "default"):
        return a + state["n"], arguments

    tool_function = ToolFunction(tool, hidden={"state"})
    assert tool_function.invoke(tool_function.bind({"a": 1}), state={"n": 2}) == (3, "default")


def test_positional_only_parameters():
    def tool(a: int, b: int = 2, state: int = 3, /, c: int = 4):
        return a, b, state, c

    tool_function = ToolFunction(tool, hidden={"state"})
    arguments = tool_function.bind({"a": 1, "c": 9})
    assert (tool_function.invoke(arguments, state=7), tool_function.invoke(arguments)) == ((1, 2, 7, 9), (1, 2, 3, 9))
    assert arguments == {"a": 1, "c": 9}
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        tool_function.invoke({})


def test_async_callables_give_an_awaitable():
    async def tool(a: int):
        return a + 1

    tool_function = ToolFunction(tool)
    assert asyncio.run(tool_function.invoke(tool_function.bind({"a": 1}))) == 2


def test_an_alias_is_what_the_model_sees():
    def tool(from_: Annotated[str, Field(alias="from")]):
        return from_

    tool_function = ToolFunction(tool)
    assert list(tool_function.definition.parameters["properties"]) == ["from"]
    assert tool_function.invoke(tool_function.bind({"from": "here"})) == "here"


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda tool: pickle.loads(pickle.dumps(tool))])
def test_copies_work_alike(clone):
    given_definition = ToolFunction.from_definition(ADD.definition, add)
    for tool in (ADD, given_definition, ToolFunction(add, name="plus", hidden=["b"])):
        again = clone(tool)
        assert (again.name, again.hidden, again.definition) == (tool.name, tool.hidden, tool.definition)
        assert again.invoke(again.bind({"a": 1})) == 2


SERVER_TOOL = Tool(
    name="read-file",
    description="Read a file.",
    parameters={
        "type": "object",
        "properties": {
            "file-path": {"type": "string"},
            "lines": {"type": ["integer", "null"]},
            "ratio": {"type": "number"},
            "filters": {"type": "array", "items": {"$ref": "#/$defs/Filter"}},
            "mode": {"$ref": "#/$defs/Mode"},
            "note": True,
        },
        "required": ["file-path"],
        "additionalProperties": False,
        "$defs": {"Mode": {"enum": ["r", "b"]}, "Filter": {"type": "object"}},
    },
)


def test_given_definition_passes_arguments_by_name():
    tool = ToolFunction.from_definition(SERVER_TOOL, lambda **arguments: arguments)
    assert tool.definition is SERVER_TOOL
    sent = {"file-path": "a.txt", "lines": "3", "ratio": 2, "filters": '[{"x": 1}]', "mode": "r", "note": "[]"}
    expected = {"file-path": "a.txt", "lines": 3, "ratio": 2, "filters": [{"x": 1}], "mode": "r", "note": "[]"}
    assert tool.invoke(tool.bind(sent)) == expected
    assert tool.bind({"file-path": "a", "lines": None}) == {"file-path": "a", "lines": None}


def test_given_definition_is_open_unless_it_says_otherwise():
    tool = ToolFunction.from_definition(Tool(name="t", description="", parameters={"type": "object", "required": ["a"]}), dict)
    assert (tool.bind({"a": [1], "b": 2}), problems(tool, {})) == ({"a": [1], "b": 2}, 't: missing argument "a"')


def test_given_definition_must_describe_an_object():
    with pytest.raises(ConfigurationError, match="schema of an object"):
        ToolFunction.from_definition(Tool(name="t", description="", parameters={"properties": []}), dict)
