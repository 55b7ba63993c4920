"""``vf-init``: the project that it makes can be built, installed and played."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.verifiers_compat.cli.options import declared_options
from verifiers_compat.cli.commands.init import app, main, module_of, write_project
from vfgym.errors import ConfigurationError

FORMS = [(False, ["word_count.py"]), (True, ["word_count/__init__.py", "word_count/word_count.py"])]


@pytest.mark.parametrize(("env", "module"), [("word-count", "word_count"), ("Word2Vec", "word2vec"), ("a_b-c", "a_b_c")])
def test_names_become_modules(env: str, module: str) -> None:
    assert module_of(env) == module


@pytest.mark.parametrize(
    "env", ["", "2words", "a/b", "a b", "a--b", "a-", "-a", "ümlaut", "class", "match", "json", "vfgym", "../x", "a.b"]
)
def test_names_that_cannot_be_modules_are_refused(env: str) -> None:
    with pytest.raises(ConfigurationError):
        module_of(env)


@pytest.mark.parametrize(("is_package", "code"), FORMS)
def test_a_new_project_has_its_files_and_a_wheel_with_its_code(
    workspace: Path, is_package: bool, code: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that others can install it; and its pyproject.toml, where the defaults of its evaluation stand."""
    import hatchling.build

    folder = write_project("word_count", workspace / "environments", is_package=is_package)
    assert sorted(str(file.relative_to(folder)) for file in folder.rglob("*.*")) == sorted(["README.md", "pyproject.toml", *code])
    content = tomllib.loads((folder / "pyproject.toml").read_text())
    assert content["project"]["name"] == "word-count"
    assert content["project"]["dependencies"] == [f"vfgym>={importlib.metadata.version('vfgym')}"]
    assert content["build-system"]["build-backend"] == "hatchling.build"
    assert content["tool"]["verifiers"]["eval"] == {"num_examples": 5, "rollouts_per_example": 3}
    readme = (folder / "README.md").read_text()
    assert "vf-install word-count" in readme
    assert "vf-eval word-count" in readme
    assert "$" not in readme
    monkeypatch.chdir(folder)
    with zipfile.ZipFile(workspace / hatchling.build.build_wheel(str(workspace))) as archive:
        assert {name for name in archive.namelist() if ".dist-info/" not in name} == {"pyproject.toml", *code}


def test_files_that_are_there_are_kept(workspace: Path, run_command: Callable[..., Any]) -> None:
    """But the README, where that is asked for."""
    done = run_command(main, "word-count")
    assert done.out.endswith("\nnext: vf-install word-count -p environments\n      vf-eval word-count\n")
    folder = Path("environments/word_count")
    for name in ("README.md", "word_count.py", "pyproject.toml"):
        (folder / name).write_text("mine")
    assert run_command(main, "word-count").out.count("kept ") == 3
    assert (folder / "README.md").read_text() == "mine"
    assert run_command(main, "word-count", "--rewrite-readme").out.count("kept ") == 2
    assert (folder / "README.md").read_text().startswith("# word-count")
    assert {(folder / name).read_text() for name in ("word_count.py", "pyproject.toml")} == {"mine"}


def test_a_project_has_one_form(workspace: Path, run_command: Callable[..., Any]) -> None:
    for option, path in (("--path", "here"), ("-p", "there")):
        done = run_command(main, "word-count", option, path, "--multi-file")
        assert (done.code, f"vf-install word-count -p {path}\n" in done.out) == (0, True)
        assert Path(path, "word_count", "word_count", "word_count.py").is_file()
        done = run_command(main, "word-count", option, path)
        assert (done.code, "cannot be a module" in done.err) == (2, True)
    run_command(main, "single")
    assert "cannot be a package" in run_command(main, "single", "--multi-file").err
    done = run_command(main, "word count")
    assert (done.code, "letters, digits" in done.err) == (2, True)


def test_an_environment_on_a_server_is_played_as_it_is_made(
    workspace: Path, run_command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a package, so that where several are installed, each has a server of its own."""
    assert run_command(main, "guess-number", "--openenv").code == 0
    folder = Path("environments/guess_number").resolve()
    home = folder / "guess_number"
    assert sorted(file.name for file in (home / "proj").iterdir()) == [".build.json", "Dockerfile", "server.py"]
    assert json.loads((home / "proj" / ".build.json").read_text())["image"] == "guess-number-server"
    included = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["include"]
    assert included == ["guess_number/**", "pyproject.toml"]
    monkeypatch.syspath_prepend(str(folder))
    env = importlib.import_module("guess_number").load_environment(seed=7, backend="unsafe", num_eval_examples=1, num_train_examples=1)
    observation, _ = env.reset(options={"example_id": 0})
    assert observation[-1]["content"] == 'Guess my number. Answer with JSON: {"guess": 5}\nIt is from 0 to 9.'
    for answer, said, earned in (('{"guess": 5}', "Higher.", 0.0), ("7", "Right!", 1.0)):
        observation, reward, *_ = env.step(answer)
        assert (observation[-1]["content"], reward) == (said, earned)
    env.close()


def test_every_option_is_given_in_a_test_here() -> None:
    assert declared_options(app).keys() == {"path", "rewrite_readme", "multi_file", "openenv", "debug"}
