"""`Codec`: what a codec writes it reads back, exactly, for every space; and whatever else is read lies in the space."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import gymnasium as gym
import jsonschema
import pytest
from gymnasium import spaces as gs
from gymnasium.utils.env_checker import data_equivalence
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codecs.spaces import members, same, spaces
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
