"""What environments declare of their actions and observations, word for word, and only where it fits."""

from __future__ import annotations

import sys
from dataclasses import make_dataclass
from enum import Enum
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from vfgym.wrappers.gymnasium.descriptions import describe
from vfgym.wrappers.gymnasium.names import declared_action_labels, declared_action_names, declared_channels, declared_labels


class Game(gym.Env[Any, Any]):
    action_space: gym.Space[Any] = Discrete(2)
    observation_space: gym.Space[Any] = Discrete(3)


Steer = Enum("Steer", {"LEFT": 0, "STAY": 1, "RIGHT": 2})
Compass = Enum("Compass", {"UP": 107, "DOWN": 106, "WAIT": 46})
"""Names of directions, with the keys of a keyboard as values (as NetHack has them)."""
FarCompass = Enum("FarCompass", {"UP": 75})
Reversed = Enum("Reversed", {"LAST": 2, "FIRST": 0, "MIDDLE": 1})
Keys = make_dataclass("Keys", [("turn_left", int, 0), ("wait", int, 1), ("turn_right", int, 2)])


@pytest.mark.parametrize(
    ("attribute", "declared", "names"),
    [
        ("actions", Steer, ("LEFT", "STAY", "RIGHT")),
        ("Actions", Steer, ("LEFT", "STAY", "RIGHT")),
        ("action_names", ["left", "stay", "right"], ("left", "stay", "right")),
        ("ACTION_NAMES", ("left", "stay", "right"), ("left", "stay", "right")),
        ("actions", {0: "LEFT", 1: "STAY", 2: "RIGHT"}, ("LEFT", "STAY", "RIGHT")),
        ("ACTION_NAMES", {"LEFT": 0, "RIGHT": 2, "STAY": 1}, ("LEFT", "STAY", "RIGHT")),
        ("actions", Keys(), ("turn_left", "wait", "turn_right")),
        ("actions", Compass, ("UP", "DOWN", "WAIT")),
        ("actions", (Compass.DOWN, Compass.UP, Compass.WAIT), ("DOWN", "UP", "WAIT")),
        ("actions", [Compass.UP, FarCompass.UP, Compass.WAIT], ("Compass UP", "FarCompass UP", "WAIT")),
        ("Action", Reversed, ("FIRST", "MIDDLE", "LAST")),
        ("action_map", ["n", "l", "r"], ("no-op", "left", "right")),
        ("action_meanings", ["n", "l", "x"], ("n", "l", "x")),
        ("actions", [Compass.UP, Compass.DOWN], ()),
        ("actions", {0: "LEFT", 1: "STAY"}, ()),
        ("actions", ["left", "right"], ()),
        ("actions", ["go", "go", "stay"], ()),
        ("actions", [0, 1, 2], ()),
        ("actions", 3, ()),
        ("actions", {0: np.zeros(2), 1: np.ones(2), 2: np.ones(2)}, ()),
    ],
)
def test_names_of_actions_are_those_that_the_environment_declares(attribute: str, declared: Any, names: tuple[str, ...]) -> None:
    """Word for word, in the order of their numbers; of the environment, or of its type of actions."""
    env, other = Game(), Game()
    for game in (env, other):
        game.action_space = Discrete(3)
    setattr(env, attribute, declared)
    other.action_type = SimpleNamespace(**{attribute: declared})
    assert describe(env).action_names == describe(other).action_names == names


def test_a_part_of_a_game_or_its_module_may_name_the_actions() -> None:
    env = Game()
    env.action_space = Discrete(3)
    env.game = SimpleNamespace(env=SimpleNamespace(action_map=["n", "l", "u", "r", "d", "f"]))
    assert describe(env).action_names == ()  # six names for three actions
    env.action_set = [0, 1, 3]
    assert describe(env).action_names == ("no-op", "left", "right")
    env.action_set = [0, 1, 9]
    assert describe(env).action_names == ()


def test_an_enum_of_the_module_names_the_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    env = Game()
    env.action_space = Discrete(3)
    monkeypatch.setattr(sys.modules[__name__], "Actions", Compass, raising=False)
    assert describe(env).action_names == ("UP", "DOWN", "WAIT")


def test_buttons_name_what_presses_them() -> None:
    """As VizDoom has it: an action is a combination of buttons, or a number for each."""
    env = Game()
    env.game = SimpleNamespace(get_available_buttons=lambda: [SimpleNamespace(name="LEFT"), SimpleNamespace(name="FIRE")])
    env.button_map = [np.array(row) for row in ([0, 0], [0, 1], [1, 0], [1, 1])]
    env.action_space = Discrete(4)
    assert describe(env).action_names == ("no button", "FIRE", "LEFT", "LEFT and FIRE")
    env.action_space = gym.spaces.MultiBinary(2)
    assert (describe(env).action_names, describe(env).action_labels) == ((), ("LEFT", "FIRE"))
    env.action_space = gym.spaces.MultiBinary(3)
    assert describe(env).action_labels == ()


def test_a_property_that_fails_before_the_game_begins_names_nothing() -> None:
    class Early(Game):
        @property
        def actions(self) -> list[str]:
            raise RuntimeError("reset first")

    assert describe(Early()).action_names == ()


def test_actions_that_do_not_begin_with_0_are_named_by_their_numbers() -> None:
    env = Game()
    env.action_space = Discrete(2, start=1)
    env.actions = Steer
    assert describe(env).action_names == ("STAY", "RIGHT")


def test_labels_are_those_that_the_environment_declares() -> None:
    env = Game()
    env.observation_space = Box(-1, 1, (2,))
    env.observation_labels = ["speed", "fuel"]
    assert describe(env).observation_labels == ("speed", "fuel")
    env.observation_labels = ["speed"]
    assert describe(env).observation_labels == ()
    # As highway-env has it: a row for each car.
    env.observation_space = Box(-1, 1, (5, 3))
    env.observation_type = SimpleNamespace(features=["presence", "x", "y"])
    assert describe(env).about_observations == "The numbers of each row are: presence, x, y."
    env.observation_space = gym.spaces.Dict({"here": Box(-1, 1, (3,)), "there": Box(-1, 1, (3,))})
    assert describe(env).about_observations == "The numbers of each row are: presence, x, y."
    env.observation_space = Box(-1, 1, (5, 4))
    assert describe(env).about_observations == ""


@pytest.mark.parametrize(
    "attribute", ["actions", "Actions", "Action", "action_names", "ACTION_NAMES", "action_meanings", "ACTION_MEANING", "action_map"]
)
@pytest.mark.parametrize("parts", ["", "action_type", "game", "env", "_env", "game _env", "env action_type"])
def test_each_attribute_of_each_part_names_the_actions(attribute: str, parts: str) -> None:
    holder: Any = SimpleNamespace(**{attribute: ["left", "right"]})
    for part in reversed(parts.split()):
        holder = SimpleNamespace(**{part: holder})
    assert declared_action_names(holder, Discrete(2)) == ("left", "right")
    assert declared_action_names(SimpleNamespace(other=holder), Discrete(2)) == ()


@pytest.mark.parametrize("attribute", ["observation_labels", "observation_names", "feature_names", "features"])
def test_each_attribute_names_the_observations_and_empty_or_double_ones_do_not(attribute: str) -> None:
    for made in (SimpleNamespace, lambda **names: SimpleNamespace(observation_type=SimpleNamespace(**names))):
        for labels in (["a", "b"], ("a",), ["a", ""]):
            assert [*declared_labels(made(**{attribute: labels}))] == [tuple(labels)]
        for labels in ([], (), ["a", "a"], ["a", 1], "ab", None, {"a": 0}):
            assert [*declared_labels(made(**{attribute: labels}))] == []
    both = SimpleNamespace(features=["c"], observation_labels=["a", "b"], observation_type=SimpleNamespace(features=["d"]))
    assert [*declared_labels(both)] == [("a", "b"), ("c",), ("d",)]


def test_channels_are_those_of_the_game_and_its_parts_in_order() -> None:
    game = SimpleNamespace(channels=0, CHANNELS=["b"], game=SimpleNamespace(channel_names=("c",), env=SimpleNamespace(channels=None)))
    assert [*declared_channels(game)] == [0, ["b"], ("c",)]


@pytest.mark.parametrize(
    ("game", "names"),
    [
        ({"actions": ["n", "l", "r", "u", "d", "f"]}, ("no-op", "left", "right", "up", "down", "fire")),
        ({"actions": list("abcdef"), "action_names": list("ghijkm")}, tuple("abcdef")),
        ({"actions": list("abc"), "action_names": list("ghijkm")}, tuple("ghijkm")),
        ({"actions": [*"abcde", " "]}, ()),
        ({"actions": [*"abcde", None]}, ()),
        ({"actions": list("zabcdefy"), "action_set": [1, 2, 3, 4, 5, 6]}, tuple("abcdef")),
        ({"actions": list("zabcdefy"), "_action_set": np.array([6, 5, 4, 3, 2, 7])}, tuple("fedcby")),
        ({"actions": list("zabcdefy"), "action_set": [1, 2, 3, 4, 5, 8]}, ()),
        ({"actions": list("zabcdefy"), "action_set": [1, 2, 3, 4, 5, -1]}, ()),
        ({"actions": list("zabcdefy"), "action_set": [], "_action_set": [0, 1, 2, 3, 4, 5]}, tuple("zabcde")),
        ({"actions": list("zabcdefy"), "action_set": [0.0] * 6}, ()),
        ({"button_map": [[0, 1]] * 6, "get_available_buttons": lambda: ["A"]}, ()),
        ({"button_map": None, "get_available_buttons": lambda: ["A"]}, ()),
        ({"actions": list("abcdef"), "get_action_meanings": lambda: list("ghijkm")}, tuple("ghijkm")),
        ({"actions": list("abcdef"), "get_action_meanings": lambda: list("gh")}, tuple("abcdef")),
        ({"actions": list("abcdef"), "get_action_meanings": list("ghijkm")}, tuple("abcdef")),
    ],
)
def test_of_several_that_name_actions_the_first_that_fits_counts(game: dict[str, Any], names: tuple[str, ...]) -> None:
    assert declared_action_names(SimpleNamespace(**game), Discrete(6)) == names


def test_buttons_are_those_of_the_first_part_that_has_some() -> None:
    inner = SimpleNamespace(get_available_buttons=lambda: ["C"])
    outer = SimpleNamespace(get_available_buttons=lambda: ["A", SimpleNamespace(name="B")], game=inner)
    for game, labels in ((outer, ("A", "B")), (SimpleNamespace(game=inner), ("C",)), (SimpleNamespace(get_available_buttons=3), ())):
        assert declared_action_labels(game) == labels
