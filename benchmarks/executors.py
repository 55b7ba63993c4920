"""More processes: rollouts on two workers beside one process, mathematics in worker processes, and sandboxes."""

from __future__ import annotations

import asyncio
import heapq
import random
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import vfgym
from benchmarks.math_verification import verification
from benchmarks.measuring import MICROSECONDS, Bench, Figure
from benchmarks.sandboxes import sandboxes

WORKERS = {"executor": "process", "workers": 2}
MEDIAN, SIGMA = 0.3, 1.0
"""Of the seconds that rollouts wait: lognormal."""
AT_ONCE = 64


class Asked(vfgym.SingleTurnEnv):
    """One question a task, whose reward computes for some seconds."""

    def __init__(self, num_tasks: int, seconds: float = 0.0) -> None:
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
class Run:
    """What a run took."""

    seconds: float
    until_first: float
    """Seconds until the first row: workers are started in them."""
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


def play(agent: Any, env_args: dict[str, Any], **settings: Any) -> Run:
    """Play, and return what that took."""
    first: list[float] = []
    began, cpu = time.perf_counter(), cpu_seconds()
    results = vfgym.evaluate(
        f"{__name__}:Asked",
        f"{__name__}:{agent.__name__}",
        env_args=env_args,
        progress=False,
        max_concurrent=AT_ONCE,
        on_progress=lambda row, progress: None if first else first.append(time.perf_counter()),
        **settings,
    )
    took = time.perf_counter() - began
    if len(results["outputs"]) != env_args["num_tasks"]:
        raise RuntimeError(f"{len(results['outputs'])} of {env_args['num_tasks']} rollouts came back")
    return Run(took, first[0] - began, cpu_seconds() - cpu)


def computing(bench: Bench) -> Iterator[Figure]:
    """Rewards that compute for 5 ms."""
    args = {"num_tasks": bench.count(2000, 20), "seconds": 0.005}
    here, there = play(at_once, args), play(at_once, args, **WORKERS)
    name = "rewards of 5 ms on 2 workers: as fast as in one process"
    yield Figure(f"{name}, from the first row on", here.playing / there.playing, "times", more_is_better=True)
    yield Figure(f"{name}, in all", here.seconds / there.seconds, "times", more_is_better=True)
    yield Figure("until the first row on 2 workers", there.until_first, "s", None, here.until_first, "one process")


def lognormal(bench: Bench) -> Iterator[Figure]:
    """Rollouts that wait, beside the ideal: each begins when one of the places is free."""
    args = {"num_tasks": bench.count(3000, 64)}
    places = [0.0] * AT_ONCE
    for number in range(args["num_tasks"]):
        heapq.heapreplace(places, places[0] + seconds_of(str(number)))
    ideal = max(places)
    for where, settings in (("one process", {}), ("2 workers", WORKERS)):
        share = ideal / play(waiting, args, **settings).playing
        yield Figure(f"lognormal rollouts in {where}: of the ideal pace", share, "times", more_is_better=True)


def cheap(bench: Bench) -> Iterator[Figure]:
    """Rollouts that take no time."""
    args = {"num_tasks": bench.count(5000, 64)}
    here, there = play(at_once, args), play(at_once, args, **WORKERS)
    starting = 0.0 if bench.small else play(at_once, {"num_tasks": WORKERS["workers"]}, **WORKERS).cpu
    rates = [args["num_tasks"] / run.playing for run in (there, here)]
    costs = [cpu / args["num_tasks"] * MICROSECONDS for cpu in (there.cpu - starting, here.cpu)]
    yield Figure("rollouts that take no time, 2 workers", rates[0], "/s", None, rates[1], "one process", more_is_better=True)
    yield Figure("CPU of such a rollout, 2 workers, but for their start", costs[0], "µs", None, costs[1], "one process")


MEASUREMENTS = (computing, lognormal, cheap, verification, sandboxes)
