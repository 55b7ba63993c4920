"""`ScriptedAgent`: answers that were written down before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym

from vfgym.agents.base import Answering
from vfgym.envs.seat import Action
from vfgym.errors import ConfigurationError, ModelError
from vfgym.messages import Message


class ScriptedAgent:
    """Gives prepared answers, in order, from the first one in each episode."""

    name = "scripted"

    def __init__(self, answers: Sequence[Action] | Mapping[int, Sequence[Action]]) -> None:
        """Make the agent.

        Args:
            answers: The answers of every episode, or those of each example, by ``example_id``.

        Raises:
            ConfigurationError: If text stands where a list of answers should.
        """
        for script in answers.values() if isinstance(answers, Mapping) else (answers,):
            if isinstance(script, str):
                raise ConfigurationError(f"the answers of an episode must be a list, with one for each turn, got the text {script!r:.80}")
        self.answers = answers

    def for_episode(self, env: gym.Env[Any, Any]) -> Answering:
        """Return what answers in this episode. It raises `ModelError` when there is no answer left."""
        return _ScriptedAnswers(self)

    def answers_to(self, example_id: int) -> Sequence[Action]:
        """Return the answers of the episodes of one example.

        Raises:
            ModelError: If there are none.
        """
        if not isinstance(self.answers, Mapping):
            return self.answers
        if example_id not in self.answers:
            raise ModelError(f"the script has no answers to example {example_id}; it has some to {', '.join(map(str, self.answers))}")
        return self.answers[example_id]


class _ScriptedAnswers:
    """What gives prepared answers in one episode: an object and no closure, so that a copy goes on alike."""

    def __init__(self, agent: ScriptedAgent) -> None:
        self._agent = agent
        self._given = 0

    def __call__(self, observation: list[Message], info: dict[str, Any]) -> Action:
        answers = self._agent.answers_to(info["example_id"])
        if self._given == len(answers):
            raise ModelError(f"the script has {self._given} answers, and the episode of example {info['example_id']} asks for one more")
        self._given += 1
        return answers[self._given - 1]
