"""Packages for the Python of sandboxes: a virtual environment of the host, which is made once for the same requirements, and only read."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from vfgym.aio.threads import on_thread
from vfgym.calls import maybe_await
from vfgym.envs.sandboxed import SandboxedEnv
from vfgym.errors import ConfigurationError, SandboxError
from vfgym.output.terminal import echo
from vfgym.overrides import hook
from vfgym.sandboxes import SandboxSpec
from vfgym.sandboxes.host_cache import cache_folder, make_once
from vfgym.sandboxes.local import find_interpreter
from vfgym.state import State

_INSTALLS_WITHIN = 1800.0
_SHOWN = ("Collecting ", "Downloading ", "Using cached ", "Building wheel", "Installing collected packages")
"""How lines of pip begin that say what it does; others may have what is secret in the URL of an index."""
_LONGEST_LINE = 120
_BY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*+(\[[^]@/]*+\])?([<>=!~][^@/]*+)?")
"""A requirement such as ``numpy`` or ``sympy[dev]>=1.12``."""
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
    """Make a virtual environment, compiled but for tests: what nobody compiles each sandbox would compile for itself, again and again."""
    asked = shlex.join(words)
    began = time.perf_counter()
    echo(f"sandboxes: installing {asked} for them to read, once", to_stderr=True, flush=True)
    _run([find_interpreter(), "-m", "venv", "--without-pip", str(folder)], words)
    _install(str(folder / "bin" / "python"), words)
    echo("sandboxes: compiling what was installed", to_stderr=True, flush=True)
    library = str(next(folder.glob("lib/python*/site-packages")))
    not_compiled = rf"^{re.escape(library)}/(.*/)?tests?/"
    compiling = [find_interpreter(), "-I", "-S", "-m", "compileall", "-q", "-j", "0", "-x", not_compiled, library]
    subprocess.run(compiling, capture_output=True, umask=0o022, check=False)  # what can't be compiled can't be imported either
    echo(f"sandboxes: {asked} are installed, in {time.perf_counter() - began:.0f} s", to_stderr=True, flush=True)


def _install(python: str, words: list[str]) -> None:
    """Install packages into an environment: by pip, or by uv in an environment of uv's, which has no pip.

    Wheels of requirements by name are kept, and taken again. What has options, a path or a URL is installed as pip does it.
    """
    if importlib.util.find_spec("pip") is None and (uv := shutil.which("uv")) is not None:
        _run([uv, "pip", "install", "--python", python, *words], words)
        return
    pip, quiet = [sys.executable, "-m", "pip", "--python", python], ["--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
    install = [*pip, "install", *quiet, "--no-compile"]
    if not all(_BY_NAME.fullmatch(word) for word in words):
        _run([*install, *words], words)
        return
    kept = cache_folder("wheels")
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept) as name:
        wheels = Path(name)  # of this process alone, while pip writes to it
        for wheel in kept.glob("*.whl"):
            os.link(wheel, wheels / wheel.name)
        _run([*pip, "wheel", *quiet, "--wheel-dir", name, "--find-links", name, *words], words)
        _run([*install, "--no-index", "--find-links", name, *words], words)
        for wheel in wheels.glob("*.whl"):
            wheel.replace(kept / wheel.name)


def _run(command: list[str], words: list[str]) -> None:
    """Run a command, and show what it says that it does.

    Raises:
        SandboxError: If it fails, or takes too long.
    """
    said: list[str] = []
    try:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", umask=0o022
        ) as running:
            limit = threading.Timer(_INSTALLS_WITHIN, running.kill)
            limit.daemon = True
            limit.start()
            try:
                for line in running.stdout or ():
                    said.append(line)
                    if line.lstrip().startswith(_SHOWN):
                        echo(f"sandboxes: {line.strip()[:_LONGEST_LINE]}", to_stderr=True, flush=True)
                problem = "".join(said).strip()[-_MOST_QUOTED:] if running.wait() else None
            except BaseException:
                running.kill()
                raise
            finally:
                limit.cancel()
    except OSError as error:
        problem = str(error)
    if problem is not None:
        raise SandboxError(f"the packages {shlex.join(words)} could not be installed, as `{shlex.join(command)}` says: {problem}")
