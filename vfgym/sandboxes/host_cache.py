"""What is made once on the host and then only read, by all processes of a user: environments with packages, and checkouts."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from vfgym.output.terminal import echo

_COMPLETE = "vfgym-complete"
"""A file of a folder to which nothing is missing."""


def cache_folder(kind: str) -> Path:
    """Return the folder for things of one kind: below ``XDG_CACHE_HOME``, which is ``~/.cache`` by default."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "vfgym", kind)


def make_once(folder: Path, make: Callable[[], None], about: str) -> Path:
    """Return a folder, which `make` fills unless this or another process has; where that fails nothing is left.

    Args:
        folder: The folder.
        make: Makes it.
        about: What it is, for whoever looks into the folder.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            echo(f"sandboxes: waiting for another process, which makes {about}", to_stderr=True, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / _COMPLETE).exists():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        try:
            make()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        (folder / _COMPLETE).write_text(about)
        return folder
