"""`ArrayCodec`: numbers survive exactly, with few digits, and bounds are told and kept at the dtype."""

from __future__ import annotations

import json
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
