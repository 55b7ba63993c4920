"""CPU time of wrapped games: what a step of the chat environment costs beside the game itself.

Run ``python benchmarks/games.py``. Each figure is the best of several rounds (the machine may be shared), in microseconds of CPU time of
this process. Nothing asserts on these numbers.

A step of a TextArena game is played as a policy plays it: the other seats have scripted moves, so a step of the chat environment is
all moves until the policy's next turn, and is measured beside the same moves in the raw game, each with its observation. The last
column is what TextArena's own default wrappers cost for the same moves.
"""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

import vfgym
from vfgym.wrappers.textarena.package import textarena

ROUNDS = 60

TEXTARENA: dict[str, tuple[int, list[str]]] = {
    "Blackjack-v0": (1, ["[hit]"] * 6),
    "GuessTheNumber-v0": (1, [f"[{number}]" for number in (1, 20, 2, 19, 3, 18, 4)]),
    "FrozenLake-v0": (1, ["[right]", "[left]"] * 6),
    "TowerOfHanoi-v0": (1, ["[A B]", "[B A]"] * 6),
    "TicTacToe-v0": (2, ["[0]", "[1]", "[2]", "[4]", "[3]", "[5]"]),
    "ConnectFour-v0": (2, [f"[col {column}]" for column in (0, 0, 1, 1, 3, 3, 4, 4)]),
    "SimpleNegotiation-v0": (2, ["[Offer: 1 Wood -> 1 Wheat]", "[Deny]"] * 3),
    "Othello-v0": (2, ["[2, 3]", "[2, 2]"]),
    "FrozenLake-v0, 60 moves": (1, ["[right]", "[left]"] * 30),
}
"""For each game, how many play and what they say, by turns; all of it is valid and ends no game."""


def best(measure: Callable[[], float]) -> float:
    """Return the smallest of several measurements."""
    gc.collect()
    return min(measure() for _ in range(ROUNDS)) * 1e6


def clocked(call: Callable[[], object]) -> float:
    """Return the CPU seconds that a call takes."""
    started = time.process_time()
    call()
    return time.process_time() - started


def gymnasium_step(env: gym.Env[Any, Any], actions: list[Any]) -> float:
    """Return the microseconds of one step."""

    def measure() -> float:
        env.reset(seed=0)
        return clocked(lambda: [env.step(action) for action in actions]) / len(actions)

    return best(measure)


def chat_step(game: str, players: int, moves: list[str]) -> float:
    """Return the microseconds of one step of the chat environment, for each move that is made in it."""
    turns = itertools.count()
    spoken = [move for place, move in enumerate(moves) if place % players]
    env = vfgym.TextArenaEnv(game, opponents=lambda observation, info: spoken[next(turns)], tell_legal_actions=False)
    own = moves[::players]

    def measure() -> float:
        nonlocal turns
        turns = itertools.count()
        env.reset(seed=0)
        took = clocked(lambda: [env.step(move) for move in own])
        if env.state["final_env_response"] is not None:
            raise RuntimeError(f"{game} ended: its script must not end it")
        return took / len(moves)

    return best(measure)


def native_step(env_id: str, players: int, moves: list[str]) -> float:
    """Return the microseconds of one move of TextArena's own environment, with its observation."""
    env = textarena().make(env_id)

    def play() -> None:
        for move in moves:
            env.get_observation()
            env.step(move)

    def measure() -> float:
        env.reset(num_players=players, seed=0)
        return clocked(play) / len(moves)

    return best(measure)


def main() -> None:
    """Print the tables."""
    cart, bare = vfgym.to_chat("CartPole-v1"), gym.make("CartPole-v1", disable_env_checker=True)
    game, chat = gymnasium_step(bare, [np.int64(1)] * 7), gymnasium_step(cart, ["1"] * 7)
    print(f"CartPole: the bare game {game:.1f} µs a step, as chat {chat:.1f}: {chat - game:.1f} more (aim: 8)\n")
    print(f"{'TextArena, a move':24} {'raw':>8} {'as chat':>8} {'ratio':>6} {'own wrappers':>13} {'ratio':>6}   (aim: 2)")
    for title, (players, moves) in TEXTARENA.items():
        name = title.partition(",")[0]
        raw, wrapped, own = native_step(f"{name}-raw", players, moves), chat_step(name, players, moves), native_step(name, players, moves)
        print(f"{title:24} {raw:8.1f} {wrapped:8.1f} {wrapped / raw:6.1f} {own:13.1f} {own / raw:6.1f}")


if __name__ == "__main__":
    main()
