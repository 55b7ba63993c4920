"""CPU time of going back: what a branch, a snapshot and a restore cost beside a copy of the game itself.

Run ``python benchmarks/branches.py``. Each figure is the least of several rounds (the machine may be shared), in microseconds of CPU time,
in the third turn of an episode. `bound` is 1.2 times ``copy.deepcopy`` of the game, and 200 µs: what a branch is meant to cost at most. The
last lines show that the number of tasks does not count. Nothing asserts on these numbers.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

import vfgym

GAMES = (
    "gymnasium/CartPole-v1",
    "gymnasium/FrozenLake-v1",
    "textarena/TicTacToe-v0",
    "textarena/Poker-v0",
    "pettingzoo/tictactoe-v3",
)
ROUNDS = 40
CALLS = 10


def best(*calls: Callable[[], object]) -> list[float]:
    """Return the least time of several measurements of each call, in microseconds, taken by turns."""
    rounds = [[_clocked(call) for call in calls] for _ in range(ROUNDS)]
    return [min(times) / CALLS * 1e6 for times in zip(*rounds, strict=True)]


def _clocked(call: Callable[[], object]) -> float:
    started = time.thread_time()
    for _ in range(CALLS):
        call()
    return time.thread_time() - started


def begun(env: Any, turns: int = 3) -> Any:
    """Return an environment in the middle of an episode."""
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(turns):
        env.step(env.random_action(env.state, rng) or env.action_sampler().sample(rng))
    return env


def measure(env: Any) -> list[float]:
    """Return what a branch, a branch with a seed, a snapshot and a restore cost."""
    snapshot, other = env.snapshot(), env.fork()
    return best(env.branch, lambda: env.branch(1), env.snapshot, lambda: other.restore(snapshot))


def main() -> None:
    """Print the table."""
    print(f"{'':>24} {'game':>8} {'bound':>8} {'branch':>8} {'seeded':>8} {'snapshot':>8} {'restore':>8}")
    for env_id in GAMES:
        env = begun(gym.make(env_id).unwrapped, 1)
        game = env.state.session.game
        [own] = best(lambda game=game: copy.deepcopy(game))
        figures = [own, 1.2 * own + 200, *measure(env)]
        print(f"{env_id:>24} " + " ".join(f"{figure:8.0f}" for figure in figures))
    for number in (100, 100_000):
        env = vfgym.SingleTurnEnv(dataset=[{"question": str(index), "answer": "x"} for index in range(number)])
        print(f"{number:>18} tasks {0:8} {200:8} " + " ".join(f"{figure:8.0f}" for figure in measure(begun(env, 0))))


if __name__ == "__main__":
    main()
