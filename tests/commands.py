"""The command line as tests run it: each command in a process of its own, forked from one that has imported what commands need.

That saves each of them a second of imports. How the command starts and ends as a program is tested where it is started as one.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.programs import SECONDS

STREAMS = ("stdin", "stdout", "stderr")

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    ["tests.commands", "vfgym.cli.app", "vfgym.cli.eval", "vfgym.cli.sweeps", "datasets", "reasoning_gym", "openai", "anthropic"]
)


def run_vfgym(*arguments: str, stdin: str = "", exit_code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``vfgym`` in the current directory; return what it wrote.

    Args:
        *arguments: The arguments.
        stdin: What it can read.
        exit_code: What it has to exit with.
        **environment: Environment variables, beside those of this process.
    """
    with tempfile.TemporaryDirectory() as name:
        given, *written = (Path(name, stream) for stream in STREAMS)
        given.write_text(stdin)
        process = _processes.Process(target=_run, args=(arguments, os.getcwd(), {**os.environ, **environment}, name))
        process.start()
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise AssertionError(f"vfgym {' '.join(arguments)} takes longer than {SECONDS:g} s")
        done = subprocess.CompletedProcess(arguments, process.exitcode, *(file.read_text() for file in written))
        process.close()
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done


def _run(arguments: Sequence[str], directory: str, environment: Mapping[str, str], folder: str) -> None:
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    for number, (stream, mode) in enumerate(zip(STREAMS, "rww", strict=True)):
        file = open(Path(folder, stream), mode, encoding="utf-8")  # noqa: SIM115 (open until the process ends)
        os.dup2(file.fileno(), number)
        setattr(sys, stream, file)
    sys.argv = ["vfgym", *arguments]
    sys.path.insert(0, "")
    from vfgym.cli import main

    main()
