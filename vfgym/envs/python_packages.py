"""Packages for the Python of sandboxes: a virtual environment of the host, which is made once for the same requirements, and only read."""

from __future__ import annotations

import dataclasses
import hashlib
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from vfgym.aio.threads import on_thread
from vfgym.calls import maybe_await
from vfgym.envs.sandboxed import SandboxedEnv
from vfgym.errors import ConfigurationError, SandboxError
from vfgym.overrides import hook
from vfgym.sandboxes import SandboxSpec
from vfgym.sandboxes.host_cache import cache_folder, make_once
from vfgym.sandboxes.local import find_interpreter
from vfgym.state import State

_INSTALLS_WITHIN = 1800.0
_MOST_QUOTED = 2000
"""Characters of what pip says that an error has."""

_lock = threading.Lock()
_found: dict[str, Path | SandboxError] = {}
"""What became of the requirements that this process asked for."""


class PackagesEnv(SandboxedEnv):
    """An environment whose sandboxes have packages for Python."""

    def __init__(self, *, pip_install_packages: str = "", **kwargs: Any) -> None:
        """Define an environment.

        Args:
            pip_install_packages: What ``pip install`` is given; nothing is installed if it is empty.
            **kwargs: Passed to `SandboxedEnv`.

        Raises:
            ConfigurationError: If it can't be read, or the spec of the sandboxes has an interpreter, too.
        """
        is_given = bool(parse_requirements(pip_install_packages))
        super().__init__(**kwargs)
        if is_given and self.sandbox_spec.python is not None:
            raise ConfigurationError("pip_install_packages have an interpreter of their own: leave SandboxSpec(python=...) out")
        self.pip_install_packages = pip_install_packages

    @hook
    async def get_sandbox_spec(self, state: State) -> Any:
        """Return what the sandbox of an episode is like, with the packages."""
        return await self.add_packages(await maybe_await(super().get_sandbox_spec, state))

    async def add_packages(self, spec: SandboxSpec) -> SandboxSpec:
        """Return a spec with the packages, which are installed now if nobody has.

        Raises:
            SandboxError: If they can't be installed.
        """
        folder = await find_packages(self.pip_install_packages)
        return spec if folder is None else dataclasses.replace(spec, python=folder)


def parse_requirements(text: str) -> list[str]:
    """Return the words that ``pip install`` is given.

    Raises:
        ConfigurationError: If they can't be told apart.
    """
    if not isinstance(text, str):
        raise ConfigurationError(f"pip_install_packages must be a text, such as 'numpy sympy', got {text!r}")
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ConfigurationError(f"pip_install_packages can't be read: {error}, in {text!r}") from None


async def find_packages(requirements: str) -> Path | None:
    """Return a virtual environment with these packages, which is made where there is none; None where nothing is asked for.

    Raises:
        SandboxError: If they can't be installed. It is tried once in a process.
    """
    words = parse_requirements(requirements)
    return await on_thread(_find, words) if words else None


def _find(words: list[str]) -> Path:
    key = hashlib.sha256("\0".join([*words, find_interpreter(), sys.implementation.cache_tag or ""]).encode()).hexdigest()[:16]
    with _lock:
        if key not in _found:
            try:
                folder = cache_folder("python-packages") / key
                _found[key] = make_once(folder, lambda: _make(folder, words), shlex.join(words))
            except SandboxError as error:
                _found[key] = error
    found = _found[key]
    if isinstance(found, SandboxError):
        raise SandboxError(*found.args)
    return found


def _make(folder: Path, words: list[str]) -> None:
    """Make a virtual environment."""
    _run([find_interpreter(), "-m", "venv", "--without-pip", str(folder)], words)
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    _run([sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", *quiet, *words], words)


def _run(command: list[str], words: list[str]) -> None:
    try:
        ran = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_INSTALLS_WITHIN, umask=0o022, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(f"the packages {shlex.join(words)} could not be installed: {error}") from error
    if ran.returncode != 0:
        said = (ran.stderr.strip() or ran.stdout.strip())[-_MOST_QUOTED:]
        raise SandboxError(f"the packages {shlex.join(words)} could not be installed, as `{shlex.join(command)}` says: {said}")
