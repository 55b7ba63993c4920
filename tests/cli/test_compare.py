"""``vfgym compare``: a table of runs, one of pairs, a verdict on each, and whether all of them could be compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cases import cells
from vfgym import ClientConfig, ModelAgent, Rubric, SingleTurnEnv, evaluate
from vfgym.cli.compare import print_comparison
from vfgym.cli.conventions import Exit
from vfgym.results import compare, load_results

TASKS = [{"question": f"{n} + {n}?", "answer": str(2 * n)} for n in range(20)]


def exact(completion: Any, answer: str) -> float:
    return float(completion[-1].content == answer)


def play(path: Path, limit: int, **options: Any) -> Path:
    """Play the tasks with an agent that knows the answers below a limit, and raises an error at those from 100."""

    def agent(observation: Any, info: Any) -> str:
        number = int(observation[-1].content.split()[0])
        if limit >= 100:
            raise RuntimeError("out of order")
        return str(2 * number) if number < limit else "?"

    agent.__name__ = f"up_to_{limit}"
    evaluate(SingleTurnEnv(dataset=TASKS, rubric=Rubric(exact)), agent, results_path=path, progress=False, **options)
    return path


@pytest.fixture
def runs(directory: Path) -> list[Path]:
    return [play(directory / "a", 9), play(directory / "b", 14, num_examples=15)]


def test_runs_and_pairs_are_tables_and_each_pair_has_a_verdict(runs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert print_comparison(runs, as_json=False) == Exit.GOOD
    runs_shown, pairs_shown, verdict = (part.splitlines() for part in capsys.readouterr().out.strip().split("\n\n"))
    assert cells(runs_shown[0]) == ["run", "who", "mean (95 %)", "tasks", "rollouts", "errors"]
    shown = [cells(line) for line in runs_shown[1:]]
    assert [(place, who.rpartition(":")[2], *counts) for place, who, _, *counts in shown] == [
        ("1", "up_to_9", "20", "20", "0"),
        ("2", "up_to_14", "15", "15", "0"),
    ]
    assert cells(runs_shown[1])[2].startswith("0.450 (")
    assert cells(pairs_shown[0]) == ["runs", "difference (95 %)", "better/worse/equal", "not paired"]
    (pair,) = compare(*runs)["pairs"]
    assert cells(pairs_shown[1])[0] == "2 - 1"
    assert cells(pairs_shown[1])[2:] == [f"{pair['better']}/{pair['worse']}/{pair['equal']}", "5/0"]
    assert " ".join(verdict) == f"2 - 1: {pair['verdict']}"


def test_json_is_the_comparison_and_nothing_else(runs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert print_comparison(runs, as_json=True) == Exit.GOOD
    assert json.loads(capsys.readouterr().out) == compare(*runs)


def test_a_run_that_was_stopped_says_how_far_it_is(runs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    rows = runs[1] / "results.jsonl"
    rows.write_bytes(b"".join(rows.read_bytes().splitlines(keepends=True)[:4]))
    print_comparison(runs, as_json=False)
    assert "4 of 15" in capsys.readouterr().out


def test_a_difference_that_cannot_be_given_is_not_good_and_fits_a_narrow_terminal(
    runs: list[Path], directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "45")
    failed = play(directory / "c", 100)
    capsys.readouterr()
    assert print_comparison([runs[0], failed], as_json=False) == Exit.NOT_GOOD
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 45
    assert "no difference can be given" in " ".join(out.split())
    assert load_results(failed)["metadata"]["avg_reward"] is None


def test_endings_are_columns_where_any_rollout_ended_so(runs: list[Path], directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    env = SingleTurnEnv(dataset=TASKS, rubric=Rubric(exact), failure_reward=0.0)
    nowhere = ClientConfig(api_base_url="http://127.0.0.1:9/v1", api_key_var="NONE", max_retries=0)
    evaluate(env, ModelAgent(nowhere, "m"), results_path=directory / "c", progress=False, num_examples=2, max_retries=0)
    capsys.readouterr()
    print_comparison([runs[0], directory / "c"], as_json=False)
    head, first, second = capsys.readouterr().out.splitlines()[:3]
    found = [dict(zip(cells(head), cells(line), strict=True)) for line in (first, second)]
    assert [row["missing"] for row in found] == ["0", "2"]
    assert "cut" not in found[0]
