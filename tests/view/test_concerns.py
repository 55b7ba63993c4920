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
    first, *others = concerns_of(rows)
    assert first.message.startswith("ModelError('needle-in-error")
    assert [(concern.reason, concern.message) for concern in others] == [
        ("ModelError", "503"),
        ("KeyError", "{'error': 'KeyError'}"),
        ("limit_reached", ""),
        ("is_truncated", ""),
        ("exact", "KeyError('x')"),
        ("close", "OSError"),
    ]
    assert concerns_of([]) == []


def test_the_most_frequent_comes_first_among_failures_and_among_the_rest() -> None:
    failures = [row(ending="environment_failed", error={"error": each}) for each in ("KeyError", "OSError", "OSError")]
    unscored = row(metrics_errors={"a": "x", "b": "y"}, cleanup_errors={"close": "1", "leave": "2"})
    shortened = [row(ending="cut", stop_condition=None, is_truncated=True) for _ in range(4)]
    found = concerns_of([*failures, unscored, *shortened])
    assert [(concern.kind, concern.reason, concern.rollouts) for concern in found] == [
        *[("failed", "OSError", [1, 2]), ("failed", "KeyError", [0])],
        *[("cut", "a limit", [4, 5, 6, 7]), ("shortened", "is_truncated", [4, 5, 6, 7])],
        *[("unscored", "a", [3]), ("unscored", "b", [3]), ("cleanup", "close", [3]), ("cleanup", "leave", [3])],
    ]


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
    (few,) = reports_of(tmp_path / "few", [row(0)], num_examples=3)
    assert few.remarks[0].startswith("1 of 3 rollouts are played: there is no mean yet")
    (unknown,) = reports_of(tmp_path / "unknown", [row(0), failed_row(1), row(2, ending="cut", counted_reward=-1.0)])
    assert unknown.remarks == [
        "there is no mean, since nothing says with what to count 1 of 3 rollouts that failed or were cut;"
        " that of the others is 1.000 (give the environment failure_reward=...)"
    ]
    (several,) = reports_of(tmp_path / "several", [row(0), *(row(1, ending="cut", counted_reward=each) for each in (0.5, -1.0, 0.0))])
    assert several.remarks == ["what failed or was cut counts with -1 to 0.5 in the mean"]
    assert reports_of(tmp_path / "good", [row(0)])[0].remarks == []
