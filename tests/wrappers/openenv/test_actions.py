"""`ActionReader`: which answers are actions of a schema, by the rule of all games."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vfgym.codecs import ActionNotFound
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
