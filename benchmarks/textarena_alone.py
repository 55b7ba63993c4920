"""What TextArena's own environments take for given moves. It is a process of its own, since this library mends the games.

It reads a list of games as JSON (see `games.Played`), and writes for each what a move takes, in microseconds of CPU time: in the raw
game, and with TextArena's default wrappers; null where TextArena cannot play it so.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence

from benchmarks.measuring import MICROSECONDS, Bench, cpu


def cost_of_a_move(env_id: str, players: int, seed: int, moves: Sequence[tuple[int, str]], bench: Bench, rounds: int) -> float:
    """Return the microseconds of a move, with its observation."""
    import textarena

    def measure() -> float:
        random.seed(seed)
        env = textarena.make(env_id)
        env.reset(num_players=players, seed=seed)

        def play() -> None:
            for _, text in moves:
                env.get_observation()
                env.step(text)

        return cpu(play)

    return bench.best(measure, rounds=rounds)[0] / len(moves) * MICROSECONDS


def main() -> None:
    """Read, measure and write."""
    asked = json.load(sys.stdin)
    found: list[list[float] | None] = []
    for game in asked["games"]:
        try:
            fields = (game["players"], asked["seed"], game["moves"], Bench(small=asked["small"]), asked["rounds"])
            found.append([cost_of_a_move(game["env_id"] + variant, *fields) for variant in ("-raw", "")])
        except Exception:  # of games without their words, and of bugs that this library mends, of any kind
            found.append(None)
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    main()
