"""Tasksets: the numbers and columns of their tasks, of both splits, and where the rollouts of a group start from."""

from __future__ import annotations

import json
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.verifiers_compat.v1.playing import noting, noting_groups
from vfgym.errors import ConfigurationError

TRAIN = [{"question": "a?", "answer": "1", "example_id": 40}, {"question": "b?", "example_id": 50, "level": 3}, {"question": "c?"}]
EVAL = [{"question": "d?", "answer": "4"}, {"question": "e?", "example_id": "five"}]


def test_rows_are_numbered_where_they_have_no_number_of_their_own() -> None:
    taskset = vf.Taskset(TRAIN, EVAL)
    both = [[row["example_id"] for row in rows] for rows in (taskset.rows(), taskset.eval_rows())]
    assert both == [[40, 50, 2], [0, "five"]]
    both = [[row["example_id"] for row in taskset.dataset_rows(split)] for split in ("train", "eval")]
    assert both == [[40, 50, 2], [0, 1]], "a Dataset's column of numbers"
    assert [taskset.task(row)["task_id"] for row in taskset.eval_rows()] == ["0", "five"]


def test_a_task_is_known_by_its_own_id_and_one_without_any_by_a_new_one() -> None:
    taskset = vf.Taskset([], taskset_id="other")
    rows = [{"task_id": "t", "id": 1, "example_id": 2}, {"id": 1, "example_id": 2}, {"task_id": None, "example_id": 2}]
    assert [taskset.task(row)["task_id"] for row in rows] == ["t", "1", "2"]
    one, other = (taskset.task({"question": "?"}) for _ in range(2))
    assert (one["task_id"] != other["task_id"], len(one["task_id"]), one["taskset_id"]) == (True, 32, "other")


def test_the_datasets_of_both_splits_have_all_columns() -> None:
    """A column that only later rows have is there, too, and each row carries its whole task."""
    taskset = vf.Taskset([{"question": "c?"}, *TRAIN], EVAL)
    train, evaluation = taskset.get_dataset(), taskset.get_eval_dataset()
    assert ([row["answer"] for row in train], [row["answer"] for row in evaluation]) == ([None, "1", None, None], ["4", None])
    assert [row["prompt"][0]["content"] for row in evaluation] == ["d?", "e?"]
    assert [taskset.to_task(row).get("level") for row in train] == [None, None, 3, None]
    assert [taskset.to_task(row)["question"] for row in evaluation] == ["d?", "e?"]
    alone = vf.Taskset(TRAIN)
    assert (alone.has_rows("train"), alone.has_rows("eval"), taskset.has_rows("eval")) == (True, False, True)
    assert [row["prompt"][0]["content"] for row in alone.get_eval_dataset()] == ["a?", "b?", "c?"]


def test_a_taskset_that_writes_its_rows_has_them() -> None:
    class Written(vf.Taskset):
        def eval_rows(self) -> list[dict[str, Any]]:
            return [{"question": "z?", "example_id": 9}]

    taskset = Written(TRAIN)
    assert (taskset.has_rows("train"), taskset.has_rows("eval")) == (True, True)
    assert [row["example_id"] for row in taskset.dataset_rows("eval")] == [9]
    assert vf.Env(taskset).eval_tasks.input(0)["example_id"] == 9


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (None, r"rows\(\) of Written must be rows \(an iterable of dicts\).*got NoneType"),
        ([{"question": "?"}, "?"], r"rows\(\) of Written: row 1 must be a dict, got str"),
    ],
)
def test_rows_that_a_class_gives_are_checked_where_they_are_needed(rows: Any, message: str) -> None:
    class Written(vf.Taskset):
        def rows(self) -> Any:
            return rows

    for use in (list, len, vf.Taskset.get_dataset, vf.Taskset.get_eval_dataset):
        with pytest.raises(ConfigurationError, match=message):
            use(Written())  # type: ignore[operator]


def test_a_taskset_without_any_rows_is_refused_where_they_are_needed() -> None:
    taskset = type("Empty", (vf.Taskset,), {})()
    assert taskset, "to ask for its truth needs none"
    assert taskset.task({"question": "?"})["prompt"] == [{"role": "user", "content": "?"}]
    for use in (list, len, vf.Taskset.rows, vf.Env):
        with pytest.raises(ConfigurationError, match=r"Empty has no tasks.*source=.*rows\(\)"):
            use(taskset)
    assert (list(vf.Taskset([])), len(vf.Taskset([]))) == ([], 0)


def test_handlers_of_every_kind_may_be_given_and_those_of_groups_ask_for_groups() -> None:
    kinds = ("stop", "setup", "update", "metric", "reward", "cleanup")
    given = {**{f"{kind}s": [noting([], kind)] for kind in kinds}, "advantages": [noting_groups([], "advantage")]}
    taskset = vf.Taskset([], **given)
    assert {(handler.name, handler.kind) for handler in taskset.handlers} == {(kind, kind) for kind in (*kinds, "advantage")}
    assert (taskset.requires_group_rollouts, vf.Taskset([], rewards=given["rewards"]).requires_group_rollouts) == (True, False)


def test_rows_are_loaded_once_and_copied() -> None:
    calls: list[int] = []

    def rows() -> Any:
        calls.append(1)
        yield {"question": "?", "answer": "a"}

    taskset = vf.Taskset(rows)
    taskset.rows()[0]["answer"] = "changed"
    assert taskset.rows() == taskset.eval_rows() == [{"example_id": 0, "question": "?", "answer": "a"}]
    assert len(calls) == 1
    assert vf.Taskset(TRAIN, lambda: [{"question": "eval"}]).eval_rows()[0]["question"] == "eval"


@pytest.mark.parametrize("source", [None, "x:y:z", 3, {"question": "?"}, [3]])
def test_what_is_no_source_is_refused(source: Any) -> None:
    with pytest.raises(ConfigurationError):
        vf.Taskset(source).rows()


def test_tasks_travel_as_rows() -> None:
    taskset = vf.Taskset(EVAL)
    task, row = taskset.task(taskset.rows()[0]), taskset.get_dataset()[0]
    assert (task["taskset_id"], row["answer"], taskset.to_task(task) is task) == ("Taskset", "4", True)
    assert taskset.to_task(json.dumps(task)) == taskset.to_task(row) == task
    assert taskset.to_task({"question": "new"})["prompt"] == [{"role": "user", "content": "new"}]
    for wrong, says in (("{", "JSON"), (3, "int")):
        with pytest.raises(ConfigurationError, match=says):
            taskset.to_task(wrong)  # type: ignore[arg-type]


def test_text_that_holds_no_task_is_refused() -> None:
    for text, told in (("{no", "a task given as text must be JSON: "), ("[1]", "a task must be a dict, or one as JSON text; got list$")):
        with pytest.raises(ConfigurationError, match=f"^{told}"):
            vf.Taskset([]).to_task(text)
