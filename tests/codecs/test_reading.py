"""Reading forgives format, not meaning, and says what is wrong so that a model can do better."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces as gs
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codecs.codecs import (
    BITS,
    BOTH,
    CELLS,
    CHESS,
    COUNTS,
    DRIVE,
    EITHER,
    FLAGS,
    FORCES,
    GAS,
    GRID,
    KNOBS,
    LABELLED,
    LEVERS,
    LIST,
    MOVES,
    NET,
    PAD,
    PAIR,
    PHRASES,
    ROBOT,
    SAY,
    SHIFTED,
    TAXI,
    TORQUE,
    WIDE,
    floats,
    moves,
)
from tests.codecs.spaces import same
from vfgym.codecs import ActionNotFound, codec_for

CHOICES = [
    "Action: 1 (because it is free)",
    "Action: 1</s>",
    "Action: 1<|eot_id|>",
    "Action\uff1a1",
    "### Action\n1",
    "**Action**\n1",
    "“1”",
    "~1~",
    "<answer>1</answer>",
    "<move>1</move>",
    "\\boxed{\\text{1}}",
    '{"move": 1}',
    "The answer is $\\boxed{1}$.",
    "It leans by 0.05, so \\boxed{1}",
    "act(1)",
    "Action: 1 because it is safe",
    "Action: 1 - it is free",
    "Action: 1, since 0.5 is far",
    "Action: #1",
    "1 \u2705",
    "My action is 1.",
    "My choice is **1**",
    "My final answer is: 1",
    '{"action": [1]}',
    "<action>2</action> no, <action>1</action>",
]
"""Ways to name an action by its number."""


READABLE = [
    (MOVES, "left", moves(0)),
    (MOVES, "LEFT.", moves(0)),
    (MOVES, " `3` ", moves(3)),
    (MOVES, "3.0", moves(3)),
    (MOVES, "'up'", moves(3)),
    (MOVES, "**Action:** left", moves(0)),
    (MOVES, "Action: left\n\nReason: right is blocked", moves(0)),
    (MOVES, "action=left", moves(0)),
    (MOVES, "```\nright\n```", moves(2)),
    (MOVES, '```json\n{"action": "right"}\n```', moves(2)),
    (MOVES, '{"action": 1}', moves(1)),
    (MOVES, "{'action': 'up'}", moves(3)),
    (MOVES, "\\boxed{left}", moves(0)),
    (MOVES, "I see\n```\nup . .\n```\nAction: left", moves(0)),
    (MOVES, "<think><action>right</action></think> <ACTION> 1 </Action>", moves(1)),
    (MOVES, "<action>1</action>, that is <action>down</action>", moves(1)),
    (MOVES, "Not right. <action>left", moves(0)),
    (MOVES, "2 (right)", moves(2)),
    (MOVES, "\\boxed{2}", moves(2)),
    (MOVES, '{"reason": "left is free", "action": 1}', moves(1)),
    (MOVES, '{"name": "act", "arguments": {"action": 1}}', moves(1)),
    (MOVES, "<thinking>left</Thinking> right", moves(2)),
    *((MOVES, text, moves(1)) for text in CHOICES),
    (MOVES, '{"action": "I go left"}', moves(0)),
    (FORCES, "Action: 1, since it leans", moves(2)),
    (TORQUE, "\u52a8\u4f5c\uff1a0.5\u3002", floats(0.5)),
    (LEVERS, "apply \u22121 torque", moves(0)),
    (LEVERS, "1", moves(1)),
    (LEVERS, "\\[ \\boxed{1} \\]", moves(1)),
    (LEVERS, "$\\boxed{\\text{1}}$!", moves(1)),
    (FORCES, "-1", moves(0)),
    (FORCES, "1", moves(2)),
    (FORCES, "2", moves(2)),
    (TAXI, "move south", moves(0)),
    (TAXI, "0 (Move south (down))", moves(0)),
    (CELLS, '{"steps": 1, "action": 3}', moves(3)),
    (PHRASES, "<action>go home!</action>", moves(2)),
    (SHIFTED, "-1", moves(-1)),
    (SHIFTED, "\u22121", moves(-1)),
    (DRIVE, "[\u20130.5, 1]", floats(-0.5, 1)),
    (DRIVE, "(0.5, 1,)", floats(0.5, 1)),
    (DRIVE, '["0.5", "1"]', floats(0.5, 1)),
    (DRIVE, "[\u22120.5, 1e0]", floats(-0.5, 1)),
    (DRIVE, "<think>[1, 1]</think>```python\n[0.5, 1]\n```", floats(0.5, 1)),
    (DRIVE, "Action: <action>0.5, 1</action>", floats(0.5, 1)),
    (DRIVE, '{"action": [0.5, 1]}', floats(0.5, 1)),
    (LABELLED, '{"gas": 1, "steering": 0.5}', floats(0.5, 1)),
    (TORQUE, "0.5", floats(0.5)),
    (TORQUE, '{"action": [0.5]}', floats(0.5)),
    (TORQUE, "-1.75Nm", floats(-1.75)),
    (TORQUE, "1.5e0rad/s", floats(1.5)),
    (TORQUE, "$\\boxed{-0.5}$", floats(-0.5)),
    (TORQUE, '{"confidence": 0.9, "action": 0.5}', floats(0.5)),
    (CELLS, "act(3)", moves(3)),
    (COUNTS, "[3.0, '-4']", np.array([3, -4], np.int32)),
    (GRID, "[[0, 1], [2, 3]]", np.array([[0, 1], [2, 3]], np.int8)),
    (GRID, "((0, 1), (2, 3))", np.array([[0, 1], [2, 3]], np.int8)),
    (BITS, "[true, 0, 1.0]", np.array([1, 0, 1], np.int8)),
    (PAD, "[up, ON]", np.array([1, 1])),
    (SAY, "it's me", "it's me"),
    (SAY, "'me'", "me"),
    (SAY, "> me", "me"),
    (SAY, "**it's me.**", "it's me"),
    (SAY, "<action>`me`</action>", "me"),
    (SAY, '"me"', "me"),
    (SAY, "Action: me", "me"),
    (SAY, "So:\n<action> me </action>", "me"),
    (SAY, '{"action": "me"}', "me"),
    (LIST, "[]", ()),
    (EITHER, "[0, 1]", (moves(1), floats(0, 1))),
    (EITHER, "4", (moves(2), moves(4))),
    (EITHER, "{choice: 0, value: 1}", (moves(0), moves(1))),
    (PAIR, "(1, ((0, 0), 2))", (moves(1), (floats(0, 0), moves(2)))),
]


ROBOT_TEXTS = [
    '{"move": "left", "thrust": [0.5, 1], "say": "a b"}',
    "{'move': 'Left', 'thrust': (0.5, 1), 'say': 'a b',}",
    "{move: left, thrust: [0.5, 1], say: a b}",
    '```json\n{"action": {"move": "0", "thrust": [0.5, 1], "say": "a b"}}\n```',
]


READABLE += [(ROBOT, text, {"move": moves(0), "say": "a b", "thrust": floats(0.5, 1)}) for text in ROBOT_TEXTS]


@pytest.mark.parametrize(("codec", "text", "action"), READABLE, ids=lambda value: repr(value)[:40])
def test_format_is_forgiven(codec: Any, text: str, action: Any) -> None:
    read = codec.decode(text)
    assert read in codec.space
    assert codec.encode(read) == codec.encode(action)
    assert same(read, codec.decode(codec.encode(action)))


NO_CHOICES = [
    "apply 1 torque",
    "play card 2",
    "reveal rank 3",
    "I take 1 step",
    "I choose 1 of them",
    "don't choose 1",
    "Not 1",
    "play 1?",
    "1%",
    "±1",
    "-(1)",
    "-<b>1</b>",
    "1/9",
    "1 - 9",
    "❌ 1",
    "!= 1",
    "Action: option 1",
    "1,",
    "1;",
    "1?",
    "- 1",
    "> 1",
    "-> 1",
    "I choose 1.",
    "I choose 1 because it is safe.",
    "Option 1",
]
"""Texts with a number that is not clearly a choice."""


CHANGED_NUMBERS = [
    "-\xa00.5",
    "\u2212\u202f0.5",
    "minus: 0.5",
    "-\\text{0.5}",
    "-<b>0.5</b>",
    '-{"action": 0.5}',
    "-[0.5]",
    "-np.array(0.5)",
    "\\sqrt{4}",
    "1\\%",
    "\\pm 0.5",
    "1.5 e1",
    "1per cent",
]


CHANGED_LISTS = [
    "-[0.5, 1]",
    "\u2212[0.5, 1]",
    "-(0.5, 1)",
    "-{'action': [0.5, 1]}",
    "-np.array([0.5, 1])",
    "minus [0.5, 1]",
    "0.5*[1, 1]",
    "0.5 * [1, 1]",
    "[0.5, 1] * -1",
    "[0.5, 1]/2",
    "np.array([0.5, 1])*2",
    "not np.array([0.5, 1])",
]
"""Numbers and lists that are a part of something that changes them."""


ASKED = [
    (MOVES, "(up)"),
    (MOVES, "[1]"),
    (MOVES, "Let us go right!"),
    (MOVES, '{"name": "move", "arguments": {"action": "left"}}'),
    (MOVES, "<think>right or up? 2</think> I go down: 1"),
    (MOVES, "(2)"),
    (MOVES, 'So {"action": 1} it is'),
    (MOVES, "It leans by 0.05, so left"),
    (MOVES, "It is not far. I go left"),
    (MOVES, "left\u2014it is free"),
    (MOVES, "<THINK>left</THINK> right <think>or up"),
    (MOVES, '3 is a wall. {"action": 1}'),
    (LEVERS, "I APPLY  \u20131\ntorque"),
    (FORCES, "a force of \u22121.0"),
    (GAS, "I don\u2019t accelerate"),
    (TAXI, "I move north, since it is free"),
    (CELLS, "I take cell #3."),
    (CELLS, "In my 2nd try: 3"),
    (PHRASES, "I turn left now"),
    (PHRASES, "I go left"),
    (CHESS, "I play Bxc3"),
    (CHESS, "I play E4"),
    (SHIFTED, "I say -1."),
    (SHIFTED, "I say \u20131."),
    (SHIFTED, "minus 1"),
    (WIDE, "number 123456 it is"),
    (DRIVE, "0.5, 1"),
    (DRIVE, "-.5 1."),
    (DRIVE, '{"1": 1, "0": 0.5}'),
    (DRIVE, "2: 1, 1: 0.5"),
    (KNOBS, '{"1": 2, "0": 0}'),
    (DRIVE, "0.5; 1"),
    (DRIVE, "np.array([0.5, 1.0], dtype=float32)"),
    (DRIVE, "I choose [0.5, 1], since the state is [1, 2, 3, 4]."),
    (DRIVE, "[0.5, 1], that is [0.50, 1.0]"),
    (LABELLED, "gas: 1, Steering: 0.5"),
    (TORQUE, '{"torque": 0.5}'),
    (TORQUE, "I apply a torque of -1.5 Nm."),
    (TORQUE, "torque: 1.5"),
    (TORQUE, "tau=\u22121.75 N\u00b7m"),
    (TORQUE, "0.75f"),
    (TORQUE, "\u20140.5"),
    (TORQUE, "a torque of minus 0.5"),
    (TORQUE, "0.5 m/s^2 at leg2, so 0.50"),
    (TORQUE, '{"0": 0.5}'),
    (TORQUE, "_minus 0.5_"),
    (TORQUE, "Action 1: 0.5"),
    (TORQUE, "np.array(1)"),
    (TORQUE, "env.step([0.5])"),
    (CELLS, '1 is a wall. {"action": 3}'),
    (DRIVE, "I must not crash (again). [0.5, 1]"),
    (DRIVE, "I go *[0.5, 1]* now"),
    (DRIVE, "- [0.5, 1]"),
    (FLAGS, "True, false"),
    (BITS, "1 0 1"),
    (PAD, "up, 1"),
    (LIST, "0, 1, 2"),
    (MOVES, "left\u2014let me think"),
    (MOVES, "left\u2014blocked"),
    (MOVES, "left or right"),
    (MOVES, "I go left of\n```\nS up F\n```"),
    (MOVES, "1 (right)"),
    (MOVES, "The cart is at 0.5, so 1"),
    (MOVES, "The pole leans 1 degree"),
    (MOVES, "It leans left, so 1"),
    (MOVES, "1. The pole leans left"),
    (MOVES, "Action: 1. The pole leans left"),
    (MOVES, "Action: 1, then 2"),
    (MOVES, "Action: 9, not 1"),
    (MOVES, "Action: 1 step"),
    (MOVES, "I like left.\nAction: jump"),
    (MOVES, "not left"),
    (MOVES, "Don\u2019t go to the left"),
    (MOVES, "rather than left"),
    (MOVES, "-1"),
    (MOVES, '{"action": 1} or 2'),
    (MOVES, '{"action": "left"} or right'),
    (MOVES, 'left or {"action": "right"}'),
    (MOVES, 'not {"action": 1}'),
    (MOVES, 'not {"action": "left"}'),
    (MOVES, "dont go left"),
    (MOVES, "no left"),
    (MOVES, "anything but left"),
    (MOVES, "I refuse to go left"),
    (LEVERS, "I choose 1"),
    (LEVERS, "- 1"),
    (CELLS, '{"action": 3} or 4'),
    (CELLS, 'not {"action": 3}'),
    (CELLS, '-{"action": 3}'),
    (CELLS, "\u52a8\u4f5c\uff1a3 4"),
    (CELLS, '{"reason": "It is 2 steps away", "action": <x3>}'),
    (CELLS, "\u6211\u90093"),
    (TORQUE, "\u52a8\u4f5c\uff1a1,2"),
    (TORQUE, '{"action": 0.5} or 1'),
    (LEVERS, "torque 1"),
    (FORCES, "- 1.0"),
    (FORCES, "minus 1.0"),
    (GAS, "Don't accelerate to the left"),
    (GAS, "Do not accelerate to the left"),
    (CELLS, "2-3"),
    (CELLS, "7, so 3"),
    (CELLS, "0.5, so 3"),
    (CELLS, "don't play 3"),
    (CELLS, "3 walls.\nAction: 9"),
    (CELLS, "1/2"),
    (CELLS, "- 3"),
    (MOVES, "Action: .3, as I said"),
    (CELLS, "5k, that is 3"),
    (SHIFTED, "- 1"),
    (SHIFTED, "x-1"),
    (SHIFTED, "0\u20131"),
    (MOVES, "4"),
    (MOVES, "10"),
    (CHESS, "I play bxc3, not Bxc3"),
    (WIDE, "9" * 5000),
    (DRIVE, "[0.5, 1] or [0.2, 1]"),
    (DRIVE, "0.5, -1"),
    (LABELLED, "gas: 1, brake: 0"),
    (TORQUE, "torque 1 or 2"),
    (TORQUE, "I apply 3 Nm"),
    (TORQUE, "[0.5, 0.5]"),
    (TORQUE, "[0.5, 0.7]"),
    (TORQUE, "- 0.5"),
    (TORQUE, "-(0.5)"),
    (TORQUE, "0.5\u20131.5"),
    (TORQUE, "0.5 (1)"),
    (TORQUE, "[0.5] is weak, so 0.7"),
    (TORQUE, "not [0.5]"),
    (TORQUE, "1.5k"),
    (TORQUE, "50%"),
    (TORQUE, "1 percent"),
    (TORQUE, "2pi"),
    (TORQUE, "pi / 2"),
    (TORQUE, "sqrt(2)"),
    (TORQUE, "torque -= 0.5"),
    (TORQUE, "minus [0.5]"),
    (TORQUE, "torque1.5, so 1"),
    (TORQUE, "2 times less"),
    (TORQUE, "1\u00bd"),
    (TORQUE, "\u00b10.5"),
    (TORQUE, "0x1"),
    (TORQUE, "1.0.1"),
    (TORQUE, "1,5"),
    (TORQUE, '{"confidence": 0.9, "action": "left"}'),
    (DRIVE, "steer: 0.5, gas: 1"),
    (DRIVE, "not [0.5, 1]"),
    (DRIVE, "not (again): [0.5, 1]"),
    (DRIVE, "[-] [0.5, 1]"),
    (DRIVE, "Not [0.5, 1].\nAction: go up"),
    (KNOBS, "col: 1, row: 0"),
    (ROBOT, '{"move": 0, "thrust": [0, 0], "say": "a"} {"move": 1, "thrust": [0, 0], "say": "a"}'),
    (LIST, "<action>,</action>"),
    (EITHER, "1"),
    *(
        (ROBOT, text)
        for text in [
            "move: left, thrust: [0.5, 1], say: a b",
            "move: left\nthrust: [0.5, 1]\nsay: a b",
            'Sure! {"say": "a b", "move": 0.0, "thrust": "[0.5, 1]"} Is that ok?',
        ]
    ),
    *((MOVES, text) for text in NO_CHOICES),
    *((TORQUE, text) for text in CHANGED_NUMBERS),
    *((DRIVE, text) for text in CHANGED_LISTS),
]
"""Answers that name no action by the rule, or not clearly."""


@pytest.mark.parametrize(("codec", "text"), ASKED, ids=lambda value: repr(value)[:40])
def test_what_is_not_marked_as_an_action_is_asked_again(codec: Any, text: str) -> None:
    with pytest.raises(ActionNotFound) as caught:
        codec.decode(text)
    assert codec.listing() in str(caught.value)


UNREADABLE = [
    (MOVES, "", "names no action"),
    (MOVES, "upright", "names no action"),
    (MOVES, "the left-hand side", "names no action"),
    (MOVES, '{"action": "jump"} left', "names no action"),
    (MOVES, "<think>Let me see. If I push left", "names no action"),
    (MOVES, "<Reasoning><action>left</action>", "names no action"),
    (LEVERS, "apply \u2212 1 torque", "names no action"),
    (LEVERS, "apply +1 torque", "names no action"),
    (GAS, "accelerate", "names no action"),
    (TAXI, "Move south (up)", "names no action"),
    (TAXI, "Fire", "names no action"),
    (TAXI, "down", "names no action"),
    (CELLS, ".3", "names no action"),
    (MOVES, ".3", "names no action"),
    (MOVES, "1.5", "names no action"),
    (CHESS, "BXC3", "names no action"),
    (DRIVE, "none", "names no action"),
    (DRIVE, "I think so, I do", "Your answer names no action"),
    (DRIVE, "[0.5, 1", "names no action"),
    (DRIVE, "[0.5]", "The action must have 2 elements, got 1"),
    (DRIVE, "[[0.5, 1]]", "must have 2 elements, got 1"),
    (DRIVE, "[0.5, 3]", "Element 2 must be from 0 to 1, got 3"),
    (DRIVE, "[0.5, true]", "Element 2 must be a number, got true"),
    (DRIVE, "[0.5, null]", "Element 2 must be a number, got null"),
    (DRIVE, '["a", 1]', 'Element 1 must be a number, got "a"'),
    (DRIVE, "[NaN, 1]", "Element 1 must be from -1 to 1"),
    (DRIVE, "[1e400, 1]", "Element 1 must be from -1 to 1"),
    (DRIVE, '{"steps": 1, "note": 0}', "must be a list of 2 elements"),
    (DRIVE, '{"1": 1, "3": 0}', "must be a list of 2 elements"),
    (DRIVE, "[0.5 \u2013 1]", "must be a number"),
    (DRIVE, "[- 0.5, 1]", "must be a number"),
    (BOTH, '{"action": 1}', "must have the key `gear`"),
    (BOTH, '{"action": 1, "gear": 0, "why": 1}', "must have no key `why`"),
    (COUNTS, "[1.5, 0]", "Element 1 must be a whole number, got 1.5"),
    (COUNTS, "[true, 0]", "Element 1 must be a whole number, got true"),
    (COUNTS, f"[{'9' * 5000}, 0]", "Element 1 must be a whole number"),
    (GRID, "[[0, 1], [2, 4]]", "Element 2 of element 2 must be from 0 to 3, got 4"),
    (GRID, "[[0, 1], [2]]", "Element 2 must have 2 elements, got 1"),
    (GRID, "[0, 1, 2, 3]", "The action must have 2 elements, got 4"),
    (FLAGS, "[2, 0]", "Element 1 must be from"),
    (FLAGS, "[yes, no]", "Element 1 must be true or false"),
    (BITS, "[1, 0, 2]", "Element 3 must be from 0 to 1, got 2"),
    (PAD, "[up, maybe]", 'Element 2 must be a name or a number from 0 to 1, got "maybe"'),
    (SAY, "", "a text of 1 to 20 characters"),
    (SAY, "x" * 21, "which has 21"),
    (SAY, "HELLO", 'without the character "H"'),
    (ROBOT, "left", "names no action"),
    (ROBOT, '{"move": 0, "thrust": [0, 3], "say": "a"}', "Element 2 of `thrust` must be from -1 to 1, got 3"),
    (ROBOT, '{"mov": 0, "thrust": [0, 1], "say": "a"}', "no key `mov`. Did you mean `move`?"),
    (ROBOT, '{"move": 0, "thrust": [0, 1]}', "must have the key `say`"),
    (ROBOT, '{"move": 0, "move": 1, "thrust": [0, 0], "say": "a"}', "names no action"),
    (PAIR, "[1, [[0.5, 3], 2]]", "Element 2 of element 1 of element 2 must be from -1 to 1, got 3"),
    (LIST, "", "names no action"),
    (LIST, "[0, 5]", "Element 2 must be a whole number from 0 to 2, got 5"),
    (EITHER, "[1, 2, 3]", "fits none of its choices"),
    (EITHER, '{"choice": 7, "value": 1}', "`choice` must be a whole number from 0 to 2, got 7"),
    (EITHER, '{"choice": 0, "value": 3}', "`value` must be a whole number from 0 to 1, got 3"),
    (NET, '{"nodes": [0, 1], "edges": [0.5], "edge_links": [[0, 5]]}', "Element 2 of element 1 of `edge_links` must be from 0 to 1, got 5"),
    (NET, '{"nodes": [0, 1], "edges": [0.5]}', "`edges` and `edge_links`, or neither"),
    (NET, '{"nodes": [], "edges": [0.5], "edge_links": [[0, 0]]}', "must have nodes"),
    (NET, '{"nodes": [0, 7]}', "Element 2 of `nodes` must be"),
    (NET, "[" * 5000, "names no action"),
    (NET, "{'a':" * 5000, "names no action"),
]


@pytest.mark.parametrize(("codec", "text", "problem"), UNREADABLE, ids=lambda value: repr(value)[:40])
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
    (MOVES, [moves(0), moves(3)]),
    (LEVERS, [moves(0), moves(1), moves(2)]),
    (FORCES, [moves(0), moves(1), moves(2)]),
    (TAXI, [moves(0), moves(2)]),
    (CELLS, [moves(0), moves(3)]),
    (SHIFTED, [moves(-1), moves(0), moves(1)]),
    (WIDE, [moves(12), moves(999)]),
    (TORQUE, [floats(-1.75), floats(0.5), floats(2), floats(-1e-05)]),
    (DRIVE, [floats(-0.5, 1)]),
    (KNOBS, [np.array([2, 1])]),
]


@given(st.sampled_from(VALUES), st.data())
@settings(max_examples=250)
def test_nothing_around_a_value_makes_another_one_of_it(case: tuple[Any, list[Any]], data: st.DataObject) -> None:
    """The value that is written is read, or the answer is refused: with any dash, with or without brackets."""
    codec, values = case
    value = data.draw(st.sampled_from(values))
    written = codec.encode(value).replace("-", data.draw(st.sampled_from("-\u2212\u2013\u2010\uff0d")))
    if codec is TORQUE and data.draw(st.booleans()):
        written = written.strip("[]")
    if codec in (MOVES, TAXI) and data.draw(st.booleans()):
        written = str(int(value))
    twisted = data.draw(st.sampled_from(["{}", *TWISTING]))
    written = twisted.format(written, written)
    for form in data.draw(st.lists(st.sampled_from(HARMLESS), max_size=2)):
        written = form.format(written)
    try:
        read = codec.decode(written)
    except ActionNotFound:
        return
    if twisted == "minus {}" and codec in (TORQUE, SHIFTED):
        read = -read
    assert codec.encode(read) == codec.encode(value), written


def test_the_last_line_of_a_long_answer_is_read() -> None:
    assert TORQUE.decode("I look at x.\n" * 10_000 + "0.5") == floats(0.5)
    with pytest.raises(ActionNotFound, match="names no action"):
        TORQUE.decode("0.5\n" + "I look at x.\n" * 10_000)


LISTINGS = [
    (MOVES, "0 (left), 1 (down), 2 (right), 3 (up)"),
    (SHIFTED, "-1, 0, 1"),
    (WIDE, "0 to 999999"),
    (DRIVE, "a list of 2 numbers: the first from -1 to 1, the second from 0 to 1"),
    (LABELLED, "a list of 2 numbers: steering from -1 to 1, gas from 0 to 1"),
    (TORQUE, "a list of 1 number from -2 to 2"),
    (GRID, "a 2 x 2 array (nested lists) of whole numbers, each from 0 to 3"),
    (BITS, "a list of 3 whole numbers, each from 0 to 1"),
    (PAD, "[<0 (noop), 1 (up), 2 (down)>, <0 (off), 1 (on)>]"),
    (SAY, 'a text of 1 to 20 characters (lower-case letters, spaces, any of "\'")'),
    (LIST, "[<0, 1, 2>, ...], of any length"),
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


EXAMPLES = [(MOVES, "down"), (WIDE, "499999"), (DRIVE, "[0.5, 0.75]"), (GRID, "[[2, 2], [2, 2]]"), (SAY, "look"), (LIST, "[1, 1]")]


@pytest.mark.parametrize(("codec", "example"), EXAMPLES, ids=lambda value: repr(value)[:40])
def test_the_example_is_ordinary(codec: Any, example: str) -> None:
    assert codec.example() == example


JSON_DATA = [
    (MOVES, "3", moves(3)),
    (MOVES, 3.0, moves(3)),
    (MOVES, "UP", moves(3)),
    (TORQUE, 0.5, floats(0.5)),
    (TORQUE, "0.5", floats(0.5)),
    (DRIVE, (0.5, 1), floats(0.5, 1)),
    (DRIVE, "[0.5, 1]", floats(0.5, 1)),
    (LABELLED, {"gas": 1, "steering": 0.5}, floats(0.5, 1)),
    (BITS, [True, False, 1], np.array([1, 0, 1], np.int8)),
    (PAD, ["up", 1.0], np.array([1, 1])),
    (EITHER, {"choice": "0", "value": 1}, (moves(0), moves(1))),
]


@pytest.mark.parametrize(("codec", "data", "action"), JSON_DATA, ids=lambda value: repr(value)[:40])
def test_the_format_of_tool_arguments_is_forgiven(codec: Any, data: Any, action: Any) -> None:
    assert same(codec.from_json(data), action)


BAD_DATA = [
    (MOVES, True, "must be a name or a number from 0 to 3, got true"),
    (MOVES, None, "got null"),
    (MOVES, 7, "got 7"),
    (MOVES, 1.5, "got 1.5"),
    (MOVES, [1], "got [1]"),
    (MOVES, object, "must be a name or a number"),
    (TORQUE, {"a": 1}, "must be a number"),
    (COUNTS, [10**400, 0], "Element 1 must be from -5 to 5"),
    (DRIVE, [10**400, 0], "Element 1 must be a number that float32 can hold"),
    (SAY, ["a"], 'must be a text, got ["a"]'),
]


@pytest.mark.parametrize(("codec", "data", "problem"), BAD_DATA, ids=lambda value: repr(value)[:40])
def test_the_meaning_of_tool_arguments_is_not_forgiven(codec: Any, data: Any, problem: str) -> None:
    with pytest.raises(ActionNotFound) as caught:
        codec.from_json(data)
    assert problem in str(caught.value)


def test_schemas_are_what_a_tool_needs() -> None:
    assert MOVES.schema == {"type": "string", "enum": ["left", "down", "right", "up"]}
    assert SHIFTED.schema == {"type": "integer", "minimum": -1, "maximum": 1}
    assert ROBOT.schema["required"] == ["move", "thrust", "say"]
    assert ROBOT.schema["additionalProperties"] is False
    unbounded = codec_for(gs.Box(-np.inf, np.inf, (2,))).schema["items"]
    assert unbounded == {"anyOf": [{"type": "number"}, {"enum": ["-inf", "inf"]}]}
    assert "inf" not in json.dumps(DRIVE.schema)
