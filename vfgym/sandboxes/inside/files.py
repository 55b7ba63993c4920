"""File operations of the agent: paths are relative to the working directory, and lead to nothing outside of `root`."""

from __future__ import annotations

import binascii
import errno
import os
import stat
from collections.abc import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_ENTRIES = 100_000
_LONG_PATH = 2048
"""Half of what the system takes."""


class Files:
    """The files below a folder, which the agent's caller sees as ``/`` (it is ``/`` itself where a sandbox has files of its own)."""

    def __init__(self, root: str, working_dir: str, folders: Iterable[str] = ()) -> None:
        """Make the working directory, and other folders, if they are not there."""
        self.root = os.path.realpath(root)
        self.working_dir = self.root.rstrip("/") + os.path.join("/", working_dir)
        for folder in (working_dir, *folders):
            os.makedirs(self.find(folder), exist_ok=True)

    def find(self, path: str) -> str:
        """Return where a path of the caller lies, absolute or relative to the working directory."""
        within = self.root.rstrip("/")
        found = within + os.path.normpath(path) if path.startswith("/") else os.path.join(self.working_dir, path)
        if within and not (os.path.realpath(found) + "/").startswith(within + "/"):
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return found

    def read(self, path: str, offset: int, size: int) -> dict[str, Any]:
        """Return a part of a regular file, and the size of the whole."""
        descriptor = os.open(self.find(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            about = os.fstat(descriptor)
            _check_regular(about, path)
            data = os.pread(descriptor, size, offset)
            return {"data": binascii.b2a_base64(data, newline=False).decode(), "size": about.st_size, "mode": stat.S_IMODE(about.st_mode)}
        finally:
            os.close(descriptor)

    def write(self, path: str, data: str, append: bool, mode: int | None) -> dict[str, Any]:
        """Write a file, or add to it; parents are made."""
        found = self.find(path)
        os.makedirs(os.path.dirname(found), exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | (os.O_APPEND if append else os.O_TRUNC)
        descriptor = os.open(found, flags, 0o644)
        try:
            _check_regular(os.fstat(descriptor), path)
            left = memoryview(binascii.a2b_base64(data))
            while left:
                left = left[os.write(descriptor, left) :]
            if mode is not None:
                os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)
        return {}

    def make_folder(self, path: str, mode: int | None) -> dict[str, Any]:
        """Make a folder and its parents, if they are not there."""
        found = self.find(path)
        os.makedirs(found, exist_ok=True)
        if mode is not None:
            os.chmod(found, mode)
        return {}

    def make_link(self, path: str, target: str) -> dict[str, Any]:
        """Make a symbolic link."""
        os.symlink(target, self.find(path))
        return {}

    def clear(self, path: str) -> dict[str, Any]:
        """Remove everything in a folder, or what else there is at its path."""
        found = self.find(path)
        if os.path.lexists(found) and not os.path.isdir(found):
            os.unlink(found)
        else:
            remove_below(found)
        return {}


def walk(base: str, path: str) -> dict[str, Any]:
    """Return what is at a path: each entry with its relative path, kind, mode, size, and where a link leads. Errors name `path`.

    The kinds are ``file``, ``folder`` and ``link``; of a link, ``file`` is the path of the regular file in the same folder that it
    leads to, if it does. Other kinds (sockets, devices, pipes) are not there. A file is the one entry with the path ``""``.
    """
    about = os.stat(base)
    if not stat.S_ISDIR(about.st_mode):
        _check_regular(about, path)
        return {"entries": [["", "file", stat.S_IMODE(about.st_mode), about.st_size, None, None]]}
    entries: list[list[Any]] = []
    real_base = os.path.realpath(base)
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        for entry in sorted(os.scandir(os.path.join(base, folder)), key=lambda each: each.name):
            about = entry.stat(follow_symlinks=False)
            relative = os.path.join(folder, entry.name)
            described = describe(entry.path, relative, about, real_base)
            if described is None:
                continue
            entries.append(described)
            if described[1] == "folder":
                waiting.append(relative)
        if len(entries) > MOST_ENTRIES:
            raise OSError(errno.EMFILE, f"more than {MOST_ENTRIES} files and folders", path)
    return {"entries": entries}


def _check_regular(about: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(about.st_mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(about.st_mode):
        raise OSError(errno.EINVAL, "Not a regular file", path)


def describe(path: str, relative: str, about: os.stat_result, real_base: str) -> list[Any] | None:
    """Return the entry of a file, folder or link, as `walk` does; None for other kinds."""
    mode = stat.S_IMODE(about.st_mode)
    if stat.S_ISLNK(about.st_mode):
        target = os.path.realpath(path)
        is_inside = target.startswith(real_base.rstrip("/") + "/") and os.path.isfile(target)
        return [relative, "link", mode, 0, os.readlink(path), os.path.relpath(target, real_base) if is_inside else None]
    if stat.S_ISDIR(about.st_mode):
        return [relative, "folder", mode, 0, None, None]
    return [relative, "file", mode, about.st_size, None, None] if stat.S_ISREG(about.st_mode) else None


def _move_up(path: str, folder: str, number: int) -> str:
    """Move a folder to where its path, and those of what is in it, are short enough; return where it is."""
    above = os.path.join(folder, f"{os.path.basename(path)[:100]}-{number}")
    try:
        os.chmod(path, 0o700)
        os.rename(path, above)
    except OSError:
        return path
    return above


def remove_below(folder: str) -> None:
    """Remove what is in a folder, as far as it can be removed."""
    folders = [folder]
    for path in folders:  # grows
        try:
            os.chmod(path, 0o700)
            entries = list(os.scandir(path))
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path if len(entry.path) < _LONG_PATH else _move_up(entry.path, folder, len(folders)))
                continue
            try:
                os.unlink(entry.path)
            except OSError:
                pass
    for path in reversed(folders[1:]):
        try:
            os.rmdir(path)
        except OSError:
            pass
    try:
        os.chmod(folder, 0o755)
    except OSError:
        pass
