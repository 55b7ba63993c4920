"""`NewMessages`: observations that hold only what is new since the last one."""

from __future__ import annotations

from typing import Any, SupportsFloat

import gymnasium as gym

from vfgym.envs.seat import new_since
from vfgym.messages import Message


class NewMessages(gym.Wrapper[list[Message], Any, list[Message], Any], gym.utils.RecordConstructorArgs):
    """Shows the messages that came since the last observation, for agents that keep the conversation themselves.

    The agent's own answer is among them. Where an environment rewrote history the whole conversation is shown again, and
    ``info["is_rewritten"]`` is True.
    """

    def __init__(self, env: gym.Env[list[Message], Any]) -> None:
        gym.utils.RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._seen: list[Message] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[list[Message], dict[str, Any]]:
        """Start an episode and show its whole prompt."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._seen = observation
        return observation, {**info, "is_rewritten": False}

    def step(self, action: Any) -> tuple[list[Message], SupportsFloat, bool, bool, dict[str, Any]]:
        """Answer, and show what is new."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        new = new_since(self._seen, observation)
        is_rewritten = bool(self._seen) and len(new) == len(observation)
        self._seen = observation
        return new, reward, terminated, truncated, {**info, "is_rewritten": is_rewritten}
