"""What a run leaves on disk, and finds there when it goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from verifiers_compat.gepa import run_directory
from verifiers_compat.gepa.run_directory import RunDirectory
from vfgym.errors import ConfigurationError
from vfgym.results import ResultsError

SETTINGS = {"env_id": "e", "model": "m", "seed": 0}


def no_answer(prompt: str) -> str:
    """Stand for a model that must not be asked."""
    raise AssertionError(prompt)


def test_what_was_answered_is_not_asked_again(tmp_path: Path) -> None:
    """Each question has a place by its number and by what is asked, so one that differs is asked anew."""
    asked: list[str] = []

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return f"{prompt}!"

    with RunDirectory(tmp_path, SETTINGS) as directory:
        evaluation = directory.next_evaluation("p", [1, 2])
        assert [directory.recall(prompt, ask) for prompt in ("a", "a")] == ["a!", "a!"]
    assert asked == ["a", "a"]
    with RunDirectory(tmp_path, SETTINGS) as directory:
        assert directory.next_evaluation("p", [1, 2]) == evaluation
        assert directory.recall("a", no_answer) == "a!"
        assert directory.recall("b", ask) == "b!"
    with RunDirectory(tmp_path, SETTINGS) as directory:
        assert directory.next_evaluation("p", [1, 3]) != evaluation
    evaluation.mkdir(parents=True)
    directory.forget(evaluation)
    directory.forget(evaluation)
    assert not evaluation.exists()
    assert [path.name.partition("-")[0] for path in sorted((tmp_path / "reflections").iterdir())] == ["0002", "0003", "0003"]


def test_a_question_that_failed_leaves_no_answer(tmp_path: Path) -> None:
    def interrupted(prompt: str) -> str:
        raise KeyboardInterrupt

    with RunDirectory(tmp_path, SETTINGS) as directory, pytest.raises(KeyboardInterrupt):
        directory.recall("a", interrupted)
    with RunDirectory(tmp_path, SETTINGS) as directory:
        assert [directory.recall("a", lambda prompt: ""), directory.recall("a", lambda prompt: "second")] == ["", "second"]
    with RunDirectory(tmp_path, SETTINGS) as directory:
        assert [directory.recall("a", no_answer), directory.recall("a", no_answer)] == ["", "second"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"prompt": "a"}'])
def test_an_answer_that_cannot_be_read_is_asked_for_again(content: str, tmp_path: Path) -> None:
    with RunDirectory(tmp_path, SETTINGS) as directory:
        directory.recall("a", lambda prompt: "first")
    [file] = (tmp_path / "reflections").iterdir()
    file.write_text(content)
    with RunDirectory(tmp_path, SETTINGS) as directory:
        assert directory.recall("a", lambda prompt: "second") == "second"
    assert json.loads(file.read_text()) == {"prompt": "a", "answer": "second"}


def test_only_the_same_run_goes_on(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "new" / "run", SETTINGS):
        pass
    with RunDirectory(tmp_path / "new" / "run", dict(reversed(SETTINGS.items()))):
        pass
    for name, changed in (("seed", 3), ("model", "other"), ("more", None)):
        there = json.dumps(SETTINGS.get(name))
        message = f"holds another run: {name} is {there} there and {json.dumps(changed)} here" if name != "more" else None
        if message is not None:
            with pytest.raises(ConfigurationError, match=message):
                RunDirectory(tmp_path / "new" / "run", {**SETTINGS, name: changed})
    with RunDirectory(tmp_path / "new" / "run", SETTINGS):  # a refused one lets go of the directory
        pass


@pytest.mark.parametrize("settings", [None, "{", "[]"])
def test_a_directory_with_other_things_in_it_is_refused(settings: str | None, tmp_path: Path) -> None:
    (tmp_path / ("thesis.tex" if settings is None else "settings.json")).write_text(settings or "precious")
    with pytest.raises(ConfigurationError, match="is not empty and holds no run that could go on"):
        RunDirectory(tmp_path, SETTINGS)


def test_a_directory_is_that_of_one_run_at_a_time(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, SETTINGS) as first:
        with pytest.raises(ResultsError, match="another run is writing its results to"):
            RunDirectory(tmp_path, SETTINGS)
        first.close()
        RunDirectory(tmp_path, SETTINGS).close()
        first.close()
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="file"):
        RunDirectory(tmp_path / "file" / "run", SETTINGS)


def test_files_are_written_as_a_whole_and_without_secrets(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, {**SETTINGS, "env_args": {"api_key": "a-secret-key"}}) as directory:
        directory.write("a/b.txt", "one a-secret-key")
        directory.write("a/b.txt", "two")
        (tmp_path / "a" / "c.txt").mkdir()
        with pytest.raises(ResultsError, match=r"cannot write .*c\.txt"):
            directory.write("a/c.txt", "x")
        with pytest.raises(ResultsError, match=r"cannot write .*b\.txt/d"):
            directory.write("a/b.txt/d", "x")

        def interrupted(*paths: Path) -> None:
            raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(run_directory.os, "replace", interrupted)
            with pytest.raises(KeyboardInterrupt):
                directory.write("a/b.txt", "three")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["b.txt", "c.txt"]
    assert (tmp_path / "a" / "b.txt").read_text() == "two"
    assert json.loads((tmp_path / "settings.json").read_text())["env_args"] == {"api_key": "***"}
