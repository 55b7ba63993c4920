"""Tasksets: the numbers and columns of their tasks, of both splits, and where the rollouts of a group start from."""

from __future__ import annotations

from typing import Any

import pytest

import verifiers_compat.v1 as vf
from vfgym.errors import ConfigurationError
from vfgym.testing import ScriptedClient

TRAIN = [{"question": "a?", "answer": "1", "example_id": 40}, {"question": "b?", "example_id": 50, "level": 3}, {"question": "c?"}]


EVAL = [{"question": "d?", "answer": "4"}, {"question": "e?", "example_id": "five"}]


def test_rows_are_numbered_where_they_have_no_number_of_their_own() -> None:
    taskset = vf.Taskset(TRAIN, EVAL)
    assert [row["example_id"] for row in taskset.rows()] == [40, 50, 2]
    assert [row["example_id"] for row in taskset.eval_rows()] == [0, "five"]
    assert [row["example_id"] for row in taskset.dataset_rows()] == [40, 50, 2]
    assert [row["example_id"] for row in taskset.dataset_rows("eval")] == [0, 1], "a Dataset's column of numbers"
    assert [taskset.task(row)["task_id"] for row in taskset.eval_rows()] == ["0", "five"]


def test_a_task_is_known_by_its_own_id_and_one_without_any_by_a_new_one() -> None:
    taskset = vf.Taskset([])
    assert taskset.task({"task_id": "t", "id": 1, "example_id": 2})["task_id"] == "t"
    assert taskset.task({"id": 1, "example_id": 2})["task_id"] == "1"
    assert taskset.task({"task_id": None, "example_id": 2})["task_id"] == "2"
    unnamed = [taskset.task({"question": "?"})["task_id"] for _ in range(2)]
    assert unnamed[0] != unnamed[1]
    assert all(len(task_id) == 32 for task_id in unnamed)


def test_the_datasets_of_both_splits_have_all_columns() -> None:
    """A column that only later rows have is there, too, and each row carries its whole task."""
    taskset = vf.Taskset([{"question": "c?"}, *TRAIN], EVAL)
    train, evaluation = taskset.get_dataset(), taskset.get_eval_dataset()
    assert [row["answer"] for row in train] == [None, "1", None, None]
    assert [row["prompt"][0]["content"] for row in evaluation] == ["d?", "e?"]
    assert [row["answer"] for row in evaluation] == ["4", None]
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
    class Empty(vf.Taskset):
        pass

    taskset = Empty()
    assert taskset, "to ask for its truth needs none"
    assert taskset.task({"question": "?"})["prompt"] == [{"role": "user", "content": "?"}]
    for use in (list, len, vf.Taskset.rows, vf.Env):
        with pytest.raises(ConfigurationError, match=r"Empty has no tasks.*source=.*rows\(\)"):
            use(taskset)  # type: ignore[operator]
    assert (list(vf.Taskset([])), len(vf.Taskset([]))) == ([], 0)


async def test_each_rollout_of_a_group_starts_from_a_state_of_its_own() -> None:
    taskset = vf.Taskset(TRAIN)
    task = taskset.task(TRAIN[0])
    tasks, states = await taskset.init_group(task, 3)
    assert tasks == [task] * 3
    assert len({id(state) for state in states}) == len({state["trajectory_id"] for state in states}) == 3
    states[0]["mine"] = 1
    assert "mine" not in states[1]


@pytest.mark.parametrize(("num_examples", "rollouts"), [(-1, 1), (2, 3)])
async def test_the_figures_of_a_run_are_those_of_its_tasks(num_examples: int, rollouts: int) -> None:
    def score(task: Any, state: Any) -> float:
        return float(task.get("level") or 0)

    def length(task: Any, state: Any) -> float:
        return float(len(state["completion"]))

    env = vf.Env(vf.Taskset(EVAL, TRAIN, rewards=[score], metrics=[length]))
    results = await env.evaluate(ScriptedClient(["x"]), "m", num_examples=num_examples, rollouts_per_example=rollouts)
    expected = [40, 50, 2][: num_examples if num_examples > 0 else None]
    assert [(row["example_id"], row["rollout"]) for row in results["outputs"]] == [
        (example_id, number) for example_id in sorted(expected) for number in range(rollouts)
    ]
    by_id = {row["example_id"]: row for row in results["outputs"]}
    assert {example_id: row["reward"] for example_id, row in by_id.items()} == {i: 3.0 if i == 50 else 0.0 for i in expected}
    metadata = results["metadata"]
    assert (metadata["num_examples"], metadata["rollouts_per_example"]) == (len(expected), rollouts)
    assert metadata["avg_reward"] == pytest.approx(3.0 / len(expected))
    assert metadata["avg_metrics"] == pytest.approx({"score": 3.0 / len(expected), "length": 1.0})


ROWS = [{"question": "?", "answer": "a"}]


def test_rows_are_loaded_once_and_copied() -> None:
    calls: list[int] = []

    def rows() -> Any:
        calls.append(1)
        yield from ROWS

    taskset = vf.Taskset(rows)
    taskset.rows()[0]["answer"] = "changed"
    assert taskset.rows() == [{"example_id": 0, "question": "?", "answer": "a"}]
    assert taskset.eval_rows() == taskset.rows()
    assert len(calls) == 1
    assert vf.Taskset(ROWS, lambda: [{"question": "eval"}]).eval_rows()[0]["question"] == "eval"


@pytest.mark.parametrize("source", [None, "x:y:z", 3, {"question": "?"}, [3]])
def test_what_is_no_source_is_refused(source: Any) -> None:
    with pytest.raises(ConfigurationError):
        vf.Taskset(source).rows()


def test_tasks_know_their_taskset_and_travel_as_rows() -> None:
    class Mine(vf.Taskset):
        pass

    taskset = Mine(ROWS)
    task = taskset.task(taskset.rows()[0])
    assert (task["taskset_id"], task["task_id"], task["prompt"]) == ("Mine", "0", [{"role": "user", "content": "?"}])
    assert vf.Taskset(ROWS, taskset_id="other").task({"id": 7})["task_id"] == "7"
    assert taskset.to_task(task) is task
    import json

    assert taskset.to_task(json.dumps(task)) == task
    dataset = taskset.get_dataset()
    assert dataset[0]["answer"] == "a"
    assert taskset.to_task(dataset[0]) == task
    assert taskset.to_task({"question": "new"})["prompt"] == [{"role": "user", "content": "new"}]
    with pytest.raises(ConfigurationError, match="JSON"):
        taskset.to_task("{")
    with pytest.raises(ConfigurationError, match="int"):
        taskset.to_task(3)  # type: ignore[arg-type]
