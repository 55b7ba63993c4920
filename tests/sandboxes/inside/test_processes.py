"""Processes below others, and their CPU time, as the agent finds them. How programs are started and ended is tested in sandboxes."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys

import pytest

from vfgym.sandboxes.inside import processes
from vfgym.sandboxes.inside.processes import cpu_seconds, find_processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
TREE = {2: 1, 3: 2, 4: 3, 5: 1, 6: 5, 1: 0, 7: 7}


@pytest.mark.parametrize(
    ("above", "below"),
    [([1], {2, 3, 4, 5, 6}), ([2], {3, 4}), ([4], set()), ([3, 5], {4, 6}), ([2, 3], {3, 4}), ([], set()), ([99], set()), ([7], {7})],
)
def test_all_that_is_below_some_is_found_however_deep(above: list[int], below: set[int]) -> None:
    assert processes._below(above, TREE) == below


def test_without_a_filter_for_this_machine_nothing_is_filtered_quietly() -> None:
    with pytest.raises(OSError, match="there is no filter of system calls for") as caught:
        processes.filter_calls(None)
    assert caught.value.errno == errno.ENOSYS


@pytest.mark.parametrize(("most", "hard", "set_to"), [(5, 10, 5), (10, 10, 10), (20, 10, 10), (0, 10, 0), (20, resource.RLIM_INFINITY, 20)])
def test_a_limit_is_never_above_what_there_is_already(most: int, hard: int, set_to: int, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[object] = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, pair: limits.append((kind, pair)))
    processes._limit(7, most)
    processes._limit(None, most)
    assert limits == [(7, (set_to, set_to))], "a limit that this system does not have is left out"


class Ended(processes.Process):
    """A program whose keeper has said what a test says."""

    def __init__(self, *said: bytes) -> None:
        self.status, writing = os.pipe()
        self.main, self.exit_code, self._said, self.stdin = 0, processes._KILLED, b"", -1
        self._texts, self._writing = list(said), writing

    def read(self) -> bool:
        if self._texts:
            os.write(self._writing, self._texts.pop(0))
        else:
            os.close(self._writing)
        return self.read_status()


@pytest.mark.parametrize(
    ("said", "main", "exit_code"),
    [
        ([b"70", b"0000000\n", b"0\n"], 700000000, 0),
        ([b"700000000\n3\n"], 700000000, 3),
        ([b"700000000\n1", b"43\n"], 700000000, 143),
        ([b"700000000\n"], 700000000, 137),
        ([], 0, 137),
        ([b"0\n126\n"], 0, 126),
    ],
)
def test_what_a_keeper_says_may_come_in_pieces_or_not_at_all(
    said: list[bytes], main: int, exit_code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_reap", lambda: None)
    process = Ended(*said)
    for _ in said:
        assert not process.read()
        assert process.main in (0, main), "a number is not taken before its end"
    assert process.read()
    assert (process.main, process.exit_code) == (main, exit_code)
    os.close(process.status)


def test_nobody_is_interrupted_or_killed_before_a_program_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append(("kill", pid, number)))
    monkeypatch.setattr(os, "killpg", lambda pid, number: sent.append(("killpg", pid, number)))
    process = Ended()
    process.keeper = 700000001
    process.interrupt()
    process.kill()
    assert sent == [("kill", 700000001, 9)], "group 0 is our own"
    process.main = 700000002
    process.interrupt()
    process.kill()
    assert sent[1:] == [("killpg", 700000002, 2), ("kill", 700000001, 9), ("killpg", 700000002, 9)]
    os.close(process.status)
    os.close(process._writing)


def test_processes_and_those_that_they_started_are_found_until_they_have_ended() -> None:
    code = (
        "import subprocess, sys; child = subprocess.Popen(['sleep', '1000']); print(child.pid, flush=True); sys.stdin.read(); child.kill()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert find_processes([process.pid]) == {child}
        assert find_processes([child]) == set()
        assert child in processes._parents()
        process.kill()
        process.wait()
        assert find_processes([process.pid]) == set(), "what it left belongs to another one"
        processes._signal([child, 1 << 30], 9)


def test_the_cpu_time_is_that_of_all_that_runs_below_and_has_ended_there() -> None:
    burns = "import time\nwhile time.process_time() < {}: pass"
    code = (
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burns.format(0.2)!r}])\n"
        f"{burns.format(0.2)}\nprint('burnt', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "burnt\n"
        assert cpu_seconds(process.pid) >= 0.38, "ticks are rounded"
    assert cpu_seconds(1 << 30) == 0.0
