"""The arguments of a tool call, from the text that a model sent, and what to tell the model when they are wrong."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError, create_model, field_validator

from vfgym.errors import ToolParseError
from vfgym.tools.arguments import MAX_PROBLEMS, MAX_SHOWN, decode_embedded, describe_problems, describe_unknown, parse_arguments
from vfgym.tools.json_numbers import NoJsonNumber


@pytest.mark.parametrize(
    ("sent", "read"),
    [("", {}), (" \n", {}), ("{}", {}), ('{"a": 0}', {"a": 0}), ('"{\\"a\\": 1}"', {"a": 1}), ('""', {}), ({"a": None}, {"a": None})],
)
def test_an_object_is_understood(sent: Any, read: dict[str, Any]) -> None:
    assert parse_arguments("add", sent) == read


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ('{"a": ', "^add: the arguments are not valid JSON.*column 7.*at '{\"a\": '"),
        *[("[1]", r"should be a JSON object, got \[1\]"), ("null", "got null"), ("NaN", "got NaN"), ('"text"', 'got "text"')],
        *[("[" * 300 + "]" * 300, "cannot be read.*levels deep"), ("1" * 5000, "cannot be read"), ('"' + "x" * 500 + '"', "x…$")],
    ],
)
def test_anything_else_is_told(sent: str, says: str) -> None:
    with pytest.raises(ToolParseError, match=says):
        parse_arguments("add", sent)


def test_of_a_long_text_the_place_of_the_mistake_is_quoted() -> None:
    with pytest.raises(ToolParseError) as raised:
        parse_arguments("add", f'{{"a": "{"x" * 200}" !{"y" * 200}')
    excerpt = "x" * (MAX_SHOWN // 2 - 2) + '" !' + "y" * (MAX_SHOWN // 2 - 1)
    assert str(raised.value).endswith(f"at {excerpt!r}")


def test_a_dict_is_copied() -> None:
    given = {"a": 1}
    assert parse_arguments("add", given) is not given


def test_texts_that_hold_json_are_decoded_where_they_are_named() -> None:
    arguments = {"a": "[1]", "b": "[1]", "c": '"text"', "d": "no json", "e": [2], "f": "null", "g": "0"}
    assert decode_embedded(arguments, "acdefgz") == {"a": [1], "f": None, "g": 0}


class Point(BaseModel):
    model_config = ConfigDict(extra="forbid")
    x: int


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int
    point: Point
    items: list[int] = []
    either: int | None = 0
    checked: str = "x"

    @field_validator("checked")
    @classmethod
    def check(cls, value: str) -> str:
        if value != "x":
            raise ValueError("must be x")
        return value


def told(arguments: dict[str, Any], no_numbers: list[NoJsonNumber] | None = None) -> str:
    error = None
    try:
        Arguments.model_validate(arguments, strict=True)
    except ValidationError as raised:
        error = raised
    return describe_problems(error, no_numbers or [], arguments, ["a", "point"])


GOOD: dict[str, Any] = {"a": 1, "point": {"x": 1}}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (GOOD, ""),
        ({"point": {}}, 'missing argument "a"; missing argument "point.x"'),
        ({**GOOD, "a": "1"}, 'argument "a" should be an integer, got "1"'),
        (
            {**GOOD, "items": [1, "x", None]},
            'argument "items[1]" should be an integer, got "x"; argument "items[2]" should be an integer, got null',
        ),
        ({**GOOD, "either": "x"}, 'argument "either" should be an integer, got "x"'),
        ({**GOOD, "b": 1}, 'unknown argument "b" (expected: a, point)'),
        ({**GOOD, "b": 1, "c": 2}, 'unknown arguments "b", "c" (expected: a, point)'),
        ({**GOOD, "point": {"x": 1, "y": 2}}, 'unknown argument "point.y"'),
        ({**GOOD, "point": 7}, 'argument "point" should be an object, got 7'),
        ({**GOOD, "checked": "y"}, 'argument "checked": must be x, got "y"'),
    ],
)
def test_problems_are_told_in_one_line(arguments: dict[str, Any], said: str) -> None:
    assert told(arguments) == said


@dataclasses.dataclass
class Pair:
    left: int


@pytest.mark.parametrize(
    ("kind", "sent", "said"),
    [
        *[(int, "x", "an integer"), (float, "x", "a number"), (bool, "x", "true or false"), (str, 5, "a string"), (None, 0, "null")],
        *[(kind, 0, "a list") for kind in (list[int], tuple[int, str], set[int], frozenset[int])],
        *[(kind, [0], "an object") for kind in (dict[str, int], Point, Pair)],
    ],
)
def test_types_are_called_as_in_json(kind: Any, sent: Any, said: str) -> None:
    with pytest.raises(ValidationError) as raised:
        create_model("Arguments", x=(kind, ...)).model_validate({"x": sent})
    expected = f'argument "x" should be {said}, got {json.dumps(sent)}'
    assert describe_problems(raised.value, [], {"x": sent}, ["x"]) == expected


@pytest.mark.parametrize(("length", "shown"), [(MAX_SHOWN, "x" * (MAX_SHOWN - 2) + '"'), (MAX_SHOWN + 1, "x" * (MAX_SHOWN - 1) + "…")])
def test_a_long_value_is_cut(length: int, shown: str) -> None:
    assert told({**GOOD, "a": "x" * (length - 2)}) == f'argument "a" should be an integer, got "{shown}'


def test_what_is_no_number_is_told_once() -> None:
    no_number = NoJsonNumber("a", True, ["be an integer", "be null"])
    assert told({**GOOD, "a": True}, [no_number]) == 'argument "a" should be an integer or null, got true'
    both = told({**GOOD, "a": True, "items": ["x"]}, [no_number])
    assert both == 'argument "a" should be an integer or null, got true; argument "items[0]" should be an integer, got "x"'
    assert told(GOOD, [no_number]) == 'argument "a" should be an integer or null, got true'


def test_a_flood_of_problems_is_cut() -> None:
    assert told({**GOOD, "items": ["x"] * MAX_PROBLEMS}).endswith(f'argument "items[{MAX_PROBLEMS - 1}]" should be an integer, got "x"')
    said = told({**GOOD, "items": ["x"] * (MAX_PROBLEMS + 5)})
    assert said.count("should be an integer") == MAX_PROBLEMS
    assert said.endswith("and 5 more problems")


def test_a_name_that_is_nearly_right_is_suggested() -> None:
    assert describe_unknown(["pont"], ["a", "point"]) == 'unknown argument "pont" (expected: a, point) Did you mean `point`?'
    assert describe_unknown(["pont", "b"], ["a", "point"]) == 'unknown arguments "pont", "b" (expected: a, point)'
    assert describe_unknown(["x"], []) == 'unknown argument "x" (expected: none)'
