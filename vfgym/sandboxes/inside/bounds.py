"""What programs cost the host: looked at ten times a second, and bounded where the kernel does not do it.

What a process has in memory is a part of it. Shared memory without a file stays whole as long as somebody has a page of it, and how much
that is nobody can see; page tables, what waits in sockets, and files without content lie in the kernel.
"""

from __future__ import annotations

import os
from _signal import SIGKILL  # type: ignore[import-not-found]
from collections.abc import Iterable

from vfgym.sandboxes.inside.processes import find_processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PAGE = os.sysconf("SC_PAGE_SIZE")
_SHARED = b"/dev/zero (deleted)"
"""What the kernel calls shared memory without a file."""


class Bounds:
    """How much all programs may cost together."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """Take the limits."""
        self._most_memory: int = settings["most_memory"]
        self._most_files: int | None = settings["most_files"]
        self._folders: list[str] = settings["counted"]
        self._piece: int = settings["most_shared"]
        """What a piece of shared memory without a file counts as; 0 where the kernel counts it."""
        self._most_terminals: int | None = settings["most_terminals"]
        self._socket = _read_number("/proc/sys/net/core/wmem_default") if settings["counts_sockets"] else 0

    def look(self, keepers: Iterable[int]) -> str | None:
        """Kill the largest process below the keepers, as often as all together have too much memory.

        Returns:
            What the sandbox must end for, since it can't be laid to a process: too many files, sockets or terminals.
        """
        if self._most_files is not None:
            made = sum(map(_count_files, self._folders))
            if made > self._most_files:
                return f"its programs made {made} files and folders, and it may have {self._most_files}"
        if self._most_terminals is not None:
            terminals = sum(name.isdigit() for name in os.listdir("/dev/pts"))
            if terminals > self._most_terminals:
                return f"its programs opened {terminals} terminals, and it may have {self._most_terminals}"
        if self._socket:
            sockets = _count_sockets()
            waiting = sockets * self._socket + (_tcp_queues() if sockets else 0)
            if waiting > self._most_memory:
                return f"its programs have {sockets} sockets, which can hold {waiting >> 20} MB, and it may use {self._most_memory >> 20}"
        self._bound_memory(find_processes(keepers))
        return None

    def _bound_memory(self, pids: set[int]) -> None:
        shared = _shared_pieces(pids) if self._piece else {}
        most = self._most_memory - self._piece * sum(map(len, shared.values()))
        if sum(map(_mapped, pids)) <= most:  # what is not mapped costs nothing
            return
        used = {pid: _own_memory(pid) for pid in pids}
        if sum(used.values()) <= most:
            return
        used = {pid: _own_memory(pid, exactly=True) + self._piece * len(shared.get(pid, ())) for pid in pids}
        while used and sum(used.values()) > self._most_memory:
            largest = max(used, key=lambda pid: used[pid])
            del used[largest]
            try:
                os.kill(largest, SIGKILL)
            except OSError:
                pass


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # a process that has just ended, or what this system does not have
        return b""


def _read_number(path: str) -> int:
    return int(_read(path) or b"0")


def _count_files(folder: str) -> int:
    """Return how many files, folders and attributes lie in the file system that is mounted at a folder."""
    about = os.statvfs(folder)
    return about.f_files - about.f_ffree


def _count_sockets() -> int:
    """Return how many sockets there are, those too that nobody can reach any more and in which something waits."""
    return int((_read("/proc/net/sockstat").split() or [b"", b"", b"0"])[2])


def _tcp_queues() -> int:
    """Return the bytes that wait in connections by TCP, whose buffers grow."""
    waiting = 0
    for name in ("tcp", "tcp6"):
        for line in _read(f"/proc/net/{name}").splitlines()[1:]:
            sent, _, received = line.split()[4].partition(b":")
            waiting += int(sent, 16) + int(received, 16)
    return waiting


def _mapped(pid: int) -> int:
    """Return the bytes of all that a process has mapped."""
    return int((_read(f"/proc/{pid}/statm").split() or [b"0"])[0]) * _PAGE


def _own_memory(pid: int, exactly: bool = False) -> int:
    """Return the bytes that a process has to itself, in memory and as page tables.

    Args:
        pid: The process.
        exactly: Whether of pages that forks share it has its part, which takes time; else all of them.
    """
    about = _fields(f"/proc/{pid}/status")
    own = about.get(b"RssAnon", 0)
    if exactly:
        own = _fields(f"/proc/{pid}/smaps_rollup").get(b"Pss_Anon", own)
    return own + about.get(b"VmPTE", 0)


def _fields(path: str) -> dict[bytes, int]:
    """Return the fields of a file about a process that are numbers of kilobytes, in bytes."""
    pairs = (line.partition(b":")[::2] for line in _read(path).splitlines() if line.endswith(b" kB"))
    return {name: int(value.split()[0]) * 1024 for name, value in pairs}


def _shared_pieces(pids: Iterable[int]) -> dict[int, set[bytes]]:
    """Return the pieces of shared memory without a file, each for the first process that has it."""
    known: set[bytes] = set()
    found = {}
    for pid in pids:
        maps = _read(f"/proc/{pid}/maps")
        if _SHARED in maps:
            pieces = {line.split(None, 5)[4] for line in maps.splitlines() if line.endswith(_SHARED)}
            found[pid] = pieces - known
            known |= pieces
    return found
