"""What more processes bring, and what they cost: rewards that compute, rollouts that wait, and rollouts that take no time at all.

Run ``python benchmarks/executors.py [--workers N] [--executor process] [--only NAME]`` where nothing else runs: all but the figures of CPU
time are wall time. The time from the start until the first row is told apart: workers are started in it. Nothing asserts on these numbers.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import os
import random
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import vfgym

SECONDS_OF_REWARD = 0.005
MEDIAN, SIGMA = 0.3, 1.0
"""Of the seconds that rollouts wait: lognormal."""
AT_ONCE = 64


class Asked(vfgym.SingleTurnEnv):
    """One question a task, whose reward computes for some seconds."""

    def __init__(self, num_tasks: int = 1000, seconds: float = 0.0) -> None:
        """Ask so many questions."""
        self.seconds = seconds
        super().__init__(dataset=[{"question": str(number)} for number in range(num_tasks)], rubric=vfgym.Rubric([self.compute]))

    def compute(self, completion: Any) -> float:
        """Compute."""
        end = time.thread_time() + self.seconds
        while time.thread_time() < end:
            pass
        return 1.0


def seconds_of(question: str) -> float:
    """Return how long the rollout of a question waits."""
    return random.Random(question).lognormvariate(0.0, SIGMA) * MEDIAN


async def waiting(observation: Any, info: Any) -> str:
    """Answer after a while."""
    await asyncio.sleep(seconds_of(observation[-1]["content"]))
    return "yes"


def at_once(observation: Any, info: Any) -> str:
    """Answer."""
    return "yes"


@dataclass
class Measured:
    """What a run took."""

    seconds: float
    until_first: float
    cpu: float
    """Of this process and of those that it has started."""

    @property
    def playing(self) -> float:
        """Seconds from the first row to the last one."""
        return self.seconds - self.until_first


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def measure(agent: Any, env_args: dict[str, Any], **settings: Any) -> Measured:
    """Play, and return what that took."""
    first: list[float] = []
    began, cpu = time.perf_counter(), cpu_seconds()
    results = vfgym.evaluate(
        f"{module()}:Asked",
        f"{module()}:{agent.__name__}",
        env_args=env_args,
        progress=False,
        max_concurrent=AT_ONCE,
        on_progress=lambda row, progress: None if first else first.append(time.perf_counter()),
        **settings,
    )
    took = time.perf_counter() - began
    assert len(results["outputs"]) == env_args["num_tasks"]
    return Measured(took, first[0] - began, cpu_seconds() - cpu)


def module() -> str:
    """Return the name by which workers import this file."""
    return Path(__file__).stem


def computing(elsewhere: dict[str, Any]) -> None:
    """Compare rewards that compute."""
    args = {"num_tasks": 2000, "seconds": SECONDS_OF_REWARD}
    here, there = measure(at_once, args), measure(at_once, args, **elsewhere)
    starting = measure(at_once, {"num_tasks": elsewhere["workers"]}, **elsewhere).cpu
    print(f"5 ms of CPU a reward, {args['num_tasks']} rollouts")
    print(f"  local    {here.seconds:7.2f} s, {here.cpu:6.2f} s of CPU")
    first = f"{there.until_first:.2f} s until the first row"
    print(f"  workers  {there.seconds:7.2f} s, {there.cpu:6.2f} s of CPU, {first} ({starting:.2f} s of CPU)")
    print(f"  {here.playing / there.playing:.2f} times as fast from the first row on, {here.seconds / there.seconds:.2f} times in all")
    more = (there.cpu - starting) / here.cpu
    print(f"  CPU, but for starting: {more:.3f} times as much; on free cores {elsewhere['workers'] / more:.2f} times as fast")


def lognormal(elsewhere: dict[str, Any]) -> None:
    """Compare rollouts that wait with the ideal: each begins when one of the places is free."""
    args = {"num_tasks": 3000}
    waits = [seconds_of(str(number)) for number in range(args["num_tasks"])]
    places = [0.0] * AT_ONCE
    for each in waits:
        heapq.heapreplace(places, places[0] + each)
    ideal = max(places)
    print(f"lognormal rollouts (median {MEDIAN} s, sigma {SIGMA:g}), {args['num_tasks']} of them, {AT_ONCE} at once: ideally {ideal:.2f} s")
    for name, settings in (("local", {}), ("workers", elsewhere)):
        took = measure(waiting, args, **settings)
        share, in_all = ideal / took.playing, ideal / took.seconds
        print(f"  {name:8} {took.seconds:7.2f} s: {share:.3f} of the ideal from the first row on, {in_all:.3f} in all")


def cheap(elsewhere: dict[str, Any]) -> None:
    """Compare what a rollout costs that does nothing."""
    args = {"num_tasks": 5000}
    for name, settings in (("local", {}), ("workers", elsewhere)):
        took = measure(at_once, args, **settings)
        rate = args["num_tasks"] / took.playing
        print(f"rollouts that take no time, {name:8} {rate:6.0f} a second, {took.cpu / args['num_tasks'] * 1e6:6.0f} µs of CPU each")


PARTS = {"computing": computing, "lognormal": lognormal, "cheap": cheap}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure runs in more than one process.")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--executor", default="process")
    parser.add_argument("--only", choices=PARTS)
    chosen = parser.parse_args()
    os.chdir(Path(__file__).parent)  # where workers find this file
    for name, part in PARTS.items():
        if chosen.only in (None, name):
            part({"executor": chosen.executor, "workers": chosen.workers})
