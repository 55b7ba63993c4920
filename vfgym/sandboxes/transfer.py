"""Trees of files on the host's side of a copy. Nothing is read or written outside of the folder that is named, whatever links say."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from vfgym.errors import SandboxError
from vfgym.sandboxes.inside import files
from vfgym.sandboxes.spec import Entry


def walk(base: Path) -> list[Entry]:
    """Return what is in a folder of the host, as the agent does inside."""
    return [Entry(*fields) for fields in files.walk(str(base), str(base))["entries"]]


def check(entry: Entry) -> Entry:
    """Refuse an entry whose path, as the sandbox says it, leads out of the tree.

    Raises:
        SandboxError: If it does: the agent is not ours any more.
    """
    for path in (entry.path, entry.file):
        is_inside = path is None or (isinstance(path, str) and not path.startswith("/") and ".." not in PurePosixPath(path).parts)
        if not is_inside or "\0" in (path or ""):
            raise SandboxError(f"the sandbox named a file outside of the folder that is copied: {path!r}")
    return entry


def check_tree(entries: list[Entry]) -> list[Entry]:
    """Refuse entries that would be written through a link: each lies in a folder of the tree.

    Raises:
        SandboxError: If one does not: the agent is not ours any more.
    """
    folders = {""}
    for entry in entries:
        if entry.path and os.path.dirname(entry.path) not in folders:
            raise SandboxError(f"the sandbox named a file that lies in no folder: {entry.path!r}")
        if entry.kind == "folder":
            folders.add(entry.path)
    return entries


def resolve_links(entries: Iterable[Entry]) -> tuple[list[Entry], list[str]]:
    """Return the entries with files instead of links, and the paths of links that lead to no file of the tree."""
    kept, dropped = [], []
    for entry in entries:
        if entry.kind != "link":
            kept.append(entry)
        elif entry.file is None:
            dropped.append(entry.path)
        else:
            kept.append(replace(entry, kind="file", mode=0o644))
    return kept, dropped


def read(base: Path, entry: Entry) -> bytes:
    """Return what is in a file of a tree on the host, or in the file that is named itself, which may be a link."""
    path = base / (entry.file or entry.path) if entry.path else base.resolve()
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SandboxError(f"{entry.path} is not a regular file any more")
        return file.read()


def make_folder(base: Path, entry: Entry) -> None:
    """Make a folder of a tree on the host."""
    path = base / entry.path
    _check_inside(base, path)
    path.mkdir(parents=True, exist_ok=True)


def _check_inside(base: Path, folder: Path) -> None:
    """Refuse a folder that a link of the host puts elsewhere.

    Raises:
        OSError: If one does.
    """
    if not folder.resolve().is_relative_to(base.resolve()):
        raise OSError(errno.ELOOP, "A link leads out of the folder that is copied to", str(folder))


def write(base: Path, entry: Entry, data: bytes) -> None:
    """Write a file of a tree to the host; never through a link."""
    path = base / entry.path if entry.path else base
    if entry.path:
        _check_inside(base, path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
    with open(descriptor, "wb") as file:
        file.write(data)
        os.fchmod(descriptor, (entry.mode & 0o755) | 0o600)
