"""What ``vf-install`` gives the installer: a fake one, which writes down what it was asked for."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from verifiers_compat.cli.commands import install

PYPROJECT = '[project]\nname = "word-count"\nversion = "0.1.0"\ndependencies = [{}]\n'


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What an installer was asked for, without options; `verifiers` and what `word_count` imports is not installed."""
    calls: list[list[str]] = []

    def run(command: list[str]) -> int:
        calls.append(
            [part for part in command[4:] if not part.startswith("--") and not part.endswith(("constraints.txt", "overrides.txt"))]
        )
        return 0

    monkeypatch.setattr(install, "_run", run)
    monkeypatch.setattr(install, "_find_installer", lambda: ["uv", "pip", "install", "--python"])
    monkeypatch.setattr("verifiers_compat.cli.packages.needs.is_installed", lambda module: module in ("numpy", "datasets"))
    return calls


def write(folder: Path, code: str, *requires: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(PYPROJECT.format(", ".join(map(json.dumps, requires))))
    (folder / "word_count.py").write_text(f"{code}\ndef load_environment(): ...\n")
    return folder


def run_install(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        install.main(arguments)
    return int(ended.value.code or 0)


def test_what_verifiers_would_bring_is_installed(workspace: Path, asked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    """And what names of the API need, and nothing twice; what nobody brings is named."""
    folder = write(
        Path("environments/word_count"),
        "import numpy, agents, left_pad\nimport verifiers as vf\nvf.MathRubric\nfrom tenacity import retry\n"
        "try:\n    import textual\nexcept ImportError: ...",
        *("verifiers>=0.1.9", "math-verify", "tenacity>=9"),
    )
    assert run_install("word-count") == 0
    needs, itself = asked
    assert needs == ["math-verify", "tenacity>=9", "math-verify>=0.9", "openai-agents>=0.0.7"]
    assert itself == [str(folder.resolve())]
    out, err = capsys.readouterr()
    assert "left out  verifiers>=0.1.9" in out
    assert "added     openai-agents>=0.0.7: the environment imports it, and verifiers would bring it" in out
    assert "note: word-count imports left_pad (word_count.py:1), which nothing that it requires brings: try pip install left_pad" in err
    assert "textual" not in out + err


def test_names_that_are_not_offered_are_noted(workspace: Path, asked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    """The package is installed all the same: perhaps its other parts are wanted."""
    write(Path("environments/word_count"), "from verifiers.envs.integrations.browser_env import BrowserEnv", "verifiers")
    assert run_install("word-count") == 0
    err = capsys.readouterr().err
    assert "note: word-count uses verifiers.envs.integrations.browser_env.BrowserEnv (word_count.py:1), which is not offered" in err


@pytest.mark.parametrize(
    ("requirement", "wanted"),
    [
        ("verifiers[renderers]", {"renderers[transformers]>=0.1.12", "httpx>=0.27"}),
        ("verifiers[rg,ta]>=0.1", {"reasoning-gym>=0.1.25", "textarena>=0.7.4"}),
        ("verifiers", set()),
    ],
)
def test_extras_of_verifiers_are_replaced(workspace: Path, asked: list[Any], requirement: str, wanted: set[str]) -> None:
    write(Path("environments/word_count"), "", requirement)
    run_install("word-count")
    assert {need for call in asked[:-1] for need in call} == wanted


def test_all_extras_of_verifiers_are_no_games(workspace: Path, asked: list[Any]) -> None:
    write(Path("environments/word_count"), "", "verifiers[all]")
    run_install("word-count")
    (needs, _) = asked
    assert {each.partition(">")[0] for each in needs} >= {"reasoning-gym", "textarena", "math-verify", "mcp"}
    assert not [each for each in needs if "ale-py" in each or "minigrid" in each]


def test_a_project_is_found_by_its_directory(workspace: Path, asked: list[Any]) -> None:
    """A name of ``./environments`` comes first, then a directory of that name here."""
    folder = write(Path("word_count"), "")
    for given in ("word_count", "./word_count", str(folder.resolve())):
        asked.clear()
        assert run_install(given) == 0
        assert asked == [[str(folder.resolve())]]
    own = write(Path("environments/word_count"), "")
    asked.clear()
    run_install("word_count")
    assert asked == [[str(own.resolve())]]


def test_an_sdist_is_installed_from_what_is_in_it(workspace: Path, asked: list[Any]) -> None:
    folder = write(Path("word_count"), "import tenacity", "verifiers")
    with tarfile.open("word_count-0.1.0.tar.gz", "w:gz") as archive:
        archive.add(folder, "word_count-0.1.0")
    assert run_install("word_count-0.1.0.tar.gz") == 0
    needs, (itself,) = asked
    assert needs == ["tenacity>=8.5"]
    assert itself.endswith("word_count-0.1.0")
    assert not Path(itself).exists()  # it was unpacked for that only


def test_nothing_is_installed_where_it_does_not_go_together(
    workspace: Path, asked: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(Path("environments/word_count"), "import tenacity", "verifiers")
    monkeypatch.setattr(install, "_run", lambda command: 1)
    assert run_install("word-count") == 1
    assert "was not installed" in capsys.readouterr().err
