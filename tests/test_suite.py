"""What the suite promises of every test: it ends, with all that it started, wherever it is run; and its samples follow from a seed."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted(Path(__file__).parent.rglob("test_*.py"))


def run_pytest(cases: Path, code: str, *options: str, **environment: str) -> tuple[int, str]:
    """Run tests of a file of its own in a fresh process, with what holds for all tests here."""
    file = cases / "test_cases.py"
    file.write_text(code)
    command = [sys.executable, "-m", "pytest", str(file), "-p", "tests.conftest", "-c", "/dev/null", "--rootdir", str(cases)]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *options],
        cwd=cases,
        env={**os.environ, "PYTEST_ADDOPTS": "", "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


HANGS = """
import itertools, time
import pytest

@pytest.mark.timeout(1)
def test_waits():
    time.sleep(1000)

@pytest.mark.timeout(1)
def test_takes_what_is_raised_for_an_error_of_its_own():
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            pass

@pytest.mark.parametrize("number", [7])
def test_does_not_come_back_from_c(number):
    sum(itertools.repeat(0))

def test_is_quick():
    pass
"""


def test_a_case_that_hangs_fails_by_its_name_and_the_others_go_on(tmp_path: Path) -> None:
    code, output = run_pytest(tmp_path, HANGS, "-n1", "-o", "faulthandler_timeout=4", "-o", "faulthandler_exit_on_timeout=true")
    assert code == 1, output
    assert "FAILED test_cases.py::test_waits - Failed: Timeout (>1.0s)" in output
    assert "crashed while running 'test_cases.py::test_takes_what_is_raised_for_an_error_of_its_own'" in output
    assert "crashed while running 'test_cases.py::test_does_not_come_back_from_c[7]'" in output
    assert "3 failed, 1 passed" in output


LEAVES = """
import os, subprocess, sys

def test_leaves_a_process_behind():
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)']).wait()"
    print("pid", subprocess.Popen([sys.executable, "-c", code], start_new_session=True).pid)

def test_ends_what_it_starts():
    subprocess.run([sys.executable, "-c", ""], check=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_that_a_test_leaves_behind_is_a_failure_and_is_ended(tmp_path: Path) -> None:
    code, output = run_pytest(tmp_path, LEAVES)
    assert code == 1, output
    assert "test_leaves_a_process_behind leaves processes behind" in output
    assert "1 error" in output
    pid = int(output.partition("pid ")[2].split()[0])
    assert not Path(f"/proc/{pid}").exists()


INTERRUPTS = """
import signal, subprocess, sys
import pytest

def test_ctrl_c_in_another_process():
    code = "import time; print('ready', flush=True); time.sleep(1000)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\\n"
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate()[1]

def test_ctrl_c_in_this_process():
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_ctrl_c_interrupts_although_the_run_was_started_with_the_signal_ignored(tmp_path: Path, workers: str) -> None:
    """As a shell starts what a script puts into the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code, output = run_pytest(tmp_path, INTERRUPTS, "-n", workers)
    finally:
        signal.signal(signal.SIGINT, before)
    assert code == 0, output
    assert "2 passed" in output


SAMPLES = """
from tests.sampling import SEED

def test_seed():
    assert SEED == {seed}
"""


@pytest.mark.parametrize(("environment", "seed"), [({}, 0), ({"VFGYM_TEST_SEED": "7"}, 7)])
def test_the_seed_of_random_samples_comes_from_outside_and_is_printed(tmp_path: Path, environment: dict[str, str], seed: int) -> None:
    default = {} if environment else {"VFGYM_TEST_SEED": "0"}
    code, output = run_pytest(tmp_path, SAMPLES.format(seed=seed), **{**default, **environment})
    assert code == 0, output
    assert f"random samples: VFGYM_TEST_SEED={seed}" in output


def test_no_sample_changes_with_the_calendar() -> None:
    names = ("today", "toordinal")
    for module in MODULES:
        text = module.read_text()
        for node in ast.walk(ast.parse(text)) if any(name in text for name in names) else ():
            assert not (isinstance(node, ast.Attribute) and node.attr in names), f"{module}: line {node.lineno}"


def test_tests_that_interrupt_say_so_in_their_names() -> None:
    """So that one expression deselects them where nobody can press Ctrl-C: ``-k "not ctrl_c and not interrupt"``."""
    for module in MODULES:
        text = module.read_text()
        for node in ast.walk(ast.parse(text)) if "SIGINT" in text else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                sends = [call for call in ast.walk(node) if isinstance(call, ast.Call) and _sends_interrupt(call)]
                assert not sends or "ctrl_c" in node.name or "interrupt" in node.name, f"{module}: {node.name}"


def _sends_interrupt(call: ast.Call) -> bool:
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    is_sender = function in ("kill", "killpg", "send_signal", "raise_signal")
    return is_sender and any(isinstance(each, ast.Attribute) and each.attr == "SIGINT" for each in call.args)
