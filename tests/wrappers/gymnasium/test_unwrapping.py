"""The game inside its wrappers, and the object that documents it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium as gym
from gymnasium import spaces

from vfgym.wrappers.gymnasium.old_gym import OldGymGame
from vfgym.wrappers.gymnasium.unwrapping import documented_game, innermost


class Adapter(gym.Env[Any, Any]):
    """Calls the game of another library `unwrapped`."""

    def __init__(self, game: Any) -> None:
        self.game = game

    @property
    def unwrapped(self) -> Any:
        return self.game


def test_wrappers_of_both_kinds_are_taken_off_in_any_order() -> None:
    old = SimpleNamespace(action_space=spaces.Discrete(2), observation_space=spaces.Discrete(2))
    assert innermost(gym.Wrapper(gym.Wrapper(OldGymGame(old)))) is old
    bare = gym.make("CartPole-v1").unwrapped
    assert innermost(bare) is bare
    assert innermost(gym.make("CartPole-v1").env).__class__ is bare.__class__  # type: ignore[attr-defined]
    wrapped: Any = OldGymGame(SimpleNamespace(action_space=spaces.Discrete(2), observation_space=spaces.Discrete(2)))
    wrapped.game = gym.Wrapper(bare)
    assert innermost(wrapped) is bare


def test_what_a_game_calls_unwrapped_documents_it_if_that_can_be_stepped() -> None:
    adapter = Adapter(SimpleNamespace(step=len))
    assert innermost(gym.Wrapper(adapter)) is adapter
    assert documented_game(gym.Wrapper(adapter)) is adapter.game
    planets = Adapter("what anybody calls unwrapped")
    assert documented_game(planets) is planets
    nothing = SimpleNamespace()
    assert documented_game(nothing) is nothing
