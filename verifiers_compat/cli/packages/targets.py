"""Where a package is: a project's directory, a wheel, an sdist, a name in a directory of environments, or a git repository."""

from __future__ import annotations

import contextlib
import re
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

from vfgym.errors import ConfigurationError

WHEEL, SDIST = ".whl", ".tar.gz"


@dataclass(frozen=True)
class Target:
    """A package that is there."""

    path: Path
    """What an installer is given: a directory or a wheel."""
    root: Traversable
    """Where its modules are: that directory, or the inside of the wheel."""
    extras: tuple[str, ...]
    """Its extras that are wanted."""
    is_editable: bool
    """Whether it is a directory in which its author works."""


@contextlib.contextmanager
def open_target(env: str, path: Path, *, repository: str | None = None, branch: str = "main") -> Iterator[Target]:
    """Find a package. What had to be unpacked or cloned for it goes away with the context.

    Args:
        env: A directory of a project, a wheel, an sdist, or the name of an environment; extras may follow in brackets.
        path: Directory in which environments have directories of their own.
        repository: URL of a git repository in whose ``environments`` the name is looked for instead.
        branch: Branch or tag of that repository.

    Raises:
        ConfigurationError: If there is no such package.
    """
    name, extras = _split_extras(env)
    with tempfile.TemporaryDirectory() as scratch:
        if repository is not None:
            clone = _clone(repository, branch, Path(scratch, "clone"))
            folder = _find_environment(name, clone / "environments")
            yield Target(folder, folder, extras, is_editable=False)
            return
        found = _find_file(name) or _find_folder(name, path)
        if found.name.endswith(SDIST):
            folder = _unpack(found, Path(scratch))
            yield Target(folder, folder, extras, is_editable=False)
        elif found.suffix == WHEEL:
            yield Target(found, _open_wheel(found), extras, is_editable=False)
        else:
            yield Target(found, found, extras, is_editable=True)


def _split_extras(env: str) -> tuple[str, tuple[str, ...]]:
    match = re.fullmatch(r"(.*?)(?:\[([^\]]*)\])?", env)
    name, extras = (match[1], match[2]) if match else (env, None)
    return name, tuple(extra.strip() for extra in (extras or "").split(",") if extra.strip())


def _find_file(name: str) -> Path | None:
    """Return the wheel or sdist of a name that is one's."""
    if not name.endswith((WHEEL, SDIST)):
        return None
    if not Path(name).is_file():
        raise ConfigurationError(f"there is no {'wheel' if name.endswith(WHEEL) else 'sdist'} {name}")
    return Path(name)


def _find_folder(name: str, path: Path) -> Path:
    """Return the directory that is meant: a path's, or an environment's of its own."""
    given = Path(name)
    is_path = "/" in name or name in (".", "..")
    if given.is_dir() and (is_path or ((given / "pyproject.toml").is_file() and not (path / _folder_of(name)).is_dir())):
        return given
    if "@" in name or (re.fullmatch(r"\w[\w.-]*/[\w.-]+", name) and not given.exists()):
        raise ConfigurationError(
            f"{name!r} is on the hosted hub of environments, which vf-install does not ask: download its wheel there and run"
            " vf-install PATH/TO/WHEEL.whl"
        )
    if is_path:
        raise ConfigurationError(f"there is no directory {name}")
    return _find_environment(name, path)


def _find_environment(name: str, path: Path) -> Path:
    folder = path / _folder_of(name)
    if not folder.is_dir():
        there = sorted(each.parent.name for each in path.glob("*/pyproject.toml"))
        known = f"there are {', '.join(there)}" if there else "there are none"
        raise ConfigurationError(f"there is no environment {name!r} in {path}: no directory {folder.name}; {known}")
    return folder


def _folder_of(name: str) -> str:
    return name.replace("-", "_")


def _open_wheel(wheel: Path) -> zipfile.Path:
    try:
        return zipfile.Path(wheel)
    except (OSError, zipfile.BadZipFile) as error:
        raise ConfigurationError(f"{wheel} cannot be read as a wheel: {error}") from error


def _unpack(sdist: Path, folder: Path) -> Path:
    """Unpack an sdist, and return the one directory that it has."""
    try:
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
    except (OSError, tarfile.TarError) as error:
        raise ConfigurationError(f"{sdist} cannot be read as an sdist: {error}") from error
    inside = list(folder.iterdir())
    if len(inside) != 1 or not inside[0].is_dir():
        raise ConfigurationError(f"{sdist} is not an sdist: it must hold one directory, and holds {len(inside)} entries")
    return inside[0]


def _clone(repository: str, branch: str, folder: Path) -> Path:
    command = ["git", "clone", "--quiet", "--depth", "1", "--branch", branch, "--", repository, str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ConfigurationError("--from-repo needs git, which is not installed") from None
    if done.returncode:
        raise ConfigurationError(f"{branch} of {repository} cannot be cloned: {done.stderr.strip()}")
    return folder
