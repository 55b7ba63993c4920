"""What a sandbox is asked for, and what comes of a command and of a cell."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vfgym.errors import ConfigurationError

DEFAULT_PROCESSES = 128
DEFAULT_DISK_MB = 512
_LEAST_FILES = 4096


def most_files(disk_mb: int) -> int:
    """Return how many files and folders a disk may have: one for each 4 KB, as disks are made, and 4096 at least."""
    return max(_LEAST_FILES, disk_mb * 256)


@dataclass(frozen=True, kw_only=True)
class SandboxSpec:
    """What a sandbox is to have, and what it may use.

    A limit that is None is the default, where the backend can keep it. One that is given must be kept: a backend that can't refuses it.

    Raises:
        ConfigurationError: If a value can't be used.
    """

    image: str | None = None
    """A container image; None for the host's own programs, or the backend's default image."""
    dockerfile: str | os.PathLike[str] | None = None
    """A folder with a Dockerfile, which the image is built from."""
    cpu_seconds: float | None = None
    """CPU time that each process of a command (rounded up), or a cell with all that it starts, may use; None for no limit."""
    memory_mb: int = 1024
    """Memory of all processes together, and of each."""
    processes: int | None = None
    """Processes and threads at once; 128 by default."""
    disk_mb: int | None = None
    """Size of all files together; 512 by default. It has room for 256 files and folders a megabyte, and for 4096 at least."""
    cpus: float | None = None
    """How many CPUs all processes together may use at once, such as 0.5 or 2; None for no limit."""
    open_files: int = 256
    """Open files of each process."""
    network: bool | None = None
    """Whether the network can be reached, the host's loopback too; by default it can't."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables, beside those that a shell needs."""
    working_dir: str = "/workspace"
    """An absolute folder, which is made: commands run there, and relative paths start there."""
    readable_paths: Sequence[str | os.PathLike[str]] = ()
    """Files and folders of the host that can be read, at the same place: by all users, if root creates the sandbox."""
    python: str | os.PathLike[str] | None = None
    """A virtual environment of the host: its interpreter runs cells and comes first on PATH. It can be read only."""
    forwards: Mapping[int, str | os.PathLike[str]] = field(default_factory=dict)
    """Ports on 127.0.0.1 inside, each with the path of a unix socket of the host that connections are forwarded to."""
    start_command: str | None = None
    """A line for the shell that is started in the sandbox when it is made, and may run as long as it does: a database, say."""

    def __post_init__(self) -> None:
        for name, least in (("memory_mb", 32), ("processes", 4), ("disk_mb", 1), ("open_files", 16)):
            _check_number(name, getattr(self, name), least, is_whole=True)
        for name in ("cpu_seconds", "cpus"):
            _check_number(name, getattr(self, name), 0, is_whole=False)
        if self.network not in (None, True, False):
            raise ConfigurationError(f"network must be True or False, or None for the default, got {self.network!r}")
        if self.image is not None and self.dockerfile is not None:
            raise ConfigurationError("a sandbox has an image or a dockerfile to build one from, got both")
        if not isinstance(self.working_dir, str) or not self.working_dir.startswith("/") or os.path.normpath(self.working_dir) == "/":
            raise ConfigurationError(f"working_dir must be an absolute path below /, such as /workspace, got {self.working_dir!r}")
        check_env("env", self.env)
        object.__setattr__(self, "env", dict(self.env))
        object.__setattr__(self, "working_dir", os.path.normpath(self.working_dir))
        self._take_paths()

    def _take_paths(self) -> None:
        if isinstance(self.readable_paths, str | os.PathLike):
            raise ConfigurationError(f"readable_paths must be a list of paths, got {self.readable_paths!r}")
        readable = tuple(_existing("readable_paths", path) for path in self.readable_paths)
        for named in readable:
            if named in ("/", "/proc", "/dev", "/sys") or (self.working_dir + "/").startswith(named + "/"):
                raise ConfigurationError(f"readable_paths can't name {named}: a sandbox has its own")
        object.__setattr__(self, "readable_paths", readable)
        if self.dockerfile is not None:
            folder = _existing("dockerfile", self.dockerfile)
            if not os.path.isfile(os.path.join(folder, "Dockerfile")):
                raise ConfigurationError(f"dockerfile must be a folder with a file Dockerfile in it; {folder} has none")
            object.__setattr__(self, "dockerfile", folder)
        if self.python is not None:
            folder = _existing("python", self.python)
            if not os.path.isfile(os.path.join(folder, "bin", "python")):
                raise ConfigurationError(f"python must be a virtual environment, a folder with bin/python in it; {folder} has none")
            object.__setattr__(self, "python", folder)
        for port, path in self.forwards.items():
            if not isinstance(port, int) or not 0 < port < 65536 or not isinstance(path, str | os.PathLike):
                raise ConfigurationError(f"forwards must map ports to paths of unix sockets, got {port!r}: {path!r}")
        object.__setattr__(self, "forwards", {port: os.path.abspath(path) for port, path in self.forwards.items()})


def _check_number(name: str, value: float | None, least: float, *, is_whole: bool) -> None:
    if value is None and name in ("processes", "disk_mb", "cpu_seconds", "cpus"):
        return
    is_number = isinstance(value, int if is_whole else int | float) and not isinstance(value, bool)
    if not is_number or not (value >= least if is_whole else least < value < math.inf):  # type: ignore[operator]
        kind = f"an integer of {least:g} or more" if is_whole else f"a number above {least:g}"
        raise ConfigurationError(f"{name} must be {kind}, got {value!r}")


def check_env(name: str, env: Mapping[str, str]) -> None:
    """Refuse what can't be environment variables.

    Raises:
        ConfigurationError: If it can't be; the text calls it `name`.
    """
    if not isinstance(env, Mapping):
        raise ConfigurationError(f"{name} must map names to texts, got {env!r}")
    for key, value in env.items():
        is_usable = isinstance(key, str) and isinstance(value, str) and key and "=" not in key and "\0" not in key + value
        if not is_usable:
            raise ConfigurationError(f"{name} must map names to texts, got {key!r}: {type(value).__name__}")


def _existing(name: str, path: str | os.PathLike[str]) -> str:
    if not isinstance(path, str | os.PathLike):
        raise ConfigurationError(f"{name} must be a path, got {path!r}")
    absolute = os.path.abspath(path)
    if not os.path.exists(absolute):
        raise ConfigurationError(f"{name}: there is no {absolute}")
    return absolute


@dataclass(frozen=True)
class ExecResult:
    """What came of a command."""

    exit_code: int
    """As shells have it: 127 for a program that is not there, 128 and the number of the signal that ended it."""
    stdout: str
    stderr: str
    timed_out: bool = False
    truncated: bool = False
    """Whether it printed more than is kept (1 MiB of each stream)."""


@dataclass(frozen=True)
class CellResult:
    """What came of a cell."""

    stdout: str
    """What was printed, by child processes too."""
    stderr: str
    value: str | None
    """The `repr` of the expression that ends the cell, unless it is None."""
    traceback: str | None
    """Of the exception that ended it; a sentence where its interpreter ended."""
    timed_out: bool
    state_is_lost: bool
    """Whether the interpreter has ended, with all that was defined in it; the next cell gets a new one."""
    truncated: bool
    """Whether it printed, or its value is, more than is kept (1 MiB of each)."""
    count: int
    """The number of the cell, from 1; every cell counts."""


@dataclass(frozen=True)
class Entry:
    """A file, folder or link of a tree."""

    path: str
    """Relative to the tree's folder."""
    kind: str
    """``file``, ``folder`` or ``link``."""
    mode: int
    size: int
    target: str | None = None
    """Where a link leads, as it is written."""
    file: str | None = None
    """The path in the same tree of the regular file that a link leads to, if it does."""


@dataclass(frozen=True)
class TreeSnapshot:
    """The files of a sandbox at one moment, with their modes, without times."""

    entries: tuple[tuple[Entry, bytes], ...]
    """Each with the content of a file; nothing of folders and links."""
    left_out: str | None = None
    """What else the sandbox has that was changed, or may have been; None where the files are all that makes it differ from a new one."""
