"""`python -m verifiers_compat`: programs run as ``python`` would run them, with ``verifiers`` as a name of this package."""

from __future__ import annotations

import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from verifiers_compat.__main__ import main
from verifiers_compat.alias import uninstall

SCRIPT = """
import sys, os
import verifiers as vf
import neighbour
print(vf.__name__, sys.argv, sys.path[0] == os.path.dirname(os.path.realpath(__file__)), sys.modules["__main__"].__dict__ is globals())
print(__name__, __spec__, __package__)
"""

Outcome = tuple[Any, str, str]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with programs; what they import and change of this process is undone."""
    (tmp_path / "neighbour.py").write_text("")
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(
        "import sys, verifiers\nfrom . import part\nprint(sys.argv, __package__, __spec__.name, __file__)\n"
    )
    (package / "part.py").write_text("import sys, verifiers\nprint(__name__, sys.argv[1:])\nif __name__ == '__main__': sys.exit(7)\n")
    for name, value in (("argv", ["python"]), ("path", ["", *sys.path]), ("excepthook", sys.__excepthook__)):
        monkeypatch.setattr(sys, name, value)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.chdir(tmp_path)
    before = {*sys.modules}
    yield tmp_path
    uninstall()
    for name in {*sys.modules} - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def run(project: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Runs a command line in this process, and returns its exit code and what it wrote."""

    def run(*arguments: str) -> Outcome:
        code = 0
        try:
            main(arguments)
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return run


def python(*arguments: str, cwd: Path) -> Outcome:
    done = subprocess.run([sys.executable, "-W", "error", *arguments], capture_output=True, text=True, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


def test_a_script_runs_as_main_beside_its_neighbours(project: Path, run: Callable[..., Outcome]) -> None:
    """It has its own arguments, also those that look like those of the command."""
    script = project / "elsewhere.py"
    script.write_text(SCRIPT)
    expected = f"verifiers_compat {[str(script), 'a', '--flag', '-m']} True True\n__main__ None None\n"
    assert run(str(script), "a", "--flag", "-m") == (0, expected, "")


def test_a_module_runs_with_its_exit_code_and_a_package_by_its_main(project: Path, run: Callable[..., Outcome]) -> None:
    main_file = str(project / "package" / "__main__.py")
    told = f"package.part ['a']\n{[main_file, 'a']} package package.__main__ {main_file}\n"
    assert run("-m", "package", "a") == (0, told, "")
    assert run("-m", "package.part", "b") == (7, "__main__ ['b']\n", "")


def test_modules_of_the_alias_run_too_and_help_is_no_error(run: Callable[..., Outcome]) -> None:
    assert run("-m", "verifiers.utils.config_utils") == (0, "", "")
    for option in ("-h", "--help"):
        code, written, error = run(option)
        assert (code, written.startswith("usage: "), error) == (0, True, "")


@pytest.mark.parametrize("name", ["program", "program.zip", "program.pyz"])
def test_directories_and_archives_run(project: Path, run: Callable[..., Outcome], name: str) -> None:
    code = "import verifiers, sys; print(verifiers.__name__, sys.argv[1:])"
    if name == "program":
        (project / name).mkdir()
        (project / name / "__main__.py").write_text(code)
    else:
        with zipfile.ZipFile(project / name, "w") as archive:
            archive.writestr("__main__.py", code)
    assert run(str(project / name), "a") == (0, "verifiers_compat ['a']\n", "")


@pytest.mark.parametrize(
    ("code", "status", "told"),
    [
        ("import sys; sys.exit(3)", 3, ""),
        ("raise SystemExit('no way')", "no way", ""),
        ("def f():\n    raise KeyError('x')\nf()", 1, None),
        ("x = (", 1, None),
        ("import sys; sys.excepthook = lambda *error: print('hooked', file=sys.stderr); 1 / 0", 1, "hooked\n"),
        ("# coding: latin-1\nassert 'ä' == chr(228)", 0, ""),
    ],
)
def test_exit_codes_and_tracebacks_are_those_of_python(
    project: Path, run: Callable[..., Outcome], code: str, status: Any, told: str | None
) -> None:
    """None stands for what ``python script.py`` itself writes to stderr."""
    script = project / "script.py"
    script.write_bytes(code.encode("latin-1"))
    expected = python(str(script), cwd=project)[2] if told is None else told
    assert run(str(script)) == (status, "", expected)


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        ([], 2, "usage: "),
        (["-x"], 2, "usage: "),
        (["-m"], 2, "usage: "),
        (["no_such_script.py"], 2, "no_such_script.py': [Errno 2] No such file or directory"),
        (["-m", "no_such_module"], 1, "No module named no_such_module"),
        (["-m", "no_such_package.module"], 1, "no_such_package"),
        (["-m", "sys"], 1, "'sys' has no code that could be run"),
    ],
)
def test_what_cannot_be_run_is_told(run: Callable[..., Outcome], arguments: list[str], status: int, told: str) -> None:
    code, written, error = run(*arguments)
    assert (code, written, told in error) == (status, "", True)


def test_an_interrupt_ends_the_process_as_the_signal_does(project: Path) -> None:
    """Beside it, with ``-P`` the folder of the script is not searched, as with ``python -P``."""
    script = project / "script.py"
    script.write_text(
        "import os, signal, sys\nprint(os.path.dirname(__file__) in sys.path)\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass\n"
    )
    code, written, error = python("-P", "-m", "verifiers_compat", str(script), cwd=project)
    assert (code, written, error.rstrip().splitlines()[-1]) == (-signal.SIGINT, "False\n", "KeyboardInterrupt")
