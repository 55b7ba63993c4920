"""Processes as an executor: each call has one, which ends with it, and one that dies says how."""

from __future__ import annotations

import concurrent.futures
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.runs.executors.players import processes
from vfgym.errors import WorkerDied
from vfgym.runs.executors.link import LinkClosed
from vfgym.runs.executors.processes import ProcessExecutor, usable_cores

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


def write_own_id(path: str) -> None:
    """Say which process this is, and send it what Ctrl-C sends."""
    os.kill(os.getpid(), signal.SIGINT)
    Path(path).write_text(str(os.getpid()))


def wait_for_ever() -> None:
    """Wait, whatever comes."""
    while True:
        time.sleep(100)


def lose_the_coordinator() -> None:
    """Find nobody."""
    raise LinkClosed("cannot reach the coordinator")


def test_a_call_has_a_process_of_its_own_which_ctrl_c_does_not_end(tmp_path: Path) -> None:
    with processes() as executor:
        for future in [executor.submit(write_own_id, str(tmp_path / name)) for name in "ab"]:
            assert future.result() is None
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, []), "it reaches this process as before"
    ids = {int((tmp_path / name).read_text()) for name in "ab"}
    assert len(ids - {os.getpid()}) == 2


@pytest.mark.parametrize(
    ("func", "arguments", "message"),
    [
        (os._exit, (7,), r"the process \d+ ended with exit code 7$"),
        (os._exit, (1,), r"ended with exit code 1 \(a script that starts processes does so below `if __name__ == \"__main__\":`\)$"),
        (signal.raise_signal, (signal.SIGKILL,), r"the process \d+ was ended by SIGKILL \(was there enough memory\?\)"),
        (signal.raise_signal, (signal.SIGTERM,), r"the process \d+ was ended by SIGTERM$"),
        (lose_the_coordinator, (), r"the process \d+ ended with exit code 3$"),
    ],
)
def test_one_that_dies_takes_no_other_with_it_and_says_how(func: object, arguments: tuple[int, ...], message: str) -> None:
    with processes() as executor:
        dying = executor.submit(func, *arguments)  # type: ignore[arg-type]
        other = executor.submit(os.getpid)
        with pytest.raises(WorkerDied, match=message):
            dying.result()
        assert other.result() is None


def test_what_runs_is_ended_as_it_is_shut_down() -> None:
    executor = processes()
    future = executor.submit(wait_for_ever)
    executor.shutdown()
    with pytest.raises(WorkerDied):
        future.result()
    with pytest.raises(RuntimeError, match="it was shut down"):
        executor.submit(os.getpid)


def test_it_is_an_executor_as_others_are() -> None:
    assert isinstance(ProcessExecutor(), concurrent.futures.Executor)
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)
