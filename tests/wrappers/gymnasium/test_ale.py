"""Atari games in words and images: what a model sees and does is what the emulator shows and does."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import vfgym
from vfgym.wrappers.games.images import frame_of
from vfgym.wrappers.gymnasium.descriptions import describe

ale_py = pytest.importorskip("ale_py")
pytest.importorskip("PIL")
gym.register_envs(ale_py)


def test_pong_is_described() -> None:
    """Names are those of the joystick's positions."""
    found = describe(gym.make("ALE/Pong-v5"))
    assert found.action_names == ("NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE")
    assert found.noop == 0
    assert "Atari 2600 game Pong" in found.rules
    assert "probability 0.25" in found.rules
    assert found.observation_labels == ()
    assert "probability" not in describe(gym.make("ALE/SpaceInvaders-v5", repeat_action_probability=0.0)).rules
    continuous = describe(gym.make("ALE/Pong-v5", continuous=True))
    assert (continuous.action_names, continuous.noop) == ((), None)
    assert continuous.action_labels == ("joystick radius", "joystick angle (radians)", "fire")


@pytest.mark.parametrize("obs_type", ["rgb", pytest.param("grayscale", marks=pytest.mark.exhaustive)])
def test_pong_is_played_by_looking_at_it(obs_type: str) -> None:
    """The frames in the conversation are the emulator's, bit for bit, and so are rewards and ends."""
    chat = vfgym.to_chat("ALE/Pong-v5", observe="image", obs_type=obs_type)
    bare = gym.make("ALE/Pong-v5", obs_type=obs_type)
    conversation, _ = chat.reset(seed=4)
    expected, _ = bare.reset(seed=4)
    np.testing.assert_array_equal(last_frame(conversation), expected)
    names = describe(bare).action_names
    for turn in range(8):
        action = turn % len(names)
        conversation, reward, terminated, truncated, _ = chat.step(f"<action>{names[action]}</action>")
        native = bare.step(action)
        np.testing.assert_array_equal(last_frame(conversation), native[0])
        assert (reward, terminated, truncated) == (native[1], native[2], native[3])


def last_frame(conversation: Any) -> np.ndarray[Any, Any]:
    images = [part for part in conversation[-1].content if part["type"] == "image_url"]
    assert len(images) == 1
    return frame_of(images[0])
