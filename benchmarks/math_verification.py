"""How many answers a second are verified, and what a hopeless one does to the others."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence

from benchmarks.measuring import Bench, Figure, passed

HOPELESS = "9^{9^{9}}"

Pairs = Sequence[tuple[str, str]]


def verification(bench: Bench) -> Iterator[Figure]:
    """Verify through the worker processes of `MathRubric`, beside math-verify alone in this process, without time limits."""
    logging.disable(logging.CRITICAL)  # math-verify warns of what is missing on purpose
    cases = [(f"{number}.5", rf"\frac{{{2 * number + 1}}}{{2}}") for number in range(bench.count(1500, 40))]
    verify_here(cases[:1])  # loads math-verify
    alone = len(cases) / passed(lambda: verify_here(cases))
    few = bench.count(200, 20)
    rate, quiet, beside_hopeless = asyncio.run(verify_together(cases, cases[:few], 0.5 if bench.small else 2.0))
    name = "math verifications in a worker for each core, all at once"
    yield Figure(name, rate, "/s", 1000.0, alone, "math-verify in one process", more_is_better=True)
    yield Figure(f"the last of {few} verifications beside a hopeless one", beside_hopeless, "s", None, quiet, "without it")


def verify_here(cases: Pairs) -> None:
    """Verify in this process."""
    from vfgym.rubrics.math_verification import is_right

    for response, answer in cases:
        is_right(answer, response)


async def verify_together(cases: Pairs, few: Pairs, limit: float) -> tuple[float, float, float]:
    """Return the verifications a second, and the seconds of a few, quiet and beside a hopeless one of a limit of seconds."""
    from vfgym.errors import Error
    from vfgym.rubrics.math_rubric import verify_response

    async def seconds_of(cases: Pairs) -> float:
        started = time.perf_counter()
        await asyncio.gather(*(verify_response(*case) for case in cases))
        return time.perf_counter() - started

    await verify_response("0.5", r"\frac{1}{2}")  # starts the workers
    rate = len(cases) / await seconds_of(cases)
    quiet = await seconds_of(few)
    hopeless = asyncio.ensure_future(verify_response(HOPELESS, "1", timeout_seconds=limit))
    await asyncio.sleep(0)
    beside_hopeless = await seconds_of(few)
    [result] = await asyncio.gather(hopeless, return_exceptions=True)
    if not isinstance(result, Error):
        raise RuntimeError(f"{HOPELESS} is not hopeless any more: {result}")
    return rate, quiet, beside_hopeless
