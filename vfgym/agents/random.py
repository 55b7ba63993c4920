"""`RandomAgent`: actions at random, legal ones where the environment lists them."""

from __future__ import annotations

import copy
from typing import Any, cast

import gymnasium as gym
import numpy as np

from vfgym.agents.base import Answering
from vfgym.envs.chat import ChatEnv
from vfgym.envs.seat import EpisodeSeat
from vfgym.messages import Message
from vfgym.spaces import MessageSpace


class RandomAgent:
    """Answers at random.

    Its answers are moves where the environment knows some (`ChatEnv.random_action`, ``info["legal_actions"]``), else samples of
    the action space. Its numbers follow from the seed that the episode was reset with, and leave the environment's own alone. So a run
    replays under its seed, whatever runs beside it.
    """

    name = "random"

    def __init__(self, seed: int | None = None) -> None:
        """Make the agent.

        Args:
            seed: Makes another agent, with other answers to the same episodes.
        """
        self.seed = seed

    def for_episode(self, env: gym.Env[Any, Any]) -> Answering:
        """Return what answers in this episode, with random numbers of its own."""
        rng = env.unwrapped.np_random.spawn(1)[0]
        if self.seed is not None:
            rng = np.random.default_rng([self.seed, int(rng.integers(2**63))])
        return _RandomAnswers(env, rng)


class _RandomAnswers:
    """What answers at random in one episode: an object and no closure, so that a copy goes on alike."""

    def __init__(self, env: gym.Env[Any, Any], rng: np.random.Generator) -> None:
        self._rng = rng
        space, seat = env.action_space, env.unwrapped
        self._seat = seat if isinstance(space, MessageSpace) and isinstance(seat, EpisodeSeat) else None
        self._space = space
        if not isinstance(space, MessageSpace):
            self._space = copy.deepcopy(space)  # the space's own numbers may be shared by several episodes
            self._space.seed(int(rng.integers(2**31)))

    def __call__(self, observation: list[Message], info: dict[str, Any]) -> Any:
        episode = None if self._seat is None else self._seat.episode
        if episode is None:  # as at an opponent's seat, where samples are moves that the table draws
            return self._sample()
        move = cast(ChatEnv, episode.definition).random_action(episode.state, self._rng)
        if move is not None:
            return move
        legal = info.get("legal_actions")
        return legal[int(self._rng.integers(len(legal)))] if legal else self._sample()

    def _sample(self) -> Any:
        return self._space.sampler.sample(self._rng) if isinstance(self._space, MessageSpace) else self._space.sample()
