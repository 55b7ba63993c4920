"""What a run plays: which examples, in which order, with which seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vfgym import SingleTurnEnv
from vfgym.errors import ConfigurationError
from vfgym.runs.inputs import Example, ListedInputs, Seeds, TaskInputs
from vfgym.tasks import ProceduralTasks, Tasks

ROWS = [{"question": f"{number}?", "answer": str(number)} for number in range(5)]


def tasks(rows: Any = ROWS) -> Tasks:
    return SingleTurnEnv(rows).tasks_of("train")


def endless() -> Tasks:
    return SingleTurnEnv(ProceduralTasks(lambda index: {"question": f"{index}?"})).tasks_of("train")


def test_a_seed_follows_from_seed_place_and_number_alone() -> None:
    slots = [(place, number) for place in (0, 1, 1023, 1024, 1025, 2048) for number in (0, 1)]
    forth, back, other = Seeds(0), Seeds(0), Seeds(1)
    found = {slot: forth.of(Example(7, slot[0], 2, slot[0]), slot[1]) for slot in slots}
    assert {slot: back.of(Example(9, [], 1, slot[0]), slot[1]) for slot in reversed(slots)} == found
    others = {other.of(Example(7, place, 2, place), number) for place, number in slots}
    assert len({*found.values(), *others}) == 2 * len(slots)


@pytest.mark.parametrize(
    ("arguments", "ids"), [((-1, 1), [0, 1, 2, 3, 4]), ((3, 2), [0, 1, 2]), ((9, 1), [0, 1, 2, 3, 4]), ((-1, 3, [4, 0]), [4, 0])]
)
def test_tasks_are_taken_from_the_first_or_by_their_ids(arguments: tuple[Any, ...], ids: list[int]) -> None:
    inputs = TaskInputs(tasks(), *arguments)
    examples = list(inputs.examples())
    assert [(example.example_id, example.place, example.num_rollouts) for example in examples] == [(id, id, arguments[1]) for id in ids]
    assert (inputs.num_examples, inputs.num_rollouts) == (len(ids), len(ids) * arguments[1])
    first, again = inputs.task(examples[-1], 0), inputs.task(examples[-1], 0)
    assert first["answer"] == str(ids[-1])
    assert first is not again


def test_tasks_without_end_are_played_as_far_as_was_asked() -> None:
    assert [example.place for example in TaskInputs(endless(), 3, 1).examples()] == [0, 1, 2]


@pytest.mark.parametrize(
    ("source", "arguments", "text"),
    [
        (tasks, (-1, 0), "rollouts_per_example must be positive, got 0"),
        (tasks, (1, 1, [0]), "num_examples and example_ids both"),
        (tasks, (-1, 1, []), "names no examples"),
        (tasks, (-1, 1, [2, 2]), "names an example twice"),
        (tasks, (-1, 1, [5]), "example_id"),
        (endless, (-1, 1), "have no end"),
        (endless, (0, 1), "have no end"),
        (lambda: tasks([]), (-1, 1), "empty"),
    ],
)
def test_tasks_that_do_not_fit_are_refused(source: Any, arguments: tuple[Any, ...], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        TaskInputs(source(), *arguments)


def test_rows_of_one_id_are_rollouts_of_one_example() -> None:
    ids = [3, None, "x", 0, 3.0, "x", None, "3"]
    rows = [{"question": f"{place}?"} | ({} if id is None else {"example_id": id}) for place, id in enumerate(ids)]
    inputs = ListedInputs(tasks(), rows)
    examples = list(inputs.examples())
    assert [(example.example_id, example.num_rollouts, example.place) for example in examples] == [
        (3, 2, 0),
        (1, 1, 1),
        (2, 2, 2),
        (0, 1, 3),
        (4, 1, 4),
        (5, 1, 5),
    ]
    assert (inputs.num_examples, inputs.num_rollouts) == (6, 8)
    second = inputs.task(examples[2], 1)
    assert (second["example_id"], second["src_id"], second["prompt"][-1]["content"]) == (2, "x", "5?")
    assert "src_id" not in inputs.task(examples[3], 0)


def test_a_task_is_its_rollouts_own_and_the_row_is_not_changed_by_it() -> None:
    rows: list[Any] = [{"question": "?", "example_id": id, "info": {"level": 0}} for id in (np.int64(4), 2.5, 4)]
    inputs = ListedInputs(tasks(), iter(rows))
    first, other = inputs.examples()
    assert ((first.example_id, first.num_rollouts), (other.example_id, other.num_rollouts)) == ((4, 2), (0, 1))
    assert (inputs.num_examples, inputs.num_rollouts, inputs.rollouts_per_example) == (2, 3, 1)
    inputs.task(first, 0)["info"]["level"] = 9
    assert [inputs.task(first, number)["info"] for number in (0, 1)] == [{"level": 0}] * 2
    assert inputs.task(other, 0)["src_id"] == 2.5
    assert rows[0]["info"] == {"level": 0}


@pytest.mark.parametrize(("rows", "text"), [([], "no inputs"), ([ROWS[0], "row"], "got str as number 1")])
def test_what_are_no_rows_is_refused(rows: list[Any], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        ListedInputs(tasks(), rows)
