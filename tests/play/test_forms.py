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


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        *(({"type": kind}, text) for kind, text in {"object": "object, as JSON", "string": "text", "boolean": "true | false"}.items()),
        *(({"type": kind}, kind) for kind in ("integer", "number", "null")),
        *(({"type": "array", **items}, "list, as JSON") for items in ({}, {"items": True})),
        *(
            ({"type": "array", "items": items}, f"list of {what}, as JSON")
            for items, what in (({}, "anything"), ({"type": "string"}, "text"))
        ),
        *((schema, "anything") for schema in ({}, True, None, {"$ref": "#/$defs/Missing"}, {"$ref": "#/$defs/Loop"})),
        ({"$ref": "#/$defs/Color"}, "red | 0 | null"),
        ({"const": 0}, "0"),
        ({"const": "x"}, '"x"'),
        ({"anyOf": [{"type": "string"}, {"type": "string"}, {"type": "null"}]}, "text or null"),
        ({"oneOf": [{"type": "integer"}, {"$ref": "#/$defs/Color"}]}, "integer or red | 0 | null"),
        ({"type": ["integer", "null"]}, "integer or null"),
    ],
)
def test_what_an_argument_may_be_is_said_in_a_few_words(schema: Any, said: str) -> None:
    root = {"$defs": {"Color": {"enum": ["red", 0, None]}, "Loop": {"$ref": "#/$defs/Loop"}}}
    assert explain("a", schema, root) == f"a: {said}"


@pytest.mark.parametrize(("default", "said"), [(None, "null"), (0, "0"), (False, "false"), ("", '""'), ([], "[]")])
def test_a_default_is_told_whatever_it_is(default: Any, said: str) -> None:
    assert explain("a", {"type": "string", "default": default, "description": ""}, {}) == f"a: text, {said} by default"


def form(parameters: Any, *lines: str) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments that are typed into the form of a tool with these parameters, and all that is asked and told."""
    waiting, seen = list(lines), list[str]()

    def ask(prompt: str) -> str:
        seen.append(prompt)
        return waiting.pop(0)

    arguments = fill_form({"name": "t", "parameters": parameters}, ask, seen.append, lambda error: seen.append(str(error)))
    assert not waiting
    return arguments, seen


HELP = "(one value a line, or all as a JSON object; ? explains, /cancel leaves)"
OBJECT, TEXT = {"type": "object"}, {"type": "string"}


@pytest.mark.parametrize(
    ("parameters", "lines", "arguments"),
    [
        *((parameters, [], {}) for parameters in (None, {}, {"properties": {}}, {"properties": None, "required": None})),
        ({"properties": {"a": TEXT}, "required": ["a"]}, ['""'], {"a": ""}),
        ({"properties": {"a": TEXT}}, [""], {}),
        ({"properties": {"a": TEXT, "b": TEXT}}, ["", "{"], {"b": "{"}),
        ({"properties": {"a": {"type": "integer"}, "b": TEXT}}, ['{"b": "x"}'], {"b": "x"}),
        ({"properties": {"b": TEXT, "a": {"type": "integer"}}}, ["", '{"b": "x"}'], {"b": "x"}),
        ({"properties": {"a": OBJECT, "b": OBJECT}}, ['{"b": {}}', '{"a": {}}'], {"a": {"b": {}}, "b": {"a": {}}}),
    ],
)
def test_a_line_that_fits_its_argument_is_its_value_and_else_all_arguments(parameters: Any, lines: list[str], arguments: Any) -> None:
    found, seen = form(parameters, *lines)
    assert found == arguments
    assert seen[:1] == ([HELP] if lines else [])
    assert len(seen) == len(lines) + bool(lines)


def test_prompts_say_what_is_asked_and_refusals_what_was_wrong() -> None:
    parameters = {"properties": {"n": {"$ref": "#/$defs/N"}, "o": {"$ref": "#/definitions/O"}}, "required": ["n"]}
    parameters |= {"$defs": {"N": {"type": "integer"}}, "definitions": {"O": {"type": "boolean"}}}
    arguments, seen = form(parameters, "", "x", " 7 ", "1", "true")
    assert arguments == {"n": 7, "o": True}
    assert seen == [
        *(HELP, "n (integer): ", "n: integer"),
        *("n (integer): ", "'x' is not of type 'integer'; it has to be: integer", "n (integer): "),
        *("o (true | false, optional): ", "1 is not of type 'boolean'; it has to be: true | false", "o (true | false, optional): "),
    ]
    with pytest.raises(FormLeft):
        form(parameters, " /CANCEL ")


def test_a_schema_that_cannot_be_read_takes_anything() -> None:
    for schema in ({"type": 3}, {"$ref": "#/nowhere"}, {"pattern": "("}, {"pattern": r"^\p{L}$"}):
        assert read_value('"x"', schema, {}) == "x"
    with pytest.raises(WrongArgument, match=r"^a\.0\.b: 'x' is not of type 'integer'; it has to be: object, as JSON$"):
        read_value(
            '{"a": [{"b": "x"}]}', {"type": "object", "properties": {"a": {"items": {"properties": {"b": {"type": "integer"}}}}}}, {}
        )


def test_a_tool_without_arguments_has_empty_parentheses() -> None:
    assert [signature({"name": "go", "parameters": each}) for each in (None, {}, {"properties": {"a": {}}})] == ["go()", "go()", "go(a?)"]
