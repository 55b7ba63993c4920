"""`find_data`: the actions in JSON and in calls of the tool, whichever chat template wrote them."""

from __future__ import annotations

import pytest

from vfgym.codecs.calls import find_data
from vfgym.codecs.marks import KEYS


def found(text: str, *own_keys: str, keys: frozenset[str] = KEYS) -> list[str]:
    return [part.content for part in find_data(text, own_keys, keys)]


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ('{"action": "up"}', ["up"]),
        ('{"ANSWER": [1, 2.0]}', ["[1, 2]"]),
        ('{"action": null}', [""]),
        ('{"action": 0}', ["0"]),
        ('{"action": "up"} {"move": 2}', []),  # two on a line
        ('{"action": "up"}\n{"move": 2}', ["up", "2"]),
        ('I say {"action": "up"}', []),
        ('- {"action": "up"}', []),
        ('`{"action": "up"}`.', ["up"]),
        ('[{"action": 1}, {"action": 2}]', ["1", "2"]),
        ('{"name": "act", "arguments": {"action": 1}}', ["1"]),
        ('{"name": "act", "parameters": {"move": 1}}', ["1"]),
        ('{"name": "act", "input": "{\\"action\\": 1}"}', ["1"]),
        ('{"type": "function", "function": {"name": "act", "arguments": "{\\"action\\": 1}"}}', ["1"]),
        ('{"act": {"action": 1}}', ["1"]),
        ('{"act": 1}', ["1"]),
        ('{"name": "walk", "arguments": {"action": 1}}', []),
        ("act(1)", ["1"]),
        ("act(action='up')", ["up"]),
        ("`move(2)`", ["2"]),
        ("tools.act(action=2)", ["2"]),
        ('{"Act": 1}', ["1"]),
        ('{"ACT": {"action": 1}}', ["1"]),
        ("```json\n{'action': 2}\n```\n```\nact(3)\n```", ["2", "3"]),
        ('[TOOL_CALLS]act[ARGS]{"action": 5}', ["5"]),
        ('{"name": "act", "arguments": "act"}', []),
        ('<invoke name="act"><parameter name="action">6</parameter></invoke><invoke name="act"><parameter name="move">7', ["6", "7"]),
        ("<function=tools.act><parameter=speed>1</parameter><parameter=action>7</parameter></function>", ["7"]),
        ("walk(1)", []),
        ("walk(action=1)", ["1"]),
        ("act()", []),
        ("I act(1)", []),
        ("```json\n{'action': 2}\n```\nand so on", ["2"]),
        ("```python\nact(3)\n```", ["3"]),
        ("<|python_tag|>{'action': 4}<|eom_id|>", ["4"]),
        ('[TOOL_CALLS][{"name": "act", "arguments": {"action": 5}}]', ["5"]),
        ('<invoke name="act"><parameter name="action">6</parameter></invoke>', ["6"]),
        ('<ns:invoke name="act"><ns:parameter name="action">6</ns:parameter></ns:invoke>', ["6"]),
        ("<function=act><parameter=action>\n7\n</parameter></function>", ["7"]),
        ('<function=act>{"action": 8}</function>', ["8"]),
        ("act<arg_key>action</arg_key>\n<arg_value>9</arg_value>", ["9"]),
        ('<invoke name="walk"><parameter name="action">6</parameter></invoke>', []),
        ('<invoke name="act"><parameter name="speed">6</parameter></invoke>', []),
        ("no data (at all) {", []),
    ],
)
def test_the_actions_of_every_template_are_found(text: str, contents: list[str]) -> None:
    assert found(text) == contents


def test_keys_of_the_action_itself_mark_nothing_unless_an_object_stands_under_them_and_can_be_others() -> None:
    assert found('{"action": 1, "gear": 2}', "action", "gear") == []
    assert found('{"action": {"action": 1, "gear": 2}}', "action", "gear") == ['{"action": 1, "gear": 2}']
    assert found('{"name": "act", "arguments": {"gear": 2}}', "gear") == ['{"gear": 2}']
    assert found("act(gear=2, wind=0)", "gear", "wind") == ['{"gear": 2, "wind": 0}']
    assert found('{"actions": [1, 2], "action": 3}', keys=frozenset({"actions"})) == ["[1, 2]"]


def test_a_part_has_the_place_of_its_mark() -> None:
    text = 'Well.\n{"action": 1}\nIt is.'
    (part,) = find_data(text, (), KEYS)
    assert text[part.start : part.end] == '{"action": 1}'
    text = "So act:\nact(1)\n```\n{'move': 2}\n``` done"
    assert [text[part.start : part.end] for part in find_data(text, (), KEYS)] == ["```\n{'move': 2}\n```", "act(1)"]
