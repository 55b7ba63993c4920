"""``vf-install``: what the installer is given, and what is said about it; once with pip itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.programs import make_environment, run_module
from tests.verifiers_compat.cli.options import declared_options
from verifiers_compat.cli.commands import install
from verifiers_compat.cli.commands.init import write_project
from verifiers_compat.cli.packages.check import Report
from vfgym.model_server import ModelServer

PYPROJECT = '[project]\nname = "word-count"\nversion = "0.1.0"\ndependencies = [{}]\n'
UV = ["uv", "pip", "install", "--python"]


class Call(NamedTuple):
    """A call of the installer: its arguments without options that name files, and what stands in those files, by the options."""

    arguments: list[str]
    files: dict[str, str]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """What an installer was asked for. Of the libraries that packages here import, only two are installed."""
    calls: list[Call] = []

    def run(command: Sequence[str]) -> int:
        rest = list(command[len(UV) :])
        files: dict[str, str] = {}
        for option in ("--constraint", "--override"):
            if option in rest:
                where = rest.index(option)
                files[option] = Path(rest[where + 1]).read_text()
                del rest[where : where + 2]
        calls.append(Call(rest, files))
        return 0

    monkeypatch.setattr(install, "_run", run)
    monkeypatch.setattr(install, "_find_installer", lambda: UV)
    monkeypatch.setattr("verifiers_compat.cli.packages.needs.is_installed", lambda module: module in ("numpy", "datasets"))
    return calls


@pytest.fixture
def vf_install(run_command: Callable[..., Any]) -> Callable[..., Any]:
    """The command, called with its arguments."""
    return lambda *arguments: run_command(install.main, *arguments)


def write(folder: str | Path, code: str = "", *requires: str) -> Path:
    """Write a project with one module, and return its directory."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    (path / "pyproject.toml").write_text(PYPROJECT.format(", ".join(map(json.dumps, requires))))
    (path / "word_count.py").write_text(f"{code}\ndef load_environment(): ...\n")
    return path.resolve()


def test_what_verifiers_would_bring_is_installed(workspace: Path, asked: list[Call], vf_install: Callable[..., Any]) -> None:
    """And what names of the API need, and nothing twice; what nobody brings is named."""
    folder = write(
        "environments/word_count",
        "import numpy, agents, left_pad\nimport verifiers as vf\nvf.MathRubric\nfrom tenacity import retry\n"
        "try:\n    import textual\nexcept ImportError: ...",
        *("verifiers>=0.1.9", "math-verify", "tenacity>=9"),
    )
    done = vf_install("word-count")
    assert done.code == 0
    needs, itself = asked
    assert needs.arguments == ["math-verify", "tenacity>=9", "math-verify>=0.9", "openai-agents>=0.0.7"]
    assert "openai>=" in needs.files["--constraint"]
    assert needs.files["--override"] == "verifiers; python_version < '0'\n"
    assert itself == (["--no-deps", "--editable", str(folder)], {})
    assert "installed word-count\nleft out  verifiers>=0.1.9: vfgym offers it" in done.out
    assert "added     openai-agents>=0.0.7: the environment imports it, and verifiers would bring it" in done.out
    assert "note: word-count imports left_pad (word_count.py:1), which nothing that it requires brings: try pip install" in done.err
    assert "textual" not in done.out + done.err


def test_pip_is_told_to_leave_verifiers_out(workspace: Path, asked: list[Call], monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no overrides, so it refuses any version."""
    monkeypatch.setattr(install, "_find_installer", lambda: [sys.executable, *UV[1:]])
    write("environments/word_count", "", "rich")
    with pytest.raises(SystemExit):
        install.main(["word-count"])
    assert asked[0].arguments == ["rich"]
    assert asked[0].files.keys() == {"--constraint"}
    assert asked[0].files["--constraint"].endswith("\nverifiers<0\n")


@pytest.mark.parametrize(("is_there", "command"), [(True, UV), (False, ["-m", "pip", "install", "--disable-pip-version-check"])])
def test_uv_is_used_where_it_is_installed(is_there: bool, command: list[str], workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / "uv").write_text("#!/bin/sh\necho $@ > called\nexit 3\n")
    (workspace / "uv").chmod(0o755 if is_there else 0o644)
    monkeypatch.setenv("PATH", str(workspace))
    found = install._find_installer()
    assert found == [str(workspace / "uv"), *UV[1:], sys.executable] if is_there else [sys.executable, *command]
    if is_there:
        monkeypatch.setenv("PATH", f"{workspace}:{os.defpath}")
        assert install._run([*found, "rich"]) == 3
        assert Path("called").read_text() == f"pip install --python {sys.executable} rich\n"


def test_names_that_are_not_offered_are_noted(workspace: Path, asked: list[Call], vf_install: Callable[..., Any]) -> None:
    """The package is installed all the same: perhaps its other parts are wanted."""
    code = "from verifiers.envs.integrations.browser_env import BrowserEnv\ntry:\n    from verifiers import NoSuch\nexcept ImportError: ..."
    write("environments/word_count", code, "verifiers[browser]")
    done = vf_install("word-count")
    assert (done.code, len(asked)) == (0, 1)
    assert "note: word-count uses verifiers.envs.integrations.browser_env.BrowserEnv (word_count.py:1), which is not offered" in done.err
    assert "note: nothing here stands for the extra verifiers[browser]" in done.err
    assert "NoSuch" not in done.err


def test_a_project_is_found_by_its_directory(workspace: Path, asked: list[Call], vf_install: Callable[..., Any]) -> None:
    """A name of ``./environments``, or of the directory that is given, comes first, then a directory of that name here."""
    here = write("word_count")
    for given in ("word_count", "./word_count", str(here)):
        assert vf_install(given).code == 0
    own, other = write("environments/word_count"), write("others/word_count")
    vf_install("word-count")
    vf_install("word-count", "-p", "others")
    vf_install("word-count", "--path", "others")
    assert [call.arguments[-1] for call in asked] == [*[str(here)] * 3, str(own), str(other), str(other)]


def test_a_wheel_and_its_extras_are_installed(workspace: Path, asked: list[Call], vf_install: Callable[..., Any]) -> None:
    wheel = workspace / "word_count-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(
            "word_count-0.1.0.dist-info/METADATA",
            'Metadata-Version: 2.4\nName: word-count\nRequires-Dist: verifiers>=0.1.9\nRequires-Dist: big; extra == "more"\n\ntext\n',
        )
    assert vf_install(f"{wheel}[more]").code == 0
    assert [call.arguments for call in asked] == [["big"], ["--no-deps", str(wheel)]]


def test_an_environment_may_come_from_a_repository(workspace: Path, asked: list[Call], vf_install: Callable[..., Any]) -> None:
    repository = workspace / "repository"
    write(repository / "environments" / "word_count")
    identity = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    for command in (["init", "-q", "-b", "trunk"], ["add", "."], [*identity, "commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *command], cwd=repository, check=True)
    arguments = ("-r", "-b", "trunk", "--repository", repository.as_uri())
    assert vf_install("word-count", *arguments).code == 0
    [(itself, _)] = asked
    assert "--editable" not in itself
    assert itself[-1].endswith("environments/word_count")
    assert "there are word_count" in vf_install("other", *arguments).err
    assert "main of" in vf_install("word-count", "--from-repo", *arguments[3:]).err
    assert "nowhere of" in vf_install("word-count", "--from-repo", "--branch", "nowhere", *arguments[3:]).err


@pytest.mark.parametrize("fails_at", [0, 1])
def test_nothing_is_said_to_be_installed_where_the_installer_fails(
    fails_at: int, workspace: Path, vf_install: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("environments/word_count", "import tenacity", "verifiers", "rich")
    codes = [0] * fails_at + [7]
    monkeypatch.setattr(install, "_run", lambda command: codes.pop(0))
    done = vf_install("word-count")
    assert (done.code, codes) == (1, [])
    assert "installed word-count" not in done.out
    assert ("the environment was not installed" in done.err) is (fails_at == 0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["owner/word-count"], "hosted hub"),
        (["owner/word-count@0.1.0"], "hosted hub"),
        (["word-count"], "no environment 'word-count' in environments"),
        (["word-count", "-p", "there"], "no environment 'word-count' in there"),
        (["x.whl"], "there is no wheel x.whl"),
        (["bad.whl"], "cannot be read as a wheel"),
        (["word-count", "--json"], "give --check"),
        ([], "Missing argument 'PACKAGE'"),
    ],
)
def test_what_cannot_be_installed_is_one_line(given: list[str], message: str, workspace: Path, vf_install: Callable[..., Any]) -> None:
    Path("bad.whl").write_text("")
    done = vf_install(*given)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1
    assert "Traceback" in vf_install(*given[:1], *given[1:], "--debug").err or not given


def test_the_report_as_json(workspace: Path, asked: list[Call], vf_install: Callable[..., Any]) -> None:
    """Nothing is installed, and nothing of the package is run."""
    write("others/word_count", "1 / 0\nimport verifiers as vf\nvf.BrowserEnv", "verifiers")
    done = vf_install("--check", "--json", "word-count", "-p", "others")
    report = Report.model_validate_json(done.out)
    assert (done.code, report.is_complete, [each.name for each in report.absent]) == (1, False, ["verifiers.BrowserEnv"])
    done = vf_install("--check", "word-count", "-p", "others")
    assert done.code == 1
    assert "Something that it uses is missing" in done.out
    write("others/word_count", "import verifiers as vf\nvf.Rubric", "verifiers")
    assert vf_install("--check", "word-count", "-p", "others").code == 0
    assert asked == []


def test_every_option_is_given_in_a_test_here() -> None:
    given = {"path", "from_repo", "branch", "repository", "check", "as_json", "debug"}
    assert declared_options(install.app).keys() == given


# With pip


def test_an_environment_is_made_installed_and_evaluated(workspace: Path, vf_eval: Callable[..., Any]) -> None:
    """In a Python of its own, by the programs themselves; nothing needs a network."""
    python = make_environment(workspace / "venv")
    offline = {"PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1", "PATH": os.defpath}  # no uv; pip reads "0" as "do not isolate"
    file = write_project("summed_words", Path("environments")) / "pyproject.toml"
    file.write_text(file.read_text().replace("dependencies = [", 'dependencies = ["verifiers>=0.1.9", "rich", ').replace("= 3", "= 2"))
    done = vf_eval("summed-words", "-m", "none")
    assert done.code == 1
    assert "Install it with: vf-install summed-words" in done.err
    done = run_module(install.__name__, "summed-words", python=python, **offline)
    assert "left out  verifiers>=0.1.9" in done.stdout

    def adds(request: Any) -> str:
        words = request.messages[-1]["content"].removesuffix("?").split()
        return f"<answer>{int(words[-3]) + int(words[-1])}</answer>"

    with ModelServer({"adds": adds}) as server:
        command = ("summed-words", "-m", "adds", "-b", server.openai_url, "-s")
        done = run_module("verifiers_compat.cli.commands.eval", *command, python=python)
        assert "reward: avg - 1.000, std - 0.000" in done.stdout
        assert server.num_requests == 10  # as the environment's own pyproject.toml says
    assert len(list(Path("environments/summed_words/outputs/evals").glob("*/*/results.jsonl"))) == 1
