"""A vector of games that call a function at each of their steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym

import vfgym
from vfgym.vector import ChatVectorEnv


class Called(gym.Env[Any, Any]):
    """A game that calls a function at each of its steps, with its action: 0, or 1 where something is to happen."""

    def __init__(self, call: Callable[[int], object]) -> None:
        self.observation_space = gym.spaces.Discrete(100)
        self.action_space = gym.spaces.Discrete(2)
        self.call = call
        self.moves = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.moves = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.call(action)
        self.moves += 1
        return self.moves, 1.0, False, False, {}


def vector_of(call: Callable[[int], object], num_envs: int, *, here: bool = True, **kwargs: Any) -> ChatVectorEnv:
    """Return a vector of such games, played in the calling thread or on the loop."""
    envs = ChatVectorEnv(vfgym.to_chat(lambda: Called(call), blocking=False), num_envs, **kwargs)
    assert envs._plays_here
    envs._plays_here = here
    return envs
