"""Dockerfiles that need no build: those that copy files and name a folder, which a sandbox without images can do by itself."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from vfgym.errors import ConfigurationError

_WITHOUT_EFFECT = ("CMD", "ENTRYPOINT", "EXPOSE", "LABEL", "MAINTAINER")
"""What says nothing of files: a sandbox starts what its environment says."""


class NeedsBuild(ConfigurationError):
    """A Dockerfile does what only a container engine can do."""


@dataclass
class Layout:
    """What a Dockerfile puts where."""

    working_dir: str = "/"
    env: dict[str, str] = field(default_factory=dict)
    copies: list[tuple[Path, str]] = field(default_factory=list)
    """Files and folders, and where each comes; the content of a folder comes into its place."""


def read_layout(folder: Path) -> Layout:
    """Return what ``folder/Dockerfile`` puts where, whatever image it begins from.

    Raises:
        NeedsBuild: If it does more than that. The text names the line.
    """
    layout = Layout()
    stages = 0
    for keyword, rest in _instructions((folder / "Dockerfile").read_text(encoding="utf-8")):
        line = f"{keyword} {rest}"
        if keyword == "FROM":
            stages += 1
            if stages > 1:
                raise NeedsBuild(f"it has several stages ({line})")
        elif keyword == "WORKDIR":
            layout.working_dir = posixpath.normpath(posixpath.join(layout.working_dir, _plain(rest, line)))
        elif keyword == "ENV":
            layout.env |= _variables(_plain(rest, line))
        elif keyword in ("COPY", "ADD"):
            layout.copies += _copies(folder, _plain(rest, line), layout.working_dir, line)
        elif keyword not in _WITHOUT_EFFECT:
            raise NeedsBuild(f"it has the line {line!r}")
    return layout


def _instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile, without comments, a line each."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\[ \t]*\n", " ", lines)
    parts = [line.strip().partition(" ") for line in joined.splitlines() if line.strip()]
    return [(keyword.upper(), rest.strip()) for keyword, _, rest in parts]


def _plain(rest: str, line: str) -> str:
    if "$" in rest or "<<" in rest or rest.startswith("--"):
        raise NeedsBuild(f"it has the line {line!r}")
    return rest


def _variables(rest: str) -> dict[str, str]:
    """Return what ``ENV a=1 b=2``, or the older ``ENV a 1``, sets."""
    words = shlex.split(rest)
    if "=" not in words[0]:
        return {words[0]: rest.partition(" ")[2].strip()}
    return dict(word.split("=", 1) for word in words if "=" in word)


def _copies(folder: Path, rest: str, working_dir: str, line: str) -> list[tuple[Path, str]]:
    *sources, target = json.loads(rest) if rest.startswith("[") else shlex.split(rest)
    into = posixpath.join(working_dir, target)
    is_folder = into.endswith(("/", "/.")) or len(sources) > 1
    copies = []
    for source in sources:
        local = (folder / source.lstrip("/")).resolve()
        is_archive = line.startswith("ADD") and local.suffix in (".tar", ".gz", ".tgz", ".bz2", ".xz")
        if not local.exists() or not local.is_relative_to(folder.resolve()) or is_archive:
            raise NeedsBuild(f"it has the line {line!r}, and {source} is not a file or folder to copy")
        copies.append((local, posixpath.normpath(posixpath.join(into, local.name) if is_folder and local.is_file() else into)))
    return copies
