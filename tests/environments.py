"""Tiny environments that many tests play: conversations without an end of their own, and a game of images."""

from __future__ import annotations

import asyncio
from typing import Any

import gymnasium as gym
import numpy as np

from vfgym import Message, MultiTurnEnv, State, UserMessage, cleanup


class Talk(MultiTurnEnv):
    """Says "go on" after each answer, and counts the episodes that were cleaned up."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dataset": [{"question": "?"}], **kwargs})
        self.cleaned = 0

    def env_response(self, messages: list[Message], state: State) -> Any:
        return [UserMessage("go on")]

    @cleanup
    def count(self, state: State) -> None:
        self.cleaned += 1


class RandomTalk(Talk):
    """Says a random number of the episode after each answer."""

    def env_response(self, messages: list[Message], state: State) -> Any:
        return [UserMessage(f"go on {state.rng.integers(1000)}")]


class AsyncRandomTalk(RandomTalk):
    """The same with an async hook, which needs the background event loop of its process."""

    async def env_response(self, messages: list[Message], state: State) -> Any:
        await asyncio.sleep(0)
        return super().env_response(messages, state)


class Echo(Talk):
    def env_response(self, messages: list[Message], state: State) -> Any:
        return [UserMessage(f"you said {messages[-1].content}")]


class Quiz(Echo):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dataset": [{"question": f"question {i}", "answer": f"answer {i}"} for i in range(10)], **kwargs})


class LegalQuiz(Quiz):
    def step_info(self, state: State) -> dict[str, Any]:
        return {"legal_actions": ["rock", "paper", "scissors"]}


class Brightening(gym.Env[Any, Any]):
    """A game whose observations are images, brighter at each step."""

    observation_space = gym.spaces.Box(0, 255, (32, 32, 3), np.uint8)
    action_space = gym.spaces.Discrete(2)
    steps = 30

    def reset(self, **kwargs: Any) -> Any:
        self.brightness = 0
        return self._frame(), {}

    def step(self, action: Any) -> Any:
        self.brightness += 1
        return self._frame(), 0, self.brightness == self.steps, False, {}

    def _frame(self) -> Any:
        return np.full((32, 32, 3), self.brightness, np.uint8)
