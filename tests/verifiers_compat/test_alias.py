"""``verifiers`` as a name of this package: the same modules, its version, taking it back, and running programs with it.

Every test runs in a process of its own, as users' programs do.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

INSTALL = "from verifiers_compat import install, uninstall\ninstall()\n"


def _run(*arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env={**os.environ, **(env or {})})


def _checked(script: str, **options: object) -> str:
    done = _run("-c", script, **options)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stderr
    return done.stdout


def _fake_verifiers(folder: Path) -> dict[str, str]:
    """Put another `verifiers` on the path, as if it were installed."""
    package = folder / "verifiers"
    package.mkdir()
    (package / "__init__.py").write_text("IS_FAKE = True\n")
    (package / "own.py").write_text("")
    return {"PYTHONPATH": str(folder)}


def test_both_names_give_the_same_modules() -> None:
    """Whichever is imported first, at any depth, and whatever is imported later."""
    _checked(
        INSTALL
        + """
import sys, importlib
import verifiers as vf
import verifiers.utils.data_utils
from verifiers.envs.multiturn_env import MultiTurnEnv
import verifiers_compat, verifiers_compat.envs.multiturn_env, verifiers_compat.utils.data_utils
assert vf is verifiers_compat and vf.MultiTurnEnv is MultiTurnEnv is verifiers_compat.envs.multiturn_env.MultiTurnEnv
assert verifiers.utils.data_utils is verifiers_compat.utils.data_utils
assert sys.modules["verifiers.utils.data_utils"] is sys.modules["verifiers_compat.utils.data_utils"]
import verifiers.errors
assert vf.errors is verifiers.errors is importlib.import_module("verifiers_compat.errors")
from verifiers import types
assert types.State is vf.State
"""
    )


def test_specs_reload_and_missing_modules() -> None:
    _checked(
        INSTALL
        + """
import importlib, importlib.util, importlib.resources
assert importlib.util.find_spec("verifiers").submodule_search_locations
assert importlib.util.find_spec("verifiers.utils.config_utils").origin.endswith("config_utils.py")
assert importlib.util.find_spec("verifiers.no_such_module") is None
import verifiers.utils.config_utils as config_utils
assert config_utils.__spec__.name == config_utils.__name__ == "verifiers_compat.utils.config_utils"
assert importlib.reload(config_utils) is config_utils
import verifiers_compat.utils.config_utils as again
assert again is config_utils
import verifiers_compat.alias
importlib.reload(verifiers_compat.alias).install()
import sys
assert sum(type(finder).__name__ == "AliasFinder" for finder in sys.meta_path) == 1
verifiers_compat.alias.uninstall()
assert sum(type(finder).__name__ == "AliasFinder" for finder in sys.meta_path) == 0
verifiers_compat.alias.install()
assert importlib.resources.files("verifiers").joinpath("alias.py").is_file()
try:
    import verifiers.no_such_module
except ModuleNotFoundError as error:
    assert error.name == "verifiers.no_such_module"
else:
    raise SystemExit("it was found")
"""
    )


def test_classes_are_pickled_under_either_name(tmp_path: Path) -> None:
    """What was pickled with the alias loads without it, and a pickle that names ``verifiers`` loads with it."""
    own, foreign = tmp_path / "own", tmp_path / "foreign"
    _checked(
        f"{INSTALL}import pathlib, pickle, verifiers\npathlib.Path({str(own)!r}).write_bytes(pickle.dumps(verifiers.UserMessage('hi')))"
    )
    assert pickle.loads(own.read_bytes())["content"] == "hi"
    foreign.write_bytes(b"cverifiers.errors\nToolError\n.")
    read = f"pickle.loads(pathlib.Path({str(foreign)!r}).read_bytes())"
    _checked(f"{INSTALL}import pathlib, pickle, vfgym.errors\nassert {read} is vfgym.errors.ToolError")


def test_installed_version_is_that_of_the_documented_api() -> None:
    _checked(
        INSTALL
        + """
import importlib.metadata as metadata
from verifiers_compat.alias import API_VERSION
assert metadata.version("verifiers") == metadata.version("Verifiers") == API_VERSION
assert metadata.distribution("verifiers").metadata["Name"] == "verifiers"
assert "verifiers" in {distribution.metadata["Name"] for distribution in metadata.distributions()}
assert metadata.version("vfgym") and not list(metadata.distributions(name="no-such-distribution"))
"""
    )


def test_uninstall_takes_the_name_back(tmp_path: Path) -> None:
    """Both are idempotent; afterwards the name finds what is installed under it."""
    env = _fake_verifiers(tmp_path)
    _checked(
        INSTALL
        + """
install()
import verifiers, verifiers.errors
assert not hasattr(verifiers, "IS_FAKE")
uninstall()
uninstall()
import verifiers
assert verifiers.IS_FAKE
import verifiers_compat.errors
uninstall()
import sys
assert sys.modules["verifiers"] is verifiers
""",
        env=env,
    )


def test_another_verifiers_that_is_imported_already(tmp_path: Path) -> None:
    """It is left alone, with a clear error, unless the caller insists."""
    env = _fake_verifiers(tmp_path)
    _checked(
        """
import verifiers, verifiers.own
from verifiers_compat.alias import install
try:
    install()
except ValueError as error:
    assert "install(force=True)" in str(error) and verifiers.__file__ in str(error)
else:
    raise SystemExit("it was replaced")
import verifiers
assert verifiers.IS_FAKE
install(force=True)
import verifiers, verifiers_compat
assert verifiers is verifiers_compat
try:
    import verifiers.own
except ModuleNotFoundError:
    pass
else:
    raise SystemExit("a module of the other one was found")
""",
        env=env,
    )


SCRIPT = """
import sys, os
import verifiers as vf
import neighbour
if __name__ == "__main__":
    print(vf.__name__, sys.argv, sys.path[0] == os.path.dirname(os.path.realpath(__file__)), sys.modules["__main__"].__dict__ is globals())
    print(__spec__, __package__)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "neighbour.py").write_text("")
    (tmp_path / "script.py").write_text(SCRIPT)
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(
        "import sys, verifiers\nfrom . import part\nprint('main', sys.argv[1:], __package__, __spec__.name)\n"
    )
    (package / "part.py").write_text("import sys, verifiers\nprint(__name__, sys.argv[1:])\nif __name__ == '__main__': sys.exit(7)\n")
    return tmp_path


def test_a_script_runs_as_python_would_run_it(project: Path) -> None:
    done = _run("-m", "verifiers_compat", str(project / "script.py"), "a", "--flag", "-m")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"verifiers_compat {[str(project / 'script.py'), 'a', '--flag', '-m']} True True\nNone None\n"


def test_a_module_runs_as_python_would_run_it(project: Path) -> None:
    """With its exit code, and a package by its ``__main__``."""
    done = _run("-m", "verifiers_compat", "-m", "package", "a", cwd=project)
    assert (done.returncode, done.stdout) == (0, "package.part ['a']\nmain ['a'] package package.__main__\n"), done.stderr
    done = _run("-m", "verifiers_compat", "-m", "package.part", "b", cwd=project)
    assert (done.returncode, done.stdout) == (7, "__main__ ['b']\n")


def test_modules_of_the_alias_run_too() -> None:
    done = _run("-m", "verifiers_compat", "-m", "verifiers.utils.config_utils")
    assert done.returncode == 0, done.stderr


def test_directories_and_archives_run(project: Path) -> None:
    (project / "program").mkdir()
    (project / "program" / "__main__.py").write_text("import verifiers, sys; print(verifiers.__name__, sys.argv[1:])")
    with zipfile.ZipFile(project / "program.zip", "w") as archive:
        archive.write(project / "program" / "__main__.py", "__main__.py")
    for name in ("program", "program.zip"):
        assert _run("-m", "verifiers_compat", str(project / name), "a").stdout == "verifiers_compat ['a']\n"


@pytest.mark.parametrize(
    ("code", "status", "told"),
    [
        ("import sys; sys.exit(3)", 3, ""),
        ("raise SystemExit('no way')", 1, "no way\n"),
        ("def f():\n    raise KeyError('x')\nf()", 1, None),
        ("x = (", 1, None),
        ("import sys; sys.excepthook = lambda *error: print('hooked', file=sys.stderr); 1 / 0", 1, "hooked\n"),
        ("# coding: latin-1\nprint('\xe4')".encode("latin-1").decode("latin-1"), 0, ""),
    ],
)
def test_exit_codes_and_tracebacks_are_those_of_python(tmp_path: Path, code: str, status: int, told: str | None) -> None:
    """None stands for what ``python script.py`` itself writes to stderr."""
    script = tmp_path / "script.py"
    script.write_bytes(code.encode("latin-1"))
    done = _run("-m", "verifiers_compat", str(script))
    expected = _run(str(script)).stderr if told is None else told
    assert (done.returncode, done.stderr) == (status, expected)


def test_an_interrupt_ends_the_process_as_the_signal_does(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass\n")
    done = _run("-m", "verifiers_compat", str(script))
    assert done.returncode == -signal.SIGINT
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        ([], 2, "usage: "),
        (["-x"], 2, "usage: "),
        (["-m"], 2, "usage: "),
        (["no_such_script.py"], 2, "No such file or directory"),
        (["-m", "no_such_module"], 1, "No module named no_such_module"),
        (["-m", "no_such_package.module"], 1, "no_such_package"),
    ],
)
def test_what_cannot_be_run_is_told(arguments: list[str], status: int, told: str, tmp_path: Path) -> None:
    done = _run("-m", "verifiers_compat", *arguments, cwd=tmp_path)
    assert done.returncode == status
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_help_is_no_error() -> None:
    done = _run("-m", "verifiers_compat", "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: ")
