"""The command lines as tests run them: each command in a process of its own, forked from one that has imported what commands need.

That saves each of them a second of imports. How the command starts and ends as a program is tested where it is started as one.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO
from unittest import mock

from tests.programs import SECONDS

ROOT = Path(__file__).parent.parent
STREAMS = ("stdin", "stdout", "stderr")

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    [*("tests.commands", "verifiers_compat.cli.commands.eval"), *("datasets", "reasoning_gym", "openai", "anthropic")]
)


def run_vfgym(*arguments: str, stdin: str = "", exit_code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``vfgym`` in this process and in the current directory, whose modules it forgets afterwards; return what it wrote.

    Args:
        *arguments: The arguments.
        stdin: What it can read.
        exit_code: What it has to exit with.
        **environment: Environment variables, beside those of this process.
    """
    from vfgym.cli import main

    stdout, stderr = io.StringIO(), io.StringIO()
    with (
        log_written_to(stderr),
        mock.patch.dict(os.environ, environment),
        mock.patch.object(sys, "argv", ["vfgym", *arguments]),
        mock.patch.object(sys, "stdin", io.StringIO(stdin)),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
        own_modules(Path.cwd()),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    assert code == exit_code, stdout.getvalue() + stderr.getvalue()
    return subprocess.CompletedProcess(arguments, exit_code, stdout.getvalue(), stderr.getvalue())


@contextlib.contextmanager
def log_written_to(stream: TextIO) -> Iterator[None]:
    """Write warnings of the log to a stream, as Python does where no handler is set up."""
    handler = logging.StreamHandler(stream)
    handler.setLevel(logging.WARNING)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


@contextlib.contextmanager
def own_modules(directory: Path) -> Iterator[None]:
    """Let the modules of a directory be imported; they, and the environments that they register, are forgotten afterwards."""
    import gymnasium

    registered = dict(gymnasium.registry)
    importlib.invalidate_caches()
    with mock.patch.object(sys, "path", [str(directory), *sys.path]):
        try:
            yield
        finally:
            gymnasium.registry.clear()
            gymnasium.registry.update(registered)
            for name, module in [*sys.modules.items()]:
                file = Path(getattr(module, "__file__", None) or "/")
                if file.is_relative_to(directory) and not file.is_relative_to(ROOT):
                    del sys.modules[name]


def run_module(module: str, *arguments: str, exit_code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a module as ``python -m`` does, in the current directory; return what it wrote.

    Args:
        module: The module.
        *arguments: The arguments.
        exit_code: What it has to exit with.
        **environment: Environment variables, beside those of this process. Modules are looked for in ``PYTHONPATH``, too.
    """
    return _run_forked(_run_module, (module, *arguments), "", exit_code, environment)


def _run_forked(
    run: Callable[[Sequence[str]], None], arguments: Sequence[str], stdin: str, exit_code: int, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as name:
        given, *written = (Path(name, stream) for stream in STREAMS)
        given.write_text(stdin)
        process = _processes.Process(target=_begin, args=(run, arguments, os.getcwd(), {**os.environ, **environment}, name))
        process.start()
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise AssertionError(f"{' '.join(arguments)} takes longer than {SECONDS:g} s")
        done = subprocess.CompletedProcess(arguments, process.exitcode, *(file.read_text() for file in written))
        process.close()
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done


def _begin(
    run: Callable[[Sequence[str]], None], arguments: Sequence[str], directory: str, environment: Mapping[str, str], folder: str
) -> None:
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    for number, (stream, mode) in enumerate(zip(STREAMS, "rww", strict=True)):
        file = open(Path(folder, stream), mode, encoding="utf-8")  # noqa: SIM115 (open until the process ends)
        os.dup2(file.fileno(), number)
        setattr(sys, stream, file)
    sys.path[:0] = ["", *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    run(arguments)


def _run_module(arguments: Sequence[str]) -> None:
    sys.argv = list(arguments)
    sys.modules.pop(arguments[0], None)  # imported before the fork
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
