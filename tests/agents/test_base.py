"""What an agent is, and whom it answers."""

from __future__ import annotations

import gymnasium
import pytest
from gymnasium.envs.classic_control import CartPoleEnv

from tests.environments import Echo
from vfgym.agents.base import per_episode, seat_of
from vfgym.agents.scripted import ScriptedAgent
from vfgym.errors import ConfigurationError


def test_an_environment_without_a_conversation_is_told_of_to_chat() -> None:
    with pytest.raises(ConfigurationError, match=r"take 'gymnasium/CartPole-v1', or wrap it with vfgym\.to_chat\('CartPole-v1'\)"):
        seat_of(gymnasium.make("CartPole-v1"))
    with pytest.raises(ConfigurationError, match=r"answer: wrap it with vfgym\.to_chat"):
        seat_of(CartPoleEnv())
    for value in (None, "gymnasium/CartPole-v1", CartPoleEnv):
        with pytest.raises(ConfigurationError, match=f"or the id of one, got {type(value).__name__}"):
            seat_of(value)  # type: ignore[arg-type]


def test_the_seat_is_inside_all_wrappers() -> None:
    env = Echo()
    assert seat_of(gymnasium.wrappers.OrderEnforcing(gymnasium.wrappers.TimeLimit(env, 3))) is seat_of(env) is env


def test_a_function_answers_every_episode_and_an_agent_each_by_its_own() -> None:
    def answer(observation: object, info: object) -> str:
        return "x"

    env = Echo()
    assert per_episode(answer)(env) is answer
    agent = ScriptedAgent(["a"])
    assert per_episode(agent)(env) is not per_episode(agent)(env)
