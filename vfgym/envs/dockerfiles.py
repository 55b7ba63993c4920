"""Dockerfiles that need no build: those that copy files and name a folder, which a sandbox without images can do by itself."""

from __future__ import annotations

import posixpath
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from vfgym.bounded_json import parse_json
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
            [inside] = _words(rest, line, least=1)[:1]
            layout.working_dir = posixpath.normpath(posixpath.join(layout.working_dir, inside))
        elif keyword == "ENV":
            layout.env |= _variables(_words(rest, line, least=1), line)
        elif keyword in ("COPY", "ADD"):
            layout.copies += _copies(folder, _words(rest, line, least=2), layout, line)
        elif keyword not in _WITHOUT_EFFECT:
            raise NeedsBuild(f"it has the line {line!r}")
    return layout


def read_working_dir(folder: Path) -> str:
    """Return the folder in which programs of the image of ``folder/Dockerfile`` start, as far as that says so; ``/`` otherwise."""
    place = "/"
    for keyword, rest in _instructions((folder / "Dockerfile").read_text(encoding="utf-8")):
        if keyword == "FROM":
            place = "/"
        elif keyword == "WORKDIR" and "$" not in rest:
            place = posixpath.normpath(posixpath.join(place, rest.strip("\"'")))
    return place


def _instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile, without comments, a line each."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\[ \t]*\n", " ", lines)
    parts = [[*line.split(maxsplit=1), ""] for line in joined.splitlines() if line.strip()]
    return [(keyword.upper(), rest.strip()) for keyword, rest, *_ in parts]


def _words(rest: str, line: str, least: int) -> list[str]:
    """Return the words of an instruction, of which it needs a number at least."""
    try:
        words = parse_json(rest) if rest.startswith("[") else shlex.split(rest)
    except ValueError as error:
        raise NeedsBuild(f"it has the line {line!r}, which cannot be read: {error}") from None
    if len(words) < least or not all(isinstance(word, str) for word in words):
        raise NeedsBuild(f"it has the line {line!r}, which needs {least} or more words")
    if "$" in rest or "<<" in rest or rest.startswith("--"):
        raise NeedsBuild(f"it has the line {line!r}")
    return words


def _variables(words: list[str], line: str) -> dict[str, str]:
    """Return what ``ENV a=1 b=2``, or the older ``ENV a 1``, sets."""
    if "=" not in words[0] and len(words) > 1:
        return {words[0]: " ".join(words[1:])}
    pairs = [word.partition("=") for word in words]
    if not all(name and equals for name, equals, _ in pairs):
        raise NeedsBuild(f"it has the line {line!r}, and a variable is NAME=VALUE")
    return {name: value for name, _, value in pairs}


def _copies(folder: Path, words: list[str], layout: Layout, line: str) -> list[tuple[Path, str]]:
    *sources, target = words
    into = posixpath.join(layout.working_dir, target)
    folders = [layout.working_dir, *(inside for local, inside in layout.copies if local.is_dir())]
    is_there = any(posixpath.join(place, "").startswith(posixpath.join(posixpath.normpath(into), "")) for place in folders)
    is_folder = is_there or into.endswith("/") or len(sources) > 1
    copies = []
    for source in sources:
        local = (folder / source.lstrip("/")).resolve()
        is_archive = line.startswith("ADD") and local.suffix in (".tar", ".gz", ".tgz", ".bz2", ".xz")
        if not local.exists() or not local.is_relative_to(folder.resolve()) or is_archive:
            raise NeedsBuild(f"it has the line {line!r}, and {source} is not a file or folder to copy")
        copies.append((local, posixpath.normpath(posixpath.join(into, local.name) if is_folder and local.is_file() else into)))
    return copies
