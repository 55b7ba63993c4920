"""`export`: what other programs read of a run is what its rows say."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, load_from_disk

from vfgym import Rubric, ToolEnv, evaluate
from vfgym.errors import ConfigurationError
from vfgym.results import GenerateOutputs, ResultsError, export
from vfgym.results.export import check_form, default_export_path

TASKS = [{"question": f"{n} + {n}?", "answer": str(2 * n)} for n in range(4)]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def exact(completion: Any, answer: str) -> float:
    return float(completion[-1].content == answer)


def played(path: Path | None = None) -> GenerateOutputs:
    """Play four tasks three times: the first rollout calls the tool, the second guesses (rightly of task 3), the third fails."""
    asked: dict[str, int] = {}

    def agent(observation: Any, info: Any) -> Any:
        if observation[-1]["role"] == "tool":
            return observation[-1]["content"]
        question = observation[-1]["content"]
        asked[question] = asked.get(question, 0) + 1
        number = int(question.split()[0])
        if asked[question] == 1:
            arguments = json.dumps({"a": number, "b": number})
            return {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "add", "arguments": arguments}}]}
        if asked[question] == 3:
            raise RuntimeError("out of order")
        return "6"

    env = ToolEnv(tools=[add], dataset=TASKS, rubric=Rubric(exact), pass_threshold=1.0)
    return evaluate(env, agent, rollouts_per_example=3, max_concurrent=1, results_path=path, progress=False)


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    played(tmp_path / "run")
    return tmp_path / "run"


def test_tables_have_all_rollouts(run: Path, tmp_path: Path) -> None:
    assert export(run, "parquet", tmp_path / "a.parquet")["rows"] == 12
    assert export(run, "hf", tmp_path / "data")["rows"] == 12
    assert export(run, "csv", tmp_path / "a.csv") == {"path": str(tmp_path / "a.csv"), "rows": 12, "skipped": 0}
    rewards = [row["reward"] for row in map(json.loads, (run / "results.jsonl").read_text().splitlines())]
    with (tmp_path / "a.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [float(row["reward"]) for row in table] == rewards
    assert json.loads(table[0]["completion"])[-1] == {"role": "assistant", "content": "0"}
    assert Dataset.from_parquet(str(tmp_path / "a.parquet"))["reward"][:] == rewards
    assert load_from_disk(str(tmp_path / "data"))["reward"][:] == rewards
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.parquet", "data", "run"]


def test_conversations_that_earned_enough_are_examples(run: Path, tmp_path: Path) -> None:
    written = export(run, "sft", tmp_path / "sft.jsonl")
    assert (written["rows"], written["skipped"]) == (5, 7)
    first = read_lines(tmp_path / "sft.jsonl")[0]
    assert [message["role"] for message in first["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert first["tools"][0]["function"]["name"] == "add"
    assert export(run, "sft", tmp_path / "all.jsonl", min_reward=0.0)["rows"] == 8


def test_the_better_of_two_is_preferred(run: Path, tmp_path: Path) -> None:
    """Task 3 has two right answers, and the failed rollouts say nothing."""
    written = export(run, "preference", tmp_path / "p.jsonl")
    assert (written["rows"], written["skipped"]) == (3, 6)
    for number, example in enumerate(read_lines(tmp_path / "p.jsonl")):
        assert example["prompt"] == [{"role": "user", "content": f"{number} + {number}?"}]
        assert example["chosen"][-1]["content"] == str(2 * number)
        assert example["rejected"] == [{"role": "assistant", "content": "6"}]


def test_what_cannot_be_exported_is_refused_and_nothing_is_written(run: Path, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    with pytest.raises(ConfigurationError, match="there is something at"):
        export(run, "csv", tmp_path / "there")
    with pytest.raises(ConfigurationError, match="Did you mean `parquet`"):
        export(run, "parquets", tmp_path / "x")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="a lowest reward is for sft and preference"):
        export(run, "csv", tmp_path / "x", min_reward=1.0)
    with pytest.raises(ConfigurationError, match="no rollout that did not fail has a reward of 2 or more"):
        export(run, "sft", tmp_path / "x", min_reward=2.0)
    with pytest.raises(ResultsError, match="it is not the directory of a run"):
        export(tmp_path, "sft", tmp_path / "x")
    assert not (tmp_path / "x").exists()
    assert (tmp_path / "there").read_text() == "mine"


def test_what_lies_beside_the_path_is_not_touched(run: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv.tmp").write_text("mine")
    (tmp_path / "data.tmp").mkdir()
    export(run, "csv", tmp_path / "a.csv")
    export(run, "hf", tmp_path / "data")
    assert (tmp_path / "a.csv.tmp").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.csv.tmp", "data", "data.tmp", "run"]


# Rows that are given


def row(example_id: int, reward: float | None, said: str = "a", asked: str = "?", **fields: Any) -> dict[str, Any]:
    shown, answer = [{"role": "user", "content": asked}], [{"role": "assistant", "content": said}]
    return {"example_id": example_id, "prompt": shown, "completion": answer, "reward": reward, "error": None, "failed": False, **fields}


def results_of(*rows: dict[str, Any], **metadata: Any) -> GenerateOutputs:
    return {"outputs": list(rows), "metadata": metadata}  # type: ignore[typeddict-item]


USELESS = [
    row(9, None),
    row(9, 5.0, failed=True, error={"error": "E"}),
    row(9, 5.0, prompt="text"),
    row(9, 5.0, completion=[]),
    row(9, 5.0, completion="text"),
]


@pytest.mark.parametrize(
    ("metadata", "min_reward", "said"),
    [
        ({}, None, ["-1", "0", "0.5", "1"]),
        ({"pass_threshold": None}, None, ["-1", "0", "0.5", "1"]),
        ({"pass_threshold": 0.0}, None, ["0", "0.5", "1"]),
        ({"pass_threshold": 0.5}, None, ["0.5", "1"]),
        ({"pass_threshold": 1.0}, 0.0, ["0", "0.5", "1"]),
        ({"pass_threshold": 0.0}, 1.0, ["1"]),
    ],
)
def test_the_lowest_reward_is_the_one_given_or_that_of_the_run(metadata: Any, min_reward: Any, said: list[str], tmp_path: Path) -> None:
    rows = [row(number, reward, f"{reward:g}") for number, reward in enumerate((-1.0, 0.0, 0.5, 1.0))]
    path = tmp_path / "deep" / "deeper" / "sft.jsonl"
    written = export(results_of(*rows[::-1], *USELESS, **metadata), "sft", path, min_reward=min_reward)
    assert written == {"path": str(path), "rows": len(said), "skipped": 9 - len(said)}
    assert read_lines(path) == [
        {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": each}]} for each in said
    ], "in the order of the examples, and without tools where there were none"
    assert [file.name for file in path.parent.iterdir()] == ["sft.jsonl"]


def test_pairs_are_of_one_task_and_one_prompt(tmp_path: Path) -> None:
    rows = [
        *(row(0, reward, f"{reward:g}", fingerprint="f") for reward in (0.5, 0.0, 1.0)),
        row(1, 2.0, "2", fingerprint="f"),  # the same task under another number
        *(row(2, reward, f"{reward:g}", fingerprint=None) for reward in (3.0, 3.0)),
        row(3, 0.0, "first prompt", "!"),
        row(3, 1.0, "second prompt", "?"),
        *(
            row(4, reward, f"{reward:g}", tool_defs=[{"name": "f", "description": "", "parameters": {}, "strict": None}])
            for reward in (0.0, -1.0)
        ),
    ]
    written = export(results_of(*rows, *USELESS), "preference", tmp_path / "all.jsonl")
    assert (written["rows"], written["skipped"]) == (2, 11)
    first, second = read_lines(tmp_path / "all.jsonl")
    assert first == {
        "prompt": [{"role": "user", "content": "?"}],
        "chosen": [{"role": "assistant", "content": "2"}],
        "rejected": [{"role": "assistant", "content": "0"}],
    }
    assert second["tools"] == [{"type": "function", "function": {"name": "f", "description": "", "parameters": {}}}]
    for least, count in ((-0.5, 2), (0.0, 2), (0.5, 1), (2.0, 1)):
        assert export(results_of(*rows), "preference", tmp_path / f"{least}.jsonl", min_reward=least)["rows"] == count
    for least, enough in ((None, ""), (2.5, " and one of 2.5 or more"), (0.0, " and one of 0 or more")):
        few = results_of(*(rows if least else rows[4:6]))
        with pytest.raises(ConfigurationError) as caught:
            export(few, "preference", tmp_path / "none.jsonl", min_reward=least)
        assert str(caught.value) == f"no task has two rollouts with rewards that differ{enough}: play several rollouts of each task"
    assert not (tmp_path / "none.jsonl").exists()


def test_a_table_has_the_columns_of_all_rows(tmp_path: Path) -> None:
    rows = [{"example_id": 1, "reward": 0.0, "a": None, "b": True}, {"example_id": 0, "reward": -1.5, "c": {"d": [0]}, "b": False, "e": ""}]
    export(results_of(*rows), "csv", tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["example_id", "reward", "c", "b", "e", "a"],
            ["0", "-1.5", '{"d": [0]}', "false", "", ""],
            ["1", "0.0", "", "true", "", ""],
        ]


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="the run has no rollouts to export"):
        export(results_of(), "csv", tmp_path / "x")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigurationError, match="there is something at"):
        export(results_of(row(0, 1.0)), "csv", tmp_path / "link")
    (tmp_path / "file").touch()
    with pytest.raises(ResultsError) as caught:
        export(results_of(row(0, 1.0)), "csv", tmp_path / "file" / "x")
    assert str(caught.value) == f"cannot write {tmp_path / 'file' / 'x'}: File exists"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


def test_a_lowest_reward_says_something_of_two_forms_and_zero_is_one() -> None:
    for form in ("sft", "preference"):
        check_form(form, 0.0)
    for form in ("parquet", "csv", "hf"):
        check_form(form, None)
        with pytest.raises(ConfigurationError, match=f"^a lowest reward is for sft and preference; {form} has all rollouts"):
            check_form(form, 0.0)


@pytest.mark.parametrize(
    ("form", "name"),
    [("parquet", "b-c.parquet"), ("csv", "b-c.csv"), ("hf", "b-c"), ("sft", "b-c.sft.jsonl"), ("preference", "b-c.preference.jsonl")],
)
def test_an_export_is_called_like_its_run(form: Any, name: str) -> None:
    assert default_export_path(Path("a/b/x/../c"), form) == Path(name)
