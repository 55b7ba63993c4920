"""Runs that are killed and gone on with: a vector and a `rollout`, as programs that save their state.

`main` saves what was played and the state after each step (each group), and prints a line then. Nothing ends it.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import vfgym
from vfgym.agents.base import Answering
from vfgym.agents.random import RandomAgent
from vfgym.training import Group
from vfgym.vector import ChatVectorEnv
from vfgym.wrappers.reasoning_gym import ReasoningGymEnv


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


def right(completion: Any, answer: str) -> float:
    return float(answer in str(completion[-1].content))


QUESTIONS = [{"question": f"{i} + {i}?", "answer": str(2 * i)} for i in range(7)]

FAMILIES: dict[str, Any] = {
    "single turn": lambda: vfgym.SingleTurnEnv(QUESTIONS, rubric=vfgym.Rubric(right)),
    "tools": lambda: vfgym.ToolEnv(tools=[add], dataset=QUESTIONS, rubric=vfgym.Rubric(right), max_turns=4),
    "game": lambda: vfgym.to_chat("FrozenLake-v1"),
    "wrapped game": lambda: gym.wrappers.TimeLimit(gym.wrappers.RecordEpisodeStatistics(vfgym.to_chat("CartPole-v1")), 7),
    "played again": lambda: vfgym.to_chat("Walker2d-v5"),
    "TextArena": lambda: gym.make("textarena/TicTacToe-v0").unwrapped,
    "curriculum": lambda: ReasoningGymEnv(
        "chain_sum", num_train_examples=60, num_eval_examples=4, curriculum={"threshold": 0.5, "lower_threshold": 0.3, "window": 3}
    ),
}


def plain(value: Any) -> Any:
    """Return what JSON can write of anything, without times and random ids."""
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items() if key not in ("t", "trajectory_id")}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


# Vectors


def make_vector(family: str, **arguments: Any) -> ChatVectorEnv:
    return ChatVectorEnv(FAMILIES[family](), **{"num_envs": 3, **arguments})


def begin_vector(envs: ChatVectorEnv) -> None:
    envs.action_space.seed(3)
    envs.reset(seed=5)


def step_vector(envs: ChatVectorEnv) -> Any:
    """Take a step and return what came of it."""
    actions = list(envs.action_space.sample())
    if isinstance(definition := envs.envs[0].unwrapped.definition, ReasoningGymEnv):  # a random text would never be right
        actions[0] = definition.oracle(envs.envs[0].unwrapped.state)
        actions[1] = definition.oracle(envs.envs[1].unwrapped.state)
    return plain(envs.step(actions))


def play_vector(family: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    envs = make_vector(family)
    begin_vector(envs)
    while True:
        yield step_vector(envs), envs.state_dict()


# Rollouts


class Learner:
    """Answers as the oracle or at random, after a turn of the loop; its version is part of what it says."""

    def __init__(self) -> None:
        self.policy_version = 0

    def for_episode(self, env: gym.Env[Any, Any]) -> Answering:
        return Answers(self, RandomAgent().for_episode(env), env.unwrapped)


class Answers:
    """What answers in one episode."""

    def __init__(self, learner: Learner, random: Answering, seat: Any) -> None:
        self._learner, self._random, self._seat = learner, random, seat

    async def __call__(self, observation: Any, info: Any) -> Any:
        await asyncio.sleep(0)
        knows = isinstance(self._seat.definition, ReasoningGymEnv) and (self._seat.state["example_id"] + self._learner.policy_version) % 3
        return self._seat.definition.oracle(self._seat.state) if knows else self._random(observation, info)


def make_rollout(family: str, learner: Learner, **arguments: Any) -> Any:
    most = 1 if family == "curriculum" else 5  # with more, chance decides who has been scored when a group begins, and so its level
    return vfgym.rollout(FAMILIES[family](), learner, **{"group_size": 2, "seed": 4, "max_concurrent": most, **arguments})


def view(group: Group) -> Any:
    """Return what a group tells that is decided by seeds and answers."""
    turns = [
        [(step["prompt"], step["completion"], step["extras"], step["advantage"]) for step in state["trajectory"]] for state in group.states
    ]
    told = group.index, group.example_id, group.rewards, group.advantages, group.endings, group.attempt, group.errors
    return plain((*told, [state["metrics"] for state in group.states], turns))


async def play_rollout(family: str) -> AsyncIterator[tuple[Any, dict[str, Any]]]:
    groups = make_rollout(family, Learner())
    async for group in groups:
        yield view(group), await groups.state_dict()


# As a program


def main(kind: str, family: str, path: str) -> None:
    """Play on and on."""
    if kind == "vector":
        for played, state in play_vector(family):
            note(played, state, Path(path))
    else:
        asyncio.run(note_groups(family, Path(path)))


async def note_groups(family: str, path: Path) -> None:
    async for played, state in play_rollout(family):
        note(played, state, path)


def note(played: Any, state: dict[str, Any], path: Path) -> None:
    """Print what was played, and save the state with it, as a whole."""
    known = json.loads(path.read_text())["played"] if path.exists() else []
    part = path.with_suffix(".part")
    part.write_text(json.dumps({"played": [*known, played], "state": state}))
    os.replace(part, path)
    print("saved", flush=True)
