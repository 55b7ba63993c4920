"""`ArrayCodec`: numbers survive exactly, with few digits, and bounds are told and kept at the dtype."""

from __future__ import annotations

import json
import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces as gs
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codecs.codecs import floats
from tests.codecs.spaces import check_round_trip, same
from vfgym.codecs import ActionNotFound, codec_for
from vfgym.errors import ConfigurationError, InvalidAction


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_every_float_survives_with_few_digits(dtype: Any) -> None:
    codec = codec_for(gs.Box(-np.inf, np.inf, (6,), dtype))
    info = np.finfo(dtype)
    action = np.array([np.inf, -np.inf, info.max, info.smallest_subnormal, -0.0, 0.1], dtype)
    assert same(codec.decode(codec.encode(action)), action)
    assert codec.to_json(action)[:2] == ["inf", "-inf"]
    assert codec.to_json(action)[-1] == 0.1
    assert codec.to_json(np.full(6, np.nan)) == ["nan"] * 6
    with pytest.raises(ActionNotFound, match="element 1"):
        codec_for(gs.Tuple([codec.space])).from_json([["nan"] * 6])


@given(st.integers(0, 2**16 - 1))
def test_float16_is_exact(bits: int) -> None:
    number = np.array([bits], np.uint16).view(np.float16)
    if not np.isnan(number[0]):
        codec = codec_for(gs.Box(-np.inf, np.inf, (1,), np.float16))
        assert same(codec.decode(codec.encode(number)), number)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200)
def test_float32_is_exact(bits: int) -> None:
    number = np.array([bits], np.uint32).view(np.float32)
    if not np.isnan(number[0]):
        codec = codec_for(gs.Box(-np.inf, np.inf, (1,), np.float32))
        assert same(codec.decode(codec.encode(number)), number)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_the_ends_of_64_bits_stay_exact(dtype: Any) -> None:
    info = np.iinfo(dtype)
    box = gs.Box(np.full(2, info.min, dtype), np.full(2, info.max, dtype), dtype=dtype)
    ends = np.array([info.min, info.max], dtype)
    codec = codec_for(box)
    assert same(codec.decode(codec.encode(ends)), ends)
    for beyond in (info.min - 1, info.max + 1):
        with pytest.raises(ActionNotFound, match="Element 2 must be from"):
            codec.from_json([0, beyond])
    discrete = gs.Discrete(5, start=info.max - 4, dtype=dtype)
    assert same(codec_for(discrete).decode(str(info.max)), dtype(info.max))


def test_arrays_without_a_shape_or_elements() -> None:
    for space in (gs.Box(0, 9, (), np.int32), gs.Box(0, 1, (), np.bool_), gs.MultiBinary([]), gs.Box(0, 1, ())):
        codec = codec_for(space)
        action = np.array(1, space.dtype)
        assert same(codec.decode(codec.encode(action)), action)
    for shape in ((0,), (2, 0, 3)):
        codec = codec_for(gs.Box(0, 1, shape))
        action = np.zeros(shape, np.float32)
        assert same(codec.decode(codec.encode(action)), action)
        assert codec.listing()


def test_an_image_is_described_once() -> None:
    codec = codec_for(gs.Box(0, 255, (210, 160, 3), np.uint8))
    assert len(json.dumps(codec.schema)) < 1000
    image = codec.space.sample()
    assert same(codec.from_json(codec.to_json(image)), image)
    bounds = np.random.default_rng(0).random((50, 50))
    assert len(json.dumps(codec_for(gs.Box(-bounds, bounds, dtype=np.float64)).schema)) < 1000


@pytest.mark.parametrize(("low", "high", "bound"), [(-np.inf, 1.0, "at most 1"), (0.0, np.inf, "at least 0"), (-np.inf, np.inf, "")])
def test_a_large_array_is_told_no_bound_that_one_of_its_elements_lacks(low: float, high: float, bound: str) -> None:
    lows, highs = np.zeros(100), np.ones(100)
    lows[3], highs[7] = low, high
    space = gs.Box(lows, highs, dtype=np.float64)
    action = np.zeros(100)
    action[3], action[7] = max(low, -5.0), min(high, 5.0)
    check_round_trip((space, action))
    told = codec_for(space).listing().partition("each within bounds of its own")[2]
    assert told == (f", {bound}" if bound else "")


def test_float32_bounds_are_compared_at_float32() -> None:
    """As 64-bit numbers, 0.1 is less than what float32 makes of it, and 0.7 is more."""
    codec = codec_for(gs.Box(np.float32(0.1), np.float32(0.7), (1,)))
    assert same(codec.from_json([0.1]), floats(0.1))
    assert same(codec.from_json([0.7]), floats(0.7))
    assert codec.schema["items"] == {"type": "number", "minimum": 0.1, "maximum": 0.7}
    with pytest.raises(ActionNotFound, match=r"from 0.1 to 0.7, got 0.701"):
        codec.from_json([0.701])


def test_a_number_that_the_dtype_cannot_hold_is_refused() -> None:
    codec = codec_for(gs.Box(-np.inf, np.inf, (1,), np.float16))
    with pytest.raises(ActionNotFound, match="a number that float16 can hold"):
        codec.decode("[70000]")
    assert same(codec.decode("[inf]"), np.array([np.inf], np.float16))


@pytest.mark.parametrize(
    ("space", "listing", "example"),
    [
        (gs.Box(-np.inf, np.inf, (1,)), "a list of 1 number", "[0.5]"),
        (gs.Box(np.iinfo(np.int64).min, np.iinfo(np.int64).max, (), np.int64), "a whole number from", "0"),
        (gs.Box(-np.inf, 3, ()), "a number at most 3", "2"),
        (gs.Box(-3, np.inf, (2,)), "a list of 2 numbers, each at least -3", "[-2, -2]"),
        (gs.Box(0, 1, (), np.bool_), "a truth value", "true"),
        (gs.Box(0, 1, (3,), np.bool_), "a list of 3 truth values", "[true, true, true]"),
        (gs.Box(0, 1, (0,)), "a list of 0 numbers", "[]"),
        (gs.Box(0, 9, (1,), np.int8), "a list of 1 whole number from 0 to 9", "[5]"),
        (gs.Box(np.zeros(17), np.arange(17.0), dtype=np.float64), "each within bounds of its own, from 0 to 16", "[0, 0.75, "),
        (gs.Box(np.zeros(12), np.arange(12.0), dtype=np.float64), "the tenth from 0 to 9, the 11th from 0 to 10", "[0, "),
        (gs.Box(np.array([-np.inf, 0]), np.array([np.inf, 1]), dtype=np.float64), "the first any, the second from 0 to 1", "[0.5, 0.75]"),
        (gs.MultiBinary((2, 1)), "a 2 x 1 array (nested lists) of whole numbers, each from 0 to 1", "[[1], [1]]"),
        (gs.MultiDiscrete([3, 5], start=[1, -2]), "the first from 1 to 3, the second from -2 to 2", "[2, 0]"),
    ],
    ids=str,
)
def test_what_a_list_holds_is_said_in_words(space: gym.Space[Any], listing: str, example: str) -> None:
    codec = codec_for(space)
    assert listing in codec.listing()
    assert codec.example().startswith(example)


def test_labels_are_listed_up_to_sixteen() -> None:
    names = [f"n{number}" for number in range(17)]
    assert codec_for(gs.MultiBinary(16), names[:16]).listing().endswith("n14 from 0 to 1, n15 from 0 to 1")
    assert codec_for(gs.MultiBinary(17), names).listing() == "a list of 17 whole numbers, each from 0 to 1"


@pytest.mark.parametrize(
    ("space", "text", "array"),
    [
        (gs.MultiDiscrete([3, 4]), "<action>1,2</action>", [1, 2]),
        (gs.Box(0, 9, (2,), np.int8), "<action>1,2</action>", [1, 2]),
        (gs.Box(0, 9, (2,)), "<action>1,2</action>", None),
        (gs.Box(0, 9, (2,)), "<action>1.5, 2</action>", [1.5, 2]),
        (gs.Box(0, 9, (1, 1)), "<action>1.5 m</action>", [[1.5]]),
        (gs.Box(0, 9, (2,)), "<action>1.5 m</action>", None),
        (gs.Box(0, 9, (1,)), "<action>10</action>", None),
    ],
)
def test_numbers_without_brackets_are_read_where_they_are_clear(space: gym.Space[Any], text: str, array: Any) -> None:
    if array is None:
        with pytest.raises(ActionNotFound):
            codec_for(space).decode(text)
    else:
        assert codec_for(space).decode(text).tolist() == array


def test_labelled_elements_may_be_an_object_with_all_the_labels() -> None:
    codec = codec_for(gs.Box(0, 9, (2,), np.int8), ["Gas", " brake "])
    assert codec.from_json({"BRAKE": 2, "gas": "1"}).tolist() == [1, 2]
    assert codec.names == ["Gas", "brake"]
    for data in ({"gas": 1}, {"gas": 1, "brake": 2, "wind": 3}, {"gas": 1, "wind": 2}):
        with pytest.raises(ActionNotFound, match="must have the keys `Gas`, `brake`"):
            codec.from_json(data)


@pytest.mark.parametrize(
    ("space", "data", "problem"),
    [
        (gs.Box(0, 1, (2,), np.bool_), [True, "maybe"], "Element 2 must be true or false"),
        (gs.Box(0, 9, (2,), np.int8), [0, False], "Element 2 must be a whole number, got false"),
        (gs.Box(0, 9, (2,), np.int8), [0, "1.0"], "Element 2 must be a whole number"),
        (gs.Box(0, 9, (2, 2)), [[0, 1], [2, 10]], "Element 2 of element 2 must be from 0 to 9, got 10"),
        (gs.Box(0, 9, (2, 2)), [[0, 1], 2], "Element 2 must be a list of 2 elements"),
        (gs.Box(0, 9, ()), [1], "The action must be a number"),
        (gs.Box(0, np.inf, ()), -1, "must be at least 0"),
        (gs.Box(-np.inf, np.inf, (), np.float16), 1e5, "must be a number that float16 can hold"),
        (gs.Box(-np.inf, np.inf, (), np.float32), 10**400, "must be a number that float32 can hold"),
    ],
)
def test_what_is_no_element_is_named_with_its_place(space: gym.Space[Any], data: Any, problem: str) -> None:
    with pytest.raises(ActionNotFound, match=problem):
        codec_for(space).from_json(data)


def test_elements_are_forgiven_in_form() -> None:
    assert codec_for(gs.Box(0, 1, (4,), np.bool_)).from_json([True, "FALSE", 1, "0"]).tolist() == [True, False, True, False]
    assert codec_for(gs.MultiBinary(3)).from_json([True, "0", 1.0]).tolist() == [1, 0, 1]
    assert codec_for(gs.Box(0, 9, (1,), np.int8)).from_json("7").tolist() == [7]
    assert codec_for(gs.Box(0, 9, (1, 2))).from_json("[[1, 2]]").tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("space", "schema"),
    [
        (gs.Box(0, 1, (), np.bool_), {"type": "boolean"}),
        (gs.Box(1, 1, (), np.bool_), {"const": True}),
        (gs.Box(0, np.inf, ()), {"anyOf": [{"type": "number", "minimum": 0.0}, {"enum": ["inf"]}]}),
        (gs.Box(-np.inf, 0, ()), {"anyOf": [{"type": "number", "maximum": 0.0}, {"enum": ["-inf"]}]}),
        (gs.Box(0, 9, (0,)), {"type": "array", "minItems": 0, "maxItems": 0, "items": {}}),
    ],
    ids=str,
)
def test_schemas_say_what_an_element_may_be(space: gym.Space[Any], schema: Any) -> None:
    assert codec_for(space).schema == schema


def test_elements_with_bounds_of_their_own_are_bounded_one_by_one_up_to_sixty_four() -> None:
    small, large = (codec_for(gs.Box(np.zeros(size), np.arange(1.0, size + 1), dtype=np.float64)).schema for size in (64, 65))
    assert len(small["prefixItems"]) == 64
    assert large["items"] == {"type": "number", "minimum": 0.0, "maximum": 65.0}


@pytest.mark.parametrize(
    ("space", "action", "problem"),
    [
        (gs.Box(0, 9, (2,)), ["a", 0], r"expected an array for Box.*, got \['a', 0\]$"),
        (gs.Box(0, 9, (2,)), None, r"expected an array"),
        (gs.Box(0, 9, (2,), np.int8), [10**30, 0], "expected an array for Box"),
        (gs.Box(0, 9, (2,)), [0], r"expected an array of shape \(2,\) for Box.*, got shape \(1,\)$"),
        (gs.Box(0, 9, ()), [0], r"expected an array of shape \(\) for Box.*, got shape \(1,\)$"),
        (gs.MultiBinary((1, 2)), [0, 1], r"expected an array of shape \(1, 2\) for MultiBinary.*, got shape \(2,\)$"),
    ],
)
def test_what_is_not_an_array_of_the_shape_is_not_written(space: gym.Space[Any], action: Any, problem: str) -> None:
    with pytest.raises(InvalidAction, match=f"^{problem}"):
        codec_for(space).to_json(action)


@pytest.mark.parametrize(
    ("space", "names", "expected"),
    [
        *(
            (gs.Box(0, 9, (2,)), names, "2 different labels")
            for names in (["a"], ["a"] * 2, ["a", " A"], ["a", " "], ["a", ""], ["a", 0], "ab", {})
        ),
        (gs.MultiBinary(1), [], "1 different labels"),
        *((space, ["a", "b"], "no labels") for space in (gs.Box(0, 9, ()), gs.Box(0, 9, (2, 1)), gs.MultiBinary((2, 2)))),
    ],
)
def test_labels_that_do_not_fit_are_refused(space: gym.Space[Any], names: Any, expected: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^expected {expected} for the elements of .*, got {re.escape(repr(names))}$"):
        codec_for(space, names)


def test_labels_are_kept_as_they_were_and_may_name_no_element_twice() -> None:
    names = ["gas", "brake"]
    codec = codec_for(gs.Box(0, 9, (2,), np.int8), names)
    names.reverse()
    assert codec.names == ["gas", "brake"]
    assert codec.own_keys == {"gas", "brake"}
    assert codec_for(codec.space).own_keys == frozenset()
    for data in ({"gas": 1, "GAS": 2, "brake": 3}, {"gas": 1, "GAS": 2}, {}):
        with pytest.raises(ActionNotFound, match="must have the keys `gas`, `brake`, got"):
            codec.from_json(data)
    assert codec.from_json({"brake": 0, "gas": 1}).tolist() == [1, 0]


def test_numbers_of_more_than_64_bits_are_refused() -> None:
    assert codec_for(gs.Box(0, 1, (1,), np.float64)).has_fractions
    with pytest.raises(ConfigurationError, match=r"^expected a Box of at most 64-bit numbers, .* got Box"):
        codec_for(gs.Box(0, 1, (1,), np.longdouble))


@pytest.mark.parametrize(
    ("dtype", "inside", "outside"),
    [(np.uint8, [0, 255], [-1, 256]), (np.int8, [-128, 127], [-129, 128]), (np.float32, [-2, 3], [-2.001, 3.001])],
)
def test_each_end_of_the_bounds_is_inside_and_what_follows_is_not(dtype: Any, inside: list[float], outside: list[float]) -> None:
    codec = codec_for(gs.Box(inside[0], inside[1], (2,), dtype))
    assert codec.from_json(inside).tolist() == codec.from_json(inside[::-1]).tolist()[::-1] == inside
    for place, number in ((1, outside[0]), (2, outside[1])):
        data = [inside[0], inside[0]]
        data[place - 1] = number
        with pytest.raises(ActionNotFound, match=f"^Element {place} must be from {inside[0]} to {inside[1]}, got {number}\\."):
            codec.from_json(data)


@pytest.mark.parametrize(
    ("low", "high", "example"),
    [
        ([0, 2], [1, 2], [0.75, 2]),
        ([-np.inf, 0.5], [0.25, np.inf], [-0.75, 1.5]),
        ([-np.inf, -np.inf], [np.inf, 0], [0.5, -1]),
        ([10.001, 0], [10.002, 0], [10.0018, 0]),
    ],
)
def test_an_example_lies_three_quarters_of_the_way_up(low: Any, high: Any, example: list[float]) -> None:
    codec = codec_for(gs.Box(np.array(low), np.array(high), dtype=np.float64))
    assert codec.representative().tolist() == pytest.approx(example, abs=1e-4)
    assert codec.representative() in codec.space


def test_the_longest_array_has_room_for_every_number_and_its_label() -> None:
    bare, named = (codec_for(gs.Box(-1e9, 1e9, (3,), np.float64), names).longest for names in (None, ["a", "b" * 50, "c"]))
    assert bare >= len(json.dumps([-123456789.12345678] * 3))
    assert named >= bare + 3 * 50
