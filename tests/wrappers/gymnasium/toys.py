"""A game of Gymnasium that does what a test says, for tests of all that plays such games."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium import spaces


class Toy(gym.Env[Any, Any]):
    """Counts the steps."""

    metadata: dict[str, Any] = {"render_modes": []}
    action_space: Any = spaces.Discrete(3)
    observation_space: Any = spaces.Discrete(1000)
    length = 20
    reward: Any = 1.0

    def __init__(self, render_mode: str | None = None, **attributes: Any) -> None:
        """Make a game; `attributes` take the place of what the class has, methods included."""
        self.render_mode = render_mode
        self.info: Any = {}
        self.count, self.played = 0, []
        vars(self).update(attributes)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.count, self.played = 0, []
        return self.seen(), self.info

    def step(self, action: Any) -> Any:
        self.count += 1
        self.played.append(action)
        return self.seen(), self.reward, self.count == self.length, False, self.info

    def seen(self) -> Any:
        return self.count


def first_content(env: Any, seed: int = 0) -> Any:
    return env.reset(seed=seed)[0][-1].content
