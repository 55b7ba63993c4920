"""What an earlier run has left to play."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runs.test_recorder import ROWS, group, run_of
from vfgym import SingleTurnEnv
from vfgym.errors import InfraError
from vfgym.messages import MESSAGE_TYPES
from vfgym.results import fingerprint_of
from vfgym.runs.engine import GroupJob
from vfgym.runs.inputs import Example, ListedInputs, TaskInputs
from vfgym.runs.recorder import Recorder
from vfgym.runs.remaining import find_remaining, task_fingerprint

TASKS = SingleTurnEnv(ROWS).tasks_of("train")


def fingerprint(example: Example, number: int) -> str | None:
    return task_fingerprint(INPUTS, example, number)


INPUTS = TaskInputs(TASKS, -1, 2)


def jobs() -> list[GroupJob]:
    return [GroupJob(example, range(2)) for example in INPUTS.examples()]


def remaining(path: Path, of: Any = fingerprint, **options: Any) -> tuple[list[tuple[int, list[int]]], Any]:
    groups, earlier = find_remaining(
        path, run_of(path), jobs(), of, **{"in_groups": False, "redo_errors": False, "types": MESSAGE_TYPES, **options}
    )
    return [(each.example.example_id, list(each.numbers)) for each in groups], earlier


@pytest.fixture
def played(tmp_path: Path) -> Path:
    """Of the first example both rollouts, the second with an error; of the second example the second one."""
    with Recorder(run_of(tmp_path), None) as recorder:
        for example, numbers in zip(INPUTS.examples(), ([0, 1], [1]), strict=True):
            job = group(example.example_id, fingerprint=fingerprint(example, 0))
            job.played = [job.played[number] for number in numbers]
            if example.example_id == 0:
                job.played[1].fail(InfraError("no disk"))
            recorder.add(job)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "left", "num_kept"),
    [
        ({}, [(1, [0])], 3),
        ({"redo_errors": True}, [(0, [1]), (1, [0])], 2),
        ({"in_groups": True}, [(1, [0, 1])], 2),
        ({"in_groups": True, "redo_errors": True}, [(0, [0, 1]), (1, [0, 1])], 0),
    ],
)
def test_what_is_missing_is_played(played: Path, options: dict[str, Any], left: Any, num_kept: int) -> None:
    groups, earlier = remaining(played, **options)
    assert groups == left
    assert len(earlier.rows) == num_kept


def test_all_is_played_where_nothing_was_and_tasks_that_are_others_now(tmp_path: Path, played: Path) -> None:
    assert remaining(tmp_path / "none") == ([(0, [0, 1]), (1, [0, 1])], None)
    groups, _ = remaining(played, lambda example, number: "another" if example.example_id == 0 else fingerprint(example, number))
    assert groups == [(0, [0, 1]), (1, [0])]


def test_a_fingerprint_is_that_of_the_rollouts_own_task() -> None:
    inputs = ListedInputs(TASKS, [{**row, "example_id": 0} for row in ROWS])
    (example,) = inputs.examples()
    prints = [task_fingerprint(inputs, example, number) for number in (0, 1)]
    assert prints == [fingerprint_of(inputs.task(example, number)) for number in (0, 1)]
    assert prints[0] != prints[1]
    assert task_fingerprint(inputs, example, 2) is None
