"""The form of a tool asks for each argument and takes only what fits the schema."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel

from vfgym.play.forms import FormLeft, WrongArgument, explain, fill_form, read_arguments, read_value, signature
from vfgym.tools import ToolFunction


class Point(BaseModel):
    x: int
    y: int


def move(to: Point, speed: float, note: str = "none", mode: Literal["walk", "run"] = "walk", tags: list[str] | None = None) -> None:
    """Move.

    Args:
        to: Where to.
        speed: Metres a second.
        note: What to note.
        mode: How.
        tags: Any tags.
    """


TOOL: dict[str, Any] = ToolFunction(move).definition.to_openai()["function"]  # type: ignore[assignment]
POINT = '{"x": 1, "y": 2}'


def fill(*lines: str) -> tuple[dict[str, Any], list[str]]:
    waiting, told = list(lines), []
    arguments = fill_form(TOOL, lambda prompt: waiting.pop(0), told.append, lambda error: told.append(f"({error})"))
    assert not waiting, "everything that was typed was read"
    return arguments, told


def test_arguments_are_asked_one_by_one_and_checked() -> None:
    arguments, told = fill("5", '{"x": 1}', POINT, "fast", "1.5", "5", "fly", "run", '["a"]')
    assert arguments == {"to": {"x": 1, "y": 2}, "speed": 1.5, "note": "5", "mode": "run", "tags": ["a"]}
    assert [line for line in told if "fly" in line] == ["('fly' is not one of ['walk', 'run']; it has to be: walk | run)"]
    assert sum("is not" in line or "required" in line for line in told) == 4


def test_what_is_optional_may_be_left_out_and_help_is_never_a_value() -> None:
    arguments, told = fill("?", "", POINT, "help", "2", "", "", "")
    assert arguments == {"to": {"x": 1, "y": 2}, "speed": 2}
    assert any("Metres a second" in line for line in told)
    assert fill(POINT, "2", "/say help", "", "")[0]["note"] == "help"


def test_all_arguments_can_be_given_as_json_on_one_line() -> None:
    whole = f'{{"to": {POINT}, "speed": 3}}'
    expected = {"to": {"x": 1, "y": 2}, "speed": 3}
    assert fill(whole)[0] == read_arguments(TOOL, whole) == expected
    for wrong, what in (("{", "not valid JSON"), ("[]", "should be a JSON object"), ('{"to": 1, "speed": 3}', "to: 1 is not")):
        with pytest.raises(WrongArgument, match=what):
            read_arguments(TOOL, wrong)


def test_commands_are_no_values_and_other_texts_with_a_slash_are() -> None:
    arguments, told = fill(POINT, "2", "/undo", "/quit now", "/tmp/notes", "", "")
    assert arguments["note"] == "/tmp/notes"
    assert [line for line in told if "in a form" in line] == [
        "(there is no /undo in a form: /cancel leaves it, and /say /undo gives that text)",
        "(there is no /quit in a form: /cancel leaves it, and /say /quit now gives that text)",
    ]
    assert fill(POINT, "2", " /say /undo", "", "")[0]["note"] == "/undo"


def test_a_form_can_be_left() -> None:
    with pytest.raises(FormLeft):
        fill(POINT, "/cancel")


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        *[("5", {"type": "integer"}, 5), ("5", {"type": "string"}, "5"), ("true", {"type": "boolean"}, True)],
        ("null", {"anyOf": [{"type": "string"}, {"type": "null"}]}, None),
        ("red", {"enum": ["red", "blue"]}, "red"),
        ("[1, 2]", {"type": "array", "items": {"type": "integer"}}, [1, 2]),
        ("anything at all", {}, "anything at all"),
        ('"quoted"', {"type": "string"}, "quoted"),
    ],
)
def test_a_text_is_read_as_what_the_schema_asks_for(text: str, schema: dict[str, Any], value: Any) -> None:
    assert read_value(text, schema, {}) == value


@pytest.mark.parametrize("schema", [{"type": "integer"}, {"type": "number", "minimum": 2}, {"enum": ["a"]}, {"type": "array"}])
def test_what_does_not_fit_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(WrongArgument):
        read_value("1.5", schema, {})


def test_a_tool_and_its_arguments_are_described() -> None:
    assert signature(TOOL) == "move(to, speed, note?, mode?, tags?)"
    properties = TOOL["parameters"]["properties"]
    assert explain("mode", properties["mode"], TOOL["parameters"]) == 'mode: walk | run, "walk" by default. How.'
    assert explain("to", properties["to"], TOOL["parameters"]) == "to: object, as JSON. Where to."
