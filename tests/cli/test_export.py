"""``vfgym export``: where what it wrote is, and how much of it there is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vfgym import Rubric, SingleTurnEnv, evaluate
from vfgym.cli.conventions import Exit
from vfgym.cli.export import export_run
from vfgym.errors import ConfigurationError


def exact(completion: Any, answer: str) -> float:
    return float(completion[-1].content == answer)


@pytest.fixture
def run(directory: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    env = SingleTurnEnv(dataset=[{"question": str(n), "answer": "1"} for n in range(3)], rubric=Rubric(exact), pass_threshold=1.0)
    evaluate(env, lambda observation, info: observation[-1].content, results_path=directory / "run", progress=False)
    capsys.readouterr()
    return directory / "run"


@pytest.mark.parametrize(
    ("form", "min_reward", "name", "said"),
    [
        ("csv", None, "run.csv", {"rows": 3, "skipped": 0}),
        ("sft", None, "run.sft.jsonl", {"rows": 1, "skipped": 2}),
        ("sft", 0.0, "run.sft.jsonl", {"rows": 3, "skipped": 0}),
    ],
)
def test_what_is_written_is_named_like_the_run_here(
    form: Any, min_reward: float | None, name: str, said: dict[str, int], run: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"{directory.name}-{name}"
    assert export_run(run, form, None, min_reward, as_json=True) == Exit.GOOD
    assert json.loads(capsys.readouterr().out) == {"path": path, **said}
    assert (directory / path).is_file()


def test_it_may_be_named_otherwise_and_is_told_in_a_line_or_refused(run: Path, capsys: pytest.CaptureFixture[str], directory: Path) -> None:
    export_run(run, "sft", Path("mine.jsonl"), None, as_json=False)
    assert capsys.readouterr().out == "1 examples in mine.jsonl, 2 rollouts are in none of them\n"
    export_run(run, "csv", Path("mine.csv"), None, as_json=False)
    assert capsys.readouterr().out == "3 rows in mine.csv\n"
    with pytest.raises(ConfigurationError, match="a lowest reward is for sft and preference"):
        export_run(run, "csv", Path("other.csv"), 0.0, as_json=True)
    assert not (directory / "other.csv").exists()
