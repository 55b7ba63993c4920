"""Memory: of rollouts that are kept, of an import (with its time), and of very many open episodes."""

from __future__ import annotations

import asyncio
import gc
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from typing import Any

from benchmarks.measuring import Bench, Figure, beside
from benchmarks.rollouts import long_env, plain_class


@beside("verifiers")
def kept_rollouts(bench: Bench) -> Iterator[Figure]:
    """What a rollout that is kept (its state) takes, by tracemalloc. Each message is an object of its own, as a server's are."""
    vf = bench.vf

    class Client(plain_class(vf)):  # type: ignore[misc]
        async def get_response(self, *args: Any, **kwargs: Any) -> Any:
            message = vf.ResponseMessage(content="and then?", finish_reason="stop", is_truncated=False, tokens=None)
            return vf.Response(id="1", created=0, model="m", usage=None, message=message)

    for length, count, limit in ((1, 200, 6.0), (100, 10, 130.0)):
        env = long_env(bench, bench.count(count, 4), length)
        rows = [dict(row) for row in env.get_dataset()]

        async def play(env: Any = env, rows: Any = rows) -> list[Any]:
            return [await env.rollout(row, Client(object()), "m", {}) for row in rows]

        asyncio.run(play())
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        kept = asyncio.run(play())
        gc.collect()
        size = (tracemalloc.get_traced_memory()[0] - before) / len(kept)
        tracemalloc.stop()
        yield Figure(f"a kept rollout of {length} turn{'s' if length > 1 else ''}", size / 1024, "KB", limit)


@beside("verifiers")
def importing(bench: Bench) -> Iterator[Figure]:
    """Import of the package up to its first environment class, in a fresh process."""
    code = (
        f"import time; t = time.perf_counter(); import {bench.package} as vf; vf.SingleTurnEnv; print(time.perf_counter() - t);"
        " import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(bench.count(3, 1))]
    yield Figure("import to the first environment class", min(float(seconds) for seconds, _ in runs), "s", 0.6)
    yield Figure("memory after that import", min(float(size) for _, size in runs), "MB", 64.0)


def open_episodes(bench: Bench) -> Iterator[Figure]:
    """Episodes of CartPole that are all open at once, and the most memory that the process took."""
    import gymnasium

    import vfgym  # noqa: F401 -- it registers the ids

    count = bench.count(65_536, 64)
    envs: Any = gymnasium.make_vec("gymnasium/CartPole-v1", num_envs=count)
    envs.reset(seed=0)
    envs.step(["right"] * count)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    envs.close()
    yield Figure(f"{count:,} open episodes of CartPole", peak / 1024**2, "GB", None if bench.small else 2.0)


MEASUREMENTS = (importing, kept_rollouts, open_episodes)
