"""What callbacks are told of a run, and that they cannot end it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.verifiers_compat.environments import four
from tests.verifiers_compat.models import Model
from verifiers_compat.generation.reporting import RunningMeans


def test_callbacks_are_told_what_the_documents_say() -> None:
    told: dict[str, list[Any]] = {"start": [], "progress": [], "log": []}
    four().evaluate_sync(
        Model(),
        "m",
        num_examples=2,
        rollouts_per_example=2,
        on_start=lambda *args: told["start"].append(args),
        on_log=told["log"].append,
        on_progress=lambda all_outputs, new, metadata: told["progress"].append((len(all_outputs), len(new), metadata["avg_reward"])),
    )
    ((raw, filtered),) = told["start"]
    assert [row["example_id"] for row in raw] == [0, 1, 0, 1]
    assert [[row["example_id"] for row in group] for group in filtered] == [[0, 0], [1, 1]]
    assert [progress[:2] for progress in told["progress"]] == [(2, 2), (4, 2)]
    assert told["progress"][-1][2] == 0.5

    starts: list[Any] = []
    counts: list[int] = []
    four().evaluate_sync(
        Model(),
        "m",
        independent_scoring=True,
        on_start=lambda raw, left: starts.append(left),
        on_progress=[lambda done, new, _: counts.append(len(new))],
    )
    assert [row["example_id"] for row in starts[0]] == [0, 1, 2, 3]
    assert counts == [1, 1, 1, 1]


def test_callbacks_read_running_means_and_cannot_end_a_run(caplog: pytest.LogCaptureFixture) -> None:
    means: list[tuple[float, float, int]] = []

    def note(outputs: Any, new: Any, metadata: Mapping[str, Any]) -> None:
        means.append((metadata["avg_reward"], metadata["avg_metrics"]["right"], metadata["num_examples"]))
        raise ValueError("oops")

    results = four().evaluate_sync(Model(), "m", max_concurrent=1, on_progress=note)
    assert means == [(0.0, 0.0, 4), (0.5, 0.5, 4), (pytest.approx(1 / 3), pytest.approx(1 / 3), 4), (0.25, 0.25, 4)]
    assert results["metadata"]["avg_reward"] == 0.25
    assert caplog.text.count("a callback raised") == 1


def test_examples_with_more_rollouts_than_others_are_told_in_the_documented_order() -> None:
    """The first rollout of every example, then the second; and what cannot be read by its id."""
    starts: list[Any] = []
    rows = [{"question": "a", "example_id": 0}, {"question": "b", "example_id": 1}, {"question": "c", "example_id": 0}]
    four().generate_sync([*rows, {"prompt": 3, "example_id": 2}], Model(), "m", on_start=lambda *told: starts.append(told))
    ((everything, left),) = starts
    assert [(task["example_id"], task.get("prompt") and task["prompt"][-1]["content"]) for task in everything] == [
        *[(0, "a"), (1, "b"), (2, None), (0, "c")]
    ]
    assert [[task["example_id"] for task in group] for group in left] == [[0, 0], [1], [2]]


def test_means_may_be_asked_for_from_the_beginning_again() -> None:
    means, rows = RunningMeans(), [{"reward": reward, "error": None, "metrics": {"a": reward}} for reward in (1.0, 0.0, 0.0, 1.0)]
    for count, mean in ((4, 0.5), (4, 0.5), (1, 1.0), (2, 0.5), (0, 0.0), (3, 1 / 3)):
        assert means.compute(rows, count)["avg_reward"] == pytest.approx(mean)  # type: ignore[arg-type]


def test_metadata_that_are_read_later_are_those_of_their_time() -> None:
    kept: list[Mapping[str, Any]] = []
    four().evaluate_sync(Model(), "m", max_concurrent=1, on_progress=[lambda outputs, new, metadata: kept.append(metadata)] * 2)
    assert [metadata["avg_reward"] for metadata in reversed(kept[::2])] == [0.25, pytest.approx(1 / 3), 0.5, 0.0]
    whole = dict(kept[2])
    assert (whole["avg_reward"], whole["avg_metrics"], whole["avg_error"], len(kept[2])) == (
        0.5,
        {"right": 0.5, "num_turns": 1.0},
        0.0,
        len(whole),
    )
    assert "avg_error" in kept[2]
    assert "nothing" not in kept[2]
    with pytest.raises(KeyError):
        kept[2]["nothing"]
    kept.clear()
    given: dict[str, Any] = {"num_examples": 2, "rollouts_per_example": 2, "max_concurrent": 1}
    four().evaluate_sync(Model(), "m", **given, on_progress=lambda outputs, new, metadata: kept.append(metadata))
    assert [metadata["pass_at_k"]["1"] for metadata in kept] == [0.0, 0.5]


def test_what_is_no_exception_of_a_callback_ends_the_run() -> None:
    def interrupted(*told: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        four().evaluate_sync(Model(), "m", on_progress=interrupted)


def test_a_run_of_which_nothing_is_left_is_reported_as_one_that_is_done(tmp_path: Path) -> None:
    told: list[Any] = []
    for _ in range(2):
        client = Model()
        given = {
            "on_start": lambda *start: told.append("start"),
            "on_log": told.append,
            "on_progress": lambda *progress: told.append("more"),
        }
        four().evaluate_sync(client, "m", results_path=tmp_path, save_results=True, **given)
        told.append(client.calls)
    logged = [each for each in told if isinstance(each, str) and each.startswith("resuming")]
    assert logged == [f"resuming {tmp_path}: 4 of 4 rollouts are done"]
    assert [each for each in told if each in ("start", "more", 0, 4)] == ["start", *["more"] * 4, 4, 0]
