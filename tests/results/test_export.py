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
