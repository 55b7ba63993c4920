"""How many answers a second are verified, and what a hopeless one does to the others.

Run ``python benchmarks/math_verification.py`` (it needs the extra ``math``). The first row is math-verify alone, in this process,
without time limits; the others go through the worker processes of `MathRubric`. Nothing asserts on these numbers.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Sequence

from vfgym.errors import Error
from vfgym.rubrics.math_rubric import verify_response

COUNT = 1500
HOPELESS = "9^{9^{9}}"

Pairs = Sequence[tuple[str, str]]


def pairs(count: int) -> Pairs:
    """Return responses and answers that are equal, all different."""
    return [(f"{number}.5", rf"\frac{{{2 * number + 1}}}{{2}}") for number in range(count)]


def alone(cases: Pairs) -> float:
    """Return the verifications a second of math-verify in this process."""
    from vfgym.rubrics.math_verification import is_right  # which loads math-verify

    started = time.perf_counter()
    for response, answer in cases:
        is_right(answer, response)
    return len(cases) / (time.perf_counter() - started)


async def together(cases: Pairs) -> tuple[float, float]:
    """Return the verifications a second through the workers, all asked at once, and the slowest one's seconds."""
    slowest = 0.0

    async def one(response: str, answer: str) -> None:
        nonlocal slowest
        await verify_response(response, answer)
        slowest = max(slowest, time.perf_counter() - started)

    started = time.perf_counter()
    await asyncio.gather(*(one(*case) for case in cases))
    return len(cases) / slowest, slowest


async def hopeless(count: int, seconds: float) -> float:
    """Return after how many seconds so many hopeless verifications have all failed."""
    started = time.perf_counter()
    results = await asyncio.gather(
        *(verify_response(HOPELESS, str(number), timeout_seconds=seconds) for number in range(count)), return_exceptions=True
    )
    if not all(isinstance(result, Error) for result in results):
        raise RuntimeError(f"{HOPELESS} is not hopeless any more: {results}")
    return time.perf_counter() - started


async def measure() -> None:
    """Measure and print."""
    logging.disable(logging.CRITICAL)  # math-verify warns of what is missing on purpose
    cores = len(os.sched_getaffinity(0))
    cases = pairs(COUNT)
    single = alone(cases)
    started = time.perf_counter()
    await verify_response("0.5", r"\frac{1}{2}")
    first = time.perf_counter() - started
    cpu = time.process_time()
    rate, _ = await together(cases)
    cpu = time.process_time() - cpu
    print(f"{'math-verify in this process':56} {single:8.0f} /s")
    print(f"{f'through the workers, {cores} core(s)':56} {rate:8.0f} /s   {rate / single / cores:.0%} of one process a core")
    print(f"{'CPU time of the process that asks, each':56} {cpu / COUNT * 1e6:8.0f} µs")
    print(f"{'first verdict, with the start of the workers':56} {first:8.2f} s")
    few = cases[:200]
    _, quiet = await together(few)
    for count in (1, 2 * cores):
        beside = asyncio.ensure_future(hopeless(count, 2.0))
        await asyncio.sleep(0)
        _, slowest = await together(few)
        print(f"{f'200 beside {count} hopeless one(s): the last verdict':56} {slowest:8.2f} s   {quiet:.2f} s without")
        print(f"{'    and the hopeless ones have failed (limit 2 s)':56} {await beside:8.2f} s")


if __name__ == "__main__":
    asyncio.run(measure())
