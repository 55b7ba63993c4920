"""What a vector environment costs beside its environments, and what waiting at once saves.

Run ``python benchmarks/vector.py``. CPU times are of this process, the best of several rounds taken by turns (the machine may be shared),
beside the aim that the project set itself. Nothing asserts on these numbers. ``--open N`` opens N episodes of CartPole instead, and prints
the memory that they take.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import random
import resource
import time
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium

import vfgym
from vfgym.messages import AssistantMessage, Message, ToolCall, UserMessage
from vfgym.state import State
from vfgym.vector import ChatVectorEnv

ROUNDS = 12


def clocked(call: Callable[[], object]) -> tuple[float, float]:
    """Return the CPU seconds and the seconds that a call takes, without collections of garbage."""
    gc.collect()
    gc.disable()
    try:
        started, cpu = time.perf_counter(), time.process_time()
        call()
        return time.process_time() - cpu, time.perf_counter() - started
    finally:
        gc.enable()


def best(*measures: Callable[[], tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the smallest CPU time and time of several measures, taken by turns."""
    rounds = [[measure() for measure in measures] for _ in range(ROUNDS)]
    return [(min(cpu for cpu, _ in values), min(passed for _, passed in values)) for values in zip(*rounds, strict=True)]


def beside_a_loop(num_envs: int, steps: int = 40) -> None:
    """Print what random steps of CartPole cost, resets included, beside forks in a plain loop."""
    env = vfgym.to_chat("CartPole-v1")
    envs, forks, rng = ChatVectorEnv(env, num_envs), [env.fork() for _ in range(num_envs)], random.Random(0)
    actions = [[rng.choice("01") for _ in forks] for _ in range(steps)]

    def play_forks() -> None:
        for several in actions:
            for fork, action in zip(forks, several, strict=True):
                *_, terminated, truncated, _ = fork.step(action)
                if terminated or truncated:
                    fork.reset()

    def play_vector() -> None:
        for several in actions:
            envs.step(several)

    def loop() -> tuple[float, float]:
        for seed, fork in enumerate(forks):
            fork.reset(seed=seed)
        return clocked(play_forks)

    def vector() -> tuple[float, float]:
        envs.reset(seed=0)
        return clocked(play_vector)

    (loop_cpu, _), (vector_cpu, _) = best(loop, vector)
    of_one = 1e6 / steps / num_envs
    print(
        f"{num_envs} CartPoles, a step of one: forks {loop_cpu * of_one:.1f} µs, vector {vector_cpu * of_one:.1f} µs,"
        f" {vector_cpu / loop_cpu:.2f} times (aim: 1.3)"
    )
    envs.close()


async def slow(seconds: float) -> str:
    """Wait.

    Args:
        seconds: How long.
    """
    await asyncio.sleep(seconds)
    return "done"


def call_of(seconds: float) -> AssistantMessage:
    """Return a call of the tool."""
    return AssistantMessage(None, tool_calls=[ToolCall("call_1", "slow", json.dumps({"seconds": seconds}))])


def tool_env() -> vfgym.ChatEnv:
    """Return an environment with a tool that waits."""
    return vfgym.ToolEnv(tools=[slow], dataset=[{"question": "Wait?"}], max_turns=-1)


def slow_tools(num_envs: int = 2000, seconds: float = 0.2) -> None:
    """Print what a step costs in which every environment waits for a tool."""
    envs = ChatVectorEnv(tool_env(), num_envs)
    envs.reset(seed=0)
    actions = [call_of(seconds)] * num_envs
    [(cpu, passed)] = best(lambda: clocked(lambda: envs.step(actions)))
    print(
        f"{num_envs} tools of {seconds * 1e3:.0f} ms: a step takes {passed / seconds:.2f} times that (aim: 1.35),"
        f" {cpu / num_envs * 1e6:.0f} µs CPU each (aim: 30)"
    )
    envs.close()


class Blocks(vfgym.MultiTurnEnv):
    """Answers from a thread."""

    @vfgym.blocking
    def env_response(self, messages: list[Message], state: State) -> list[Message]:
        """Ask for more."""
        return [UserMessage("go on")]


class Plain(vfgym.MultiTurnEnv):
    """Answers at once."""

    def env_response(self, messages: list[Message], state: State) -> list[Message]:
        """Ask for more."""
        return [UserMessage("go on")]


def blocking_hops(num_envs: int = 256) -> None:
    """Print what a hop to a thread costs: a step of a blocking hook, less one of a plain hook."""
    vectors = [ChatVectorEnv(kind(dataset=[{"question": "?"}]), num_envs) for kind in (Blocks, Plain)]
    measures = [lambda envs=envs: (envs.reset(seed=0), clocked(lambda: envs.step(["a"] * num_envs)))[1] for envs in vectors]
    (blocking, _), (plain, _) = best(*measures)
    print(f"a hop to a thread: {(blocking - plain) / num_envs * 1e6:.0f} µs CPU (aim: 60)")
    for envs in vectors:
        envs.close()


class Sleeps(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A game whose step blocks for 5 ms."""

    def step(self, action: Any) -> Any:
        """Sleep, and make the move."""
        time.sleep(0.005)
        return self.env.step(action)


def blocking_games(num_envs: int = 64, steps: int = 20) -> None:
    """Print how many games play at once whose step blocks."""
    envs = ChatVectorEnv(vfgym.to_chat(lambda: Sleeps(gymnasium.make("CartPole-v1").unwrapped), blocking=True), num_envs)
    envs.reset(seed=0)
    [(_, passed)] = best(lambda: clocked(lambda: [envs.step(["left", "right"] * (num_envs // 2)) for _ in range(steps)]))
    print(f"{num_envs} games that block 5 ms: {num_envs * steps * 0.005 / passed:.0f} at once (aim: 45)")
    envs.close()


def ready_first(num_envs: int = 64, steps: int = 20, mean: float = 0.05) -> None:
    """Print how much sooner exponential latencies are over where nobody waits for the slowest."""
    envs, rng = ChatVectorEnv(tool_env(), num_envs), random.Random(0)
    latencies: Iterator[float] = (rng.expovariate(1 / mean) for _ in itertools.count())
    envs.reset(seed=0)
    _, lockstep = clocked(lambda: [envs.step([call_of(next(latencies)) for _ in range(num_envs)]) for _ in range(steps)])
    envs.reset(seed=0)

    def play() -> None:
        envs.send([call_of(next(latencies)) for _ in range(num_envs)], range(num_envs))
        played = 0
        while True:
            ids = envs.recv()[-1]["env_id"]
            played += len(ids)
            if played >= num_envs * steps:
                return
            envs.send([call_of(next(latencies)) for _ in ids], ids)

    _, first = clocked(play)
    print(f"{num_envs} exponential latencies: ready first is {lockstep / first:.2f} times as fast as in step (aim: 3.5; in theory 4.7)")
    envs.close()


def open_episodes(count: int) -> None:
    """Print what so many open episodes take."""
    envs: Any = gymnasium.make_vec("gymnasium/CartPole-v1", num_envs=count)
    envs.reset(seed=0)
    envs.step(["right"] * count)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"{count} open episodes of CartPole: {peak:.2f} GB at most (aim: 2 for 65,536)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--open", type=int, metavar="N", help="open N episodes of CartPole, and print their memory")
    arguments = parser.parse_args()
    if arguments.open:
        open_episodes(arguments.open)
    else:
        for several in (16, 64, 256):
            beside_a_loop(several)
        slow_tools()
        blocking_hops()
        blocking_games()
        ready_first()
