"""Environments of reasoning-gym with few tasks, their items, and what answers to these are worth."""

from __future__ import annotations

import asyncio
from typing import Any

from vfgym import Rubric, SingleTurnEnv, State
from vfgym.wrappers.reasoning_gym import ReasoningGymEnv
from vfgym.wrappers.reasoning_gym.items import Items
from vfgym.wrappers.reasoning_gym.levels import Share

SYMBOLIC = ("countdown", "intermediate_integration", "polynomial_multiplication", "puzzle24", "simple_integration")
"""Datasets whose scorers use sympy, and so are called in worker processes."""


def small(gym: Any, **arguments: Any) -> ReasoningGymEnv:
    """Return an environment with a few tasks."""
    return ReasoningGymEnv(gym, **{"num_train_examples": 5, "num_eval_examples": 3, **arguments})


def items_of(name: str, size: int = 8, *, seed: int = 0, **config: Any) -> Items:
    """Return the items of one dataset."""
    return Items([Share(name, config=config)], size=size, seed=seed, is_composite=False)


def score(items: Items, answer: str | None, index: int = 0) -> float:
    """Return what an answer to an item is worth."""
    return items.score_entry(answer, items.entry(index))


def original_score(items: Items, answer: str | None, index: int = 0) -> float:
    """Return what the dataset's own scorer says."""
    return float(items.dataset().score_answer(answer, items.entry(index)))


def right_answer(env: ReasoningGymEnv, index: int) -> str:
    """Return what the oracle answers to a task."""
    return str(env.oracle(State({"info": {"index": index}})))


def play(env: Any, *, rightly: bool = True, episodes: int = 1, **options: Any) -> list[dict[str, Any]]:
    """Play training episodes and return the ``info`` of their ends."""
    infos = []
    for _ in range(episodes):
        env.reset(options=options)
        infos.append(env.step(env.definition.oracle(env.state) if rightly else "zzz").info)
    return infos


ROWS = [{"question": f"{a} + {b}?", "answer": str(a + b), "kind": ["sum"]} for a in range(3) for b in range(3)]


def is_right(completion: Any, answer: str) -> float:
    """Reward the right number."""
    return float(completion[-1].content.strip() == answer)


async def is_short(completion: Any) -> float:
    """Reward a short answer, after a while."""
    await asyncio.sleep(0)
    return 0.5 * (len(completion[-1].content) < 3)


def sums(**arguments: Any) -> SingleTurnEnv:
    """Return an environment of nine sums."""
    return SingleTurnEnv(ROWS, **{"rubric": Rubric([is_right, is_short]), **arguments})
