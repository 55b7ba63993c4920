"""Datasets of the rollout API's helpers: columns, prompts, and the example datasets (from local files in the hub's layout)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest

from verifiers_compat.utils import data_utils
from verifiers_compat.utils.data_utils import (
    EXAMPLE_DATASETS,
    extract_boxed_answer,
    extract_hash_answer,
    format_dataset,
    get_preprocess_fn,
    load_example_dataset,
    strip_non_numeric,
)


@pytest.fixture(autouse=True)
def _quiet_and_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Datasets show no progress bars, and cache nothing outside of the test."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


def _dataset(*rows: dict[str, Any]) -> datasets.Dataset:
    return datasets.Dataset.from_list(list(rows))


SYSTEM = {"role": "system", "content": "Be brief."}
SHOTS = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]


def test_prompts_are_made_of_columns(tmp_path: Path) -> None:
    rows = format_dataset(_dataset({"question": "2+2?", "answer": "4", "level": 1}), "Be brief.", SHOTS)
    assert rows[0]["prompt"] == [SYSTEM, *SHOTS, {"role": "user", "content": "2+2?"}]
    assert {key: rows[0][key] for key in ("answer", "level", "example_id")} == {"answer": "4", "level": 1, "example_id": 0}
    rows = format_dataset(_dataset({"problem": "2+2?", "solution": "4"}), question_key="problem", answer_key="solution")
    assert (rows[0]["prompt"][0]["content"], rows[0]["answer"]) == ("2+2?", "4")
    with pytest.raises(ValueError, match="'answer' too"):
        format_dataset(_dataset({"question": "2+2?", "solution": "4", "answer": "4"}), answer_key="solution")
    prompt = [{"role": "user", "content": [{"type": "text", "text": "1+1?"}]}]
    rows = format_dataset(_dataset({"prompt": prompt}), "42")
    assert rows[0]["prompt"] == [{"role": "system", "content": "42"}, *prompt]
    with pytest.raises(ValueError, match=r"'prompt'.*'problem'.*it has text, question, example_id"):
        format_dataset(_dataset({"text": "x", "question": "y"}), question_key="problem")
    with pytest.raises(ValueError, match="must be a list of messages"):
        format_dataset(_dataset({"prompt": "x"}), "Be brief.")
    rows = format_dataset(_dataset({"question": "x"}), map_kwargs={"cache_file_name": str(tmp_path / "own.arrow")})
    assert rows[0]["prompt"]
    assert (tmp_path / "own.arrow").exists()


@pytest.mark.parametrize("system_prompt", [None, ""])
def test_an_empty_system_prompt_is_left_out(system_prompt: str | None) -> None:
    rows = format_dataset(_dataset({"question": "2+2?"}), system_prompt)
    assert rows[0]["prompt"] == [{"role": "user", "content": "2+2?"}]


def test_a_prompt_gets_the_system_message_that_it_lacks(caplog: pytest.LogCaptureFixture) -> None:
    """A system message of its own stays; few_shot is not used, and that is said."""
    own = [{"role": "system", "content": "Mine."}, {"role": "user", "content": "x"}]
    rows = format_dataset(_dataset({"prompt": own}, {"prompt": own[1:]}), "Be brief.", SHOTS)
    assert rows["prompt"][:] == [own, [SYSTEM, own[1]]]
    assert "few_shot is not used" in caplog.text
    caplog.clear()
    assert format_dataset(_dataset({"prompt": own[1:]}), None, [])[0]["prompt"] == own[1:]
    assert caplog.text == ""
    unchanged = format_dataset(_dataset({"prompt": own[1:], "question": "ignored"}))
    assert (unchanged[0]["prompt"], unchanged[0]["question"]) == (own[1:], "ignored")


@pytest.mark.parametrize(
    ("ids", "expected", "source"), [([7, 9], [7, 9], None), (["a", "b"], [0, 1], ["a", "b"]), ([1.5, 2.5], [0, 1], [1.5, 2.5])]
)
def test_example_ids_are_integers(ids: list[Any], expected: list[int], source: list[Any] | None) -> None:
    """Integer ids are kept, others move to ``src_id``; the reserved ``env_id`` column goes."""
    rows = format_dataset(_dataset(*({"question": "x", "example_id": each, "env_id": "e"} for each in ids)))
    assert rows["example_id"][:] == expected
    assert len(format_dataset(_dataset({"question": "x", "example_id": 1}).select([]), "Be brief.")) == 0
    assert (rows["src_id"][:] if source else None) == source
    assert "env_id" not in rows.column_names


def test_answers_inside_a_text() -> None:
    assert (extract_boxed_answer(r"\boxed{\frac{1}{2}}"), extract_boxed_answer("7"), extract_boxed_answer("7", strict=True)) == (
        r"\frac{1}{2}",
        "7",
        "",
    )
    assert (extract_hash_answer("a #### 1,000 #### c"), extract_hash_answer("none")) == ("1,000", "none")
    assert strip_non_numeric("-$1,234.50 a year") == "1234.50"
    assert data_utils.BOXED_SYSTEM_PROMPT == r"Please reason step by step, and put your final answer within \boxed{}."


PYTHON_TASK = "Solve the following coding problem using the programming language python:\n\nAdd two numbers."
HUB_ROWS: dict[str, tuple[dict[str, Any], str, str]] = {
    "aime2024": ({"problem": "P", "solution": "S", "answer": "042"}, "P", "42"),
    "aime2025": ({"question": "P", "answer": r"336^\circ"}, "P", "336"),
    "amc2023": ({"id": 1, "problem": "P", "answer": 27.0}, "P", "27"),
    "gpqa_diamond": (
        {"Question": "P", "Correct Answer": "r\n", "Incorrect Answer 1": "w1", "Incorrect Answer 2": "w2", "Incorrect Answer 3": "w3"},
        "Question: P\n\nA: ",
        "",
    ),
    "gsm8k": ({"question": "P", "answer": "so\n#### 1,234"}, "P", "1234"),
    "math": ({"problem": "P", "level": "Level 1", "solution": r"so $\boxed{\frac{1}{2}}$"}, "P", r"\frac{1}{2}"),
    "math500": ({"problem": "P", "solution": "S", "answer": "x"}, "P", "x"),
    "mmlu": ({"question": "P", "choices": ["a", "b", "c", "d"], "answer": 2}, "Question: P\n\nA: a\nB: b\nC: c\nD: d", "C"),
    "mmlu_pro": ({"question": "P", "options": ["a", "b"], "answer": "B", "answer_index": 1}, "Question: P\n\nA: a\nB: b", "B"),
    "openbookqa": (
        {"question_stem": "P", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": "A"},
        "Question: P\n\nChoices:\nA. a\nB. b",
        "A",
    ),
    "openrs": ({"problem": "P", "solution": "S", "answer": "7", "level": "Easy"}, "P", "7"),
    "openrs_easy": ({"problem": "P", "solution": "S", "answer": "7", "level": "Easy"}, "P", "7"),
    "openrs_hard": ({"problem": "P", "solution": "S", "answer": "7", "level": "Hard"}, "P", "7"),
    "prime_code": ({"prompt": PYTHON_TASK, "verification_info": '{"tests": []}', "task_type": "x"}, PYTHON_TASK, '{"tests": []}'),
}
HUB_ROWS["gpqa_main"] = HUB_ROWS["gpqa_diamond"]


def _on_disk(name: str, rows: list[dict[str, Any]], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write rows as the files of a dataset's repository, in each of its configurations, and have the name mean that."""
    example = EXAMPLE_DATASETS[name]
    folder.mkdir()
    splits = [{"split": split, "path": f"{split}.jsonl"} for split in {example.split, "validation"}]
    configs = [{"config_name": config or "default", "data_files": splits} for config in example.configs]
    (folder / "README.md").write_text(f"---\nconfigs: {json.dumps(configs)}\n---\n")
    for split in splits:
        (folder / split["path"]).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    monkeypatch.setitem(data_utils.EXAMPLE_DATASETS, name, dataclasses.replace(example, path=str(folder)))


@pytest.mark.parametrize("name", sorted(EXAMPLE_DATASETS))
def test_example_datasets_have_question_and_answer(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row, question, answer = HUB_ROWS[name]
    _on_disk(name, [row, row], tmp_path / "hub", monkeypatch)
    rows = load_example_dataset(name)
    assert rows.column_names == ["question", "answer"]
    assert len(rows) == 2 * len(EXAMPLE_DATASETS[name].configs)
    assert rows[0]["question"].startswith(question)
    if answer:
        assert rows[0]["answer"] == answer


def test_gpqa_hides_where_the_right_answer_is() -> None:
    """The order is the same each time, differs between questions, and the letter is that of the right answer."""
    preprocess, letters = get_preprocess_fn("gpqa_main"), set()
    for number in range(40):
        row = {**HUB_ROWS["gpqa_main"][0], "Question": f"P{number}"}
        made = preprocess(row)
        assert made == preprocess(row)
        assert f"{made['answer']}: r" in made["question"].splitlines()
        letters.add(made["answer"])
    assert letters == {"A", "B", "C", "D"}


def test_rows_are_drawn_by_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _on_disk("math500", [{"problem": f"P{i}", "answer": str(i)} for i in range(20)], tmp_path / "hub", monkeypatch)
    drawn = load_example_dataset("math500", n=5, seed=1)["answer"][:]
    assert drawn == load_example_dataset("math500", n=5, seed=1)["answer"][:]
    assert drawn != load_example_dataset("math500", n=5, seed=2)["answer"][:]
    assert len(set(drawn)) == 5
    assert len(load_example_dataset("math500", "validation", n=100)) == 20
    assert load_example_dataset("math500", n=5)["answer"][:] == load_example_dataset("math500", n=5, seed=0)["answer"][:]
    for every in (None, 0, -1):
        assert load_example_dataset("math500", n=every)["answer"][:] == [str(i) for i in range(20)]


def test_levels_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"problem": "P", "answer": level, "level": level} for level in ("Easy", "Hard", "Easy")]
    for name in ("openrs", "openrs_easy", "openrs_hard"):
        _on_disk(name, rows, tmp_path / name, monkeypatch)
    found = {name: load_example_dataset(name)["answer"][:] for name in ("openrs", "openrs_easy", "openrs_hard")}
    assert found == {"openrs": ["Easy", "Hard", "Easy"], "openrs_easy": ["Easy", "Easy"], "openrs_hard": ["Hard"]}


def test_only_tasks_in_python_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = ("Solve the following coding problem using the programming language rust:\n\nX", f"Now. {PYTHON_TASK}")
    rows = [{"prompt": prompt, "verification_info": "{}"} for prompt in (*others, PYTHON_TASK)]
    _on_disk("prime_code", rows, tmp_path / "hub", monkeypatch)
    assert load_example_dataset("prime_code")["question"][:] == [PYTHON_TASK]


def test_both_exams_of_a_year_are_loaded() -> None:
    """Those of 2025 lie in two configurations, and answers are numbers as they are written plainly."""
    assert EXAMPLE_DATASETS["aime2025"].configs == ("AIME2025-I", "AIME2025-II")
    assert (EXAMPLE_DATASETS["aime2025"].path, EXAMPLE_DATASETS["amc2023"].path) == ("opencompass/AIME2025", "knoveleng/AMC-23")
    assert [get_preprocess_fn("aime2024")({"problem": "P", "answer": answer})["answer"] for answer in ("007", 12, "x")] == ["7", "12", "x"]


@pytest.mark.parametrize(
    ("name", "row", "answer"),
    [
        *[("amc2023", {"problem": "P", "answer": each}, text) for each, text in ((0, "0"), (0.5, "0.5"), ("-7", "-7"), ("10.0", "10"))],
        *[("gsm8k", {"question": "P", "answer": f"#### {each}"}, each.replace(",", "")) for each in ("1,234,567", "-3", "0")],
        ("gsm8k", {"question": "P", "answer": "#### 1,2 and 3"}, "1,2 and 3"),
        ("mmlu", {"question": "P", "choices": ["a", "b"], "answer": 0}, "A"),
        ("prime_code", {"prompt": "P", "verification_info": {"tests": [1]}}, '{"tests": [1]}'),
    ],
)
def test_answers_are_written_plainly(name: str, row: dict[str, Any], answer: str) -> None:
    assert get_preprocess_fn(name)(row)["answer"] == answer


@pytest.mark.parametrize("load", [load_example_dataset, get_preprocess_fn])
def test_unknown_example_dataset(load: Any) -> None:
    with pytest.raises(ValueError, match="Did you mean `gsm8k`"):
        load("gsm8")
