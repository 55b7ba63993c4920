"""Which environments are known to wait for nothing, so that they may be played in the calling thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest

import vfgym
from tests.environments import Echo
from vfgym.vector import ChatVectorEnv


async def judge(completion: Any) -> float:
    return 1.0


@vfgym.blocking
def slow(completion: Any) -> float:
    return 1.0


async def wait() -> str:
    """Wait."""
    return "done"


def answer() -> str:
    """Answer."""
    return "done"


@vfgym.blocking
def block() -> str:
    """Block."""
    return "done"


@pytest.mark.parametrize(
    ("env", "is_played_here"),
    [
        (lambda: vfgym.SingleTurnEnv([{"question": "?"}], rubric=vfgym.Rubric(lambda completion: 1.0)), True),
        (lambda: vfgym.SingleTurnEnv([{"question": "?"}], rubric=vfgym.Rubric(judge)), False),
        (lambda: vfgym.SingleTurnEnv([{"question": "?"}], rubric=vfgym.Rubric(slow)), False),
        (lambda: vfgym.ToolEnv(tools=[answer], dataset=[{"question": "?"}]), True),
        (lambda: vfgym.ToolEnv(tools=[wait], dataset=[{"question": "?"}]), False),
        (lambda: vfgym.ToolEnv(tools=[block], dataset=[{"question": "?"}]), False),
        (Echo, False),  # an author's own hooks
        (lambda: vfgym.to_chat("CartPole-v1"), True),
        (lambda: vfgym.to_chat("CartPole-v1", blocking=True), False),
        (lambda: gym.wrappers.TimeLimit(vfgym.to_chat("CartPole-v1"), 3), False),
        (lambda: gym.make("textarena/TicTacToe-v0"), True),
        (lambda: gym.make("textarena/TicTacToe-v0", opponents=lambda observation, info: info["legal_actions"][0]), False),
        (lambda: gym.make("textarena/TicTacToe-v0", opponents="self"), True),
    ],
)
def test_which_environments_are_known_to_wait_for_nothing(env: Callable[[], Any], is_played_here: bool) -> None:
    envs = ChatVectorEnv(env(), 2)
    assert envs._plays_here is is_played_here
    envs.close()
