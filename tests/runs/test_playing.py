"""What every run does with its groups, whoever plays them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runs.test_recorder import group, run_of
from tests.runs.test_remaining import fingerprint, jobs
from vfgym.errors import InfraError
from vfgym.messages import MESSAGE_TYPES
from vfgym.results import GenerateOutputs, ResultsError, Run
from vfgym.runs.engine import GroupJob
from vfgym.runs.playing import play_run
from vfgym.runs.recorder import Recorder
from vfgym.runs.spending import Budget, RunSpending


class Played:
    """A run of two examples with two rollouts each: what it was, and what its player and its report were told."""

    def __init__(self) -> None:
        self.left: list[list[int]] | None = None
        self.at_once: int | None = None
        self.begun_with: tuple[int, int] | None = None
        self.reported: list[int] = []
        self.redone = 0
        self.fails: tuple[int, ...] = ()

    async def play(self, groups: list[GroupJob], at_once: int, recorder: Recorder, spending: RunSpending) -> None:
        self.left, self.at_once = [list(each.numbers) for each in groups], at_once
        recorder.note_redone(self.redone)
        for job in groups:
            job.played = group(job.example.example_id, fingerprint=fingerprint(job.example, 0)).played
            job.played = [job.played[number] for number in job.numbers]
            for played in job.played:
                if played.number in self.fails:
                    played.fail(InfraError("no disk"))
            recorder.add(job)

    @contextlib.contextmanager
    def report(self, run: Run, groups: Any, outputs: list[Any]) -> Iterator[Callable[[list[Any]], None]]:
        self.begun_with = (sum(len(each.numbers) for each in groups), len(outputs))
        yield lambda rows: self.reported.append(len(rows))

    async def run(self, run: Run, *, limits: dict[str, Any] | None = None, most_at_once: int = -1, **options: Any) -> GenerateOutputs:
        budget = Budget.of(limits, None, None, None, [])
        told: dict[str, Any] = {"in_groups": True, "fingerprint": fingerprint, "types": MESSAGE_TYPES, **options}
        return await play_run(run, jobs(), self.play, self.report, budget=budget, most_at_once=most_at_once, **told)


@pytest.mark.parametrize(("most", "at_once"), [(-1, 4), (0, 4), (1, 1), (3, 3), (9, 4)])
async def test_all_is_played_so_many_at_once_and_reported(most: int, at_once: int, tmp_path: Path) -> None:
    played = Played()
    outputs = await played.run(run_of(tmp_path), most_at_once=most)
    assert (played.left, played.at_once, played.begun_with, played.reported) == ([[0, 1], [0, 1]], at_once, (4, 0), [2, 2])
    assert [(row["example_id"], row["rollout"]) for row in outputs["outputs"]] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert json.loads((tmp_path / "metadata.json").read_text())["stopped_by"] is None


@pytest.mark.parametrize(
    ("options", "left", "begun_with"),
    [
        ({}, None, (0, 4)),
        ({"redo_errors": True, "in_groups": False}, [[1], [1]], (2, 2)),
        ({"redo_errors": True}, [[0, 1], [0, 1]], (4, 0)),
    ],
    ids=["nothing left", "errors", "groups with errors"],
)
async def test_a_run_goes_on_with_what_is_missing(
    options: dict[str, Any], left: list[list[int]] | None, begun_with: tuple[int, int], tmp_path: Path
) -> None:
    first = Played()
    first.fails, first.redone = (1,), 2
    await first.run(dataclasses.replace(run_of(tmp_path), tags=["a", "b"]))
    again = Played()
    outputs = await again.run(dataclasses.replace(run_of(tmp_path), tags=["b", "c"]), most_at_once=9, **options)
    assert (again.left, again.begun_with) == (left, begun_with)
    assert again.at_once == (None if left is None else begun_with[0])
    metadata = outputs["metadata"]
    assert (len(outputs["outputs"]), metadata["tags"], metadata["redone"]) == (4, ["a", "b", "c"], 2)


async def test_a_run_of_which_nothing_is_left_is_not_stopped_by_what_it_spent(tmp_path: Path) -> None:
    first = Played()
    first.fails = (0, 1)
    await first.run(run_of(tmp_path))
    again = Played()
    outputs = await again.run(run_of(tmp_path), limits={"errors": 4, "time": 1e-6})
    assert (again.left, outputs["metadata"]["stopped_by"]) == (None, None)


async def test_errors_count_toward_the_limit_as_rows_are_finished(tmp_path: Path) -> None:
    played = Played()
    played.fails = (0, 1)
    spent: list[int] = []

    async def play(groups: list[GroupJob], at_once: int, recorder: Recorder, spending: RunSpending) -> None:
        await Played.play(played, groups, at_once, recorder, spending)
        assert spending.spent is not None
        spent.append(spending.spent.errors)

    played.play = play  # type: ignore[method-assign]
    await played.run(run_of(tmp_path), limits={"errors": 9})
    assert spent == [4]


async def test_without_resume_the_results_of_another_run_are_in_the_way(tmp_path: Path) -> None:
    await Played().run(run_of(tmp_path))
    again = Played()
    with pytest.raises(ResultsError, match="holds the results of another run already"):
        await again.run(run_of(tmp_path), resume=False)
    assert again.left is None
