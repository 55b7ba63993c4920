"""`TextCodec` and `OwnJsonCodec`: texts are read as they are meant, and travel unchanged."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces as gs

from tests.codecs.spaces import TRAPS
from vfgym.codecs import ActionNotFound, codec_for


@pytest.mark.parametrize("text", TRAPS)
def test_texts_that_look_like_something_else_come_through(text: str) -> None:
    codec = codec_for(gs.Text(30, min_length=0, charset="".join({*"".join(TRAPS), *"0123456789abc\\"})))
    assert codec.decode(codec.encode(text)) == text
    assert codec.decode(f"<action>{codec.encode(text)}</action>") == text
    assert codec.from_json(codec.to_json(text)) == text


class Mission(gym.Space[str]):
    """A direct subclass whose members are strings, like MiniGrid's MissionSpace."""

    def __init__(self) -> None:
        super().__init__(dtype=str)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        return f"get the {self.np_random.choice(['red', 'blue'])} ball"

    def contains(self, x: Any) -> bool:
        return x in ("get the red ball", "get the blue ball")


class Point(gym.Space[Any]):
    """A space of an unknown kind, with JSON of its own."""

    def sample(self, mask: Any = None, probability: Any = None) -> complex:
        return complex(int(self.np_random.integers(9)), 1)

    def contains(self, x: Any) -> bool:
        return isinstance(x, complex) and x.imag == 1

    def to_jsonable(self, sample_n: Any) -> Any:
        return [[point.real, point.imag] for point in sample_n]

    def from_jsonable(self, sample_n: Any) -> Any:
        return [complex(*pair) for pair in sample_n]


def test_a_space_of_strings_is_read_as_text() -> None:
    space = Mission()
    codec = codec_for(space)
    assert codec.encode("get the red ball") == "get the red ball"
    assert codec.decode("<action>get the blue ball</action>") == "get the blue ball"
    assert codec.from_json(codec.to_json("get the red ball")) == "get the red ball"
    assert codec.decode(codec.example()) in space
    with pytest.raises(ActionNotFound, match="must be another text"):
        codec.decode("get the green ball")


def test_an_unknown_kind_is_read_by_its_own_json() -> None:
    codec = codec_for(gs.Tuple((Point(), gs.Discrete(2))))
    assert codec.encode((3 + 1j, np.int64(0))) == "[[3, 1], 0]"
    assert codec.decode("[[3, 1], 0]") == (3 + 1j, 0)
    assert codec.decode(codec.example()) in codec.space
    for text in ("[[3, 2], 0]", "[[3], [0]]", "[{}, 0]", "[null, 0]"):
        with pytest.raises(ActionNotFound):
            codec.decode(text)


def test_minigrids_missions_are_texts() -> None:
    mission = pytest.importorskip("minigrid.core.mission")
    space = mission.MissionSpace(lambda color: f"get the {color} ball", ordered_placeholders=[["red", "blue"]])
    codec = codec_for(space)
    assert codec.decode(codec.encode("get the red ball")) == "get the red ball"
