"""Control groups: the kernel's own limits of memory and processes, around all that runs in a sandbox, where this process may make them.

The kernel counts what no look at processes can see: shared memory that nobody has mapped, what waits in sockets, files that lie in memory,
page tables. Both versions are known: in the first, each controller has a hierarchy; in the second, all are in one.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shlex
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_ENDS_WITHIN = 5.0
_MEMORY = ("memory.max", "memory.limit_in_bytes")
_SWAP = ("memory.swap.max", "memory.memsw.limit_in_bytes")
_KILLED = ("memory.events", "memory.oom_control")


@dataclass(frozen=True)
class ControlGroup:
    """The limits of one sandbox: a folder of a group for memory and one for processes, or one for both."""

    folders: tuple[str, ...]

    def run_in(self, command: Sequence[str]) -> list[str]:
        """Return a command that goes into the group, and becomes another one."""
        joins = " && ".join(f"echo $$ > {shlex.quote(folder)}/cgroup.procs" for folder in self.folders)
        return ["/bin/sh", "-c", f'{joins} && exec "$@"', "sh", *command]

    def was_short_of_memory(self) -> bool:
        """Say whether the kernel has killed a process of the group since its memory was used up."""
        for folder in self.folders:
            for name in _KILLED:
                with contextlib.suppress(OSError, ValueError):
                    counts = dict(line.split() for line in Path(folder, name).read_text().splitlines())
                    return int(counts.get("oom_kill", 0)) > 0
        return False


def make(memory: int, processes: int) -> ControlGroup | None:
    """Make a group; None where this process can't.

    Args:
        memory: Bytes that all in it may use, whatever for.
        processes: Processes and threads at once.
    """
    parents = _find_parents()
    if parents is None:
        return None
    try:
        return _make(parents, memory, processes)
    except OSError:
        return None


def remove(folders: Sequence[str]) -> None:
    """Kill what is left in a group, and remove it; what is not there any more is not looked for."""
    until = time.monotonic() + _ENDS_WITHIN
    for folder in folders:
        while os.path.isdir(folder):
            try:
                os.rmdir(folder)
            except OSError:
                if time.monotonic() > until:
                    raise
                _kill(folder)
                time.sleep(0.001)


def _kill(folder: str) -> None:
    with contextlib.suppress(OSError):
        for pid in Path(folder, "cgroup.procs").read_text().split():
            os.kill(int(pid), 9)


def _make(parents: Sequence[str], memory: int, processes: int) -> ControlGroup:
    name = f"vfgym-{secrets.token_hex(8)}"
    folders: list[str] = []
    try:
        for parent in parents:
            folder = f"{parent}/{name}"
            os.mkdir(folder)
            folders.append(folder)
        for folder in folders:
            for names, most in ((_MEMORY, memory), (_SWAP, None), (("pids.max",), processes)):
                _limit(folder, names, most, memory)
        return ControlGroup(tuple(folders))
    except OSError:
        remove(folders)
        raise


def _limit(folder: str, names: Sequence[str], most: int | None, memory: int) -> None:
    """Write a limit of a group, under whichever name it has; that of swap is not there where the system has none."""
    for name in names:
        if os.path.exists(f"{folder}/{name}"):
            # In the second version swap is counted alone, in the first together with memory.
            value = most if most is not None else 0 if name == "memory.swap.max" else memory
            Path(folder, name).write_text(str(value))


@functools.cache
def _find_parents() -> tuple[str, ...] | None:
    """Return where groups for memory and for processes can be made; None where they can't. It is tried once, with a process."""
    for parents in _candidates(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text()):
        try:
            group = _make(parents, 64 << 20, 16)
        except OSError:
            continue
        try:
            if _has(group, "pids.max") and _has(group, *_MEMORY):
                tried = subprocess.run(group.run_in(["true"]), capture_output=True, timeout=30, check=False)
                if tried.returncode == 0:
                    return tuple(parents)
        except (OSError, subprocess.TimeoutExpired):
            continue
        finally:
            remove(group.folders)
    return None


def _has(group: ControlGroup, *names: str) -> bool:
    return any(os.path.exists(f"{folder}/{name}") for folder in group.folders for name in names)


def _candidates(own: str, mounts: str) -> Iterator[tuple[str, ...]]:
    """Return where groups may be made, the nearest first.

    Args:
        own: Text of ``/proc/self/cgroup``.
        mounts: Text of ``/proc/self/mountinfo``.
    """
    places = {controllers: path for _, controllers, path in (line.split(":", 2) for line in own.splitlines())}
    roots: dict[str, tuple[str, str]] = {}
    for line in mounts.splitlines():
        mounted, _, file_system = line.partition(" - ")
        root, place = mounted.split()[3:5]
        kind, _, options = file_system.split()[:3]
        if kind == "cgroup2":
            roots[""] = root, place
        elif kind == "cgroup":
            roots.update({name: (root, place) for name in options.split(",")})
    first = [_below(roots, places, name) for name in ("memory", "pids")]
    if all(first):
        yield tuple(str(folder) for folder in first)
    folder = _below(roots, places, "")
    while folder is not None:  # groups with processes, such as ours, have no others with limits below them: but those above may
        yield (str(folder),)
        folder = folder.parent if str(folder) != roots[""][1] else None


def _below(roots: dict[str, tuple[str, str]], places: dict[str, str], name: str) -> Path | None:
    """Return the folder of our own group in a hierarchy."""
    path = next((path for controllers, path in places.items() if name in controllers.split(",")), None)
    if path is None or name not in roots:
        return None
    root, mounted = roots[name]
    return Path(mounted, os.path.relpath(path, root)) if (path + "/").startswith(root.rstrip("/") + "/") else Path(mounted)
