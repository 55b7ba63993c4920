"""``vfgym eval --resume``: the run that is named, or the newest one that is not finished, is gone on with."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.commands import run_vfgym
from vfgym.results import load_results

DATASET = "reasoning-gym/leg_counting-v0"


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, exit_code: int = 0) -> subprocess.CompletedProcess[str]:
    return run_vfgym("eval", DATASET, *arguments, exit_code=exit_code)


def test_the_run_that_is_given_or_the_newest_unfinished_one_is_gone_on_with(directory: Path) -> None:
    arguments = ["-a", "oracle", "-n", "5"]
    run(*arguments)
    (path,) = (directory / "outputs" / "evals").glob("*/*")
    rows = path / "results.jsonl"
    whole = rows.read_bytes()
    for given in ([], [str(path)]):
        rows.write_bytes(whole[:-100])
        done = run(*arguments, "--resume", *given)
        assert "5/5 (100%), reward 1.000, 0 failed" in done.stderr
        assert (f"oracle: going on with {path.relative_to(directory)}" in done.stdout) == (not given)
        assert len({row["example_id"] for row in load_results(path)["outputs"]}) == 5
        assert rows.read_bytes().splitlines()[:4] == whole.splitlines()[:4]
        assert len(rows.read_bytes().splitlines()) == 5
    assert "there is no unfinished run to resume with these settings, a new one begins" in run(*arguments, "--resume").stdout
    assert len(list(path.parent.iterdir())) == 2


def test_an_unfinished_run_that_is_not_resumed_is_named_with_the_reason(directory: Path) -> None:
    run("-a", "oracle", "-n", "5")
    (path,) = (directory / "outputs" / "evals").glob("*/*")
    rows = path / "results.jsonl"
    whole = rows.read_bytes()
    assert "is not resumed" not in run("-a", "oracle", "-n", "3", "--resume").stderr, "it is finished"
    rows.write_bytes(whole[:-100])
    named = f"{path.relative_to(directory)}, with 4 of 5 rollouts done, is not resumed: its "
    done = run("-a", "oracle", "-n", "4", "--resume")
    assert f"{named}num_examples is 5, and 4 are asked for: ask for at least as many" in done.stderr
    assert "a new one begins" in done.stdout
    assert f"{named}seed is 0, not 1" in run("-a", "oracle", "-n", "5", "--seed", "1", "--resume").stderr
    assert "is not resumed" not in run("-a", "oracle", "-n", "5", "--resume").stderr, "now it is"


def test_errors_are_redone_where_that_is_asked_for(directory: Path) -> None:
    (directory / "late.py").write_text(
        "import pathlib\n"
        "def agent(observation, info):\n"
        "    if info['example_id'] % 2 and not pathlib.Path('ready').exists():\n"
        "        raise KeyError('not yet')\n"
        "    return '42'\n"
    )
    arguments = ["-a", "late:agent", "-n", "2"]

    def errors(output: str) -> str:
        (line,) = [line for line in output.splitlines() if line.startswith("late:agent  ")]
        return re.split(r" {2,}", line)[-2]

    assert errors(run(*arguments).stdout) == "1/2"
    (path,) = (directory / "outputs" / "evals").glob("*/*")
    (directory / "ready").touch()
    assert errors(run(str(path), *arguments, "--resume").stdout) == "1/2"
    done = run(*arguments, "--resume", "--redo-errors").stdout
    assert f"going on with {path.relative_to(directory)}" in done
    assert errors(done) == "0/2"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["there"], "give --resume too, to go on with it"),
        (["--redo-errors"], "give --resume too"),
        (["--resume", "--no-save"], "leave out --no-save"),
        (["there", "--resume"], "there is no run to resume in there"),
        (["there", "--resume", "-a", "random"], "give one --agent with it"),
    ],
)
def test_what_cannot_be_resumed_is_refused(arguments: list[str], message: str) -> None:
    assert message in run("-a", "oracle", *arguments, exit_code=2).stderr
