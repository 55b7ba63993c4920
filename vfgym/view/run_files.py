"""The files of runs that may still grow: whether they have changed since they were read."""

from __future__ import annotations

from pathlib import Path

from vfgym.results.files import METADATA, ROWS


def files_state(run: Path) -> object:
    """Return what changes when a run is written to; None where its files cannot be looked at."""
    try:
        return [(status.st_ino, status.st_size, status.st_mtime_ns) for status in ((run / name).stat() for name in (ROWS, METADATA))]
    except OSError:
        return None
