"""Environments for GEM (gem-llm 0.1), whose environments answer text with text."""

from __future__ import annotations

from typing import Any

from vfgym.agents.base import Answering
from vfgym.agents.random import RandomAgent
from vfgym.envs.seat import new_since
from vfgym.errors import ConfigurationError
from vfgym.messages import Message
from vfgym.training import adapters
from vfgym.training.adapters import branch_env, fork_env, read_answer, require_trainer, write_text
from vfgym.training.counting import CountedRewards

require_trainer("gem", "gem-llm>=0.1")

import gem  # noqa: E402


class GemEnv(gem.Env):  # type: ignore[misc]
    """A chat environment as GEM knows one. Observations are what is new in the conversation, as GEM's wrappers join them.

    Where the conversation was rewritten (``history=``), an observation is all of it: use no wrapper that joins them then.
    """

    def __init__(self, env: str | adapters.Env, **kwargs: Any) -> None:
        """Play a chat environment, or the environment of that id.

        Args:
            env: What is played.
            **kwargs: What GEM adds by itself: ``seed``, with which the first episode begins if `reset` is given none.

        Raises:
            ConfigurationError: If it is not a chat environment, or there are other arguments.
        """
        super().__init__()
        self._next_seed = kwargs.pop("seed", None)
        if kwargs:
            raise ConfigurationError(f"GemEnv takes an environment and a seed, got {', '.join(kwargs)} too")
        self._source = env
        self._env: adapters.Env = CountedRewards(fork_env(env))
        self._seen: list[Message] = []
        self._info: dict[str, Any] = {}
        self._random: Answering | None = None

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode, and return its prompt as text."""
        seed, self._next_seed = self._next_seed if seed is None else seed, None
        self._seen, self._info = self._env.reset(seed=seed)
        self._random = None
        return write_text(self._seen), self._info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Answer, and return what the environment says to it. Where there are tools, calls are read in the text.

        Raises:
            vfgym.training.counting.RolloutMissing: If the episode failed by the doing of its environment, or of what is underneath.
        """
        answer = read_answer(action, self._info["tools"])
        observation, reward, terminated, truncated, self._info = self._env.step(answer)
        new = new_since(self._seen, observation)
        added = new[1:] if len(new) < len(observation) else new  # without the answer itself, where the conversation goes on
        self._seen = observation
        return write_text(added), float(reward), terminated, truncated, self._info

    def sample_random_action(self) -> str:
        """Return a random answer, as text."""
        if self._random is None:
            self._random = RandomAgent().for_episode(self._env)
        action: Any = self._random(self._seen, self._info)
        return action if isinstance(action, str) else write_text([action])

    def spawn(self, same_state: bool = False, **kwargs: Any) -> GemEnv:
        """Return another environment of the same kind.

        Args:
            same_state: Whether it goes on where this one stands, with random numbers that continue alike.
            **kwargs: As for the constructor.

        Raises:
            ResetNeeded: If it is to go on where no episode has begun.
            EpisodeNotPicklable: If something in the episode, or a wrapper, cannot be copied.
        """
        spawned = GemEnv(self._source, **kwargs)
        if same_state:
            spawned._env.close()
            spawned._env, spawned._seen, spawned._info = branch_env(self._env), list(self._seen), self._info
        return spawned
