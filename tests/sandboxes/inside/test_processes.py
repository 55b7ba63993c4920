"""Processes below others, and their CPU time, as the agent finds them. How programs are started and ended is tested in sandboxes."""

from __future__ import annotations

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
