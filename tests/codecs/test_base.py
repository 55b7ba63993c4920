"""`Codec`: what a codec writes it reads back, exactly, for every space; and whatever else is read lies in the space."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces as gs
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codecs.spaces import Member, check_round_trip, members, same, spaces
from vfgym.codecs import ActionNotFound, Codec, codec_for
from vfgym.codecs.base import seeded_sample
from vfgym.codecs.problems import AnswerUnclear
from vfgym.codecs.reading import Where


@given(members())
@settings(max_examples=40)
def test_text_and_json_give_back_exactly_the_action(member: Member) -> None:
    check_round_trip(member)


@pytest.mark.exhaustive
@given(members(depth=4))
@settings(max_examples=3000)
def test_text_and_json_give_back_exactly_the_action_of_thousands_of_spaces(member: Member) -> None:
    check_round_trip(member)


@given(spaces())
@settings(max_examples=40)
def test_a_space_is_described_and_its_example_is_a_member(space: gym.Space[Any]) -> None:
    codec = codec_for(space)
    assert codec.listing()
    example = codec.example()
    assert codec.example() == example
    action = codec.decode(example)
    assert action in space
    assert codec.encode(action) == example


@given(members(depth=2))
@settings(max_examples=30)
def test_codecs_compare_by_space_and_can_be_copied(member: Member) -> None:
    space, action = member
    codec = codec_for(space)
    for twin in (codec_for(space), copy.deepcopy(codec), pickle.loads(pickle.dumps(codec))):
        assert twin == codec
        assert same(twin.decode(codec.encode(action)), action)
    assert codec != codec_for(gs.Discrete(12345))


GARBAGE = st.text(max_size=60) | st.text("[]{}()<>action/\"'`,:=.-+0123456789eE truefalsnul\n\\", max_size=60)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(spaces(), st.lists(GARBAGE, min_size=1, max_size=5), st.lists(JSON, min_size=1, max_size=5))
@settings(max_examples=40)
def test_garbage_is_refused_or_names_a_member(space: gym.Space[Any], texts: list[str], data: list[Any]) -> None:
    codec = codec_for(space)
    for read, garbage in [*[(codec.decode, text) for text in texts], *[(codec.from_json, item) for item in data]]:
        try:
            action = read(garbage)
        except ActionNotFound as error:
            assert "Valid actions: " in str(error)
        else:
            assert action in space
            assert same(codec.decode(codec.encode(action)), action)


@given(members(depth=2), st.data())
@settings(max_examples=40)
def test_what_is_nearly_right_is_refused_or_names_a_member(member: Member, data: st.DataObject) -> None:
    """Mutations of a valid text come nearer to the limits of reading than random text does."""
    space, action = member
    codec = codec_for(space)
    text = codec.encode(action)
    place = data.draw(st.integers(0, len(text)))
    mutated = text[:place] + data.draw(st.text("[]{}\"',:-.0129e <>/", max_size=2)) + text[place + data.draw(st.integers(0, 2)) :]
    try:
        assert codec.decode(mutated) in space
    except ActionNotFound as error:
        assert "Valid actions: " in str(error)


MOVES = codec_for(gs.Discrete(4), ["left", "down", "right", "fire main engine"])
POINTS = codec_for(gs.Discrete(2), ["(0,1)", "(1,0)"])
CELLS = codec_for(gs.Discrete(5))
PAIR = codec_for(gs.MultiDiscrete([3, 4]))
TORQUE = codec_for(gs.Box(-2, 2, (1,)))
GEAR = codec_for(gs.Dict(gear=gs.Discrete(3)))
SAY = codec_for(gs.Text(400))


@pytest.mark.parametrize(
    ("codec", "text", "mark", "answer", "line"),
    [
        (MOVES, "left", 0, 0, 0),
        (MOVES, " **'left'**! ", 0, 0, 0),
        (MOVES, "left...", 0, None, None),
        (MOVES, "left?", None, None, None),
        (MOVES, "left,", 0, None, None),
        (MOVES, "~left~", 0, 0, 0),
        (CELLS, "~4", None, None, None),
        (CELLS, "#4", 4, None, None),
        (MOVES, "left \u2b05", 0, 0, None),
        (MOVES, "left \u27a1", "unclear", "unclear", None),
        (MOVES, "go left", 0, 0, None),
        (MOVES, "I now drive left please", 0, None, None),
        (MOVES, "main engine", 3, None, None),
        (MOVES, "go " * 120 + "left", None, None, None),
        (MOVES, "[left]", 0, None, None),
        (MOVES, "( position: left )", None, None, None),
        (MOVES, "position: left", 0, None, None),
        (MOVES, "wind: left", None, None, None),
        (GEAR, "gear: 2", {"gear": 2}, None, None),
        (MOVES, "left (it is free)", 0, None, None),
        (MOVES, "left (or right)", "unclear", None, None),
        (MOVES, "left (right)", "unclear", None, None),
        (MOVES, "left (not down)", "unclear", None, None),
        (MOVES, "left because down is a hole", "unclear", None, None),
        (MOVES, "left because there is no hole", 0, None, None),
        (MOVES, "left, there is no hole", "unclear", None, None),
        (MOVES, "left, as on turn 3", "unclear", None, None),
        (MOVES, "left because turn 9 is over", 0, None, None),
        (MOVES, "left (as on turn 4)", 0, None, None),
        (MOVES, "go " * 98 + "left ", 0, 0, None),
        (MOVES, "go " * 98 + " left  ", 0, 0, None),
        (CELLS, "2 - it is free", 2, None, None),
        (CELLS, "2 - or 3", "unclear", None, None),
        (POINTS, "(1, 0)", 1, 1, 1),
        (PAIR, "1, 2", [1, 2], None, None),
        (PAIR, "[1, 2]", [1, 2], [1, 2], [1, 2]),
        (PAIR, "[1, 9]", "refused", "refused", "refused"),
        (TORQUE, "0,5", None, None, None),
        (TORQUE, "0.5 Nm", 0.5, 0.5, 0.5),
    ],
)
def test_more_of_the_form_is_set_aside_the_clearer_a_text_is_meant_as_an_action(
    codec: Codec, text: str, mark: Any, answer: Any, line: Any
) -> None:
    def read(where: Where) -> Any:
        try:
            action = codec.match(text, where)
        except AnswerUnclear:
            return "unclear"
        except ActionNotFound:
            return "refused"
        if action is None:
            return None
        return (
            action
            if isinstance(action, dict)
            else np.ravel(action).tolist()
            if np.ndim(action) and np.size(action) > 1
            else np.ravel(action)[0]
        )

    assert [read(where) for where in (Where.MARK, Where.WHOLE_ANSWER, Where.LAST_LINE)] == [mark, answer, line]


def test_what_is_written_exactly_is_read_as_data_and_nothing_else_is() -> None:
    assert PAIR.read_exactly("[1, 2]").tolist() == [1, 2]
    assert [PAIR.read_exactly(text) for text in ("[1, 9]", "1, 2", "[1, 2", "", "(1, 2)")] == [None] * 5


def test_remarks_mention_actions_as_a_whole_by_word_by_number_and_in_brackets() -> None:
    assert [int(action) for action in MOVES.mentioned_in("not left, 2 or (down)")] == [0, 2, 1]
    assert [action.tolist() for action in PAIR.mentioned_in("or [2, 3] or [9, 9]")] == [[2, 3]]
    assert MOVES.mentioned_in("it is free") == []
    assert MOVES.mentioned_in("fire main engine")[0] == 3, "the whole of it"


def test_a_mark_is_read_again_where_marks_stand_in_it() -> None:
    assert MOVES.decode_mark(" Action: left ") == 0
    assert MOVES.decode_mark("<action>left</action>") == 0
    with pytest.raises(ActionNotFound, match=r"^'jump' is not an action. Valid actions: 0 \(left\)"):
        MOVES.decode_mark("jump")


def test_errors_say_where_and_what_is_valid() -> None:
    with pytest.raises(ActionNotFound) as caught:
        PAIR.from_json([1, 4])
    assert str(caught.value) == f"Element 2 must be from 0 to 3, got 4. Valid actions: {PAIR.listing()}."
    assert caught.value.__cause__ is None
    assert PAIR.legal_texts([1]) is None
    for read in (PAIR.decode, PAIR.decode_mark, PAIR.decode_cut_off):
        with pytest.raises(ActionNotFound) as caught:
            read("<action>[1, 4]</action>")
        assert str(caught.value).startswith("Element 2 must be from 0 to 3, got 4")
        assert str(caught.value).endswith(f". Valid actions: {PAIR.listing()}.")
        assert caught.value.__cause__ is None
    assert PAIR.decode_cut_off("<action>[1, 2]</action> and th").tolist() == [1, 2]
    space = gs.Box(-1, 1, (3,))
    space.seed(5)
    twin = copy.deepcopy(space)
    first = seeded_sample(space)
    assert first in space
    assert same(first, seeded_sample(space))
    assert same(space.sample(), twin.sample()), "the space's own numbers are as they were"
    assert SAY.decode("x" * 301) == "x" * 301


def test_codecs_are_told_by_space_names_and_kind() -> None:
    assert codec_for(gs.Discrete(2), ["a", "b"]) != codec_for(gs.Discrete(2), ["b", "a"]) != codec_for(gs.Discrete(2))
    assert codec_for(gs.Discrete(2)) != gs.Discrete(2)
    assert repr(codec_for(gs.Discrete(2), ["a", "b"])) == "DiscreteCodec(Discrete(2), ['a', 'b'])"
    with pytest.raises(TypeError):
        hash(CELLS)
