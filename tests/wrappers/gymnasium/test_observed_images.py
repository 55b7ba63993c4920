"""Observations that hold images: alone, stacked, as fractions, or beside numbers."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces, wrappers

import vfgym
from vfgym.errors import ConfigurationError
from vfgym.wrappers.games.images import frame_of

pytest.importorskip("PIL", reason="needs the extra images")

CAMERA = spaces.Box(0, 255, (20, 24, 3), np.uint8)
FRACTIONS = spaces.Box(0.0, 1.0, (20, 24, 3), np.float32)


class Seeing(gym.Env[Any, Any]):
    """Observes elements of a space, drawn at random."""

    action_space = spaces.Discrete(2)
    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, space: gym.Space[Any]) -> None:
        self.observation_space = space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        return self.observation_space.sample(), 0.0, False, False, {}


def play(space: gym.Space[Any], **options: Any) -> tuple[list[Any], Any]:
    """Return the content of the second message of a game, as parts, and what was observed then."""
    env = vfgym.to_chat(lambda: Seeing(copy.deepcopy(space)), **options)
    env.reset(seed=3)
    content = env.step("1").observation[-1].content
    native = Seeing(copy.deepcopy(space))
    native.reset(seed=3)
    return [{"type": "text", "text": content}] if isinstance(content, str) else [*content], native.step(1)[0]


def kinds(parts: list[Any]) -> list[str]:
    """Return the texts of parts, and "image" for images."""
    return [part["text"] if part["type"] == "text" else "image" for part in parts]


def test_an_image_and_numbers_are_shown_as_an_image_and_text() -> None:
    space = spaces.Dict(camera=CAMERA, speed=spaces.Discrete(9), goal=spaces.Text(3, charset="ab"))
    (text, image), observation = play(space)
    assert text["text"] == f"goal: {observation['goal']}\nspeed: {observation['speed']}"
    assert np.array_equal(frame_of(image), observation["camera"])


def test_of_several_images_each_stands_under_its_key() -> None:
    parts, observation = play(spaces.Dict(left=CAMERA, right=FRACTIONS, speed=spaces.Discrete(9)))
    assert kinds(parts) == [f"speed: {observation['speed']}", "left:", "image", "right:", "image"]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, ["speed", "image"]),
        ({"observe": "both"}, ["speed", "image"]),
        ({"observe": "image"}, ["image"]),
        ({"obs_to_text": lambda seen: "speed"}, ["speed"]),
        ({"obs_to_text": lambda seen: "speed", "observe": "both"}, ["speed", "image"]),
    ],
)
def test_what_is_shown_can_be_chosen(options: dict[str, Any], shown: list[str]) -> None:
    parts, _ = play(spaces.Dict(camera=CAMERA, speed=spaces.Discrete(9)), **options)
    assert [kind.partition(":")[0] for kind in kinds(parts)] == shown


def test_images_alone_have_no_text() -> None:
    assert kinds(play(spaces.Dict(camera=CAMERA))[0]) == ["image"]
    assert kinds(play(CAMERA)[0]) == ["image"]


def test_a_mask_is_told_as_a_list_and_not_beside_the_image() -> None:
    parts, _ = play(spaces.Dict(camera=CAMERA, action_mask=spaces.MultiBinary(2)))
    assert not any("action_mask" in kind for kind in kinds(parts))
    assert kinds(parts)[0] == "image"


def test_numbers_beside_an_image_must_be_readable() -> None:
    space = spaces.Dict(camera=CAMERA, lidar=spaces.Box(0, 9, (1000,)))
    with pytest.raises(ConfigurationError, match=r'1000 numbers, which no model can read: .*observe="image" if its images are enough'):
        play(space)
    assert kinds(play(space, observe="image")[0]) == ["image"]
    with pytest.raises(ConfigurationError, match="which no model can read"):
        play(spaces.Dict(camera=CAMERA), observe="text")


def test_fractions_are_shown_as_an_image() -> None:
    (image,), observation = play(FRACTIONS)
    assert np.array_equal(frame_of(image), np.rint(observation * 255))


def test_stacked_frames_are_shown_side_by_side_and_explained() -> None:
    env = vfgym.to_chat(lambda: wrappers.FrameStackObservation(Seeing(CAMERA), 3))
    *texts, image = env.reset(seed=0)[0][-1].content
    assert "The image shows 3 frames side by side, the oldest at the left and the newest at the right." in kinds(texts)[0]
    assert frame_of(image).shape == (20, 3 * 24 + 2 * 4, 3)
    newest = frame_of(env.step("1").observation[-1].content[-1])[:, -24:]
    oldest = frame_of([env.step("1") for _ in range(2)][-1].observation[-1].content[-1])[:, :24]
    assert np.array_equal(newest, oldest)


@pytest.mark.parametrize("space", [CAMERA, spaces.Dict(camera=CAMERA, speed=spaces.Discrete(9))], ids=["image", "dict"])
def test_a_game_without_a_drawing_is_filmed_as_it_is_observed(space: gym.Space[Any]) -> None:
    env = vfgym.to_chat(lambda: Seeing(space), render_mode="rgb_array")
    *_, image = env.reset(seed=0)[0][-1].content
    assert np.array_equal(env.render(), frame_of(image))


def test_it_can_be_pickled() -> None:
    env = vfgym.to_chat(Camera)
    again = pickle.loads(pickle.dumps(env))
    assert again.reset(seed=1)[0] == env.reset(seed=1)[0]


class Camera(Seeing):
    """Observes an image and a number."""

    def __init__(self) -> None:
        super().__init__(spaces.Dict(camera=CAMERA, speed=spaces.Discrete(9)))


def test_minigrids_symbols_are_no_image_but_its_pictures_are() -> None:
    minigrid = pytest.importorskip("minigrid.wrappers", reason="needs the extra minigrid")
    with pytest.raises(ConfigurationError, match="which no model can read"):
        vfgym.to_chat(lambda: minigrid.FullyObsWrapper(gym.make("MiniGrid-FourRooms-v0")))
    env = vfgym.to_chat(lambda: minigrid.RGBImgPartialObsWrapper(gym.make("MiniGrid-Empty-5x5-v0")))
    *texts, image = env.reset(seed=0)[0][-1].content
    assert "mission: get to the green goal square" in kinds(texts)[-1]
    assert frame_of(image).shape == (56, 56, 3)
