"""Task sources: every form that rows may come in, how a row becomes a prompt, and the order in which tasks are met."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from vfgym import ProceduralTasks, SystemMessage, TextMessage, UserMessage
from vfgym.errors import ConfigurationError, InvalidMessage
from vfgym.tasks import ENDLESS, DatasetRows, Tasks, TaskStream

ROWS = [{"question": f"{index}?", "answer": str(index)} for index in range(4)]
SHOT = [{"role": "user", "content": "1?"}, {"role": "assistant", "content": "1"}]


class Indexed:
    def __getitem__(self, index: int) -> dict[str, Any]:
        return ROWS[index]

    def __len__(self) -> int:
        return len(ROWS)


def hf_dataset() -> Any:
    from datasets import Dataset

    return Dataset.from_list(ROWS)


def texts(task: dict[str, Any]) -> list[Any]:
    return [message["content"] for message in task["prompt"]]


# Sources


@pytest.mark.parametrize(
    "source",
    [
        *[lambda: ROWS, lambda: tuple(ROWS), lambda: iter(ROWS), lambda: (row for row in ROWS), lambda: dict(enumerate(ROWS)).values()],
        *[Indexed, hf_dataset, lambda: lambda: ROWS, lambda: lambda: iter(ROWS), lambda: hf_dataset],
    ],
    ids=["list", "tuple", "iterator", "generator", "view", "indexed", "hf dataset", "builder", "iterating builder", "building hf dataset"],
)
def test_rows_come_in_many_forms(source: Callable[[], Any]) -> None:
    tasks = Tasks(source())
    assert (len(tasks), tasks.is_endless) == (4, False)
    for index in (2, 0, 2):
        task = tasks.input(index)
        assert (task["prompt"], task["answer"], task["example_id"]) == ([UserMessage(f"{index}?")], str(index), index)


def test_a_builder_is_called_once_and_only_when_rows_are_needed() -> None:
    calls: list[int] = []

    def build() -> list[dict[str, Any]]:
        calls.append(1)
        return ROWS

    tasks = Tasks(build)
    assert calls == []
    tasks.input(0)
    tasks.input(1)
    assert (len(tasks), calls) == (4, [1])


def test_an_endless_source_has_a_row_for_every_number() -> None:
    tasks = Tasks(ProceduralTasks(lambda index: {"question": f"{index}²?"}))
    assert (tasks.is_endless, len(tasks), texts(tasks.input(123456789))) == (True, ENDLESS, ["123456789²?"])
    stream = TaskStream(tasks)
    drawn = [stream.draw(np.random.default_rng(seed)) for seed in range(3)]
    assert len(set(drawn)) == 3


def test_no_source_at_all_gives_empty_tasks() -> None:
    """A game needs no dummy rows."""
    task = Tasks(None).input(7)
    assert (task["prompt"], task["example_id"]) == ([], 7)


def test_whether_rows_have_to_be_built_first_is_known() -> None:
    class Callable(Indexed):
        __call__ = None

    builder = Tasks(lambda: ROWS)
    assert [Tasks(source).is_built for source in (ROWS, [], None, iter(ROWS), Callable())] == [True] * 5
    assert (builder.is_built, len(builder.rows), builder.is_built) == (False, 4, True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ({"test": ROWS, "train": ROWS}, " Pick one split of it: dataset['test']."),
        ({}, " Pick one split of it: dataset['train']."),
        (b"rows", ""),
    ],
)
def test_of_a_dict_of_datasets_one_has_to_be_picked(source: Any, says: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Tasks(source)
    assert str(raised.value).endswith(f"got {type(source).__name__}.{says}")


@pytest.mark.parametrize("source", [["a", "b"], ("a",)])
def test_rows_that_are_no_dicts_are_refused_at_once(source: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^row 0 of the dataset must be a dict, got str$"):
        Tasks(source)


@pytest.mark.parametrize("source", [5, object(), "gsm8k", {"question": "?"}])
def test_what_is_no_source_is_refused_at_once(source: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"list of dicts.*{type(source).__name__}"):
        Tasks(source)


@pytest.mark.parametrize("built", [None, 5, {"question": "?"}, "text"])
def test_a_builder_that_returns_no_rows_is_refused(built: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"builder must return rows.*{type(built).__name__}"):
        Tasks(lambda: built).input(0)


def test_what_an_episode_writes_into_its_input_reaches_neither_the_rows_nor_the_next_episode() -> None:
    rows = [{"prompt": [{"role": "user", "content": "a"}], "info": {"deep": [1]}, "extra": [1]}]
    tasks = Tasks(rows)
    first = tasks.input(0)
    first["prompt"].append(UserMessage("b"))
    first["info"]["deep"].append(2)
    first["extra"].clear()
    assert tasks.input(0)["prompt"] == [UserMessage("a")]
    assert (tasks.input(0)["info"], tasks.input(0)["extra"]) == ({"deep": [1]}, [1])
    assert rows == [{"prompt": [{"role": "user", "content": "a"}], "info": {"deep": [1]}, "extra": [1]}]


# Prompts


@pytest.mark.parametrize(
    ("row", "system_prompt", "few_shot", "expected"),
    [
        ({"question": "q"}, None, None, [UserMessage("q")]),
        ({"question": "q"}, "s", None, [SystemMessage("s"), UserMessage("q")]),
        ({"question": "q"}, "s", SHOT, [SystemMessage("s"), *SHOT, UserMessage("q")]),
        ({"question": "q"}, "", SHOT, [*SHOT, UserMessage("q")]),
        ({"prompt": SHOT}, None, None, SHOT),
        ({"prompt": SHOT}, "s", None, [SystemMessage("s"), *SHOT]),
        ({"prompt": [{"role": "system", "content": "own"}, *SHOT]}, "s", None, [SystemMessage("own"), *SHOT]),
        ({"prompt": [{"role": "developer", "content": "own"}, *SHOT]}, "s", None, [SystemMessage("own", role="developer"), *SHOT]),
        ({"prompt": SHOT, "question": "ignored"}, None, SHOT, SHOT),
        ({"prompt": "once upon"}, None, None, [TextMessage("once upon")]),
        ({"prompt": {"role": "user", "content": "q"}}, None, None, [UserMessage("q")]),
        ({"prompt": None, "question": "q"}, None, None, [UserMessage("q")]),
        ({"question": [{"type": "text", "text": "q"}]}, None, None, [UserMessage([{"type": "text", "text": "q"}])]),
        ({"prompt": []}, "s", None, [SystemMessage("s")]),
        ({"question": ""}, "s", None, [SystemMessage("s"), UserMessage("")]),
        ({"prompt": [*SHOT, {"role": "system", "content": "late"}]}, "s", None, [SystemMessage("s"), *SHOT, SystemMessage("late")]),
    ],
)
def test_a_row_becomes_a_prompt(row: dict[str, Any], system_prompt: str | None, few_shot: Any, expected: list[Any]) -> None:
    assert Tasks([row], system_prompt=system_prompt, few_shot=few_shot).input(0)["prompt"] == expected


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"answer": "4"}, ["row 1", "'prompt'", "'question'", "answer"]),
        ({}, ["row 1", "(none)"]),
        ({"question": None}, ["row 1", "the question is None, and there is no prompt"]),
        ({"question": None, "prompt": None}, ["row 1", "the question is None, and there is no prompt"]),
        ("text", ["row 1", "dict", "str"]),
        ({"prompt": [{"role": "narrator", "content": "x"}]}, ["row 1", r"prompt[0]", "narrator"]),
        ({"prompt": 5}, ["row 1", "prompt", "int"]),
        ({"question": "q", "info": "{"}, ["row 1", "info", "JSON"]),
        ({"question": "q", "info": "[1]"}, ["row 1", "info", "list"]),
        ({"question": "q", "info": 5}, ["row 1", "info", "int"]),
    ],
)
def test_a_malformed_row_is_refused_naming_it(row: Any, says: list[str]) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Tasks([{"question": "fine"}, row]).input(1)
    assert all(words in str(raised.value) for words in says), str(raised.value)
    with pytest.raises(ConfigurationError, match="row 0"):
        Tasks([row]).input(0)


def test_few_shots_that_are_no_messages_are_refused_at_once() -> None:
    with pytest.raises(InvalidMessage, match=r"few_shot\[0\]"):
        Tasks(ROWS, few_shot=[{"role": "narrator", "content": "x"}])


@pytest.mark.parametrize(("info", "parsed"), [({"a": 1}, {"a": 1}), ('{"a": 1}', {"a": 1}), (None, {}), ("{}", {})])
def test_info_is_an_object_or_the_text_of_one(info: Any, parsed: dict[str, Any]) -> None:
    assert Tasks([{"question": "q", "info": info}]).input(0)["info"] == parsed


def test_a_row_of_one_episode_keeps_its_prompt() -> None:
    tasks = Tasks(None, system_prompt="s", few_shot=SHOT)
    assert tasks.copy_input({"prompt": SHOT})["prompt"] == SHOT
    assert tasks.copy_input({"question": "q"})["prompt"] == [SystemMessage("s"), *SHOT, UserMessage("q")]
    with pytest.raises(ConfigurationError, match=r"^my row: info must be a dict"):
        tasks.copy_input({"question": "q", "info": 5}, "my row")


def test_another_system_prompt_counts_from_then_on() -> None:
    tasks = Tasks(ROWS, system_prompt="s")
    found = []
    for text in (None, "other", ""):
        tasks.set_system_prompt(text)
        found.append(tasks.input(0)["prompt"])
    assert found == [[UserMessage("0?")], [SystemMessage("other"), UserMessage("0?")], [UserMessage("0?")]]


def test_columns_that_are_not_part_of_a_task_are_left_out() -> None:
    tasks = Tasks([{"question": "q", "a": 1, "b": 2, "c": 0}, {"question": "q", "c": 1}], dropped=["a", "b", "absent"])
    assert tasks.dropped == {"a", "b", "absent"}
    kept = {"question": "q", "prompt": [UserMessage("q")]}
    assert [tasks.input(0), tasks.input(1)] == [{**kept, "c": 0, "example_id": 0}, {**kept, "c": 1, "example_id": 1}]


# Numbers of tasks


@pytest.mark.parametrize(
    ("source", "repeated", "renamed"),
    [
        ([{"question": "q", "example_id": number} for number in (0, 1, 0)], True, False),
        ([{"question": "q", "example_id": number} for number in (0, 2, 1)], False, False),
        ([{"question": "q", "example_id": text} for text in ("a", "a")], False, True),
        ([{"question": "q", "example_id": None}], False, True),
        *[(source, False, False) for source in (ROWS, [], None, lambda: iter(ROWS))],
    ],
)
def test_whether_ids_are_repeated_or_renamed_is_known(source: Any, repeated: bool, renamed: bool) -> None:
    assert (Tasks(source).has_repeated_ids, Tasks(source).renames_ids) == (repeated, renamed)


@pytest.mark.parametrize(("ids", "repeated"), [((30, 10, 20), False), ([30, 10, 30], True), (range(3), False)])
def test_whether_ids_are_repeated_is_known_without_reading_rows_that_tell_them(ids: Any, repeated: bool) -> None:
    rows = Costly()
    rows.example_ids = ids  # type: ignore[misc]
    assert (Tasks(rows).has_repeated_ids, Tasks(rows).renames_ids) == (repeated, False)


@pytest.mark.parametrize("wrong", [-1, 4, 4.0, "0", True, None])
def test_a_number_that_no_task_has_is_refused(wrong: Any) -> None:
    tasks = Tasks(ROWS)
    assert [tasks.index_of(number) for number in (0, 3, np.int64(2))] == [0, 3, 2]
    with pytest.raises(ConfigurationError) as raised:
        tasks.index_of(wrong)
    assert str(raised.value) == f"there is no task with example_id {wrong!r} among the 4 tasks, whose ids begin with 0"
    with pytest.raises(ConfigurationError, match=r"there is no task with example_id 0 among the 0 tasks$"):
        Tasks([]).index_of(0)


def test_ids_that_are_numbers_are_kept() -> None:
    tasks = Tasks([{"question": "a", "example_id": 10}, {"question": "b", "example_id": 20}, {"question": "c", "example_id": 10}])
    assert [tasks.input(index)["example_id"] for index in range(3)] == [10, 20, 10]
    assert (tasks.index_of(20), tasks.index_of(10)) == (1, 0)
    with pytest.raises(ConfigurationError, match="no task with example_id 0 among the 3 tasks"):
        tasks.index_of(0)


class Costly:
    """Rows that tell their ids, and are read for nothing else."""

    example_ids = (30, 10, 20)

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> dict[str, Any]:
        raise AssertionError("a row was read")


def test_ids_are_told_without_reading_rows_that_tell_them() -> None:
    tasks = Tasks(Costly())
    assert [tasks.example_id_of(index) for index in range(3)] == [30, 10, 20]
    assert [tasks.index_of(example_id) for example_id in (10, 20, 30)] == [1, 2, 0]


def numbered(ids: list[Any], dtype: Any = None) -> Any:
    from datasets import Dataset, Features, Value

    columns = {"question": [f"{example_id}?" for example_id in ids], "example_id": ids}
    return Dataset.from_dict(columns, features=Features({"question": Value("string"), "example_id": dtype or Value("int64")}))


def integers(kind: str) -> Any:
    from datasets import ClassLabel, Value

    return ClassLabel(num_classes=9) if kind == "label" else Value(kind)


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint32", "label"])
def test_ids_of_a_dataset_are_told_without_reading_its_rows(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = numbered([4, 8, 6, 2], integers(dtype))
    for source, ids in ((dataset, [4, 8, 6, 2]), (dataset.select([3, 0, 1]), [2, 4, 8])):
        whole = Tasks(source)
        assert [whole.input(index)["example_id"] for index in range(len(ids))] == ids
        with monkeypatch.context() as patched:
            patched.delattr(DatasetRows, "__getitem__")
            tasks = Tasks(source)
            found = [tasks.example_id_of(index) for index in range(len(ids))]
            assert (found, {type(example_id) for example_id in found}) == (ids, {int})
            assert [tasks.index_of(example_id) for example_id in ids] == list(range(len(ids)))


@pytest.mark.parametrize(
    "source",
    [
        lambda: numbered([5, 6]).with_format("numpy"),
        lambda: numbered([5, 6]).with_format(columns=["question"]),
        lambda: numbered([5, 6]).with_transform(lambda batch: {"question": batch["question"]}),
        *[lambda: numbered([5, 6]).remove_columns("example_id"), lambda: numbered([None, 6]), hf_dataset],
    ],
    ids=["numpy", "hidden", "transform", "without", "first missing", "plain"],
)
def test_datasets_whose_rows_show_no_plain_ids_are_numbered(source: Callable[[], Any]) -> None:
    tasks = Tasks(source())
    assert [tasks.example_id_of(index) for index in range(2)] == [tasks.input(index)["example_id"] for index in range(2)] == [0, 1]


def test_rows_of_a_dataset_may_be_read_in_any_order() -> None:
    """In blocks where one comes after another, alone where not, and each as it is."""
    dataset = numbered(list(range(600)))
    rows = DatasetRows(dataset)
    expected = [dataset[index] for index in range(600)]
    for index in (*range(600), 599, 0, 300, 301, 255, 256, 257, 511, 512, 5, *range(254, 259)):
        assert rows[index] == expected[index]
    fresh = DatasetRows(dataset)
    mixed = (300, 0, 1, 2, -2, -1)
    assert [fresh[index] for index in mixed] == [expected[index] for index in mixed]
    assert len(fresh) == 600
    with pytest.raises(IndexError):
        rows[600]


def test_each_pass_over_a_dataset_reads_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = numbered(list(range(600)))
    read, reads = type(dataset).__getitem__, []
    monkeypatch.setattr(type(dataset), "__getitem__", lambda self, key: reads.append(key) or read(self, key))
    rows = DatasetRows(dataset)
    numbers = []
    for _ in range(2):
        reads.clear()
        assert [rows[index]["example_id"] for index in range(600)] == list(range(600))
        numbers.append(len(reads))
    assert max(numbers) <= 4


def test_a_missing_id_of_a_dataset_is_named() -> None:
    tasks = Tasks(numbered([5, None]))
    assert tasks.example_id_of(0) == 5
    for read in (tasks.example_id_of, tasks.input):
        with pytest.raises(ConfigurationError, match="row 1 of the dataset needs an integer example_id"):
            read(1)


def test_ids_that_are_text_are_kept_as_src_id() -> None:
    tasks = Tasks([{"question": "a", "example_id": "alpha"}, {"question": "b", "example_id": "beta"}])
    assert [(task["example_id"], task["src_id"]) for task in map(tasks.input, range(2))] == [(0, "alpha"), (1, "beta")]


# The order of tasks


@given(total=st.integers(1, 12), seed=st.integers(0, 2**32 - 1), rounds=st.integers(1, 3))
def test_a_stream_is_one_permutation_after_another(total: int, seed: int, rounds: int) -> None:
    def drawn() -> Iterator[int]:
        stream, rng = TaskStream(Tasks([{"question": "?"}] * total)), np.random.default_rng(seed)
        for _ in range(total * rounds):
            yield stream.draw(rng)

    order = list(drawn())
    assert order == list(drawn())
    for start in range(0, len(order), total):
        assert sorted(order[start : start + total]) == list(range(total))


def test_a_restarted_stream_begins_a_new_permutation() -> None:
    stream = TaskStream(Tasks(ROWS))
    rng = np.random.default_rng(0)
    stream.draw(rng)
    stream.restart()
    assert sorted(stream.draw(rng) for _ in range(4)) == [0, 1, 2, 3]


def test_there_is_nothing_to_draw_of_no_tasks() -> None:
    with pytest.raises(ConfigurationError, match="dataset is empty"):
        TaskStream(Tasks([])).draw(np.random.default_rng(0))


INNER = {"prompt": [{"role": "user", "content": "inner"}], "answer": "a", "info": {"k": 1}}


@pytest.mark.parametrize("encode", [lambda value: value, json.dumps], ids=["data", "text"])
@pytest.mark.parametrize("outer", [{"question": "outer"}, {"prompt": [{"role": "user", "content": "outer"}]}], ids=["question", "prompt"])
@pytest.mark.parametrize("place", [lambda row, encode: {"info": encode({"task": encode(row)})}, lambda row, encode: {"task": encode(row)}])
def test_a_row_that_another_holds_takes_its_place(encode, outer, place):
    """With its own prompt, which gets no system prompt, and with its own id."""
    rows = [{**outer, "answer": "o", **place({**INNER, "example_id": number}, encode)} for number in (40, 0)]
    tasks = Tasks(rows, system_prompt="Be brief.")
    assert [tasks.input(index) for index in (0, 1)] == [{**INNER, "example_id": number} for number in (40, 0)]
    assert [tasks.example_id_of(0), tasks.index_of(0)] == [40, 1]


@pytest.mark.parametrize("label", ["a label", {"name": "x"}, '{"name": "x"}', "{no JSON", None, 3])
def test_a_task_that_is_no_row_is_a_label(label):
    for row in ({"question": "outer", "task": label}, {"question": "outer", "info": {"task": label}}):
        assert Tasks([row]).input(0)["prompt"] == [{"role": "user", "content": "outer"}]
    with_text = {"question": "outer", "info": json.dumps({"task": label})}
    assert Tasks([with_text]).input(0)["info"] == {"task": label}


def test_ids_of_a_dataset_are_those_of_its_column():
    """They are told without reading its rows; so the row that is held takes the number that it is known by."""
    rows = Dataset.from_list([{"question": "outer", "example_id": 5, "info": json.dumps({"task": {**INNER, "example_id": 9}})}])
    tasks = Tasks(rows)
    assert (tasks.example_id_of(0), tasks.input(0)["example_id"], tasks.input(0)["answer"]) == (5, 5, "a")
