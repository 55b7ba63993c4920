"""`as_gymnasium`: the door at which games of other interfaces become Gymnasium's."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

from vfgym.wrappers.gymnasium.browsergym import BrowserGame
from vfgym.wrappers.gymnasium.interfaces import as_gymnasium
from vfgym.wrappers.gymnasium.old_gym import OldGymGame
from vfgym.wrappers.gymnasium.text_games import TextGame


def old(action_space: Any = gym.spaces.Discrete(2)) -> Any:  # noqa: B008 -- not changed
    spaces = {"observation_space": gym.spaces.Discrete(2), "action_space": action_space}
    return type("Old", (), {**spaces, "reset": lambda self: "You are in a room.", "step": lambda self, action: ("", 0.0, False, {})})()


Browser = type("BrowserEnv", (gym.Env,), {"__module__": "browsergym.core.env", "__qualname__": "BrowserEnv", "metadata": {}})


@pytest.mark.parametrize(
    ("made", "kind"), [(old(), OldGymGame), (old(None), TextGame), (Browser(), BrowserGame), (gym.Wrapper(Browser()), BrowserGame)]
)
def test_a_game_of_another_interface_becomes_one_of_gymnasiums(made: Any, kind: type) -> None:
    assert type(as_gymnasium(made)) is kind


def test_a_game_of_gymnasiums_stays_as_it_is() -> None:
    game = gym.make("CartPole-v1")
    assert as_gymnasium(game) is game

    class Empty(gym.Env[Any, Any]):
        """It says nothing of its spaces, which whoever plays it will hear of."""

    empty = Empty()
    assert as_gymnasium(empty) is empty
