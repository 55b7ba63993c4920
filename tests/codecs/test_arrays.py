"""`ArrayCodec`: numbers survive exactly, with few digits, and bounds are told and kept at the dtype."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import jsonschema
import numpy as np
import pytest
from gymnasium import spaces as gs
from gymnasium.utils.env_checker import data_equivalence
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codecs.codecs import floats
from tests.codecs.spaces import same
from vfgym.codecs import ActionNotFound, codec_for

Member = tuple[gym.Space[Any], Any]


def check_round_trip(member: Member) -> None:
    """Raise unless text and JSON give back exactly the action, and the JSON is what the schema says."""
    space, action = member
    codec = codec_for(space)
    text = codec.encode(action)
    assert same(codec.decode(text), action), text
    assert data_equivalence(codec.decode(text), action)
    assert same(codec.decode(f"<think>Which? {text}</think>So <Action>\n{text}</action>"), action), text
    data = json.loads(json.dumps(codec.to_json(action), allow_nan=False))
    assert same(codec.from_json(data), action), data
    schema = json.loads(json.dumps(codec.schema))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(data)


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


def test_arrays_without_a_shape_are_arrays() -> None:
    for space in (gs.Box(0, 9, (), np.int32), gs.Box(0, 1, (), np.bool_), gs.MultiBinary([]), gs.Box(0, 1, ())):
        codec = codec_for(space)
        action = np.array(1, space.dtype)
        assert same(codec.decode(codec.encode(action)), action)


def test_arrays_without_elements_are_lists_without_elements() -> None:
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
