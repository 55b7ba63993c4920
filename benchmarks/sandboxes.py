"""What sandboxes cost: creating one, a command, a cell, a file, and a code of `CodeRubric` beside the same program by itself.

Run ``python benchmarks/sandboxes.py [BACKEND]``. Times are CPU time of this process and of the sandboxes' processes (the machine may be
shared), beside the time on the clock and the aim that the project set itself. Nothing asserts on these numbers.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable

import vfgym
from vfgym.sandboxes import Sandbox, SandboxSpec, create

CODE = "print(7)"
AIMS = {
    "create and close": 40.0,
    "command": 6.0,
    "later cell": 0.5,
    "file of 1 KB, written and read": 0.5,
}
"""Milliseconds. A code of `CodeRubric` is to cost 60 more than a program in Python."""
ROUNDS = 10


async def measure(name: str, count: int, run: Callable[[], Awaitable[object]], sandbox: Sandbox | None = None) -> None:
    """Print what something costs that is done so many times, at its best and in the middle of them.

    The CPU time of a sandbox that goes on is asked of its first process, which waits for all others.
    """
    clock, own = [], time.process_time()
    inside = 0.0 if sandbox is None else await cpu_inside(sandbox)
    ended = sum(os.times()[2:4])
    for _ in range(count):
        started = time.perf_counter()
        await run()
        clock.append(time.perf_counter() - started)
    used = time.process_time() - own + sum(os.times()[2:4]) - ended
    if sandbox is not None:
        used += await cpu_inside(sandbox) - inside
    clock.sort()
    print(f"{name:32} {used / count * 1e3:8.2f} {clock[0] * 1e3:8.2f} {clock[count // 2] * 1e3:8.2f} {AIMS.get(name, ''):>8}")


async def cpu_inside(sandbox: Sandbox) -> float:
    """Return the CPU seconds that a sandbox has used."""
    code = """
import os
fields = [open(f"/proc/{pid}/stat").read().rpartition(")")[2].split() for pid in os.listdir("/proc") if pid.isdigit()]
print(sum(int(process[n]) for process in fields for n in (11, 12, 13, 14)))
"""
    return int((await sandbox.python(code)).stdout) / os.sysconf("SC_CLK_TCK")


async def main(backend: str | None) -> None:
    """Print the table."""
    print(f"{'milliseconds':32} {'CPU':>8} {'best':>8} {'median':>8} {'aim':>8}")

    async def create_and_close() -> None:
        await (await create(SandboxSpec(), backend)).close()

    await create_and_close()
    await measure("create and close", ROUNDS, create_and_close)
    async with await create(SandboxSpec(), backend) as sandbox:
        await sandbox.python("1")
        await measure("command", 10 * ROUNDS, lambda: sandbox.exec("true"), sandbox)
        await sandbox.write_file("solution.py", CODE)
        await measure("program in Python", ROUNDS, lambda: sandbox.exec(["python3", "solution.py"]), sandbox)
        await measure("later cell", 1000 * ROUNDS, lambda: sandbox.python("x = 1"), sandbox)

        async def write_and_read() -> None:
            await sandbox.write_file("file", b"x" * 1000)
            await sandbox.read_file("file")

        await measure("file of 1 KB, written and read", 100 * ROUNDS, write_and_read, sandbox)

    rubric = vfgym.CodeRubric(backend=backend)
    completion = [{"role": "assistant", "content": f"```python\n{CODE}\n```"}]

    async def score() -> None:
        await rubric.passed_tests(rubric.parser, completion, {"tests": [{"stdout": "7"}]})

    await score()
    await measure("code of CodeRubric", 2 * ROUNDS, score)
    await rubric.close_sandboxes()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else None))
