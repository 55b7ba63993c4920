"""What is said twice, or only mentioned, is not a choice; what is clear is read, however it is put."""

from __future__ import annotations

import re
from typing import Any

import pytest
from gymnasium import spaces as gs
from hypothesis import given
from hypothesis import strategies as st

import vfgym
from tests.codecs.test_reading import CELLS, DRIVE, GAS, LEVERS, MOVES, ROBOT, SAY, TAXI, TORQUE, floats
from vfgym.aio.background import run_to_end
from vfgym.codecs import ActionNotFound, codec_for, english
from vfgym.codecs.choices import is_chosen
from vfgym.testing import ModelServer, Reply

GRID_MOVES = codec_for(gs.Discrete(4), ["turn left", "turn right", "forward", "done"])
POKER = codec_for(gs.Discrete(4), ["call", "fold", "raise half pot", "all in"])
KEYS = codec_for(gs.Discrete(4), ["turn left", "pick up", "drop", "toggle"])
BLACKJACK = codec_for(gs.Discrete(2), ["stick", "hit"])
BUTTONS = codec_for(gs.Discrete(3), ["NOOP", "FIRE", "UP"])
ENGINES = codec_for(gs.Discrete(3), ["do nothing", "fire left engine", "fire right engine"])

CHOSEN = [
    *(
        (MOVES, text, "left")
        for text in ("left", "Left.", "**left**", '"left"', "_left_", "left?", "\u2b05 left", "left (0)", "left (action 0)")
    ),
    *((MOVES, text, "left") for text in ("left</s>", "left<|eot_id|>", "left</action>", "Direction: left", "Left it is.", "So left.")),
    (MOVES, "I go left.", "left"),
    (MOVES, "I'll go left!", "left"),
    (MOVES, "I\u2019ll go left, which is free.", "left"),
    (MOVES, "I will move to the left.", "left"),
    (MOVES, "I am going left", "left"),
    (MOVES, "Going left.", "left"),
    (MOVES, "I should go left to reach the goal.", "left"),
    (MOVES, "I choose left because it is free.", "left"),
    (MOVES, "I take the cell to the left.", "left"),
    (MOVES, "left because it is free", "left"),
    (MOVES, "Left (since it is free).", "left"),
    (MOVES, "I choose the left option.", "left"),
    (MOVES, "Let's try right.", "right"),
    (MOVES, "let me go right", "right"),
    (MOVES, "Turn left", "left"),
    (MOVES, "My action is **up**.", "up"),
    (MOVES, "The best move is to go up.", "up"),
    (MOVES, "Therefore, I move down.", "down"),
    (MOVES, "To reach the goal, go down.", "down"),
    (MOVES, "There is ice here. Right is best.", "right"),
    (MOVES, "There is ice here.\n\ndown", "down"),
    (MOVES, "I saw nothing. I pick 'up'", "up"),
    (MOVES, "_1_", "down"),
    (GRID_MOVES, "turn_left", "turn left"),
    (GRID_MOVES, "Turn-Left.", "turn left"),
    (GRID_MOVES, "<action>turn_left</action>", "turn left"),
    (GRID_MOVES, "I choose turn_left.", "turn left"),
    (GRID_MOVES, "The door is there, turn right then", "turn right"),
    (TAXI, "<action>Move south (0)</action>", "Move south (down)"),
    (TAXI, "Move south (action 0)", "Move south (down)"),
    (POKER, "I fold.", "fold"),
    (POKER, "I'll call.", "call"),
    (POKER, "I would like to call.", "call"),
    (POKER, "I choose to fold because my hand is weak.", "fold"),
    (BUTTONS, "I press the FIRE button.", "FIRE"),
    (CELLS, "I take cell 3.", "3"),
    (CELLS, "3?", "3"),
    (TORQUE, "I will use a torque of 1.5 to swing up.", "[1.5]"),
    (TORQUE, "I have 2 questions.\nAction: 0.5", "[0.5]"),
    *(
        (MOVES, text, "right")
        for text in (
            "right\n\nBecause it is free",
            "right\nIt is free there.",
            "Right.\n\nThe path is clear there.",
            "**Right**. It leads to the goal.",
            "right - it is free",
            "right \u2014 it is free",
            "right; it is free",
            "right (it is free)",
            "Action 2 (right)",
            "Action 2: right",
            "I choose action 2 (right) to move closer.",
            "The action is 2 - right.",
            "I'd go right.",
            "I would go right.",
            "I would choose right.",
            "I'd rather go right",
            "I'll go right now.",
            "I'd pick right here.",
            "I'll go right from here.",
            "I'll go right into the free cell.",
            "I move right again.",
            "Right is the best move.",
            "**right** is what I choose",
            "The safest is **right**.",
            "After all that I saw there: the best move is: right",
            "Final: `right`",
            '{"direction": "right"}',
        )
    ),
    (KEYS, "Toggle the door", "toggle"),
    (KEYS, "I'll toggle the door to open it.", "toggle"),
    (KEYS, "I drop the key.", "drop"),
    (KEYS, "drop the ball", "drop"),
    (KEYS, "drop it", "drop"),
    (BLACKJACK, "Hit me.", "hit"),
    (BLACKJACK, "Hit me again!", "hit"),
    (BLACKJACK, "I'd hit.", "hit"),
    (BLACKJACK, "I'll stick with 17.", "stick"),
    (CELLS, "4 (center)", "4"),
    (CELLS, "4 - center", "4"),
    (CELLS, "4. It is free.", "4"),
    (CELLS, "I'd play 4", "4"),
    (CELLS, "I'll block at position 4.", "4"),
    (CELLS, "Place X in 4", "4"),
    (CELLS, "I drop into column 3", "3"),
    (CELLS, "I play [4].", "4"),
    (CELLS, "I play position 4 to block.", "4"),
    (MOVES, "We get $\\boxed{\\text{left}}$.", "left"),
    *(
        (KEYS, text, "turn left")
        for text in (
            "I turn left.",
            "I will now turn left to face the door.",
            "My action is turn left",
            "The best move is to turn left.",
            "so turn left",
            "The door is there, turn left then",
            "Turn left, because the wall is ahead.",
            "Turn left. It is free.",
            "I should turn left, since the key is there.",
            "The wall is ahead. Let me turn left.",
            "Turn left it is.",
            "The wall is ahead.\n\nturn left",
            "The wall is ahead.\nTurn left to go on.",
            "I choose **turn left**.",
            "I pick 'turn left' now.",
            "My next move: turn left",
        )
    ),
    (KEYS, "I'll pick up the key", "pick up"),
    (KEYS, "The key is here. Pick up the key to open the door.", "pick up"),
    (TAXI, "I will move south.", "Move south (down)"),
    (TAXI, "To reach it, I move south (down).", "Move south (down)"),
    (GAS, "I will accelerate to the right to gain momentum.", "Accelerate to the right"),
    (GAS, "To gain momentum, accelerate to the right.", "Accelerate to the right"),
    (LEVERS, "The best action is to apply -1 torque.", "apply -1 torque"),
    (POKER, "I raise half pot because my hand is strong.", "raise half pot"),
    *(
        (ENGINES, text, "do nothing")
        for text in (
            "Ok, do nothing.",
            "First, do nothing.",
            "Next: do nothing",
            "Please do nothing",
            "Let me do nothing.",
            "Okay, now please do nothing this time.",
        )
    ),
    (GAS, "Please don't accelerate", "Don't accelerate"),
    (GAS, "Please don\u2019t accelerate", "Don't accelerate"),
    (GAS, "First, don't accelerate.", "Don't accelerate"),
    (KEYS, "Let me pick up the key", "pick up"),
    (KEYS, "Then pick up the ball.", "pick up"),
    (KEYS, "Next, **pick up** the key.", "pick up"),
    (KEYS, "The key is here, so pick up the key.", "pick up"),
]


@pytest.mark.parametrize(("codec", "text", "action"), CHOSEN, ids=lambda value: repr(value)[:40])
def test_a_choice_is_read(codec: Any, text: str, action: str) -> None:
    assert codec.encode(codec.decode(text)) == action


MENTIONED = [
    *(
        (MOVES, text)
        for text in ("I give up.", "There is nothing left to do.", "I have no moves left.", "I'm up.", "The goal is up there.")
    ),
    (MOVES, "Slow down, I need to think."),
    (MOVES, "Let me sum up the position first."),
    (MOVES, "Let me look up the rules."),
    (MOVES, "Right, let me think about this first."),
    (MOVES, "Right. Let me think about this first."),
    (MOVES, "I go right away."),
    (MOVES, "The ghost and I just left."),
    (MOVES, "My next move is up to you."),
    (MOVES, "As an AI, I am unable to move right."),
    (MOVES, "I decline to choose right."),
    (MOVES, "I cannot go right."),
    (MOVES, "Should I go right?"),
    (MOVES, "Should I go **right**?"),
    (MOVES, "Let me think. Right?"),
    (MOVES, "Going right leads straight into a hole."),
    (MOVES, "Going right, we fall into a hole."),
    (MOVES, "Let me look at the map. First, consider going right"),
    (MOVES, "If I go right, I fall."),
    (MOVES, "I go right if it is free."),
    (MOVES, "I would go right, but there is a hole."),
    (MOVES, "It would go right."),
    (MOVES, "I could go right, but I wait."),
    (MOVES, "Maybe I go right."),
    (MOVES, "The best players go right."),
    (MOVES, "I think right is blocked."),
    (MOVES, "Action: I am unable to move right."),
    (MOVES, "<action>Should I go right?</action>"),
    (GRID_MOVES, "I am done thinking."),
    (GRID_MOVES, "I am unable to turn left."),
    (GRID_MOVES, "Should I turn left?"),
    (GRID_MOVES, "If I turn left, I see the door."),
    (POKER, "Let us call it a day."),
    (BUTTONS, "There is a fire."),
    (CELLS, "There are 3 walls."),
    (TORQUE, "I am unable to play. I have 2 questions."),
    (TORQUE, "less than 1"),
    (TORQUE, "1. I need to think"),
    (TORQUE, "The angle is 0.5."),
    (TORQUE, "Should I apply 1?"),
    *(
        (MOVES, text)
        for text in (
            "Right. Let me think.",
            "Right, so where is the goal?",
            "Right. First, I look at the map.",
            "Right. Hmm.",
            "Right. The goal is far away. Let me think.",
            "Right\n\nI need to think about this.",
            "Right. Is it free there?",
            "Right (if it is free)",
            "right - blocked",
            "right; it is blocked",
            "Right. I cannot go there.",
            "I left.",
            "Then I left the room.",
            "Right the ship.",
            "I doubt right is best.",
            "`right` falls into the hole, so no.",
            "*right* is wrong.",
            'I doubt "right" is correct.',
            'I ruled out "right".',
            'You said "right".',
            "**Right** (but there is a hole)",
            "Wrong: right",
            "Blocked: right",
            "Previous action: right",
            "Previous action: **right**",
            "Your last action is right",
            "The worst move is right.",
            "The opposite direction is right.",
            "The goal is: right",
        )
    ),
    (CELLS, "1. Think about the board"),
    (CELLS, "4 (the center) is taken"),
    (TORQUE, "2 - x"),
    (CELLS, "Cell [4] is taken."),
    (CELLS, "Score: 4"),
    (CELLS, "Score: **4**"),
    (CELLS, "Current position: 4"),
    (KEYS, "The worst action is turn left."),
    (KEYS, "Let's drop the question."),
    (BLACKJACK, "Hit me?"),
    (TORQUE, "The velocity = 1.5"),
    (TORQUE, "velocity: 1.5"),
    (MOVES, "The only losing move is left."),
    (MOVES, "They say I should go left."),
    (MOVES, "Earlier I decided to go left."),
    (MOVES, "The ghost comes from the **left**."),
    (MOVES, "**right** if it is free"),
    (CELLS, "1. The board is empty"),
    (CELLS, "[4] taken"),
    *(
        (TAXI, text)
        for text in (
            "To move south is deadly.",
            "Move south is deadly.",
            "You suggested to move south earlier.",
            "Earlier I decided to move south, which failed.",
            "It is foolish to move south.",
            "I hate to move south.",
            "Had I chosen to move south I would have died.",
            "The worst thing is to move south.",
            "The only losing move is to move south.",
            "Moving there fails; move south fails too.",
            "Before, I used move south for this.",
            "The goal lies one move south.",
            "The penalty comes from move south at the wrong place.",
            "Move south to lose, or should I?",
        )
    ),
    (POKER, "I would have gone all in."),
    (CELLS, "The opponent's plan: block 4"),
    (CELLS, "The rule says: mark 3."),
    (CELLS, "O answers, mark 4."),
    (CELLS, "O wants 2, X must, therefore, claim 2"),
    (ENGINES, "The rule says, do nothing"),
    (ENGINES, "The opponent's plan: do nothing."),
    (ENGINES, "They just do nothing."),
    (ENGINES, "Do nothing is deadly."),
    (ENGINES, "Do nothing. Let me think about that."),
    (ENGINES, "Do nothing and we crash."),
    (ENGINES, "Ok, do nothing?"),
    (ENGINES, "Please don't do nothing"),
    (KEYS, "The opponent's plan: pick up the key"),
    (KEYS, "The rule says, pick up the key."),
    (KEYS, "They then pick up the key."),
    (KEYS, "Let me pick up the question."),
    (GAS, "The rule says: don't accelerate"),
]


@pytest.mark.parametrize(("codec", "text"), MENTIONED, ids=lambda value: repr(value)[:40])
def test_what_is_only_mentioned_is_asked_again(codec: Any, text: str) -> None:
    with pytest.raises(ActionNotFound, match=r"It is unclear whether .* is (your choice: name your action alone|meant)"):
        codec.decode(text)


@pytest.mark.parametrize(
    ("form", "example"),
    [(form, example) for form in english.FORMS for example in form.examples],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_form_of_english_is_what_reads_its_examples(form: english.Form, example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, mention, after = re.split(r"[\[\]]", example)
    place = (len(before), len(before) + len(mention))
    for forms in ((form,), ()):
        monkeypatch.setattr(english, "FORMS", forms)
        assert is_chosen(before + mention + after, [place]) == bool(forms)


def test_a_choice_after_long_thoughts_is_read() -> None:
    """Of very many mentions the last ones count, where the choice is."""
    thoughts = "Should I go right? " * 100
    assert MOVES.encode(MOVES.decode(f"{thoughts}I go right.")) == "right"
    with pytest.raises(ActionNotFound, match="It is unclear whether"):
        MOVES.decode(thoughts)


FORMS = ["<action>{}</action>", "<Action>\n{}</Action> ", "Action: {}\n", "\n**My answer:** {}\n", "```\n{}\n```\n"]
"""What says that this is the answer."""

PAIRS = [
    (MOVES, "right", "down"),
    (TAXI, "Move north", "Fire (left)"),
    (CELLS, "3", "4"),
    (TORQUE, "[0.5]", "1"),
    (DRIVE, "[0.5, 1]", "(1, 1)"),
    (ROBOT, '{"move": "left", "thrust": [0, 1], "say": "a"}', '{"move": "left", "thrust": [0, 1], "say": "b"}'),
    (SAY, "me", "you"),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("codec", "one", "other"), PAIRS, ids=lambda value: repr(value)[:40])
def test_an_answer_that_is_given_twice_counts_if_it_is_the_same(codec: Any, one: str, other: str, form: str) -> None:
    action = codec.encode(codec.decode(one))
    assert codec.encode(codec.decode(form.format(one) + form.format(one))) == action
    for twice in (form.format(one) + form.format(other), form.format(one) + "Observation: ...\n" + form.format(other)):
        with pytest.raises(ActionNotFound, match="names 2 different actions"):
            codec.decode(twice)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("quoted", ["your action", "...", "<your action>", ""])
@pytest.mark.parametrize(("codec", "one"), [pair[:2] for pair in PAIRS if pair[0] is not SAY], ids=lambda value: repr(value)[:40])
def test_the_form_of_an_answer_may_be_quoted(codec: Any, one: str, form: str, quoted: str) -> None:
    assert codec.encode(codec.decode(form.format(quoted) + form.format(one))) == codec.encode(codec.decode(one))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<action>left or right</action> <action>left</action>", "names 2 different actions"),
        ("<action>left\nright</action>", "names 2 different actions"),
        ("Action: left\n```\nright\n```", "names 2 different actions"),
        ("<action>your action</action>", "names no action"),
        ("<think>Shall I?<action>left</action>", "names no action"),
    ],
)
def test_tags_labels_and_fences_that_are_unclear_are_asked_again(text: str, problem: str) -> None:
    with pytest.raises(ActionNotFound, match=problem):
        MOVES.decode(text)


def test_what_stands_in_reasoning_does_not_count() -> None:
    assert MOVES.decode("<think><action>right</action> Action: up</think><action>left</action>") == 0


CUT_OFF = [
    (MOVES, "le"),
    (MOVES, "I go left. "),
    (MOVES, "Action: left"),
    (MOVES, "<action>left"),
    (MOVES, "<think>If I go right <action>left</action>"),
    (codec_for(gs.Discrete(11)), "1"),
    (codec_for(gs.Discrete(2), ["left", "left and up"]), "left"),
    (TORQUE, "[0.5]"),
    (SAY, "me"),
]


@pytest.mark.parametrize(("codec", "text"), CUT_OFF, ids=lambda value: repr(value)[:40])
def test_an_answer_that_was_cut_off_is_asked_again(codec: Any, text: str) -> None:
    with pytest.raises(ActionNotFound, match="cut off"):
        codec.decode_cut_off(text)


def test_what_was_said_before_an_answer_was_cut_off_counts_in_closed_tags() -> None:
    assert MOVES.decode_cut_off("<think>Up?</think>I go <action>left</action>, since <action>rig") == 0
    assert TORQUE.decode_cut_off("<action>[0.5]</action> is 1/2 of") == floats(0.5)
    assert SAY.decode_cut_off('<action>"me"</action> and y') == "me"
    assert MOVES.decode_cut_off(" left\n") == 0  # all that an answer of few tokens has room for
    assert codec_for(gs.Discrete(10)).decode_cut_off("1") == 1
    with pytest.raises(ActionNotFound, match="names 2 different actions"):
        MOVES.decode_cut_off("<action>left</action> Observation: ... <action>right</action> Obs")


CALL = vfgym.ToolCall("call_1", "act", '{"action": "down"}')
REPLIES = [
    (Reply("Let me look at the map. First, consider going right", finish_reason="length"), False),
    (Reply("rig", finish_reason="length"), False),
    (Reply("right", finish_reason="length"), True),
    (Reply("right"), True),
    (Reply("<action>right</action> since the", finish_reason="length"), True),
    (Reply(None, tool_calls=[CALL], finish_reason="length"), True),
]


@pytest.mark.parametrize(("reply", "is_played"), REPLIES, ids=lambda value: repr(value)[:60])
def test_a_game_plays_of_an_answer_that_was_cut_off_only_what_is_finished(reply: Reply, is_played: bool) -> None:
    game = vfgym.to_chat("FrozenLake-v1", as_tool=True, is_slippery=False, max_turns=1)
    with ModelServer({"m": lambda request: reply}) as server:
        agent = vfgym.ModelAgent(vfgym.ClientConfig(api_base_url=server.openai_url, api_key="k", connect_timeout=30.0), "m")
        results = vfgym.evaluate(game, agent, num_examples=1, state_columns=["invalid_moves"])
        run_to_end(agent.close())
    (row,) = results["outputs"]
    assert row["invalid_moves"] == (not is_played), row


ENDLESS = [
    "Action:",
    "<action>",
    "<action>left</action>",
    "Action: left\n",
    "```left",
    "left (0) ",
    "right ",
    "go to the ",
    "I ",
    "1 a ",
    "*",
    "'",
]


@pytest.mark.parametrize("repeated", ENDLESS)
@pytest.mark.parametrize("codec", [MOVES, TAXI, CELLS, TORQUE, SAY], ids=repr)
def test_endless_repetition_is_refused_or_read(codec: Any, repeated: str) -> None:
    try:
        action = codec.decode(repeated * 3000)
    except ActionNotFound as error:
        assert "Valid actions: " in str(error)
    else:
        assert action in codec.space


@given(st.text(max_size=30), st.sampled_from(["left", "down", "right", "up"]), st.text(max_size=30))
def test_tags_are_read_whatever_stands_around_them(before: str, name: str, after: str) -> None:
    assert MOVES.encode(MOVES.decode(f"{before}<action>{name}</action>{after}")) == name
