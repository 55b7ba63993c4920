"""CPU time of many environments: in a vector and in forks, beside the games themselves, GEM's environments, and waiting at once."""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from benchmarks.measuring import MICROSECONDS, Bench, Figure, beside, cpu, passed

ROUNDS = 9
LEAST_STEPS = 512
"""How many steps are measured at once, at least: few are too short for the clock."""


class Case(NamedTuple):
    """What is played."""

    moves: Sequence[str]
    """Answers that end no episode, with the right seed; of a single-turn environment the one that does."""
    raw_moves: Sequence[Any] = ()
    """The same for the game itself, where there is one."""


CASES = {
    "gymnasium/CartPole-v1": Case(["left", "right"] * 3, [0, 1] * 3),
    "gymnasium/FrozenLake-v1": Case(["up"] * 6, [3] * 6),  # the first row has no holes
    "textarena/GuessTheNumber-v0": Case([f"[{number}]" for number in range(1, 7)], [f"[{number}]" for number in range(1, 7)]),
}
BESIDE_GEM = {
    "GuessTheNumber": ("textarena/GuessTheNumber-v0", Case([f"[{number}]" for number in range(1, 7)])),
    "leg_counting": ("reasoning-gym/leg_counting-v0", Case(["4"])),
}
GEM = {
    "GuessTheNumber": ("game:GuessTheNumber-v0-hard", Case([rf"\boxed{{{number}}}" for number in range(1, 7)])),
    "leg_counting": ("rg:leg_counting", Case([r"\boxed{4}"])),
}
"""The same kinds in GEM, by their ids there."""
GEM_ARGUMENTS = {"GuessTheNumber": {"min_number": 1, "max_number": 1_000_000, "max_turns": 15}}


# A step never resets, and resets are measured alone


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


def of_each(envs: Sequence[Any], moves: Sequence[Any]) -> list[Callable[[], float]]:
    """Return measures of a step and of a reset of one of these environments, in a plain loop."""
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


def of_vector(envs: Any, fork: Any, moves: Sequence[Any], count: int) -> list[Callable[[], float]]:
    """Return measures of a step and of a reset of one environment in a vector; `fork` is another of its kind."""
    seeds = lasting_seeds(fork, moves, count)

    def play() -> None:
        for move in moves:
            envs.step([move] * count)

    return measures_of(lambda: envs.reset(seed=seeds), play, envs.reset, count, len(moves))


def measures_of(
    begin: Callable[[], object], play: Callable[[], object], reset: Callable[[], object], count: int, turns: int
) -> list[Callable[[], float]]:
    """Return measures of what many play at once, for a step and a reset of one of them."""
    several = max(1, LEAST_STEPS // (count * turns))

    def step() -> float:
        taken = 0.0
        for _ in range(several):
            begin()
            taken += cpu(play)
        return taken / (several * count * turns) * MICROSECONDS

    return [step, lambda: cpu(lambda: [reset() for _ in range(several)]) / (several * count) * MICROSECONDS]


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
        """Move, and read the observation."""
        is_over, info = self._env.step(action)
        return None if is_over else self._env.get_observation(), 0.0, is_over, False, info


def raw_game(env_id: str) -> Any:
    """Return the game that an environment wraps, as its library makes it."""
    import gymnasium

    library, _, name = env_id.partition("/")
    return RawTable(name) if library == "textarena" else gymnasium.make(name)


def over_the_game(bench: Bench) -> Iterator[Figure]:
    """A step and a reset in forks and in a vector, over the raw ones; and the vector beside the forks."""
    import gymnasium

    from vfgym.vector import ChatVectorEnv

    for env_id, case in [*CASES.items()][: bench.count(len(CASES), 1)]:
        for count in (16, 256)[: bench.count(2, 1)]:
            env: Any = gymnasium.make(env_id).unwrapped
            envs, forks = ChatVectorEnv(env, count, autoreset_mode="Disabled"), [env.fork() for _ in range(count)]
            step, reset, fork_step, fork_reset, vector_step, vector_reset = bench.best(
                *of_each([raw_game(env_id) for _ in range(count)], case.raw_moves),
                *of_each(forks, case.moves),
                *of_vector(envs, env.fork(), case.moves, count),
                rounds=ROUNDS,
            )
            name = f"{count} of {env_id.partition('/')[2]}"
            yield Figure(f"{name}: a raw step", step, "µs")
            yield Figure(f"{name}: a step in forks, over the raw one", fork_step - step, "µs", 40.0)
            yield Figure(f"{name}: a step in a vector, over the raw one", vector_step - step, "µs", 40.0)
            yield Figure(f"{name}: a raw reset", reset, "µs")
            yield Figure(f"{name}: a reset in forks, over the raw one", fork_reset - reset, "µs", 100.0)
            yield Figure(f"{name}: a reset in a vector, over the raw one", vector_reset - reset, "µs", 100.0)
            yield Figure(f"{name}: a step in a vector, beside forks", vector_step / fork_step, "times", 1.3)
            for each in (envs, *forks):
                each.close()


@beside("gem")
def kinds_of_gem(bench: Bench) -> Iterator[Figure]:
    """Environments of which GEM has its own, 16 in a plain loop."""
    kinds = GEM if bench.package == "gem" else BESIDE_GEM
    for name, (env_id, case) in [*kinds.items()][: bench.count(len(kinds), 1)]:
        if bench.package == "gem":
            import gem

            envs = [gem.make(env_id, **GEM_ARGUMENTS.get(name, {})) for _ in range(16)]
        else:
            import gymnasium

            import vfgym  # noqa: F401 -- it registers the ids

            env: Any = gymnasium.make(env_id).unwrapped
            envs = [env.fork() for _ in range(16)]
        step, reset = bench.best(*of_each(envs, case.moves), rounds=ROUNDS)
        yield Figure(f"16 of {name}: a step", step, "µs")
        yield Figure(f"16 of {name}: a reset", reset, "µs")


def very_many(bench: Bench) -> Iterator[Figure]:
    """Very many FrozenLakes: to make, reset, step ten times and close them."""
    import gymnasium

    import vfgym  # noqa: F401 -- it registers the ids

    rng = random.Random(0)
    for count, limit in ((4096, None), (65_536, 60.0)) if not bench.small else ((64, None),):
        actions = [[rng.choice(("left", "down", "right", "up")) for _ in range(count)] for _ in range(10)]
        times = [time.process_time()]
        envs: Any = gymnasium.make_vec("gymnasium/FrozenLake-v1", num_envs=count)
        envs.reset(seed=0)
        times.append(time.process_time())
        for several in actions:
            envs.step(several)
        times.append(time.process_time())
        envs.close()
        times.append(time.process_time())
        yield Figure(f"{count:,} FrozenLakes: made, reset, 10 steps, closed", times[-1] - times[0], "s", limit)
        yield Figure(f"{count:,} FrozenLakes: a step of one", (times[2] - times[1]) / len(actions) / count * MICROSECONDS, "µs")


# What waits


def waiting_tools(bench: Bench) -> Iterator[Figure]:
    """Tools that wait: a step in which all wait, and steps in which nobody waits for the slowest."""
    import vfgym
    from vfgym.messages import AssistantMessage, ToolCall
    from vfgym.vector import ChatVectorEnv

    async def slow(seconds: float) -> str:
        """Wait.

        Args:
            seconds: How long.
        """
        await asyncio.sleep(seconds)
        return "done"

    def call_of(seconds: float) -> AssistantMessage:
        return AssistantMessage(None, tool_calls=[ToolCall("call_1", "slow", json.dumps({"seconds": seconds}))])

    env = vfgym.ToolEnv(tools=[slow], dataset=[{"question": "Wait?"}], max_turns=-1)
    count, seconds = bench.count(2000, 16), 0.2
    envs = ChatVectorEnv(env, count)
    envs.reset(seed=0)
    actions = [call_of(seconds)] * count
    took, used = bench.best(lambda: passed(lambda: envs.step(actions)), lambda: cpu(lambda: envs.step(actions)))
    envs.close()
    yield Figure(f"{count:,} tools of 200 ms: a step, beside one tool", took / seconds, "times", 1.35)
    yield Figure(f"{count:,} tools of 200 ms: CPU of each", used / count * MICROSECONDS, "µs", 30.0)

    count, steps = 64, bench.count(20, 2)
    envs, rng = ChatVectorEnv(env, count), random.Random(0)
    latencies = (rng.expovariate(1 / 0.05) for _ in itertools.count())
    envs.reset(seed=0)
    in_step = passed(lambda: [envs.step([call_of(next(latencies)) for _ in range(count)]) for _ in range(steps)])
    envs.reset(seed=0)

    def play() -> None:
        envs.send([call_of(next(latencies)) for _ in range(count)], range(count))
        played = 0
        while True:
            ids = envs.recv()[-1]["env_id"]
            played += len(ids)
            if played >= count * steps:
                return
            envs.send([call_of(next(latencies)) for _ in ids], ids)

    ready_first = passed(play)
    envs.close()
    yield Figure(f"{count} exponential latencies: ready first, beside in step", in_step / ready_first, "times", 3.5, more_is_better=True)


def blocking(bench: Bench) -> Iterator[Figure]:
    """What a hop to a thread costs, and how many games play at once whose step blocks."""
    import gymnasium

    import vfgym
    from vfgym.messages import Message, UserMessage
    from vfgym.state import State
    from vfgym.vector import ChatVectorEnv

    class Plain(vfgym.MultiTurnEnv):
        def env_response(self, messages: list[Message], state: State) -> list[Message]:
            return [UserMessage("go on")]

    class Blocks(vfgym.MultiTurnEnv):
        @vfgym.blocking
        def env_response(self, messages: list[Message], state: State) -> list[Message]:
            return [UserMessage("go on")]

    class Sleeps(gymnasium.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            time.sleep(0.005)
            return self.env.step(action)

    count = bench.count(256, 16)

    def step_of(envs: ChatVectorEnv) -> float:
        envs.reset(seed=0)
        return cpu(lambda: envs.step(["a"] * count))

    vectors = [ChatVectorEnv(kind(dataset=[{"question": "?"}]), count) for kind in (Blocks, Plain)]
    blocks, plain = bench.best(*(lambda envs=envs: step_of(envs) for envs in vectors), rounds=ROUNDS)  # type: ignore[misc]
    for envs in vectors:
        envs.close()
    yield Figure("a hop to a thread", (blocks - plain) / count * MICROSECONDS, "µs", 60.0)

    count, steps = 64, bench.count(20, 2)
    envs = ChatVectorEnv(vfgym.to_chat(lambda: Sleeps(gymnasium.make("CartPole-v1").unwrapped), blocking=True), count)
    envs.reset(seed=0)
    with ThreadPoolExecutor(count) as threads:
        games, sleeps = bench.best(
            lambda: passed(lambda: [envs.step(["left", "right"] * (count // 2)) for _ in range(steps)]),
            lambda: passed(lambda: [[*threads.map(time.sleep, [0.005] * count)] for _ in range(steps)]),
            rounds=ROUNDS,
        )
    envs.close()
    at_once, at_most = (count * steps * 0.005 / seconds for seconds in (games, sleeps))
    name = f"{count} games that block for 5 ms: at once"
    yield Figure(name, at_once, "games", at_most, at_most, "sleeping calls in as many threads", more_is_better=True)


MEASUREMENTS = (over_the_game, kinds_of_gem, very_many, waiting_tools, blocking)
