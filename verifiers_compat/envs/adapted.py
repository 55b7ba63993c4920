"""`as_environment`: the rollout API for any chat environment, and for any Gymnasium environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, RecordEpisodeStatistics

from verifiers_compat.envs.api import RolloutAPI
from vfgym.envs.chat import ChatEnv
from vfgym.envs.seat import EpisodeSeat, Fork
from vfgym.errors import ConfigurationError
from vfgym.wrappers import to_chat

_WATCHING_ONLY = (OrderEnforcing, PassiveEnvChecker, RecordEpisodeStatistics)
"""Wrappers that change nothing in an episode."""


class AdaptedEnvironment(RolloutAPI, Fork):
    """A seat at a chat environment, with the rollout API. Everything else is the environment's own."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.definition, name)

    def set_system_prompt(self, system_prompt: str | None) -> None:
        """Replace the system prompt (see `ChatEnv.set_system_prompt`). Datasets are made anew."""
        self.definition.set_system_prompt(system_prompt)
        self._datasets.clear()

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_") or hasattr(type(self), name) or not hasattr(self.__dict__.get("_definition"), name):
            super().__setattr__(name, value)
        else:
            setattr(self.definition, name, value)


def as_environment(env: gym.Env[Any, Any] | str | EnvSpec) -> Any:
    """Return an environment with the rollout API (`generate`, `evaluate`, ...).

    Args:
        env: A registered id, a spec, a chat environment, or any Gymnasium environment, which is made a chat environment by
            `vfgym.to_chat`. One that has the rollout API is returned as it is.

    Raises:
        ConfigurationError: If it is none of these, or a chat environment in a wrapper that changes its episodes, which a
            rollout would pass by.
    """
    if isinstance(env, str | EnvSpec):
        env = gym.make(env)
    if not isinstance(env, gym.Env):
        raise ConfigurationError(f"expected an environment, a registered id or a spec, got {type(env).__name__}")
    if not isinstance(env.unwrapped, EpisodeSeat):
        env = to_chat(env)
    wrapped: Any = env
    while isinstance(wrapped, gym.Wrapper):
        if not isinstance(wrapped, _WATCHING_ONLY):
            raise ConfigurationError(
                f"rollouts pass by {type(wrapped).__name__}, in which the environment is wrapped: give the environment itself"
                " (its max_turns limits episodes), or play it through the wrapper with vfgym.evaluate and a ModelAgent"
            )
        wrapped = wrapped.env
    definition: ChatEnv = wrapped.definition
    return definition if isinstance(definition, RolloutAPI) else AdaptedEnvironment(definition)
