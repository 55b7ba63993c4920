"""Copies of the repository in which faults are planted, each with a process that runs tests in it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SECONDS = 20.0
"""What a run may take beside five times what the tests take without a fault."""
WORKER = Path(__file__).with_name("worker.py")
NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
"""A place of its own for processes: a fault that kills all it sees kills nothing else, and all that is in it ends with it."""
PRELOADED = (
    *("pytest", "_pytest.assertion.rewrite", "pytest_asyncio.plugin", "pytest_timeout", "xdist.plugin", "hypothesis"),
    *("numpy", "pydantic", "greenlet", "aiohttp", "aiohttp.web", "rich.console", "typer", "docstring_parser", "jsonschema"),
    *("PIL.Image", "gymnasium", "gymnasium.wrappers", "gymnasium.vector", "openai", "anthropic", "datasets", "textarena"),
)
"""What the process that runs tests imports before, where it is installed."""


@dataclasses.dataclass(frozen=True)
class Run:
    """How a run of tests ended."""

    code: int | None
    """The exit code of pytest, negative for a signal; None where its time was up."""
    seconds: float
    output: str
    """The last of what was printed."""

    @property
    def passed(self) -> bool:
        """Whether there were tests, and all of them passed."""
        return self.code == 0


@functools.cache
def namespace() -> tuple[str, ...]:
    """Return what a command is begun with to have its processes apart; nothing where that is not allowed."""
    if sys.platform != "linux" or shutil.which("unshare") is None or os.geteuid() != 0:
        return ()
    return NAMESPACE if subprocess.run([*NAMESPACE, "true"], capture_output=True).returncode == 0 else ()


def list_files(root: Path) -> list[str]:
    """Return the files of a repository that git knows or does not ignore."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    return sorted(filter(None, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")))


class Copy:
    """A copy of the working tree, and a process that runs its tests."""

    def __init__(self, root: Path, folder: Path) -> None:
        folder.chmod(0o755)  # tests of other users' processes read the copy, as they can read the working tree
        self.root = folder / root.name
        for name in list_files(root):
            if (root / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, self.root / name, follow_symlinks=False)
        temporary = folder / "tmp"
        temporary.mkdir()
        temporary.chmod(0o1777)
        path = os.pathsep.join([str(self.root), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._environment = {**os.environ, "PYTHONPATH": path, "TMPDIR": str(temporary), "PYTHONHASHSEED": "0", "PYTEST_ADDOPTS": ""}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else each run compiles the library again
        self._process: subprocess.Popen[str] | None = None
        self._is_closed = False
        self._writes = 0
        self._unmutated: dict[tuple[str, ...], Run] = {}

    def _ask(self, **request: Any) -> dict[str, Any]:
        if self._is_closed:
            raise RuntimeError("the copy is closed")
        if self._process is None:
            command = [*namespace(), sys.executable, str(WORKER), *PRELOADED]
            self._process = subprocess.Popen(
                command,
                cwd=self.root,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the process that runs tests has ended")
        return dict(json.loads(answer))

    def origin(self, package: str) -> str | None:
        """Return the file from which the tests import a package."""
        return self._ask(package=package)["origin"]  # type: ignore[no-any-return]

    def run(self, arguments: tuple[str, ...], seconds: float) -> Run:
        """Run pytest with some arguments, for at most some seconds."""
        options = ["-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider"]
        if "-n" not in arguments:  # the processes of xdist do not know the profile
            options.append("--hypothesis-profile=mutants")
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of plugins, which the worker has imported
        return Run(**self._ask(arguments=[*options, *arguments], seconds=seconds))

    def run_unmutated(self, arguments: tuple[str, ...]) -> Run:
        """Run pytest where no fault is planted; the second time, return what the first one returned."""
        if arguments not in self._unmutated:
            self._unmutated[arguments] = self.run(arguments, 1200.0)
        return self._unmutated[arguments]

    def run_bounded(self, arguments: tuple[str, ...]) -> Run:
        """Run pytest for at most five times what it takes without a fault, and some seconds."""
        return self.run(arguments, 5 * self.run_unmutated(arguments).seconds + SECONDS)

    @contextlib.contextmanager
    def planted(self, module: str, code: str) -> Iterator[None]:
        """Plant a fault for a while: other code of a module."""
        path = self.root / module
        before, times = path.read_bytes(), path.stat()
        self._writes += 1
        try:
            path.write_text(code, encoding="utf-8")
            # Python takes what it compiled of a file of the same size and second: each code has a second of its own.
            os.utime(path, (times.st_atime, times.st_mtime + self._writes))
            yield
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def close(self) -> None:
        """End the process and all that it has started; no other one is begun."""
        self._is_closed = True
        if self._process is not None:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            if namespace():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()  # so it ends what it has begun, and itself
            self._process.wait()
            self._process.stdout.close()
            self._process = None


@contextlib.contextmanager
def copied(root: Path, packages: tuple[str, ...]) -> Iterator[Copy]:
    """Copy a repository for a while.

    Raises:
        RuntimeError: The tests would not import the packages from the copy.
    """
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        copy = Copy(root, Path(folder))
        try:
            for package in packages:
                origin = copy.origin(package)
                if origin is None or not Path(origin).is_relative_to(copy.root):
                    raise RuntimeError(f"{package} would be imported from {origin}, not from the copy in {copy.root}")
            yield copy
        finally:
            copy.close()
