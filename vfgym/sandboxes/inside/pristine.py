"""What the files of a sandbox were when it began, so that what was made since can be copied, and brought back."""

from __future__ import annotations

import errno
import os
import stat

from vfgym.sandboxes.inside.files import MOST_ENTRIES, describe, remove_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Pristine:
    """The folders that can be written to, as they were."""

    def __init__(self, folders: list[str]) -> None:
        """Look at them: at all that lies in them but for what is mounted there."""
        self._devices = {top: os.lstat(top).st_dev for top in folders}
        self._before: dict[str, tuple[int, str | None]] = {}
        for top, device in self._devices.items():
            waiting = [top]
            while waiting:
                path = waiting.pop()
                if os.lstat(path).st_dev == device:
                    self._before[path] = _describe(path)
                    waiting += _list(path)

    def find_new(self) -> list[list[Any]]:
        """Return what was made since (see `describe`), by absolute paths, folders before what is in them.

        Raises:
            OSError: If something was changed that was there before, or was made that can't be copied.
        """
        changed = self._find_changed()
        if changed is not None:
            raise OSError(errno.ENOTSUP, "It was there from the beginning, and was changed", changed)
        entries: list[list[Any]] = []
        waiting = list(self._before)
        while waiting:
            for path in _list(waiting.pop()):
                about = os.lstat(path)
                if path in self._before or about.st_dev not in self._devices.values():
                    continue
                entry = describe(path, path, about, "/")
                if entry is None:
                    raise OSError(errno.ENOTSUP, "It is neither a file nor a folder nor a link", path)
                entries.append(entry)
                if entry[1] == "folder":
                    waiting.append(path)
            if len(entries) > MOST_ENTRIES:
                raise OSError(errno.EMFILE, f"more than {MOST_ENTRIES} files and folders", "/")
        return entries

    def _find_changed(self) -> str | None:
        """Return a path that is not as it was, if there is one."""
        for path, was in self._before.items():
            if not os.path.lexists(path) or _describe(path) != was:
                return path
        return None

    def restore(self) -> str | None:
        """Remove what is new, make missing folders; return what can't be made good, if anything."""
        for path, (mode, target) in self._before.items():  # folders before what is in them
            if not os.path.lexists(path):
                if not (stat.S_ISDIR(mode) and os.path.isdir(os.path.dirname(path))):
                    continue  # it is said below
                os.mkdir(path)
            if _describe(path) != (mode, target) and stat.S_ISDIR(os.lstat(path).st_mode):
                os.chmod(path, stat.S_IMODE(mode))
            for found in _list(path):
                if found not in self._before and os.lstat(found).st_dev in self._devices.values():
                    _remove(found)
        changed = self._find_changed()
        return None if changed is None else f"{changed} was changed"


def _list(path: str) -> list[str]:
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        return []
    return [os.path.join(path, name) for name in os.listdir(path)]


def _describe(path: str) -> tuple[int, str | None]:
    mode = os.lstat(path).st_mode
    return mode, os.readlink(path) if stat.S_ISLNK(mode) else None


def _remove(path: str) -> None:
    if stat.S_ISDIR(os.lstat(path).st_mode):
        remove_below(path)
        os.rmdir(path)
    else:
        os.unlink(path)
