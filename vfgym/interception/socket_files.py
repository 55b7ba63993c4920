"""The file of a unix socket that sandboxes reach, in a folder that only its owner can enter, and what killed processes left of theirs."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from pathlib import Path

_STARTS_WITHIN = 60.0
"""Seconds between making a socket and listening at it, at most."""
_PREFIX, _NAME = "vfgym-model-", "model.sock"


def make_socket_path() -> str:
    """Return a path for a unix socket, in a folder of its own. Folders of sockets that nobody serves any more are removed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_NAME}"):
        if _is_left(path):
            remove_socket(str(path))
    return os.path.join(tempfile.mkdtemp(prefix=_PREFIX), _NAME)


def remove_socket(path: str) -> None:
    """Remove a socket with its folder."""
    shutil.rmtree(os.path.dirname(path), ignore_errors=True)


def _is_left(path: Path) -> bool:
    """Say whether a socket of this user's has no server, and is not one whose server begins just now."""
    try:
        about = path.lstat()
        if about.st_uid != os.geteuid() or time.time() - about.st_mtime < _STARTS_WITHIN:
            return False
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False
