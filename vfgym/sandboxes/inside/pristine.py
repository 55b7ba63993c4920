"""What the files of a sandbox were when it began, so that it can be reset for another lease."""

from __future__ import annotations

import os
import stat

from vfgym.sandboxes.inside.files import remove_below


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

    def restore(self) -> str | None:
        """Remove what is new, make missing folders; return what can't be made good, if anything."""
        for path, (mode, target) in self._before.items():  # folders before what is in them
            if target is None and not os.path.lexists(path):
                os.mkdir(path)
            if _describe(path) != (mode, target) and stat.S_ISDIR(os.lstat(path).st_mode):
                os.chmod(path, stat.S_IMODE(mode))
            for found in _list(path):
                if found not in self._before and os.lstat(found).st_dev in self._devices.values():
                    _remove(found)
        changed = [path for path, was in self._before.items() if _describe(path) != was]
        return f"{changed[0]} was changed" if changed else None


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
