"""CPU time of sandboxes: creating one, a command, a cell, a file, and a code of `CodeRubric` beside the same program by itself."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from benchmarks.measuring import MILLISECONDS, Bench, Figure, Skipped

if TYPE_CHECKING:
    from vfgym.sandboxes import Sandbox


def sandboxes(bench: Bench) -> Iterator[Figure]:
    """Measure the safe sandbox that is chosen here: the CPU time of this process and of the sandbox's."""
    from vfgym.errors import ConfigurationError
    from vfgym.sandboxes import SandboxSpec
    from vfgym.sandboxes.creation import check_spec

    try:
        check_spec(SandboxSpec())
    except ConfigurationError:
        raise Skipped("no safe sandbox works here (`vfgym sandboxes` says why)") from None

    async def collect() -> list[Figure]:
        return [figure async for figure in measure(bench)]

    yield from asyncio.run(collect())


async def measure(bench: Bench) -> AsyncIterator[Figure]:
    """Yield the figures."""
    import vfgym
    from vfgym.sandboxes import SandboxSpec, create

    code, rounds = "print(7)", bench.count(10, 1)

    async def create_and_close() -> None:
        await (await create(SandboxSpec())).close()

    async def write_and_read() -> None:
        await sandbox.write_file("file", b"x" * 1000)
        await sandbox.read_file("file")

    await create_and_close()
    yield Figure("sandbox: create and close", await cost(rounds, create_and_close), "ms", 40.0)
    async with await create(SandboxSpec()) as sandbox:
        await sandbox.python("1")
        yield Figure("sandbox: command", await cost(10 * rounds, lambda: sandbox.exec("true"), sandbox), "ms", 6.0)
        await sandbox.write_file("solution.py", code)
        program = await cost(2 * rounds, lambda: sandbox.exec(["python3", "solution.py"]), sandbox)
        cells = bench.count(10_000, 10)
        yield Figure("sandbox: later cell", await cost(cells, lambda: sandbox.python("x = 1"), sandbox), "ms", 0.5)
        yield Figure("sandbox: file of 1 KB, written and read", await cost(100 * rounds, write_and_read, sandbox), "ms", 0.5)
    rubric = vfgym.CodeRubric()
    completion = [{"role": "assistant", "content": f"```python\n{code}\n```"}]

    async def score() -> None:
        await rubric.passed_tests(rubric.parser, completion, {"tests": [{"stdout": "7"}]})

    await score()
    scored = await cost(2 * rounds, score)
    await rubric.close_sandboxes()
    yield Figure("sandbox: program in Python", program, "ms")
    yield Figure("code of CodeRubric, over the program", scored - program, "ms", 60.0)


async def cost(count: int, run: Callable[[], Awaitable[object]], sandbox: Sandbox | None = None) -> float:
    """Return the CPU milliseconds of something that is done so many times.

    The CPU time of a sandbox that goes on is asked of its first process, which waits for all others.
    """
    inside = 0.0 if sandbox is None else await cpu_inside(sandbox)
    before = time.process_time() + sum(os.times()[2:4])
    for _ in range(count):
        await run()
    used = time.process_time() + sum(os.times()[2:4]) - before
    if sandbox is not None:
        used += await cpu_inside(sandbox) - inside
    return used / count * MILLISECONDS


async def cpu_inside(sandbox: Sandbox) -> float:
    """Return the CPU seconds that a sandbox has used."""
    code = """
import os
fields = [open(f"/proc/{pid}/stat").read().rpartition(")")[2].split() for pid in os.listdir("/proc") if pid.isdigit()]
print(sum(int(process[n]) for process in fields for n in (11, 12, 13, 14)))
"""
    return int((await sandbox.python(code)).stdout) / os.sysconf("SC_CLK_TCK")
