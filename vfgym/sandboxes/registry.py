"""The sandboxes that exist: a small file for each, so that what a killed process left is removed by the next one that creates some.

A file says who owns the sandbox (a process, by its id and the time when it started) and what there is to remove. Its name says where that
process is: on which host, since which boot, and in which namespace of processes. Containers may share the folder of these files, and hosts
too, and each of them knows of its own processes only which have ended.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import re
import signal
import socket
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from vfgym.bounded_json import parse_json
from vfgym.errors import SandboxError
from vfgym.sandboxes import cgroups
from vfgym.sandboxes.inside.files import remove_below

logger = logging.getLogger(__name__)

_ENDS_WITHIN = 10.0
"""Seconds in which processes that were killed have ended, however busy the machine is."""


@dataclass
class Record:
    """A sandbox that exists, and what is to be removed of it."""

    id: str
    backend: str
    owner: list[Any]
    """The process that created it: its id, and when it started."""
    process: list[Any] | None = None
    """The process that it is: as the owner."""
    folder: str | None = None
    """A folder of the host that belongs to it; the environment of its processes names it."""
    container: str | None = None
    """A container."""
    groups: list[str] = field(default_factory=list)
    """Control groups, as folders."""


class Remover(Protocol):
    """A backend, which knows how to remove what its sandboxes leave behind."""

    def remove(self, record: Record) -> None:
        """Remove a sandbox whose owner has ended; what is not there any more is not looked for."""
        ...


_own: dict[str, tuple[Record, Remover]] = {}
"""What this process has created."""
os.register_at_fork(after_in_child=_own.clear)


def identify(pid: int) -> list[Any]:
    """Return a process by its id and the time when it started; the id alone may be used again."""
    try:
        return [pid, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]]
    except OSError:
        return [pid, None]


def _is_running(process: list[Any]) -> bool:
    """Say whether a process has not ended. One that its parent has not asked about since has."""
    if process[1] is not None:
        return identify(process[0]) == process and not _has_ended(process[0])
    try:  # on a system without /proc
        os.kill(process[0], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return not Path("/proc/self").exists()


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def _find_place() -> str:
    """Return where this process is, in letters that names of files have: its host, the host's boot, and its namespace of processes.

    A machine id or a host's name may be that of a copy, and a boot's that of a machine that was woken up elsewhere: all are in it.
    """
    known = [socket.gethostname()]
    for path in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
        with contextlib.suppress(OSError):
            known.append(Path(path).read_text().strip())
    with contextlib.suppress(OSError):
        known.append(os.readlink("/proc/self/ns/pid"))
    return "-".join(re.sub(r"[^A-Za-z0-9]+", "", each)[:64] for each in known)


def _path(record: Record) -> Path:
    return _folder() / f"{record.id}@{_find_place()}.json"


def _folder() -> Path:
    """Return this user's folder of records, which nobody else can write to.

    Raises:
        SandboxError: If it belongs to somebody else, or can't be made.
    """
    folder = Path(tempfile.gettempdir(), f"vfgym-sandboxes-{os.geteuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        about = folder.lstat()
    except OSError as error:
        raise SandboxError(f"{folder}, where sandboxes are written down, can't be made: {error}") from error
    if folder.is_symlink() or about.st_uid != os.geteuid() or about.st_mode & 0o022:
        raise SandboxError(f"{folder} must be a folder that belongs to you and that nobody else can write to; remove it, and try again")
    return folder


def add(record: Record, remover: Remover) -> None:
    """Write down a sandbox, before there is anything to remove, or anew when there is more.

    Raises:
        SandboxError: If it can't be.
    """
    path = _path(record)
    try:
        new = path.with_suffix(".{}-{}.new".format(*record.owner))  # by whose name it is removed, if it is all that there is
        new.write_text(json.dumps(asdict(record)))
        new.replace(path)
    except OSError as error:
        raise SandboxError(f"{path}, where a sandbox is written down, can't be written: {error}") from error
    _own[record.id] = record, remover


def remove(record: Record, remover: Remover) -> None:
    """Remove a sandbox of this process, and forget it."""
    remover.remove(record)
    _own.pop(record.id, None)
    _path(record).unlink(missing_ok=True)


def _remove_own() -> None:
    for record, remover in list(_own.values()):
        try:
            remove(record, remover)
        except Exception:
            logger.exception("%s could not be removed", record.id)


atexit.register(_remove_own)


def remove_left(removers: dict[str, Any]) -> None:
    """Remove what processes left that were where this one is, and have ended."""
    folder, place = _folder(), _find_place()
    for path in folder.glob(f"*@{place}.*.new"):  # of one that was killed while it wrote this
        pid, _, started = path.suffixes[0].removeprefix(".").partition("-")
        if not _is_running([int(pid), None if started == "None" else started]):
            path.unlink(missing_ok=True)
    for path in folder.glob(f"*@{place}.json"):
        try:
            record = Record(**parse_json(path.read_text()))
            if record.backend not in removers or _is_running(record.owner):
                continue
            removers[record.backend].remove(record)
            path.unlink(missing_ok=True)
        except FileNotFoundError:  # closed meanwhile, or removed by another process
            continue
        except Exception:
            logger.exception("what %s names could not be removed", path)


def remove_local(record: Record) -> None:
    """Kill the process of a sandbox, and all that name its folder in their environment; remove its groups and the folder."""
    _end_processes(record)
    cgroups.remove(record.groups)
    if record.folder is not None:
        try:
            if os.path.islink(record.folder):  # by a command that has moved the folder away: what it leads to is not ours
                os.unlink(record.folder)
            else:
                remove_below(record.folder)  # also what its commands let nobody read
                os.rmdir(record.folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            logger.warning("the folder of %s could not be removed: %s", record.id, error)


def _end_processes(record: Record) -> None:
    """Kill the processes of a sandbox until there are none: some start others meanwhile, and none ends at once."""
    until, pause = time.monotonic() + _ENDS_WITHIN, 0.001
    while True:
        found = [] if record.folder is None else _find_by_environment(record.folder)
        if record.process is not None and _is_running(record.process):
            found.append(record.process[0])
        for pid in found:
            _kill(pid)
        if not found or not Path("/proc/self").exists():  # where nobody can say who is left
            return
        if time.monotonic() > until:
            logger.warning("processes of %s could not be ended: %s", record.id, ", ".join(map(str, found)))
            return
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _find_by_environment(text: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if text.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
