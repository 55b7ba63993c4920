"""What the reader of a run should know before believing its numbers."""

from __future__ import annotations

from pathlib import Path

from tests.view.runs import failed_row, reports_of, row
from vfgym.view.concerns import concerns_of
from vfgym.view.findings import note_on


def test_what_is_wrong_is_told_once_for_each_trouble() -> None:
    rows = [
        row(0, ending="infrastructure_failed", error={"error": "ModelError", "error_chain_repr": "503"}),
        failed_row(1),
        failed_row(2),
        row(3, ending="cut", stop_condition="limit_reached", is_truncated=True),
        row(4, metrics_errors={"exact": "KeyError('x')"}, cleanup_errors={"close": "OSError"}),
        row(5, ending="environment_failed", error={"error": "KeyError"}, metrics_errors={"exact": "not told apart"}),
        row(6),
    ]
    assert [(concern.kind, concern.title, concern.rollouts) for concern in concerns_of(rows)] == [
        ("failed", "the agent failed: ModelError", [1, 2]),
        ("missing", "the infrastructure failed, so it is missing: ModelError", [0]),
        ("failed", "the environment failed: KeyError", [5]),
        ("cut", "cut by a limit of the run: limit_reached", [3]),
        ("shortened", "an answer of the model was cut off", [3]),
        ("unscored", "reward function exact raised, and scored 0", [4]),
        ("cleanup", "cleaning up failed: close", [4]),
    ]
    assert concerns_of(rows)[0].message.startswith("ModelError('needle-in-error")


def test_what_the_mean_is_of_is_said(tmp_path: Path) -> None:
    cut = row(1, ending="cut", counted_reward=0.0)
    missing = row(2, ending="infrastructure_failed", counted_reward=None, failed=True, failure_reward=0.0)
    (done,) = reports_of(tmp_path / "done", [row(0), cut, missing])
    assert done.remarks == [
        "what failed or was cut counts with 0 in the mean",
        "1 of 3 rollouts are missing: the mean is of the others; with them as failures it would be 0.333",
    ]
    assert note_on(done) == "3 rollouts of 3 tasks, 1 cut, 1 missing, 1.0 turns each"
    (stopped,) = reports_of(tmp_path / "stopped", [row(0)], num_examples=3, stopped_by={"limit": "cost", "used": 1, "allowed": 1})
    assert stopped.remarks == [
        "1 of 3 rollouts are played (its limit on cost is used up):"
        " there is no mean yet, since rollouts that end early say nothing of the others"
    ]
    (unknown,) = reports_of(tmp_path / "unknown", [row(0), failed_row(1)])
    assert "there is no mean" in unknown.remarks[0]
    assert reports_of(tmp_path / "good", [row(0)])[0].remarks == []
