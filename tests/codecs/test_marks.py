"""What of an answer counts: marks, the strongest kind of them, and what is nothing but an action. Nothing is guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces as gs
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codecs.codecs import CELLS, DRIVE, MOVES, ROBOT, SAY, TAXI, TORQUE, floats
from vfgym.codecs import ActionNotFound, Codec, codec_for
from vfgym.codecs.marks import find_marks, has_marks
from vfgym.codecs.sentences import QUESTION
from vfgym.data import answer_words

ENGINES = codec_for(gs.Discrete(4), ["do nothing", "fire left orientation engine", "fire main engine", "fire right orientation engine"])
TURNS = codec_for(gs.Discrete(3), ["turn left", "turn right", "turn (around)"])
POINTS = codec_for(gs.Discrete(3), ["(0,1)", "(1,0)", "D4"])
PAIR = codec_for(gs.Dict(steer=gs.Box(-1, 1, ()), gear=gs.Discrete(2)))

GAMES = {
    "frozenlake": codec_for(gs.Discrete(4), ["move left", "move down", "move right", "move up"]),
    "blackjack": codec_for(gs.Discrete(2), ["stick", "hit"]),
    "taxi": codec_for(
        gs.Discrete(6),
        ["move south (down)", "move north (up)", "move east (right)", "move west (left)", "pickup passenger", "drop off passenger"],
    ),
    "lander": ENGINES,
    "grid": codec_for(gs.Discrete(7), ["left", "right", "forward", "pickup", "drop", "toggle", "done"]),
    "numbers9": codec_for(gs.Discrete(9)),
    "pendulum": codec_for(gs.Box(-2, 2, (1,), np.float32)),
    "car": codec_for(gs.Box(np.array([-1, 0, 0], np.float32), np.array([1, 1, 1], np.float32)), ["steer", "gas", "brake"]),
    "text": codec_for(gs.Text(min_length=1, max_length=60, charset="".join(map(chr, range(32, 1000))))),
}
"""The games of the answers in ``answers_of_a_stranger.json``."""


def played(codec: Codec, answer: str, *, is_cut_off: bool = False) -> Any:
    """Return what is played as JSON data; None where the model is asked again."""
    try:
        return codec.to_json(codec.decode_cut_off(answer) if is_cut_off else codec.decode(answer))
    except ActionNotFound:
        return None


def test_answers_of_a_stranger_are_read_as_the_stranger_says() -> None:
    """They were written by somebody who knew the rule, and neither wrote nor saw the code. Of a token after a bare name opinions differ."""
    rows = json.loads((Path(__file__).parent / "data" / "answers_of_a_stranger.json").read_text(encoding="utf-8"))
    false, missed = [], []
    for row in rows:
        read = played(GAMES[row["game"]], row["answer"], is_cut_off=row.get("cut_off", False))
        if row["game"] == "pendulum" and read is not None:
            (read,) = read
        if read != pytest.approx(row["reads"]) if isinstance(row["reads"], float | list) and read is not None else read != row["reads"]:
            (missed if read is None else false).append(row["answer"])
    assert len(rows) >= 60
    assert false == ["move up<|endoftext|>"]
    assert missed == []


@pytest.mark.parametrize(
    ("codec", "answer", "action"),
    [
        (GAMES["blackjack"], "If I hit, I may bust. Last round I hit a 10 and lost. I need to decide.", None),
        (CELLS, "My opponent's move is 4.", None),
        (MOVES, "Action: left would let the pole fall, so the opposite.", None),
        (GAMES["taxi"], "<action>pickup</action>", "pickup passenger"),
        (ENGINES, "<action>main engine</action>", "fire main engine"),
        (ENGINES, "<action>engine</action>", None),
        (GAMES["grid"], "<action>go forward</action>", "forward"),
        (GAMES["grid"], "<action>go forward, then left</action>", None),
        (CELLS, "\\boxed{4}", 4),
        (GAMES["taxi"], "<action>move south (up)</action>", None),
        (GAMES["taxi"], "<action>pick_up_passenger</action>", "pickup passenger"),
        (MOVES, "Go left.", "left"),
        (MOVES, "No.", None),
        (codec_for(gs.Discrete(2), ["no-op", "fire"]), "No.", None),
        (MOVES, "left...", None),
        (MOVES, "Options:\n- left\n- up\n\nleft", None),
        (MOVES, "Which one?\n\nleft?", None),
        (MOVES, "The goal is two cells away.\n\n**left**.", "left"),
        (MOVES, "Action:\n```\nup\n```", "up"),
        (MOVES, "My final answer:\n\nup", "up"),
        (MOVES, "Acci\u00f3n: up", "up"),
        (MOVES, '<tool_call>{"name": "act", "arguments": {"action": "up"}}</tool_call>', "up"),
        (MOVES, '[{"name": "act", "arguments": "{\\"action\\": \\"up\\"}"}]', "up"),
        (MOVES, '{"name": "walk", "arguments": {"action": "up"}}', None),
        (MOVES, '{"thoughts": "left is a hole",\n "action": "up"}', "up"),
        (MOVES, '{"action": "up", "move": "left"}', None),
        (MOVES, "I call\n`act(action='up')`", "up"),
        (MOVES, "<answer>\\boxed{\\text{up}}</answer>", "up"),
        (MOVES, "Action: left\n<action>up</action>", "up"),
        (MOVES, "\\boxed{left}\nAction: up", "left"),
        (MOVES, "```\nS F F\n```\nThis is the map: a hole on the left.", None),
        (DRIVE, "Action: [\n  0.5,\n  1\n]\nThis is slow.", [0.5, 1.0]),
        (DRIVE, "<action>0.5, 1</action>", [0.5, 1.0]),
        (DRIVE, "<action>0,5</action>", None),
        (DRIVE, "0.5, 1", None),
        (TORQUE, "<action>\u22121.5 N\u00b7m</action>", [-1.5]),
        (TORQUE, "<action>50 %</action>", None),
        (TORQUE, "<action>1/2</action>", None),
        (SAY, "it is\nme", None),
        (TORQUE, "So $-\\boxed{0.5}$", [-0.5]),
        (TORQUE, "- \\boxed{0.5}", [0.5]),
        (CELLS, "-\\boxed{1}", None),
        (SAY, "**Answer: me**", "me"),
        (SAY, "**Answer:** **me**", "me"),
        (SAY, "<action></action>", None),
        (SAY, "Action:", None),
        (GAMES["taxi"], "<action>move north (no, south)</action>", None),
        (ENGINES, "<action>main engine (it falls)</action>", "fire main engine"),
        (ENGINES, "<action>left engine (no, the right one)</action>", None),
        (CELLS, "<action>0 (or 1)</action>", None),
        (codec_for(gs.MultiDiscrete([3, 4])), "<action>[1, 2] (or [2, 3])</action>", None),
        (codec_for(gs.MultiDiscrete([3, 4])), "<action>1,2</action>", [1, 2]),
        (TURNS, "<action>turn</action>", None),
        (TURNS, "<action>turn (right, since left is a wall)</action>", None),
        (POINTS, "<action>(1, 0)</action>", "(1,0)"),
        (POINTS, "<action>(1,0) (0,1)</action>", None),
        (POINTS, "<action>d 4</action>", "D4"),
        (PAIR, "I call\nact(steer=0.5, gear=1)", {"steer": 0.5, "gear": 1}),
        (SAY, "it is\nAction: me", "me"),
    ],
    ids=lambda value: repr(value)[:50],
)
def test_the_rule(codec: Any, answer: str, action: Any) -> None:
    assert played(codec, answer) == action


FORMS = ["<action>{}</action>", "<Action>\n{}</Action> ", "\\boxed{{{}}} ", "Action: {}\n", "\n**My answer:** {}\n", '\n{{"move": {}}}\n']
"""What says that this is the answer."""

PAIRS = [
    *((MOVES, "right", "down"), (TAXI, "Move north", "Fire (left)"), (CELLS, "3", "4"), (TORQUE, "[0.5]", "1")),
    *((DRIVE, "[0.5, 1]", "[1, 1]"), (SAY, "me", "you")),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("codec", "one", "other"), PAIRS, ids=lambda value: repr(value)[:40])
def test_an_answer_that_is_given_twice_counts_if_it_is_the_same(codec: Any, one: str, other: str, form: str) -> None:
    action = codec.to_json(codec.decode(one))
    if form.startswith("\n{"):
        one, other = json.dumps(one), json.dumps(other)
    assert played(codec, form.format(one) + form.format(one)) == action
    for twice in (form.format(one) + form.format(other), form.format(one) + "Observation: ...\n" + form.format(other)):
        with pytest.raises(ActionNotFound, match="names 2 different actions"):
            codec.decode(twice)


@pytest.mark.parametrize("form", FORMS[:-1])
@pytest.mark.parametrize(("codec", "one"), [pair[:2] for pair in PAIRS if pair[0] is not SAY], ids=lambda value: repr(value)[:40])
def test_empty_marks_do_not_count_and_unreadable_ones_make_us_ask(codec: Any, one: str, form: str) -> None:
    for empty in ("", "...", "\u2026"):
        assert played(codec, form.format(empty) + "\n" + form.format(one)) == codec.to_json(codec.decode(one))
    assert played(codec, form.format("your action") + "\n" + form.format(one)) is None


def test_thinking_does_not_count_and_has_to_end() -> None:
    assert MOVES.decode("<think><action>right</action> Action: up</think><action>left</action>") == 0
    assert MOVES.decode("right?</think> left") == 0
    with pytest.raises(ActionNotFound, match="your thinking"):
        MOVES.decode("<action>left</action> <think>or up?")


CUT_OFF = [
    (MOVES, "left"),
    (MOVES, "I go left. "),
    (MOVES, "Action: left"),
    (MOVES, "<action>left"),
    (MOVES, "\\boxed{left"),
    (MOVES, "```\nleft\n```"),
    (MOVES, "<think>If I go right <action>left</action>"),
    (codec_for(gs.Discrete(11)), "1"),
    (TORQUE, "0.5"),
    (SAY, "me"),
]


@pytest.mark.parametrize(("codec", "text"), CUT_OFF, ids=lambda value: repr(value)[:40])
def test_an_answer_that_was_cut_off_is_asked_again(codec: Any, text: str) -> None:
    with pytest.raises(ActionNotFound, match="cut off"):
        codec.decode_cut_off(text)


def test_closed_tags_boxes_and_json_of_an_answer_that_was_cut_off_count() -> None:
    assert MOVES.decode_cut_off("<think>Up?</think>I go <action>left</action>, since <action>rig") == 0
    assert MOVES.decode_cut_off("\\boxed{left}, since \\boxed{rig") == 0
    assert MOVES.decode_cut_off('{"action": "left"}\nThis is') == 0
    assert TORQUE.decode_cut_off("<action>[0.5]</action> is 1/2 of") == floats(0.5)
    assert TORQUE.decode_cut_off("[0.5]") == floats(0.5)
    assert SAY.decode_cut_off('<action>"me"</action> and y') == "me"
    with pytest.raises(ActionNotFound, match="names 2 different actions"):
        MOVES.decode_cut_off("<action>left</action> Observation: ... <action>right</action> Obs")


@given(st.text(max_size=80).filter(lambda text: "<" not in text), st.sampled_from(["left", "down"]), st.text(max_size=80))
@settings(max_examples=40)
def test_tags_are_read_whatever_stands_around_them(before: str, name: str, after: str) -> None:
    """But for questions, and words that say that it is not what is played."""
    after = QUESTION.sub("", after.replace("<", ""))
    assert MOVES.encode(MOVES.decode(f"{before}<action>{name}</action>{after}")) == name


@given(st.text(alphabet="<>/\\{}[]()`*:=\"'., \nactionboxedmovthink0123", max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for codec in (MOVES, CELLS, TORQUE, DRIVE, ROBOT, SAY):
        played(codec, text)
        played(codec, text, is_cut_off=True)


@pytest.mark.parametrize(
    "repeated", ["<action>", "\\boxed{", "{", "[", "Action:\n", "Action: [\n", "```", "act(", '{"action": ', "<think>", "left (", "* ", "."]
)
def test_endless_repetition_is_refused(repeated: str) -> None:
    for codec in (MOVES, TORQUE, DRIVE):
        assert played(codec, repeated * 1_500) is None
        assert played(codec, "I see. " + repeated * 1_500) is None


def test_words_that_only_one_name_has_play_it_inside_a_mark() -> None:
    for codec in [*(codec for codec in GAMES.values() if codec.names and isinstance(codec.space, gs.Discrete)), MOVES, TAXI]:
        words_of = [{word for word in name.lower().replace("(", "").replace(")", "").split()} for name in codec.names]
        for word in {word for words in words_of for word in words} - answer_words().left_out:
            having = [name for name, words in zip(codec.names, words_of, strict=True) if word in words]
            whole = [name for name in codec.names if name.lower() == word]
            expected = having[0] if len(having) == 1 else whole[0] if whole else None
            assert played(codec, f"<action>{word}</action>") == expected, word


def test_marks_of_the_strongest_kind_are_found() -> None:
    assert find_marks("<move>1</move> \\boxed{2}") == ["1"]
    assert find_marks("[4] or <answer>5</answer>", with_brackets=True) == ["4", "5"]
    assert find_marks("[4] is bad.\nFinal answer: 5", with_brackets=True) == ["4", "5"]
    assert find_marks("[4] or \\boxed{5}") == ["5"]


@pytest.mark.parametrize("name", ["action", "answer", "move", "final_answer", "tool_call", "ACTION"])
def test_each_tag_is_stronger_than_a_box_and_the_last_one_need_not_be_closed(name: str) -> None:
    assert find_marks(f"\\boxed{{y}}\n<{name}>x</{name}>") == find_marks(f"\\boxed{{y}}\n<{name}>x") == ["x"]
    assert find_marks(f"<{name}>w</{name}> <{name}>x", closed_only=True) == ["w"]
    assert find_marks(f"\\boxed{{y}} <{name}>x", closed_only=True) == ["y"]
    square = f"\\boxed{{y}} [{name}]x[/{name}]"
    assert find_marks(square) == (["y"] if name == "tool_call" else ["x"])
    assert find_marks(square.partition("[/")[0]) == ["y"]


@pytest.mark.parametrize("name", ["final", "output", "response"])
def test_each_tag_around_all_is_weaker_than_data_and_stronger_than_a_label(name: str) -> None:
    around = f"<{name}>\nx\n</{name}>"
    assert find_marks(f"{around}\nAction: y") == find_marks(f"Action: y\n{around}", closed_only=True) == ["x"]
    assert find_marks(f'{{"action": "y"}}\n{around}') == find_marks(f"\\boxed{{y}} {around}") == ["y"]


@pytest.mark.parametrize("key", ["action", "move", "answer"])
def test_each_key_of_data_is_a_mark_unless_it_is_the_actions_own(key: str) -> None:
    answer = f'{{"{key}": "x"}}'
    assert find_marks(f"Action: y\n{answer}") == ["x"]
    assert find_marks(f"Action: y\n{answer}", own_keys=[key]) == ["y"]
    assert find_marks(f'Action: y\n{{"{key}": {{"a": 1}}}}', own_keys=[key]) == ['{"a": 1}']
    assert find_marks(f'Action: y\n{answer}\n{{"play": "z"}}', keys=["play"]) == ["z"]


@pytest.mark.parametrize("empty", ["", " ", "...", "\u2026"])
def test_marks_with_nothing_in_them_do_not_count_and_others_lose_the_space_around(empty: str) -> None:
    assert find_marks(f"<action>{empty}</action> \\boxed{{ x }}") == ["x"]
    assert find_marks(f"<action>{empty}</action>") == []
    assert has_marks(f"<action>{empty}</action>")
    assert find_marks(f"[{empty}] [0]", with_brackets=True) == ["0"]


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        *(("\\boxed{a{b}c}", ["a{b}c"]), ("\\boxed{a\\}b}", ["a\\}b"]), ("\\boxed{\\text{x} y}", ["x y"]), ("\\boxed{\\mathbf{x}}", ["x"])),
        *(("\\boxed{a\\_b\\ c}", ["a_b c"]), ("\\boxed{a} \\boxed{b}", ["a", "b"]), ("\\boxed{a", ["a"]), ("$-$\\boxed{1}", ["-1"])),
        *(("\u2212\\boxed{1}", ["-1"]), ("- \\boxed{1}", ["1"]), ("I see.\n```\nx\n```", ["x"]), ("```\nx\n```\nI see.", [])),
    ],
)
def test_boxes_and_a_fence_at_the_end(text: str, marks: list[str]) -> None:
    assert find_marks(text) == marks
    assert find_marks(text, closed_only=True) == ([] if text == "\\boxed{a" or "```" in text else marks)
