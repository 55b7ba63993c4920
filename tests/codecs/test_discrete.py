"""`DiscreteCodec`: actions by number and by name, in the forms in which models write them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces as gs
from hypothesis import given
from hypothesis import strategies as st

from tests.codecs.spaces import same
from vfgym.codecs import ActionNotFound, codec_for
from vfgym.codecs.marks import EMPTY
from vfgym.codecs.problems import AnswerUnclear
from vfgym.codecs.reading import Where
from vfgym.errors import ConfigurationError, InvalidAction


@pytest.mark.parametrize("names", [{-1: "left", 0: "stay", 1: "right"}, {"0": "stay", "1": "right", "-1": "left"}])
def test_names_may_be_given_by_number_in_any_order_and_as_json_has_them(names: Any) -> None:
    codec = codec_for(gs.Discrete(3, start=-1), names)
    assert codec.names == ["left", "stay", "right"]
    assert codec.decode("right") == 1


NAMES = st.text("abc xyzAB-+.,:'\"12é", min_size=1, max_size=6) | st.text(min_size=1, max_size=6)


@given(
    st.lists(NAMES.filter(lambda name: name.strip() == name and name not in EMPTY), min_size=1, max_size=12, unique=True),
    st.integers(-5, 5),
)
def test_every_name_is_read_as_its_action(names: list[str], start: int) -> None:
    space = gs.Discrete(len(names), start=start)
    codec = codec_for(space, names)
    for number, name in enumerate(names, start):
        action = codec.decode(name)
        assert same(action, np.int64(number))
        assert codec.encode(action) == name
        if not any(each.strip("+-0.") == str(abs(number)).strip("0") for each in names):
            assert codec.from_json(number) == number
        assert codec.decode(f"I will take <action> {name} </action>!") == number


@given(st.integers(1, 3000), st.integers(-2000, 2000), st.data())
def test_every_number_is_read_as_its_action(n: int, start: int, data: st.DataObject) -> None:
    codec = codec_for(gs.Discrete(n, start=start))
    number = data.draw(st.integers(start, start + n - 1))
    for text in (str(number), f"I will take <action> {number} </action>.", f"My answer: {number}.", f"**Action: {number}**"):
        assert same(codec.decode(text), np.int64(number))
    for beyond in (start - 1, start + n):
        with pytest.raises(ActionNotFound):
            codec.decode(str(beyond))


def test_a_name_that_looks_like_a_number_is_a_name() -> None:
    codec = codec_for(gs.Discrete(2), ["1", "0"])
    assert codec.decode("1") == 0
    assert codec.from_json("1") == 0
    with pytest.raises(ActionNotFound, match="since 1 is the number of one action and the name of another"):
        codec.from_json(1)
    forces = codec_for(gs.Discrete(3), ["2.0", "1.0", "-1.0"])
    assert [forces.from_json(data) for data in (1, 1.0, "1", "-1", "2")] == [1, 1, 1, 2, 0]
    for data in (2, 2.0):
        with pytest.raises(ActionNotFound, match="must be a name in quotes"):
            forces.from_json(data)


def test_a_mask_names_the_legal_texts() -> None:
    mask = np.array([1, 0, 1], np.int8)
    assert codec_for(gs.Discrete(3, start=4)).legal_texts(mask) == ["4", "6"]
    named = codec_for(gs.Discrete(3), ["a", "b", "c"])
    assert named.legal_texts(mask) == ["a", "c"]
    assert named.legal_texts(None) is None
    assert codec_for(gs.MultiBinary(3)).legal_texts(mask) is None
    with pytest.raises(ConfigurationError, match=r"a mask of shape \(3,\).*got shape \(2,\)"):
        named.legal_texts(mask[:2])


NAMED = codec_for(gs.Discrete(4), ["turn left", "turn right", "don't move", "fire (main) engine (hard)"])


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("turn left", 0), ("TURN LEFT", 0), ("turn_left", 0), ("turn-left", 0), ("turnleft", 0), ("  turn   left", 0), ("0", 0)),
        *(("+1", 1), ("1.0", 1), ("1.5", None), ("0 (turn left)", 0), ("0: turn left", 0), ("0. turn left", 0), ("turn left (0)", 0)),
        *(("0 (turn right)", None), ("9 (turn left)", None), ("0 ()", None), ("do not move", 2), ("dont move", 2), ("don\u2019t move", 2)),
        *(("fire (main) engine", 3), ("fire", None)),
    ],
)
def test_a_name_a_number_or_both_are_looked_up(text: str, number: int | None) -> None:
    assert NAMED.lookup(text, Where.LAST_LINE) == number


def test_names_that_only_their_case_tells_apart_are_read_as_they_are_written() -> None:
    codec = codec_for(gs.Discrete(3), ["bxc3", "Bxc3", "e4"])
    assert [codec.lookup(text, Where.MARK) for text in ("bxc3", "Bxc3", "BXC3", "E4")] == [0, 1, None, 2]


def test_a_remark_is_left_out_only_where_the_rest_tells_names_apart() -> None:
    codec = codec_for(gs.Discrete(3), ["fire (left)", "fire (right)", "wait (a turn)"])
    assert [codec.lookup(text, Where.MARK) for text in ("fire", "wait", "fire (left)")] == [None, 2, 0]


@pytest.mark.parametrize("text", ["4", "-1", "10", "+4.0"])
def test_a_number_that_no_action_has_is_named(text: str) -> None:
    with pytest.raises(ActionNotFound, match=rf"must be a name or a number from 0 to 3, got {re.escape(text)}$"):
        NAMED.lookup(text, Where.MARK)
    with pytest.raises(ActionNotFound, match="must be a number from 5 to 6, got"):
        codec_for(gs.Discrete(2, start=5)).lookup("4", Where.MARK)


def test_words_find_the_one_name_that_has_them_and_its_beginning_goes_first() -> None:
    assert NAMED.find_by_words(["right"]) == 1
    assert NAMED.find_by_words(["HARD", "main"]) == 3
    assert NAMED.find_by_words(["fire"]) == 3
    for words in (["up"], ["left", "left"], ["turn", "up"], ["1"]):
        assert NAMED.find_by_words(words) is None
    assert codec_for(gs.Discrete(4)).find_by_words(["left"]) is None
    with pytest.raises(AnswerUnclear, match=r"^'turn' may be any of 2 actions \(turn left, turn right\)"):
        NAMED.find_by_words(["turn"])
    codec = codec_for(gs.Discrete(3, start=7), ["go home", "then go home now", "stay"])
    assert codec.find_by_words(["go"]) == 7
    assert codec.find_by_words(["then"]) == 8


def test_remarks_mention_names_of_several_words() -> None:
    assert [int(action) for action in NAMED.mentioned_in("better than turn right or 0")] == [1, 0, 1]
    assert codec_for(gs.Discrete(2), ["(0,1)", "(1,0)"]).mentioned_in("1,0")[-1] == 1


BAD = (True, 4, -1, 0.5, None)


@pytest.mark.parametrize(
    ("data", "number"), [(0, 0), (3.0, 3), (np.int64(2), 2), ("Turn Right", 1), ("2", 2), *((each, None) for each in BAD)]
)
def test_data_are_names_or_whole_numbers(data: Any, number: int | None) -> None:
    if number is None:
        with pytest.raises(ActionNotFound, match="must be a name or a number from 0 to 3, got"):
            NAMED.from_json(data)
    else:
        assert same(NAMED.from_json(data), np.int64(number))


def test_actions_have_the_dtype_of_the_space_and_its_numbers() -> None:
    codec = codec_for(gs.Discrete(3, start=5, dtype=np.uint8), ["a", "b", "c"])
    assert same(codec.decode("c"), np.uint8(7))
    assert (codec.to_json(5), codec.to_json(np.uint8(7)), codec.example()) == ("a", "c", "b")
    for action in (4, 8, 5.0, "a"):
        with pytest.raises(InvalidAction):
            codec.to_json(action)
    large = codec_for(gs.Discrete(2000))
    assert [large.read_exactly(text) for text in ("0", "1999", "01")] == [None, None, None]
    assert large.decode("1999") == 1999
    assert codec_for(gs.Discrete(1024)).read_exactly("1023") == 1023


@pytest.mark.parametrize(("count", "listing"), [(1, "0"), (4, "0, 1, 2, 3"), (5, "0 to 4")])
def test_few_numbers_are_listed(count: int, listing: str) -> None:
    assert codec_for(gs.Discrete(count)).listing() == listing


def test_forty_names_are_listed_and_of_more_the_ends() -> None:
    names = [f"n{number}" for number in range(41)]
    assert "..." not in codec_for(gs.Discrete(40), names[:40]).listing()
    listing = codec_for(gs.Discrete(41), names).listing()
    assert listing.startswith("0 (n0), 1 (n1), ")
    assert listing.endswith("19 (n19), ..., 38 (n38), 39 (n39), 40 (n40)")


def test_schemas_are_names_or_numbers() -> None:
    assert NAMED.schema == {"type": "string", "enum": NAMED.names}
    assert codec_for(gs.Discrete(3, start=-1)).schema == {"type": "integer", "minimum": -1, "maximum": 1}


@pytest.mark.parametrize("name", ["...", "\u2026"])
def test_a_name_with_which_an_answer_is_empty_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="with which an answer is not empty"):
        codec_for(gs.Discrete(2), ["go", name])


@pytest.mark.parametrize(
    "names",
    [
        *(["a"], ["a", "b", "c"], [], ["a", "a"], ["a", ""], ["a", " b"], ["a", "b "], ["a", 1], "ab", 2),
        *({}, {0: "a"}, {0: "a", 2: "b"}, {0: "a", 1: "b", 2: "c"}, {"0": "a", 0: "b", 1: "c"}, {1: "a", 2: "b"}),
    ],
)
def test_names_must_be_one_for_each_action(names: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=rf"^expected 2 different action names, one for each of Discrete\(2\), got {re.escape(repr(names))}$"
    ):
        codec_for(gs.Discrete(2), names)


def test_names_that_change_afterwards_are_kept_as_they_were() -> None:
    names = ["a", "b"]
    codec = codec_for(gs.Discrete(2), names)
    names.reverse()
    assert (codec.names, codec.schema["enum"], codec.encode(0)) == (["a", "b"], ["a", "b"], "a")
    codec.schema["enum"].clear()
    assert codec.names == ["a", "b"]


@pytest.mark.parametrize(
    ("names", "read"),
    [
        (["1.0", "+1", "go"], {"1.0": 0, "+1": 1, "1": 1}),  # two names are the number 1, so it is an index
        (["go", "1.0", "+1"], {"1": 1, "1.0": 1, "+1": 2}),
        (["1.0", "2", "go"], {"1": 0, "2": 1, "0": 0}),
        (["-0", "go", "2"], {"0": 0, "1": 1, "2": 2}),
    ],
)
def test_numbers_are_names_before_they_are_places(names: list[str], read: dict[str, int]) -> None:
    codec = codec_for(gs.Discrete(3), names)
    assert {text: int(codec.decode(text)) for text in read} == read


@pytest.mark.parametrize(
    ("mask", "start", "texts"),
    [([0, 0], 0, []), ([1, 1], 0, ["0", "1"]), ([0, 5], -1, ["0"]), ([True, False], 3, ["3"]), ([-1, 0], 0, ["0"])],
)
def test_legal_are_those_whose_entry_is_not_0(mask: list[int], start: int, texts: list[str]) -> None:
    assert codec_for(gs.Discrete(2, start=start)).legal_texts(mask) == texts


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(
            ("1 turn right", None),
            ("1) turn right", 1),
            ("1= turn right", 1),
            ("1 : turn right", 1),
            ("turn right(1)", 1),
            ("turn right (0)", None),
        ),
        *(("1 (1)", None), ("0" * 25, 0), ("0" * 26, None), ("x" * 10_000, None), ("", None), ("turn\tright", 1), ("turn - right", None)),
        *(("fire (main)", None), ("fire main engine hard", None), ("2.", 2), ("2.00", 2), ("\u22121", None)),
    ],
)
def test_forms_beside_those_of_the_listing(text: str, number: int | None) -> None:
    try:
        found = NAMED.lookup(text, Where.MARK)
    except ActionNotFound:
        found = None
    assert found == number
