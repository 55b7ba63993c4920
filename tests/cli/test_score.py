"""``vfgym score``: a run is scored again by what a name refers to, and written as a new one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands import own_modules
from vfgym import Rubric, SingleTurnEnv, evaluate
from vfgym.cli.conventions import Exit
from vfgym.cli.score import load_rubric, score_run
from vfgym.errors import ConfigurationError
from vfgym.results import ResultsError, load_results

RUBRICS = """
import vfgym

class Length(vfgym.Rubric):
    def __init__(self, least=1):
        super().__init__(self.is_long)
        self.least = least

    def is_long(self, completion):
        return float(len(completion[-1].content) >= self.least)

class Needy(Length):
    def __init__(self, least):
        super().__init__(least)

def make(least):
    return Length(least)

def make_default():
    return Length()

def reward(completion):
    return 1.0 if completion == 3 else float(len(completion[-1].content) >= 1)

def raises(completion):
    raise ValueError("no")

made = Length()
number = 5
"""


@pytest.fixture(autouse=True)
def _rubrics(directory: Path) -> Iterator[None]:
    (directory / "rubrics.py").write_text(RUBRICS)
    with own_modules(directory):
        yield


@pytest.fixture
def run(directory: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Two rollouts, with answers of one and of two characters."""
    env = SingleTurnEnv(dataset=[{"question": "?"}, {"question": "??"}], rubric=Rubric(lambda: 0.0))
    evaluate(env, lambda observation, info: observation[-1].content, results_path=directory / "run", progress=False)
    capsys.readouterr()
    return directory / "run"


@pytest.mark.parametrize(
    ("name", "arguments", "mean"),
    [
        ("Length", {}, 1.0),
        ("Length", {"least": 2}, 0.5),
        ("Length", {"least": 0}, 1.0),
        ("Needy", {"least": 2}, 0.5),
        ("make", {"least": 3}, 0.0),
        ("make_default", {}, 1.0),
        ("made", {}, 1.0),
        ("reward", {}, 1.0),
    ],
)
def test_a_run_is_scored_again_as_a_new_one(
    name: str, arguments: dict[str, Any], mean: float, run: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (run / "results.jsonl").read_bytes()
    assert score_run(run, f"rubrics:{name}", Path("out"), rubric_args=arguments, as_json=True) == Exit.GOOD
    told = json.loads(capsys.readouterr().out)
    assert told == {"path": told["path"], "rollouts": 2, "avg_reward": mean}
    assert (directory / told["path"]).is_relative_to(directory / "out" / "evals")
    metadata: Any = load_results(told["path"])["metadata"]
    assert metadata["avg_reward"] == mean
    assert metadata["scored_by"] == {"rubric": f"rubrics:{name}", "rubric_args": arguments}
    assert (run / "results.jsonl").read_bytes() == before


def test_it_is_told_in_two_lines_and_no_mean_is_not_good(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score_run(run, "rubrics:reward", Path("out"), as_json=False) == Exit.GOOD
    first, second = capsys.readouterr().out.splitlines()
    assert first == "2 rollouts scored again: mean reward 1.000"
    assert second.startswith("results in out/evals/")
    assert score_run(run, "rubrics:raises", Path("out"), as_json=False) == Exit.NOT_GOOD
    assert "2 rollouts scored again: no mean" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("reward", None, "give it as module:name"),
        ("nowhere_at_all:x", None, "there is no module 'nowhere_at_all'"),
        ("rubrics:rewrad", None, "Did you mean `reward`"),
        ("rubrics:number", None, "must be a vfgym.Rubric, a function that makes one or a reward function, got 5"),
        ("rubrics:Needy", None, "Needy cannot be made without arguments"),
        ("rubrics:make", {"most": 3}, r"make\(least\) does not take --rubric-args"),
        ("rubrics:reward", {"completion": 3}, "it returned float, no vfgym.Rubric"),
        ("rubrics:reward", {"least": 3}, "does not take --rubric-args"),
        ("rubrics:made", {"least": 3}, "--rubric-args are for a class of rubrics or a function that makes one"),
        ("rubrics:number", {"least": 3}, "--rubric-args are for"),
        ("builtins:dict", {"least": 3}, "--rubric-args are for a class of rubrics .* and it is <class 'dict'>"),
    ],
)
def test_rubrics_that_cannot_be_had_are_named(name: str, arguments: dict[str, Any] | None, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_rubric(name, arguments)


def test_secrets_in_arguments_are_not_written(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("keyed.py").write_text("import vfgym\ndef make(api_key):\n    return vfgym.Rubric(lambda: 1.0)\n")
    score_run(run, "keyed:make", Path("out"), rubric_args={"api_key": "sk-0123456789abcdef"}, as_json=True)
    written = Path(json.loads(capsys.readouterr().out)["path"])
    assert "sk-0123456789abcdef" not in (written / "metadata.json").read_text()


def test_of_a_run_that_cannot_be_read_nothing_is_written(run: Path, directory: Path) -> None:
    rows = run / "results.jsonl"
    rows.write_text("{\n" + rows.read_text())
    with pytest.raises(ResultsError, match=r"line 1 of .* is not a rollout"):
        score_run(run, "rubrics:reward", Path("out"), as_json=True)
    assert not (directory / "out").exists()
