"""Looking processes up, on Linux."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path


def descendants(pid: int) -> list[int]:
    """Return the processes below a process that have not ended."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, *_ = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        if state != "Z":
            parents[int(path.parent.name)] = int(parent)
    found: list[int] = []
    below = [pid]
    while below:
        below = [child for child, parent in parents.items() if parent in below]
        found += below
    return found


async def end_of(pids: list[int]) -> None:
    """Wait until processes have ended, whoever their parents are."""
    async with asyncio.timeout(60):
        for pid in pids:
            try:
                process = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            has_ended = asyncio.Event()
            asyncio.get_running_loop().add_reader(process, has_ended.set)
            await has_ended.wait()
            asyncio.get_running_loop().remove_reader(process)
            os.close(process)


def peak_mb(pid: int) -> int:
    """Return the most memory that a process has had, in MB; 0 of one that has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    _, _, after = status.partition("VmHWM:")
    return int(after.split()[0]) >> 10 if after else 0
