"""What a codec writes it reads back, exactly, for every space."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import gymnasium as gym
import jsonschema
import numpy as np
import pytest
from gymnasium import spaces as gs
from gymnasium.utils.env_checker import data_equivalence
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codecs.spaces import TRAPS, members, same, spaces
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


@given(members())
def test_text_and_json_give_back_exactly_the_action(member: Member) -> None:
    check_round_trip(member)


@pytest.mark.exhaustive
@given(members(depth=4))
@settings(max_examples=3000)
def test_text_and_json_give_back_exactly_the_action_of_thousands_of_spaces(member: Member) -> None:
    check_round_trip(member)


@given(spaces())
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


@pytest.mark.parametrize("text", TRAPS)
def test_texts_that_look_like_something_else_come_through(text: str) -> None:
    codec = codec_for(gs.Text(30, min_length=0, charset="".join({*"".join(TRAPS), *"0123456789abc\\"})))
    assert codec.decode(codec.encode(text)) == text
    assert codec.decode(f"<action>{codec.encode(text)}</action>") == text
    assert codec.from_json(codec.to_json(text)) == text


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


def test_empty_sequences_and_graphs_without_edges() -> None:
    for item in (gs.Discrete(3), gs.Box(-1, 1, (2,)), gs.Text(3), gs.Dict(a=gs.Discrete(2))):
        plain, stacked = (codec_for(gs.Sequence(item, stack=stack)) for stack in (False, True))
        assert plain.decode("[]") == ()
        assert stacked.decode("[]") in stacked.space
        assert stacked.encode(stacked.decode("[]")) == "[]"
    graph = gs.Graph(gs.Discrete(3), gs.Box(0, 1, (2,)), seed=1)
    codec = codec_for(graph)
    for sample in (graph.sample(num_nodes=3, num_edges=0), graph.sample(num_nodes=1), graph.sample(num_nodes=2, num_edges=5)):
        assert same(codec.decode(codec.encode(sample)), sample)
