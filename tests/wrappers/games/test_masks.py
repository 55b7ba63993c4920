"""A mask allows what `gymnasium.Space.sample` may return with it, in every kind of space that has masks."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from vfgym.codecs import codec_for
from vfgym.errors import ConfigurationError
from vfgym.wrappers.games.masks import (
    allows,
    as_command,
    find_commands,
    find_mask,
    holds_mask,
    legal_line,
    list_legal,
    mask_of,
    without_mask,
)

MASKED_SPACES: dict[str, tuple[gym.Space[Any], Any]] = {
    "Discrete": (spaces.Discrete(3, start=-1), [0, 1, 1]),
    "Discrete, nothing": (spaces.Discrete(3, start=-1), [0, 0, 0]),
    "MultiDiscrete": (spaces.MultiDiscrete([2, 3], start=[1, -1]), ([1, 0], [0, 1, 1])),
    "MultiDiscrete, nothing": (spaces.MultiDiscrete([2, 3]), ([0, 1], [0, 0, 0])),
    "MultiDiscrete of two axes": (spaces.MultiDiscrete([[2, 2], [2, 3]]), (([1, 0], [1, 1]), ([0, 1], [1, 0, 1]))),
    "MultiBinary": (spaces.MultiBinary(3), [0, 1, 2]),
    "MultiBinary of two axes": (spaces.MultiBinary((2, 2)), [[0, 1], [2, 1]]),
    "Text": (spaces.Text(2, charset="abc"), (None, [1, 0, 1])),
    "Text of a length": (spaces.Text(2, charset="abc"), (1, None)),
    "Text of the greatest length": (spaces.Text(2, charset="abc"), (2, None)),
    "Text, nothing": (spaces.Text(2, min_length=0, charset="abc"), (None, [0, 0, 0])),
    "Tuple": (spaces.Tuple([spaces.Discrete(3), spaces.Discrete(2)]), ([0, 1, 1], None)),
    "Dict": (spaces.Dict(a=spaces.Discrete(3), b=spaces.MultiBinary(2)), {"a": [1, 0, 1], "b": [2, 0]}),
    "OneOf": (spaces.OneOf([spaces.Discrete(3), spaces.MultiBinary(2)]), ([0, 1, 1], [2, 0])),
    "Sequence": (spaces.Sequence(spaces.Discrete(2)), (np.array([1, 2]), [0, 1])),
    "Sequence of a length": (spaces.Sequence(spaces.Discrete(2)), (2, None)),
    "Sequence, stacked": (spaces.Sequence(spaces.Discrete(3), stack=True), ([1, 2], [1, 0, 1])),
    "Sequence of dicts, stacked": (spaces.Sequence(spaces.Dict(a=spaces.Discrete(3)), stack=True), (1, {"a": [0, 1, 1]})),
}


@pytest.mark.parametrize("name", MASKED_SPACES)
def test_what_is_allowed_is_what_is_sampled(name: str) -> None:
    """Of all actions that a space samples without a mask, those that it samples with the mask, and no other."""
    space, given_mask = MASKED_SPACES[name]
    codec, mask = codec_for(space), mask_of(space, given_mask)
    space.seed(0)
    sampled = {codec.encode(space.sample(mask)) for _ in range(80)}
    everything = {codec.encode(space.sample()) for _ in range(500)} | sampled
    assert sampled < everything
    assert {text for text in everything if allows(space, mask, codec.decode(text))} == sampled


class Even(gym.Space[int]):
    """Even numbers, whose masks are lists of them."""

    def __init__(self) -> None:
        super().__init__((), np.int64)

    def sample(self, mask: Any = None, probability: None = None) -> int:
        return int(self.np_random.choice(mask or [0, 2, 4]))

    def contains(self, x: Any) -> bool:
        return x % 2 == 0


def test_masks_that_only_their_environment_can_read_forbid_nothing() -> None:
    box = spaces.Box(0, 1, (2,))
    assert mask_of(box, [1, 0]) is None, "Box.sample takes no masks"
    assert allows(box, None, box.sample())
    assert mask_of(Even(), [2]) == [2]
    assert allows(Even(), [2], 4)


@pytest.mark.parametrize("name", MASKED_SPACES)
@pytest.mark.parametrize("given", [3, [0, 1], ([0, 1, 1], [0, 1, 3]), {"a": [0, 1, 1]}, "mask", [[1], [1, 0], [1]], (-1, None)])
def test_what_is_no_mask_of_a_space_is_refused(name: str, given: Any) -> None:
    space, _ = MASKED_SPACES[name]
    with pytest.raises(ConfigurationError, match="expected an action mask of"):
        mask_of(space, given)


@pytest.mark.parametrize(
    ("space", "given", "problem"),
    [
        (spaces.Discrete(2), [0, 1, 1], "[0, 1, 1] should be whole numbers from 0 to 1, of the shape (2,)"),
        (spaces.Discrete(2), [0, 2], "[0, 2] should be whole numbers from 0 to 1, of the shape (2,)"),
        (spaces.Discrete(2), [0.5, 1], "[0.5, 1] should be whole numbers from 0 to 1, of the shape (2,)"),
        (spaces.MultiBinary(2), [0, 3], "[0, 3] should be whole numbers from 0 to 2, of the shape (2,)"),
        (spaces.Text(3, min_length=2), (1, None), "1 should be a length from 2 to 3"),
        (spaces.Text(3, min_length=2), (4, None), "4 should be a length from 2 to 3"),
        (spaces.Dict(a=spaces.Discrete(2), b=spaces.Discrete(2)), {"a": [0, 1]}, "it must have the keys a, b"),
        (spaces.Dict(a=spaces.Discrete(2)), {"a": [0, 1], "b": [0, 1]}, "it must have the keys a"),
        (spaces.Sequence(spaces.Discrete(2)), (-1, None), "-1 should be lengths"),
        (spaces.Sequence(spaces.Discrete(2)), ([1, -1], None), "[1, -1] should be lengths"),
    ],
    ids=str,
)
def test_a_refused_mask_is_told_with_what_is_wrong(space: gym.Space[Any], given: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        mask_of(space, given)
    assert str(caught.value) == f"expected an action mask of {space}, got {given!r}: {problem}"


@pytest.mark.parametrize(
    ("space", "mask", "read"),
    [
        (spaces.Discrete(2), None, None),
        (spaces.Tuple([spaces.Discrete(2)]), [None], (None,)),
        (spaces.Text(3, min_length=2), (2, None), (2, None)),
        (spaces.Text(3, min_length=2), (3, None), (3, None)),
        (spaces.Text(3, min_length=0), (0, None), (0, None)),
        (spaces.Sequence(spaces.Discrete(2)), (0, None), (0, None)),
        (spaces.Sequence(spaces.Discrete(2)), ([0, 2], None), (np.array([0, 2]), None)),
    ],
    ids=str,
)
def test_a_mask_may_leave_parts_out_and_lengths_at_the_bounds_are_some(space: gym.Space[Any], mask: Any, read: Any) -> None:
    np.testing.assert_equal(mask_of(space, mask), read)


def test_a_mask_of_length_zero_allows_only_nothing() -> None:
    text, items = spaces.Text(3, min_length=0), spaces.Sequence(spaces.Discrete(2))
    assert [allows(text, mask_of(text, (0, None)), action) for action in ("", "a")] == [True, False]
    assert [allows(items, mask_of(items, (0, None)), action) for action in ((), (1,))] == [True, False]


DISCRETE = codec_for(spaces.Discrete(3), ["left", "stay", "right"])


def test_a_mask_stands_in_the_observation_or_else_in_the_info() -> None:
    info = {"action_mask": [1, 1]}
    assert find_mask({"observation": 3, "action_mask": [0, 1]}, info) == [0, 1]
    assert find_mask({"observation": 3}, info) == find_mask([0, 1], info) == [1, 1]
    assert find_mask({"action_mask": None}, info) is None
    assert find_mask(3, {}) is None


def test_a_space_holds_a_mask_only_beside_something_else() -> None:
    mask = spaces.MultiBinary(3)
    both = spaces.Dict(action_mask=mask, cards=spaces.Discrete(2))
    assert holds_mask(both)
    assert not any(holds_mask(space) for space in (spaces.Dict(action_mask=mask), spaces.Dict(cards=mask), mask))
    assert [*without_mask(both.spaces)] == ["cards"]


@pytest.mark.parametrize(
    ("mask", "line"),
    [
        (None, ""),
        ([0, 0, 0], "Legal actions: none"),
        ([0, 1, 0], "Legal actions: stay"),
        (np.array([True, False, True]), "Legal actions: left, right"),
    ],
)
def test_a_line_tells_what_is_legal(mask: Any, line: str) -> None:
    assert legal_line(DISCRETE, mask) == line


def test_a_mask_of_other_actions_is_told_as_it_is() -> None:
    binary = codec_for(spaces.MultiBinary(2))
    assert legal_line(binary, [0, 2]) == "Action mask: [0, 2]"
    assert legal_line(binary, np.zeros((2, 2), int)) == "Action mask:\n0 0\n0 0"


def test_sixty_four_legal_actions_are_listed_and_of_more_sixteen() -> None:
    actions = [str(number) for number in range(65)]
    assert list_legal(actions[:64]).endswith("62, 63")
    assert list_legal(actions) == f"Legal actions: {', '.join(actions[:16])}, and 49 more"


def test_commands_are_those_that_a_game_of_text_lists() -> None:
    text = spaces.Text(9)
    assert find_commands(text, {"admissible_commands": ["look", 3]}) == ["look", "3"]
    assert find_commands(text, {"admissible_commands": []}) == []
    assert find_commands(text, {}) is None
    assert find_commands(spaces.Discrete(2), {"admissible_commands": ["look"]}) is None


def test_a_text_is_the_one_command_that_it_looks_like() -> None:
    texts = ("Open  Mailbox", "OPEN MAILBOX!", "open mailbox.", "Go", "go", "dance")
    read = [as_command(text, ["look", "open mailbox", "Go", "GO"]) for text in texts]
    assert read == [*["open mailbox"] * 3, "Go", "go", "dance"]
    assert as_command("go!", ["look.", "Go."]) == "Go."
