"""`ActionReader`: which answers are actions of a schema, by the rule of all games."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from vfgym.codecs import ActionNotFound
from vfgym.codecs.reading import Where
from vfgym.wrappers.openenv.actions import ActionReader

METADATA = {"metadata": {"type": "object", "additionalProperties": True}}
TEXT = {"properties": {**METADATA, "code": {"type": "string"}}, "required": ["code"], "additionalProperties": False}
NUMBER = {"properties": {**METADATA, "action": {"type": "integer"}}, "required": ["action"], "additionalProperties": False}
OPTIONAL = {"properties": {"x": {"anyOf": [{"type": "number"}, {"type": "null"}]}, "y": {"type": "string"}}, "required": ["x"]}
SEVERAL = {"properties": {"row": {"type": "integer"}, "column": {"type": "integer"}}, "required": ["row", "column"]}
SIDE = {"enum": ["left", "right"], "type": "string"}
REFERENCE = {"properties": {"side": {"$ref": "#/$defs/Side"}}, "required": ["side"], "$defs": {"Side": SIDE}}


@pytest.mark.parametrize(
    ("schema", "answer", "action"),
    [
        (TEXT, "print(1)\nprint(2)", {"code": "print(1)\nprint(2)"}),
        (TEXT, '{"code": "x = 1"}', {"code": "x = 1"}),
        (TEXT, '<think>Hm.</think>Like this:\n```json\n{"code": "x"}\n```', {"code": "x"}),
        (TEXT, "Like this:\n```python\nx = 1\ny = 2\n```", {"code": "x = 1\ny = 2"}),
        (TEXT, "<answer>note: say it</answer>", {"code": "note: say it"}),
        (TEXT, "7", {"code": "7"}),
        (NUMBER, '{"action": 2}', {"action": 2}),
        (NUMBER, 'I go.\n{"action": 2, "metadata": {"why": "so"}}', {"action": 2, "metadata": {"why": "so"}}),
        (NUMBER, "2", {"action": 2}),
        (NUMBER, "My move is clear.\nAction: 3", {"action": 3}),
        (NUMBER, "\\boxed{4}", {"action": 4}),
        (OPTIONAL, "1.5", {"x": 1.5}),
        (OPTIONAL, "null", {"x": None}),
        (OPTIONAL, '{"x": 1, "y": "b", "z": 2}', {"x": 1, "y": "b", "z": 2}),
        (SEVERAL, "row: 1, column: 2", {"row": 1, "column": 2}),
        (SEVERAL, '<action>{"row": 1, "column": 2}</action>', {"row": 1, "column": 2}),
        (REFERENCE, "<action>left</action>", {"side": "left"}),
        ({}, '{"anything": [1]}', {"anything": [1]}),
    ],
)
def test_answers_that_are_actions(schema: dict[str, Any], answer: str, action: dict[str, Any]) -> None:
    assert ActionReader(schema).read(answer) == action


@pytest.mark.parametrize(
    ("schema", "answer", "words"),
    [
        (NUMBER, "I cannot decide.", "names no action"),
        (NUMBER, "true", "names no action"),
        (NUMBER, '{"actoin": 2}', "needs the field 'action'"),
        (NUMBER, '{"action": 2, "then": 3}', "has no field 'then', but 'action'"),
        (NUMBER, "<action>1</action> or <action>2</action>", "2 different actions"),
        (NUMBER, "<think>I think that 2", "ends before your thinking does"),
        (SEVERAL, "1", "names no action"),
        (SEVERAL, '{"row": 1}', "needs the field 'column'"),
        (TEXT, "", "names no action"),
    ],
)
def test_answers_that_are_not(schema: dict[str, Any], answer: str, words: str) -> None:
    with pytest.raises(ActionNotFound) as caught:
        ActionReader(schema).read(answer)
    assert words in caught.value.sentence()


@pytest.mark.parametrize("schema", [TEXT, NUMBER, OPTIONAL, SEVERAL, REFERENCE])
def test_samples_are_actions(schema: dict[str, Any]) -> None:
    reader, rng = ActionReader(schema), np.random.default_rng(0)
    for _ in range(20):
        message = reader.sample(rng)
        assert set(reader.read(str(message.content))) >= set(schema["required"])
    assert ActionReader(schema) == reader != ActionReader({})


VALUES = {"boolean": "true", "integer": "0", "number": "0.5", "string": '""', "array": "[]", "object": '{"a": 0}', "null": "null"}


@pytest.mark.parametrize("kind", VALUES)
def test_the_value_of_the_only_field_is_an_action_if_it_is_of_a_type_of_it(kind: str) -> None:
    reader = ActionReader({"properties": {"x": {"type": kind}, "metadata": {}}, "additionalProperties": False})
    taken = {name for name, text in VALUES.items() if name != "object" and reader.match(text, Where.LAST_LINE) is not None}
    assert taken == {"number": {"integer", "number"}, "object": set()}.get(kind, {kind})
    for name in taken:
        assert reader.match(VALUES[name], Where.LAST_LINE) == {"x": json.loads(VALUES[name])}
    for where in Where:
        expected = {"x": "go"} if kind == "string" and where is not Where.LAST_LINE else None
        assert reader.match("go", where) == expected


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        *(
            (schema, "An action is a JSON object.")
            for schema in ({}, {"properties": None}, {"properties": {"metadata": {}}, "required": ["metadata"]})
        ),
        ({"properties": {"x": {}}}, '{"properties": {"x": {}}, "required": []}. The value of "x" alone will do.'),
        ({"properties": {"x": {}, "y": {}}, "required": ["y", "metadata"]}, '"required": ["y"]}. The value of "y" alone will do.'),
        ({"properties": {"x": {}, "y": {}}, "required": None}, '{"properties": {"x": {}, "y": {}}, "required": []}.'),
        ({"properties": {"x": {}, "y": {}}, "required": ["x", "y"]}, '"required": ["x", "y"]}.'),
    ],
)
def test_the_form_of_an_action_is_told_without_what_is_not_the_models(schema: dict[str, Any], said: str) -> None:
    instructions = ActionReader(schema).instructions
    assert instructions.endswith(said)
    assert "metadata" not in instructions


def test_fields_that_are_missing_or_unknown_are_named() -> None:
    fields = {"properties": {"left": {}, "right": {}}, "required": ["left", "right"], "additionalProperties": False}
    for data, problem in (
        ("{}", "needs the field 'left', 'right'"),
        ('{"left": 0}', "needs the field 'right'"),
        ('{"left": 0, "right": 0, "rigth": 1, "up": 0}', "has no field 'rigth', but 'left', 'right'. Did you mean `right`?"),
    ):
        with pytest.raises(ActionNotFound) as caught:
            ActionReader(fields).match(data, Where.MARK)
        assert str(caught.value).startswith(problem)
        assert ActionReader(fields).read_exactly(data) is None
    whole = {"left": 0, "right": None, "metadata": {}}
    assert ActionReader(fields).read_exactly(json.dumps(whole)) == whole
    for open_fields in ({**fields, "additionalProperties": True}, {"properties": fields["properties"]}):
        assert ActionReader(open_fields).read_exactly('{"left": 0, "right": 0, "up": 1}') == {"left": 0, "right": 0, "up": 1}
    assert ActionReader({"additionalProperties": False}).read_exactly('{"up": 1}') == {"up": 1}
    assert (ActionReader(fields) == ActionReader({**fields}), ActionReader(fields) == ActionReader({}), ActionReader({}) == {}) == (
        True,
        False,
        False,
    )
