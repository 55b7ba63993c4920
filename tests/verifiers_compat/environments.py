"""Tiny environments of the rollout API, and the tools, scores and configurations that they are played with."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from datasets import Dataset

import verifiers_compat as vf

ROW = {"question": "1 + 1?", "answer": "2"}


def right(completion: vf.Messages, answer: str) -> float:
    """Score whether the last message is the answer."""
    return float(bool(completion) and completion[-1]["content"] == answer)


def look(key: str) -> str:
    """Look something up."""
    return f"value of {key}"


def single(*rows: dict[str, Any], **kwargs: Any) -> vf.SingleTurnEnv:
    """Return an environment of one turn, about `ROW` where no rows are given, that scores with `right`."""
    kwargs.setdefault("rubric", vf.Rubric(right))
    return vf.SingleTurnEnv(dataset=Dataset.from_list(list(rows or [ROW])), **kwargs)


def asking(url: str, **fields: Any) -> vf.ClientConfig:
    """Return the configuration of a client that asks a server once."""
    return vf.ClientConfig(api_base_url=url, api_key="sk-test", max_retries=0, **fields)


class Talk(vf.MultiTurnEnv):
    """Says how many turns there were, without an end of its own."""

    async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
        return [{"role": "user", "content": f"turn {len(state['trajectory'])}"}]


class Countdown(gym.Env[int, int]):
    """A game of three moves, each of which gives 1.0."""

    observation_space = gym.spaces.Discrete(10)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.left = 3
        return self.left, {}

    def step(self, action: int) -> Any:
        self.left -= 1
        return self.left, 1.0, self.left == 0, False, {}
