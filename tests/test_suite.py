"""What the suite promises of every test: it ends, with all that it started, wherever it is run; and its samples follow from a seed."""

from __future__ import annotations

import ast
import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.own_tests import modules_without_tests, own_test_file

ROOT = Path(__file__).parent.parent
MODULES = sorted(Path(__file__).parent.rglob("test_*.py"))


HANGS = """
import ctypes, time
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
    lock = ctypes.create_string_buffer(256)  # which is a mutex that nobody holds
    for _ in range(2):
        ctypes.PyDLL(None).pthread_mutex_lock(lock)

def test_is_quick():
    pass
"""


def run_pytest(cases: Path, code: str, *options: str, **environment: str) -> tuple[int, str]:
    """Run tests of a file of its own in a fresh process."""
    (cases / "test_cases.py").write_text(code)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "test_cases.py",
        "-c",
        "/dev/null",
        "--rootdir",
        str(cases),
        "-p",
        "no:cacheprovider",
        "-p",
        "pytest_timeout",
    ]
    done = subprocess.run(
        [*command, *options],
        cwd=cases,
        env={**os.environ, "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="waits for a mutex of glibc or musl")
def test_a_case_that_hangs_fails_by_its_name_and_the_others_go_on(tmp_path: Path) -> None:
    code, output = run_pytest(
        tmp_path, HANGS, "-p", "xdist", "-n1", "-o", "faulthandler_timeout=4", "-o", "faulthandler_exit_on_timeout=true"
    )
    assert code == 1, output
    assert "FAILED test_cases.py::test_waits - Failed: Timeout (>1.0s)" in output
    assert "crashed while running 'test_cases.py::test_takes_what_is_raised_for_an_error_of_its_own'" in output
    assert "crashed while running 'test_cases.py::test_does_not_come_back_from_c[7]'" in output
    assert "3 failed, 1 passed" in output


CASES = """
import os, signal, subprocess, sys
import pytest
from tests import conftest
from tests.sampling import SEED

conftest.SECONDS_TO_END = 0.5

def test_leaves_a_process_behind():
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)']).wait()"
    with open("left", "w") as file:
        print(subprocess.Popen([sys.executable, "-c", code], start_new_session=True).pid, file=file)

def test_ends_what_it_starts():
    subprocess.run([sys.executable, "-c", ""], check=True)

def test_ctrl_c_in_another_process():
    code = "import time; print('ready', flush=True); time.sleep(1000)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\\n"
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate()[1]

def test_ctrl_c_in_this_process():
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)

def test_seed():
    assert SEED == 7
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_holds_for_every_test_although_the_run_was_started_with_ctrl_c_ignored(tmp_path: Path) -> None:
    """As a shell starts what a script puts into the background.

    A process that a test leaves behind is a failure, and is ended; Ctrl-C interrupts; the seed of samples comes from outside and is named.
    """
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code, output = run_pytest(tmp_path, CASES, "-p", "xdist", "-n1", "-p", "tests.conftest", VFGYM_TEST_SEED="7")
    finally:
        signal.signal(signal.SIGINT, before)
    assert code == 1, output
    assert "5 passed, 1 error" in output
    assert "ERROR test_cases.py::test_leaves_a_process_behind" in output
    assert "test_leaves_a_process_behind leaves processes behind" in output
    assert not Path(f"/proc/{(tmp_path / 'left').read_text().strip()}").exists()
    assert "random samples: VFGYM_TEST_SEED=7" in output


def test_without_a_seed_from_outside_samples_are_those_of_seed_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VFGYM_TEST_SEED", raising=False)
    assert runpy.run_path(str(ROOT / "tests" / "sampling.py"))["SEED"] == 0


# What is true of the test files

MOST_WITHOUT = 28
"""Modules that may be without a test file of their name: those that can't be told apart from a neighbour."""


def test_modules_have_test_files_of_their_names() -> None:
    """Tests live where the code lives (`scripts/own_tests.py` says where)."""
    without = modules_without_tests()
    assert len(without) <= MOST_WITHOUT, "\n".join(["give these a test file of their name:", *map(str, without)])


@pytest.mark.parametrize(
    ("module", "file"),
    [
        ("vfgym/state.py", "tests/test_state.py"),
        ("vfgym/clients/http/retries.py", "tests/clients/http/test_retries.py"),
        ("vfgym/clients/http/_retries.py", "tests/clients/http/test_retries.py"),
        ("vfgym/__init__.py", "tests/test_vfgym.py"),
        ("vfgym/__main__.py", "tests/test_main.py"),
        ("vfgym/cli/__init__.py", "tests/cli/test_cli.py"),
        ("verifiers_compat/types.py", "tests/verifiers_compat/test_types.py"),
        ("verifiers_compat/utils/data_utils.py", "tests/verifiers_compat/utils/test_data_utils.py"),
    ],
)
def test_a_test_file_lies_where_its_module_lies(module: str, file: str) -> None:
    assert own_test_file(Path(module)) == Path(file)


def test_modules_that_define_nothing_need_no_tests(tmp_path: Path) -> None:
    for name, code in {
        "names": "from os import path\nX = 1",
        "function": "async def f(): ...",
        "nested": "if True:\n    class C: ...",
        "has": "def f(): ...",
    }.items():
        for package in ("vfgym", "verifiers_compat/v1"):
            path = tmp_path / package / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
    (tmp_path / "tests/verifiers_compat/v1").mkdir(parents=True)
    (tmp_path / "tests/test_has.py").touch()
    (tmp_path / "tests/verifiers_compat/v1/test_function.py").touch()
    found = [str(module) for module in modules_without_tests(tmp_path)]
    assert found == ["vfgym/function.py", "vfgym/nested.py", "verifiers_compat/v1/has.py", "verifiers_compat/v1/nested.py"]


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
