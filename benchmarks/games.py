"""CPU time of wrapped games: what a step of the chat environment costs beside the game itself.

Run ``python benchmarks/games.py``. Each figure is the best of several rounds (the machine may be shared), in microseconds of CPU time.
Nothing asserts on these numbers.

TextArena's games are played with the same random moves, legal ones where they can be found, to their end or through 40 moves: here
through the chat environment, where the policy has the first seat and the others have their moves prepared, and by TextArena alone in a
process of its own, as raw games (each move with its observation) and with TextArena's own default wrappers. The end of an episode and its
scoring, which a raw game does not have, are part of what is measured here; what moves cost without them is told below the table.
``--games N`` plays N ids of different games instead of all.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

ROUNDS = 25
SEED = 3
MOST_MOVES = 40

SLOW = frozenset({"Sokoban", "Sudoku", "RushHour", "Stratego", "WordLadder", "WordSearch", "WordChains", "SpellingBee"})
"""Games whose resets or random moves take seconds."""


class Played(NamedTuple):
    """A game with the moves that are made in it."""

    game: str
    env_id: str
    players: int
    moves: list[tuple[int, str]]
    """Who moves, and how."""


def best(*measures: Callable[[], float]) -> list[float]:
    """Return the smallest of several measurements of each, in microseconds, taken by turns: the machine may be shared."""
    gc.collect()
    rounds = [[measure() for measure in measures] for _ in range(ROUNDS)]
    return [min(values) * 1e6 for values in zip(*rounds, strict=True)]


def clocked(call: Callable[[], object]) -> float:
    """Return the CPU seconds that a call takes."""
    started = time.process_time()
    call()
    return time.process_time() - started


# CartPole


def balancing() -> list[int]:
    """Return the actions of an episode of CartPole in which the pole stays up for long."""
    import gymnasium as gym

    game = gym.make("CartPole-v1")
    observation, _ = game.reset(seed=0)
    actions: list[int] = []
    is_over = False
    while not is_over:
        actions.append(int(observation[2] + observation[3] > 0))
        observation, _, terminated, truncated, _ = game.step(actions[-1])
        is_over = terminated or truncated
    return actions


def episode_of(env: Any, actions: list[Any]) -> Callable[[], float]:
    """Return a function that plays an episode and returns the CPU seconds of a step."""

    def play() -> None:
        for action in actions:
            env.step(action)

    def measure() -> float:
        env.reset(seed=0)
        return clocked(play) / len(actions)

    return measure


def cartpole() -> None:
    """Print what a step of CartPole costs: at the beginning of an episode, and in a whole one, scored at its end."""
    import gymnasium as gym
    import numpy as np

    import vfgym

    bare, chat, actions = gym.make("CartPole-v1", disable_env_checker=True), vfgym.to_chat("CartPole-v1"), balancing()
    for title, steps in (("the first 20 steps", 20), (f"an episode of {len(actions)} steps, scored", len(actions))):
        played, said = [np.int64(action) for action in actions[:steps]], [str(action) for action in actions[:steps]]
        game, step = best(episode_of(bare, played), episode_of(chat, said))
        print(f"CartPole, {title}: the game {game:.1f} µs a step, as chat {step:.1f}: {step - game:.1f} more (aim: 8)")


# TextArena


def games(most: int | None) -> list[Played]:
    """Return a random game of each of TextArena's games that can be played here."""
    import numpy as np

    from vfgym.wrappers.textarena import textarena_games, why_not
    from vfgym.wrappers.textarena.match import TextArenaGame

    ids: dict[str, str] = {}
    for env_id, facts in textarena_games().items():
        if facts["variant"] == "default" and facts["game"] not in SLOW and why_not(env_id) is None:
            ids.setdefault(facts["game"], env_id)
    found = []
    for game, env_id in [*ids.items()][:most]:
        table, rng, moves = TextArenaGame(env_id, max_moves=MOST_MOVES), np.random.default_rng(0), []
        table.reset(SEED)
        while (player := table.turn) is not None:
            move = table.sample_move(player, rng)
            moves.append((player, str(move.content)))
            table.move(move)
        found.append(Played(game, env_id, len(table.players), moves))
    return found


def as_chat(played: Played) -> float:
    """Return the microseconds of a move, opponents' moves included, through the chat environment."""
    import vfgym

    others = iter(())
    env = vfgym.TextArenaEnv(
        played.env_id, played.players, opponents=lambda observation, info: next(others), tell_legal_actions=False, max_moves=MOST_MOVES
    )
    own = [text for player, text in played.moves if player == 0]

    def play() -> None:
        for text in own:
            _, _, terminated, truncated, _ = env.step(text)
            if terminated or truncated:
                return

    def measure() -> float:
        nonlocal others
        others = iter([text for player, text in played.moves if player != 0])
        env.reset(seed=SEED)
        return clocked(play) / len(played.moves)

    return best(measure)[0]


def alone(played: Played, variant: str) -> float:
    """Return the microseconds of a move of TextArena's own environment, with its observation."""
    import textarena

    def measure() -> float:
        random.seed(SEED)
        env = textarena.make(played.env_id + variant)
        env.reset(num_players=played.players, seed=SEED)

        def play() -> None:
            for _, text in played.moves:
                env.get_observation()
                env.step(text)

        return clocked(play) / len(played.moves)

    return best(measure)[0]


def both_alone(played: Played) -> tuple[float, float] | None:
    """Return what a move costs as a raw game and with TextArena's own wrappers; None where TextArena alone cannot play it so."""
    try:
        return alone(played, "-raw"), alone(played, "")
    except Exception:  # of games without their words, and of bugs that this library mends, of any kind
        return None


def textarena_alone(found: list[Played]) -> list[tuple[float, float] | None]:
    """Return `both_alone` of each game, measured in a process without this library."""
    command = [sys.executable, __file__, "--alone"]
    ran = subprocess.run(command, input=json.dumps(found), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return json.loads(ran.stdout.splitlines()[-1])  # type: ignore[no-any-return]


class Costs(NamedTuple):
    """What a game costs, in microseconds a move."""

    played: Played
    raw: float
    chat: float
    own_wrappers: float

    @property
    def ratio(self) -> float:
        """How many times the raw game the chat environment costs."""
        return self.chat / self.raw


def costs(found: list[Played]) -> list[Costs]:
    """Return what games cost, those first that lose least by being played as chat."""
    measured = zip(found, textarena_alone(found), strict=True)
    rows = [Costs(played, cost[0], as_chat(played), cost[1]) for played, cost in measured if cost is not None]
    return sorted(rows, key=lambda row: row.ratio)


def without_the_end(played: Played) -> Played:
    """Return a game up to the policy's last move, with which the chat environment ends and scores the episode, as no raw game does."""
    own = [number for number, (player, _) in enumerate(played.moves) if player == 0]
    return played._replace(moves=played.moves[: own[-1]] if len(own) > 1 else [])


def textarena_table(most: int | None) -> None:
    """Print what a move costs in each game."""
    logging.disable(logging.WARNING)  # random moves are wrong often enough
    found = games(most)
    rows = costs(found)
    print(f"\n{'TextArena, µs a move':28} {'moves':>5} {'raw':>8} {'as chat':>8} {'ratio':>6} {'own wrappers':>13} {'ratio':>6}")
    for row in rows:
        print(
            f"{row.played.game:28} {len(row.played.moves):5} {row.raw:8.1f} {row.chat:8.1f} {row.ratio:6.2f}"
            f" {row.own_wrappers:13.1f} {row.own_wrappers / row.raw:6.2f}"
        )
    summary("whole games, their end and its scoring included", rows)
    summary("their moves before the last", costs([cut for played in found if (cut := without_the_end(played)).moves]))
    print(f"left out, since TextArena alone cannot play them here: {len(found) - len(rows)}")


def summary(title: str, rows: list[Costs]) -> None:
    """Print what all games cost together, and the game in the middle."""
    raw, chat, wrapped = (sum(cost * len(played.moves) for played, cost in pairs) for pairs in columns(rows))
    median, within = statistics.median(row.ratio for row in rows), sum(row.ratio <= 2 for row in rows)
    more = statistics.median(row.chat - row.raw for row in rows)
    print(f"\n{title}: {chat / raw:.2f} x the raw games (aim: 2), TextArena's own wrappers {wrapped / raw:.2f} x")
    print(f"median of the games {median:.2f} x, {more:.1f} µs more; {within} of {len(rows)} within 2 x")


def columns(rows: list[Costs]) -> list[list[tuple[Played, float]]]:
    """Return the costs of all games, raw, as chat and with TextArena's own wrappers."""
    return [[(row.played, cost) for row, cost in zip(rows, costs, strict=True)] for costs in [*zip(*rows, strict=True)][1:]]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="What a step of a wrapped game costs beside the game.")
    parser.add_argument("--games", type=int, help="how many of TextArena's games to play; all without it")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone:
        found = [Played(*fields) for fields in json.load(sys.stdin)]
        print("\n" + json.dumps([both_alone(played) for played in found]))
        return
    cartpole()
    textarena_table(arguments.games)


if __name__ == "__main__":
    main()
