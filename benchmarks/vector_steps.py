"""What a step and a reset cost: in forks in a loop, in a vector, in the game itself, and in GEM's environments.

``python benchmarks/vector_steps.py`` prints a table for games and for a single-turn environment, and what very many of one kind cost to
make, reset and step. ``--peer PYTHON`` names an interpreter in which GEM (gem-llm) is installed; its own environments of the same kind
are measured in turn with ours. CPU times are of this process, the least of several rounds taken by turns (the machine may be shared), in
microseconds for one environment. A measured step never resets, and resets are measured alone. `over` is what comes to the raw move, and
to the raw reset. Nothing asserts on these numbers.
"""

from __future__ import annotations

import argparse
import functools
import gc
import itertools
import json
import random
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

ROUNDS = 9
COUNTS = (1, 16, 256)
LEAST_MEASURED = 512
"""How many steps of single environments are measured at once, at least: a step of one alone is too short for the clock."""


class Case(NamedTuple):
    """What is played."""

    moves: Sequence[str]
    """Answers that end no episode, with the right seed; of a single-turn environment the one that does."""
    raw_moves: Sequence[Any]
    """The same for the game itself, or none where there is no game."""


CASES = {
    "gymnasium/CartPole-v1": Case(["left", "right"] * 3, [0, 1] * 3),
    "gymnasium/FrozenLake-v1": Case(["up"] * 6, [3] * 6),  # the first row has no holes
    "textarena/GuessTheNumber-v0": Case([f"[{number}]" for number in range(1, 7)], [f"[{number}]" for number in range(1, 7)]),
    "reasoning-gym/leg_counting-v0": Case(["4"], []),
}
GEM = {
    "game:GuessTheNumber-v0-hard": Case([rf"\boxed{{{number}}}" for number in range(1, 7)], []),
    "rg:leg_counting": Case([r"\boxed{4}"], []),
}
"""GEM's environments of the same kinds, by their ids."""
GEM_ARGUMENTS = {"game:GuessTheNumber-v0-hard": {"min_number": 1, "max_number": 1_000_000, "max_turns": 15}}


def clocked(call: Callable[[], object]) -> float:
    """Return the CPU seconds that a call takes, without collections of garbage."""
    gc.disable()
    try:
        started = time.process_time()
        call()
        return time.process_time() - started
    finally:
        gc.enable()


def best(measures: dict[str, Callable[[], float]]) -> dict[str, float]:
    """Return the least of what several measures give, taken by turns."""
    rounds = []
    for _ in range(ROUNDS):
        gc.collect()
        rounds.append({name: measure() for name, measure in measures.items()})
    return {name: min(each[name] for each in rounds) for name in measures}


def lasting_seeds(env: Any, moves: Sequence[Any], count: int) -> list[int]:
    """Return seeds with which these moves can all be played."""
    seeds: list[int] = []
    seed = 0
    while len(seeds) < count:
        env.reset(seed=seed)
        if not any(any(env.step(move)[2:4]) for move in moves[:-1]):
            seeds.append(seed)
        seed += 1
    return seeds


def of_each(envs: Sequence[Any], moves: Sequence[Any]) -> dict[str, Callable[[], float]]:
    """Return measures of a step and of a reset of environments, in a plain loop.

    Args:
        envs: The environments.
        moves: What each of them plays.
    """
    seeds = lasting_seeds(envs[0], moves, len(envs))

    def begin() -> None:
        for env, seed in zip(envs, seeds, strict=True):
            env.reset(seed=seed)

    def play() -> None:
        for move in moves:
            for env in envs:
                env.step(move)

    def reset() -> None:
        for env in envs:
            env.reset()

    return measures_of(begin, play, reset, len(envs), len(moves))


def of_vector(envs: Any, fork: Any, moves: Sequence[Any], count: int) -> dict[str, Callable[[], float]]:
    """Return measures of a step and of a reset of one environment in a vector (see `of_each`); `fork` is another of its kind."""
    actions = [[move] * count for move in moves]
    seeds = lasting_seeds(fork, moves, count)

    def play() -> None:
        for each in actions:
            envs.step(each)

    return measures_of(lambda: envs.reset(seed=seeds), play, envs.reset, count, len(moves))


def measures_of(
    begin: Callable[[], object], play: Callable[[], object], reset: Callable[[], object], count: int, turns: int
) -> dict[str, Callable[[], float]]:
    """Return measures of what many play at once, for a step and a reset of one of them."""
    several = max(1, LEAST_MEASURED // (count * turns))

    def step() -> float:
        taken = 0.0
        for _ in range(several):
            begin()
            taken += clocked(play)
        return taken / (several * count * turns) * 1e6

    return {"step": step, "reset": lambda: clocked(lambda: [reset() for _ in range(several)]) / (several * count) * 1e6}


def under(name: str, measures: dict[str, Callable[[], float]]) -> dict[str, Callable[[], float]]:
    """Return measures under names that begin with another one."""
    return {f"{name} {key}": measure for key, measure in measures.items()}


class RawTable:
    """A game of TextArena that is made anew for each episode, as it wants to be, with the interface of Gymnasium."""

    def __init__(self, env_id: str) -> None:
        """Take the id of a game for one player."""
        import textarena

        self._make = functools.partial(textarena.make, f"{env_id}-raw")
        self._env = self._make()

    def reset(self, seed: int | None = None) -> None:
        """Begin a game."""
        self._env = self._make()
        self._env.reset(num_players=1, seed=seed)

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Move, and read what is told then."""
        is_over, info = self._env.step(action)
        return None if is_over else self._env.get_observation(), 0.0, is_over, False, info


def raw_game(env_id: str) -> Any:
    """Return the game that an environment wraps, as its library makes it."""
    import gymnasium

    library, _, name = env_id.partition("/")
    return RawTable(name) if library == "textarena" else gymnasium.make(name)


def measure_ours(env_id: str, case: Case, count: int) -> dict[str, float]:
    """Return what a step and a reset cost here."""
    import gymnasium

    from vfgym.vector import ChatVectorEnv

    env: Any = gymnasium.make(env_id).unwrapped
    envs = ChatVectorEnv(env, count, autoreset_mode="Disabled")
    forks = [env.fork() for _ in range(count)]
    measures = under("forks", of_each(forks, case.moves)) | under("vector", of_vector(envs, env.fork(), case.moves, count))
    if case.raw_moves:
        measures |= under("raw", of_each([raw_game(env_id) for _ in range(count)], case.raw_moves))
    try:
        return best(measures)
    finally:
        envs.close()
        for fork in forks:
            fork.close()


def measure_gem() -> None:
    """Print what GEM's environments cost, as JSON."""
    import gem

    for env_id, case in GEM.items():
        envs = [gem.make(env_id, **GEM_ARGUMENTS.get(env_id, {})) for _ in range(16)]
        print(json.dumps({env_id: best(of_each(envs, case.moves))}))


def measure_many(count: int, steps: int = 10) -> None:
    """Print what it costs to make very many FrozenLakes, to reset them, and to step them a few times."""
    import gymnasium

    import vfgym  # noqa: F401 -- it registers the ids

    rng = random.Random(0)
    actions = [[rng.choice(("left", "down", "right", "up")) for _ in range(count)] for _ in range(steps)]
    times = [time.process_time()]
    envs: Any = gymnasium.make_vec("gymnasium/FrozenLake-v1", num_envs=count)
    times.append(time.process_time())
    envs.reset(seed=0)
    times.append(time.process_time())
    for several in actions:
        envs.step(several)
    times.append(time.process_time())
    envs.close()
    times.append(time.process_time())
    made, reset, stepped, closed = (end - start for start, end in itertools.pairwise(times))
    print(
        f"{count} FrozenLakes: made {made:.1f} s, reset {reset:.1f} s, {steps} steps {stepped:.1f} s, closed {closed:.1f} s of CPU;"
        f" together {times[-1] - times[0]:.1f} s (aim: 60 for 65,536)"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--peer", metavar="PYTHON", help="an interpreter with GEM, whose environments are measured in turn")
    parser.add_argument("--many", type=int, default=4096, metavar="N", help="how many FrozenLakes are made; 0 for none (default: 4096)")
    parser.add_argument("--gem", action="store_true", help="measure GEM in this interpreter, and print JSON")
    arguments = parser.parse_args()
    if arguments.gem:
        measure_gem()
        return
    print("µs of CPU              n   raw  forks   over vector   over | resets: raw  forks   over vector   over")
    for env_id, case in CASES.items():
        for count in COUNTS:
            row = measure_ours(env_id, case, count)
            cells = [f"{env_id.split('/')[1]:20}{count:4}"]
            for kind in ("step", "reset"):
                raw = row.get(f"raw {kind}", 0.0)
                cells.append(
                    f"{raw:6.1f}" + "".join(f"{row[f'{way} {kind}']:7.1f}{row[f'{way} {kind}'] - raw:7.1f}" for way in ("forks", "vector"))
                )
            print(cells[0] + cells[1] + " |    " + cells[2], flush=True)
    if arguments.peer:
        found = subprocess.run([arguments.peer, __file__, "--gem"], check=True, capture_output=True, text=True)
        for line in found.stdout.splitlines():
            for env_id, figures in json.loads(line).items():
                print(f"GEM's {env_id}: a step {figures['step']:.1f} µs, a reset {figures['reset']:.1f} µs")
    if arguments.many:
        measure_many(arguments.many)


if __name__ == "__main__":
    main()
