"""What the rows of a run say together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.view.runs import failed_row, reports_of, row
from vfgym.results import GenerateOutputs
from vfgym.view.run_report import Mean, TaskReport, report_run


def test_a_report_counts_tasks_tokens_and_time(tmp_path: Path) -> None:
    rows = [
        row(0, 0, 1.0, token_usage={"input_tokens": 3, "final_input_tokens": 9}),
        row(0, 1, 0.5, metrics={"num_turns": 1.0, "x": 2.0}, token_usage={"input_tokens": 4, "output_tokens": 1}),
        failed_row(1),
        row(1, 1, 0.25, timing={"total": 2.5}),
    ]
    (report,) = reports_of(tmp_path, rows, rollouts_per_example=2, num_examples=1000)
    assert (report.name, report.progress, report.counted) == ("a-game-v0 · a-model · 0", "4 of 2,000", [1.0, 0.5, None, 0.25])
    assert (report.reward, str(report.reward), report.metrics["x"]) == (Mean(None, None), "-", Mean(2.0, None))
    assert report.tasks == [TaskReport(0, 0.75, [0, 1], 0, 2), TaskReport(1, None, [2, 3], 1, 0)]
    assert list(report.endings.items()) == [("terminated (max_turns)", 3), ("policy_failed (has_error)", 1)]
    assert (report.tokens, report.rollout_seconds) == ({"input_tokens": 7, "output_tokens": 1}, 1.0)


def test_a_run_without_rows_or_metadata_is_reported() -> None:
    report = report_run(GenerateOutputs(outputs=[], metadata={}))  # type: ignore[typeddict-item]
    assert (report.name, report.progress, report.tasks, report.rollout_seconds) == ("run", "0", [], 0.0)


def test_an_interval_is_over_tasks(tmp_path: Path) -> None:
    (report,) = reports_of(tmp_path, [row(task, reward=task % 2, metrics={"m": float(task % 2)}) for task in range(4)])
    assert (report.reward.value, report.metrics["m"].value, report.progress) == (0.5, 0.5, "4")
    for mean in (report.reward, report.metrics["m"]):
        assert mean.interval is not None
        assert mean.interval[0] < 0.5 < mean.interval[1]


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({"env_id": "e", "model": "m", "path_to_save": "/runs/r"}, "e · m · r"),
        ({"env_id": "", "model": None, "path_to_save": "/runs/r"}, "r"),
        ({"env_id": "e", "path_to_save": None}, "e"),
        ({"model": "m", "path_to_save": ""}, "m"),
        ({"env_id": None}, "run"),
    ],
)
def test_a_run_is_called_by_what_is_known_of_it(metadata: Any, name: str) -> None:
    assert report_run(GenerateOutputs(outputs=[], metadata=metadata)).name == name


@pytest.mark.parametrize(("threshold", "passed"), [(0.0, [2, 0]), (0.5, [2, 0]), (0.75, [1, 0]), (1.0, [1, 0])])
def test_what_passes_reaches_the_threshold_and_did_not_fail(tmp_path: Path, threshold: float, passed: list[int]) -> None:
    rows = [row(0, 0, 1.0), row(0, 1, 0.5), failed_row(1), row(1, 1, failed=True, counted_reward=1.0)]
    (report,) = reports_of(tmp_path, rows, rollouts_per_example=2, pass_threshold=threshold)
    assert [task.num_passed for task in report.tasks] == passed
    assert [task.num_failed for task in report.tasks] == [0, 2]
