"""A process that runs pytest again and again, each time in a fork of itself: it has imported what tests import, but not what is mutated.

usage: python worker.py MODULE ...  (imports the modules; then a request a line on stdin, an answer a line on stdout, both JSON)

Whatever a run has started is killed when it is over, and the run itself when its time is up or when nobody reads the answers any more.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import importlib.util
import json
import os
import select
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h
MEMORY = 6 << 30
"""Bytes of data that a process of a run may have: a loop that has lost its end must not take all that there is."""


def preload(names: list[str]) -> None:
    """Import modules, where they are installed."""
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    with contextlib.suppress(ImportError):
        import hypothesis

        # A counterexample is enough; to shrink it takes a minute.
        phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
        hypothesis.settings.register_profile("mutants", hypothesis.settings.get_profile("ci"), phases=phases)


def kill_children() -> None:
    """Kill what a run has left; what their parents leave becomes a child of this process, and is killed in the next round."""
    while True:
        for path in Path("/proc/self/task").glob("*/children"):
            for child in path.read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def run(arguments: list[str], seconds: float, requests: int) -> dict[str, Any]:
    """Run pytest with some arguments for at most some seconds; return its exit code (None: killed), its seconds and its last words."""
    with tempfile.TemporaryFile() as output:
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            os._exit(_run_here(arguments, output.fileno()))
        gone = select.poll()
        gone.register(requests, select.POLLIN)
        status = None
        while status is None and time.monotonic() - started < seconds:
            ended, result = os.waitpid(child, os.WNOHANG)
            if ended:
                status = result
            elif gone.poll(10):  # ms; nothing is sent while a run goes on, so this is the end of the file
                break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        kill_children()
        code = None if status is None else os.waitstatus_to_exitcode(status)
        output.seek(max(0, os.fstat(output.fileno()).st_size - 4000))
        text = output.read().decode(errors="replace")
        return {"code": code, "seconds": time.monotonic() - started, "output": text}


def _run_here(arguments: list[str], output: int) -> int:
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    with contextlib.suppress(ImportError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    import pytest

    try:
        code = int(pytest.main(arguments))
    except BaseException as error:
        print(f"pytest ended by {error!r}")
        code = 3
    sys.stdout.flush()
    return code


def main() -> None:
    """Answer requests until there are no more."""
    sys.path.remove(str(Path(__file__).parent))  # not by -P, of which tests of scripts would see that it is given
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    preload(sys.argv[1:])
    gc.freeze()  # pytest collects garbage twice a run: not among what is imported
    with open(requests, encoding="utf-8", closefd=False) as lines, open(answers, "w", encoding="utf-8") as written:
        while line := lines.readline():
            request = json.loads(line)
            if "package" in request:
                found = importlib.util.find_spec(request["package"])
                answer: dict[str, Any] = {"origin": found and found.origin}
            else:
                answer = run(request["arguments"], request["seconds"], requests)
            print(json.dumps(answer), file=written, flush=True)


if __name__ == "__main__":
    main()
