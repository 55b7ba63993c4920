"""Environments for SkyRL (skyrl-gym 0.4), whose environments answer text with messages.

Register `TextEnv` (``skyrl_gym.register(id="lake", entry_point="vfgym.training.skyrl:TextEnv")``), say in the configuration what it
plays (``{"env": "gymnasium/FrozenLake-v1"}``), and give each row of the data set a ``seed``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vfgym.errors import ConfigurationError
from vfgym.messages import plain
from vfgym.training.adapters import added_messages, fork_env, read_answer, refuse_short_history, require_trainer
from vfgym.training.counting import CountedRewards

require_trainer("skyrl_gym", "skyrl-gym>=0.4")

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput  # noqa: E402


class TextEnv(BaseTextEnv):  # type: ignore[misc]
    """One episode of a chat environment, as SkyRL plays it: `init`, then `step` until it is done."""

    def __init__(self, env_config: Any = None, extras: Mapping[str, Any] | None = None) -> None:
        """Take an environment, and which episode of it is played.

        Args:
            env_config: A mapping whose ``env`` is a chat environment, or the id of one.
            extras: A row of the data set: ``seed``, the seed of the episode (rollouts of one row begin alike), and ``options``, reset
                options (``{"example_id": 7}``), where there are some. ``max_turns``, which SkyRL adds, truncates the episode.

        Raises:
            ConfigurationError: If they say something else, or the environment shows a part of its conversation only.
        """
        super().__init__()
        env = env_config.get("env") if hasattr(env_config, "get") else None
        extras = extras or {}
        if env is None:
            raise ConfigurationError(f'TextEnv needs to know what to play: env_config={{"env": env or its id}}, got {env_config!r}')
        if "seed" not in extras:
            raise ConfigurationError("a row of the data set must have a seed, so that the rollouts of a group begin alike")
        self._env = CountedRewards(fork_env(env))
        refuse_short_history(self._env, "SkyRL")
        self._seed, self._options = extras["seed"], extras.get("options")
        self.max_turns = extras.get("max_turns")

    def init(self, prompt: Any = None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Begin the episode, and return its conversation; the prompt of the data set is not used."""
        self._seen, self._info = self._env.reset(seed=self._seed, options=self._options)
        return plain(self._seen), {}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Answer, and return what the environment says to it. Where there are tools, calls are read in the text.

        Raises:
            vfgym.training.counting.RolloutMissing: If the episode failed by the doing of its environment, or of what is underneath.
        """
        answer = read_answer(action, self._info["tools"])
        observation, reward, terminated, truncated, self._info = self._env.step(answer)
        self.turns += 1
        added = added_messages(self._seen, observation, "SkyRL")
        self._seen = observation
        if not (terminated or truncated) and self.turns == self.max_turns:
            _, last_reward, terminated, truncated, self._info = self._env.truncate()
            reward = float(reward) + last_reward
        return BaseTextEnvStepOutput(
            observations=plain(added),
            reward=float(reward),
            done=terminated or truncated,
            metadata={"terminated": terminated, "truncated": truncated},
            postprocessed_action=None,
        )

    def get_metrics(self) -> dict[str, Any]:
        """Return the metrics of the episode."""
        return dict(self._info["metrics"])

    def close(self) -> None:
        """Clean up."""
        self._env.close()
