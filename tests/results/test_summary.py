"""`summarize`: from the files of a run, or from its rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vfgym.errors import ConfigurationError
from vfgym.results import ResultsError, summarize

ROWS = [
    {"example_id": number // 2, "rollout": number % 2, "reward": reward, "counted_reward": reward, "error": None, "metrics": {}}
    | {"ending": "terminated", "failed": False}
    for number, reward in enumerate([1.0, 0.0, 0.25, 1.0])
]


def write(path: Path, rows: list[dict[str, Any]] = ROWS, **metadata: Any) -> Path:
    known = {"env_id": "e", "num_examples": len(rows) // 2, "rollouts_per_example": 2, "pass_threshold": 0.5}
    (path / "metadata.json").write_text(json.dumps({**known, **metadata}))
    (path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_directory_is_summed_up_as_its_rows_are(tmp_path: Path) -> None:
    summary = summarize(write(tmp_path))
    assert summary == summarize(str(tmp_path)) == summarize(ROWS, 2, 0.5)
    assert (summary["avg_reward"], summary["pass_all_k"]) == (0.5625, {"1": 0.5, "2": 0.0})


def test_what_is_given_goes_before_what_the_run_says(tmp_path: Path) -> None:
    write(tmp_path)
    assert summarize(tmp_path, pass_threshold=0.25)["pass_all_k"]["2"] == 0.5
    assert summarize(tmp_path, pass_threshold=0.0)["pass_all_k"]["2"] == 1.0
    assert summarize(tmp_path, rollouts_per_example=1)["pass_at_k"] == {}


def test_what_the_metadata_say_counts(tmp_path: Path) -> None:
    equal = [{**row, "reward": 5.0, "counted_reward": 5.0} for row in ROWS]
    assert summarize(write(tmp_path, equal))["interval"] is None
    assert summarize(write(tmp_path, equal, reward_range=[0.0, 5.0]))["interval"] is not None
    assert summarize(write(tmp_path, num_examples=3))["avg_reward"] is None
    assert summarize(write(tmp_path, num_rollouts=5))["avg_reward"] is None
    failed = [*ROWS[:3], {**ROWS[3], "ending": "policy_failed", "failed": True, "counted_reward": -1.0}]
    assert summarize(write(tmp_path, failed))["avg_reward"] == 0.0625
    assert summarize(write(tmp_path, failed, mean_of="reward"))["avg_reward"] == 0.5625


@pytest.mark.parametrize("given", [(), (2,), (None, 0.5), (2, None)])
def test_what_neither_says_has_to_be_given(given: tuple[Any, ...], tmp_path: Path) -> None:
    for results in (ROWS, write(tmp_path, rollouts_per_example=None, pass_threshold=None)):
        with pytest.raises(ConfigurationError, match="summarize needs rollouts_per_example and pass_threshold"):
            summarize(results, *given)  # type: ignore[arg-type]
    assert summarize(ROWS, 2, 0.0)["pass_all_k"]["2"] == 1.0


def test_a_directory_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="it is not the directory of a run"):
        summarize(tmp_path)
