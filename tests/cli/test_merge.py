"""``vfgym merge``: the whole run is written, what is missing is told, and the exit code says whether anything is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import vfgym
from tests.cli.cases import GAME
from vfgym.cli.conventions import Exit
from vfgym.cli.merge import merge_runs
from vfgym.errors import ConfigurationError
from vfgym.results import load_results


@pytest.fixture
def parts(directory: Path, capsys: pytest.CaptureFixture[str]) -> list[Path]:
    """Three parts of a run with six rollouts."""
    paths = [directory / f"part{place}" for place in range(3)]
    for place, path in enumerate(paths):
        vfgym.evaluate(GAME, "random", num_examples=6, shard=(place, 3), results_path=path, progress=False)
    capsys.readouterr()
    return paths


def told(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_the_whole_run_is_written(parts: list[Path], directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert merge_runs(parts, directory / "whole", as_json=True) == Exit.GOOD
    whole = load_results(directory / "whole")
    assert told(capsys) == {
        "path": str(directory / "whole"),
        "rollouts": 6,
        "missing": 0,
        "missing_shards": [],
        "avg_reward": whole["metadata"]["avg_reward"],
    }
    assert [row["example_id"] for row in whole["outputs"]] == [*range(6)]
    merge_runs(parts, directory / "again", as_json=False)
    first, last = capsys.readouterr().out.splitlines()
    assert first == f"6 rollouts of 3 runs: mean reward {whole['metadata']['avg_reward']:.3f}"
    assert last == f"results in {directory / 'again'}"


def test_what_is_missing_is_told_and_not_good(parts: list[Path], directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert merge_runs(parts[:2], directory / "whole", as_json=True) == Exit.NOT_GOOD
    said = told(capsys)
    assert (said["rollouts"], said["missing"], said["missing_shards"]) == (4, 2, ["2/3"])
    assert merge_runs(parts[1:], directory / "again", as_json=False) == Exit.NOT_GOOD
    shown = capsys.readouterr().out
    assert "2 rollouts are missing (shards that were not given: 0/3)" in shown
    assert f"vfgym eval {directory / 'again'} --resume plays them" in shown


def test_a_part_is_not_overwritten(parts: list[Path]) -> None:
    before = (parts[0] / "results.jsonl").read_bytes()
    with pytest.raises(ConfigurationError, match="is one of the parts"):
        merge_runs(parts, parts[0], as_json=True)
    assert (parts[0] / "results.jsonl").read_bytes() == before
