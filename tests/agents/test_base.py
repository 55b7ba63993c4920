"""What an agent is, and whom it answers."""

from __future__ import annotations

import gymnasium
import pytest
from gymnasium.envs.classic_control import CartPoleEnv

from vfgym.agents.base import seat_of
from vfgym.errors import ConfigurationError


def test_an_environment_without_a_conversation_is_told_of_to_chat() -> None:
    with pytest.raises(ConfigurationError, match=r"take 'gymnasium/CartPole-v1', or wrap it with vfgym\.to_chat\('CartPole-v1'\)"):
        seat_of(gymnasium.make("CartPole-v1"))
    with pytest.raises(ConfigurationError, match=r"answer: wrap it with vfgym\.to_chat"):
        seat_of(CartPoleEnv())
