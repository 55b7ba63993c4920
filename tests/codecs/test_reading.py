"""Reading forgives format, not meaning, and says what is wrong so that a model can do better."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces as gs
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codecs import codecs
from tests.codecs.codecs import floats, moves
from tests.codecs.spaces import same
from vfgym.codecs import ActionNotFound, codec_for


def rows(kind: str) -> list[Any]:
    """Return the answers of a kind in ``answers_by_the_rule.json``, each with its codec, and with what comes of it."""
    found = json.loads((Path(__file__).parent / "data" / "answers_by_the_rule.json").read_text(encoding="utf-8"))[kind]
    listed = [(getattr(codecs, name), *([row] if isinstance(row, str) else row)) for name, items in found.items() for row in items]
    return [pytest.param(*row, id=f"{number}-{row[1][:30]!r}") for number, row in enumerate(listed)]


@pytest.mark.parametrize(("codec", "text", "data"), rows("readable"))
def test_format_is_forgiven(codec: Any, text: str, data: Any) -> None:
    read = codec.decode(text)
    assert read in codec.space
    assert codec.to_json(read) == data
    assert same(read, codec.decode(codec.encode(codec.from_json(data))))


@pytest.mark.parametrize(("codec", "text"), [*rows("asked_again"), (codecs.WIDE, "9" * 5000)])
def test_what_is_not_marked_as_an_action_is_asked_again(codec: Any, text: str) -> None:
    with pytest.raises(ActionNotFound) as caught:
        codec.decode(text)
    assert codec.listing() in str(caught.value)


ENDLESS = [
    pytest.param(codecs.COUNTS, f"[{'9' * 5000}, 0]", "Element 1 must be a whole number", id="digits"),
    pytest.param(codecs.NET, "[" * 5000, "names no action", id="lists"),
    pytest.param(codecs.NET, "{'a':" * 5000, "names no action", id="objects"),
]


@pytest.mark.parametrize(("codec", "text", "problem"), [*rows("refused"), *ENDLESS])
def test_meaning_is_not_forgiven(codec: Any, text: str, problem: str) -> None:
    with pytest.raises(ActionNotFound) as caught:
        codec.decode(text)
    assert problem in str(caught.value)
    assert str(caught.value).endswith(f"Valid actions: {codec.listing()}.")


HARMLESS = [
    "{}",
    " {} \n",
    "**{}**",
    "`{}`",
    "_{}_",
    "'{}'",
    "\u201c{}\u201d",
    "({})",
    "[{}]",
    "<{}>",
    "$\\boxed{{{}}}$",
    "{}.",
    "{}!",
    "- {}",
    "* {}",
    "> {}",
    "-> {}",
    "\u2014 {}",
    "Action: {}",
    "**Action:** {}",
    "My final answer is {}.",
    "Let us take {}, then.",
    "At leg2, in the 2nd try, {} is best",
    "Not sure... {}",
    "{} Nm",
    "{}Nm",
    "torque={}",
    "```\n{}\n```",
    '```json\n{{"action": {}}}\n```',
    "{{'action': {}}}",
    '{{"reason": "It is 2 steps away", "action": {}}}',
    "<action>{}</action>",
    "<Action> {} </Action> as I said",
    "<think>1 or 2?</think>{}",
    "<THINKING>-1</THINKING>\n{}<think>or 0",
    "<think>{}",
]
"""What may stand around a value and leaves it what it is; or the answer is cut off."""


TWISTING = [
    "1. {}",
    "torque-{}",
    "x{}",
    "{}\u2013",
    "a range of 0-{}",
    "about \u00b1{}",
    "3 * {}",
    "minus {}",
    "not {}",
    "{} or {}",
    "[{}, {}]",
    "{}%",
    "{}k",
    "{}.5",
    "{}/2",
    "{}^2",
]
"""What may make another value of it, or two."""


VALUES: list[tuple[Any, list[Any]]] = [
    (codecs.MOVES, [moves(0), moves(3)]),
    (codecs.LEVERS, [moves(0), moves(1), moves(2)]),
    (codecs.FORCES, [moves(0), moves(1), moves(2)]),
    (codecs.TAXI, [moves(0), moves(2)]),
    (codecs.CELLS, [moves(0), moves(3)]),
    (codecs.SHIFTED, [moves(-1), moves(0), moves(1)]),
    (codecs.WIDE, [moves(12), moves(999)]),
    (codecs.TORQUE, [floats(-1.75), floats(0.5), floats(2), floats(-1e-05)]),
    (codecs.DRIVE, [floats(-0.5, 1)]),
    (codecs.KNOBS, [np.array([2, 1])]),
]


@given(st.sampled_from(VALUES), st.data())
@settings(max_examples=250)
def test_nothing_around_a_value_makes_another_one_of_it(case: tuple[Any, list[Any]], data: st.DataObject) -> None:
    """The value that is written is read, or the answer is refused: with any dash, with or without brackets."""
    codec, values = case
    value = data.draw(st.sampled_from(values))
    written = codec.encode(value).replace("-", data.draw(st.sampled_from("-\u2212\u2013\u2010\uff0d")))
    if codec is codecs.TORQUE and data.draw(st.booleans()):
        written = written.strip("[]")
    if codec in (codecs.MOVES, codecs.TAXI) and data.draw(st.booleans()):
        written = str(int(value))
    twisted = data.draw(st.sampled_from(["{}", *TWISTING]))
    written = twisted.format(written, written)
    for form in data.draw(st.lists(st.sampled_from(HARMLESS), max_size=2)):
        written = form.format(written)
    try:
        read = codec.decode(written)
    except ActionNotFound:
        return
    if twisted == "minus {}" and codec in (codecs.TORQUE, codecs.SHIFTED):
        read = -read
    assert codec.encode(read) == codec.encode(value), written


def test_the_last_line_of_a_long_answer_is_read() -> None:
    assert codecs.TORQUE.decode("I look at x.\n" * 10_000 + "0.5") == floats(0.5)
    with pytest.raises(ActionNotFound, match="names no action"):
        codecs.TORQUE.decode("0.5\n" + "I look at x.\n" * 10_000)


LISTINGS = [
    (codecs.MOVES, "0 (left), 1 (down), 2 (right), 3 (up)"),
    (codecs.SHIFTED, "-1, 0, 1"),
    (codecs.WIDE, "0 to 999999"),
    (codecs.DRIVE, "a list of 2 numbers: the first from -1 to 1, the second from 0 to 1"),
    (codecs.LABELLED, "a list of 2 numbers: steering from -1 to 1, gas from 0 to 1"),
    (codecs.TORQUE, "a list of 1 number from -2 to 2"),
    (codecs.GRID, "a 2 x 2 array (nested lists) of whole numbers, each from 0 to 3"),
    (codecs.BITS, "a list of 3 whole numbers, each from 0 to 1"),
    (codecs.PAD, "[<0 (noop), 1 (up), 2 (down)>, <0 (off), 1 (on)>]"),
    (codecs.SAY, 'a text of 1 to 20 characters (lower-case letters, spaces, any of "\'")'),
    (codecs.LIST, "[<0, 1, 2>, ...], of any length"),
    (
        codec_for(gs.OneOf([gs.Discrete(2), gs.Box(0, 1, ())])),
        '{"choice": 0, "value": <0, 1>} or {"choice": 1, "value": <a number from 0 to 1>}',
    ),
    (codec_for(gs.Box(0, np.inf, ())), "a number at least 0"),
    (codec_for(gs.Box(-np.inf, 0.1, (3,))), "a list of 3 numbers, each at most 0.1"),
    (codec_for(gs.Box(-np.inf, np.inf, (3,))), "a list of 3 numbers"),
]


@pytest.mark.parametrize(("codec", "listing"), LISTINGS, ids=lambda value: repr(value)[:40])
def test_the_listing_says_what_is_valid(codec: Any, listing: str) -> None:
    assert codec.listing() == listing


EXAMPLES = [
    (codecs.MOVES, "down"),
    (codecs.WIDE, "499999"),
    (codecs.DRIVE, "[0.5, 0.75]"),
    (codecs.GRID, "[[2, 2], [2, 2]]"),
    (codecs.SAY, "look"),
    (codecs.LIST, "[1, 1]"),
]


@pytest.mark.parametrize(("codec", "example"), EXAMPLES, ids=lambda value: repr(value)[:40])
def test_the_example_is_ordinary(codec: Any, example: str) -> None:
    assert codec.example() == example


JSON_DATA = [
    (codecs.MOVES, "3", moves(3)),
    (codecs.MOVES, 3.0, moves(3)),
    (codecs.MOVES, "UP", moves(3)),
    (codecs.TORQUE, 0.5, floats(0.5)),
    (codecs.TORQUE, "0.5", floats(0.5)),
    (codecs.DRIVE, (0.5, 1), floats(0.5, 1)),
    (codecs.DRIVE, "[0.5, 1]", floats(0.5, 1)),
    (codecs.LABELLED, {"gas": 1, "steering": 0.5}, floats(0.5, 1)),
    (codecs.BITS, [True, False, 1], np.array([1, 0, 1], np.int8)),
    (codecs.PAD, ["up", 1.0], np.array([1, 1])),
    (codecs.EITHER, {"choice": "0", "value": 1}, (moves(0), moves(1))),
]


@pytest.mark.parametrize(("codec", "data", "action"), JSON_DATA, ids=lambda value: repr(value)[:40])
def test_the_format_of_tool_arguments_is_forgiven(codec: Any, data: Any, action: Any) -> None:
    assert same(codec.from_json(data), action)


BAD_DATA = [
    (codecs.MOVES, True, "must be a name or a number from 0 to 3, got true"),
    (codecs.MOVES, None, "got null"),
    (codecs.MOVES, 7, "got 7"),
    (codecs.MOVES, 1.5, "got 1.5"),
    (codecs.MOVES, [1], "got [1]"),
    (codecs.MOVES, object, "must be a name or a number"),
    (codecs.TORQUE, {"a": 1}, "must be a number"),
    (codecs.COUNTS, [10**400, 0], "Element 1 must be from -5 to 5"),
    (codecs.DRIVE, [10**400, 0], "Element 1 must be a number that float32 can hold"),
    (codecs.SAY, ["a"], 'must be a text, got ["a"]'),
]


@pytest.mark.parametrize(("codec", "data", "problem"), BAD_DATA, ids=lambda value: repr(value)[:40])
def test_the_meaning_of_tool_arguments_is_not_forgiven(codec: Any, data: Any, problem: str) -> None:
    with pytest.raises(ActionNotFound) as caught:
        codec.from_json(data)
    assert problem in str(caught.value)


def test_schemas_are_what_a_tool_needs() -> None:
    assert codecs.MOVES.schema == {"type": "string", "enum": ["left", "down", "right", "up"]}
    assert codecs.SHIFTED.schema == {"type": "integer", "minimum": -1, "maximum": 1}
    assert codecs.ROBOT.schema["required"] == ["move", "thrust", "say"]
    assert codecs.ROBOT.schema["additionalProperties"] is False
    unbounded = codec_for(gs.Box(-np.inf, np.inf, (2,))).schema["items"]
    assert unbounded == {"anyOf": [{"type": "number"}, {"enum": ["-inf", "inf"]}]}
    assert "inf" not in json.dumps(codecs.DRIVE.schema)
