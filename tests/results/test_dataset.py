"""Results as a data set: every key of every row is a column, whatever the rows hold, and values come back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest

from vfgym import Rubric, SingleTurnEnv, ToolEnv, evaluate
from vfgym.results import ErrorInfo, GenerateOutputs, push_to_hub, results_dataset
from vfgym.results.dataset import hub_name, rows_dataset


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


def with_tools() -> GenerateOutputs:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    def call(observation: list[Any], info: dict[str, Any]) -> Any:
        if info["example_id"] == 2:
            raise ValueError("no idea")
        if observation[-1]["role"] == "tool":
            return observation[-1].content
        return {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "name": "add", "arguments": '{"a": 2, "b": 1}'}]}

    rows = [
        {"question": "2 + 1?", "answer": "3", "info": {"level": 1}},
        {"question": "2 + 1? é😀", "answer": "3", "info": {"level": "hard", "parts": [1, "two", None]}},
        {"prompt": [{"role": "user", "content": [{"type": "text", "text": "2 + 1?"}]}], "answer": "3"},
    ]
    env = ToolEnv(tools=[add], dataset=rows, rubric=Rubric(lambda completion: 1.0))
    return evaluate(env, call, state_columns=["trajectory", "stop_condition"], progress=False)


def test_every_key_is_a_column_and_every_value_comes_back(tmp_path: Path) -> None:
    outputs = with_tools()
    made = results_dataset(outputs)
    assert set(made.column_names) == {key for row in outputs["outputs"] for key in row}
    made.to_parquet(tmp_path / "rows.parquet")
    read = datasets.Dataset.from_parquet(str(tmp_path / "rows.parquet"), cache_dir=str(tmp_path / "cache"))
    for found, row in zip(read, json.loads(json.dumps(outputs["outputs"])), strict=True):
        for name in found:
            if name == "timing":
                assert found[name]["total"] == pytest.approx(row[name]["total"])
            else:
                assert found[name] == row.get(name), name


def test_what_all_runs_have_is_typed_alike_so_that_they_can_be_joined() -> None:
    first = results_dataset(with_tools())
    second = results_dataset(evaluate(SingleTurnEnv([{"question": "?"}]), "random", progress=False))
    shared = set(first.column_names) & set(second.column_names)
    joined = datasets.concatenate_datasets([first.select_columns(sorted(shared)), second.select_columns(sorted(shared))])
    assert len(joined) == 4
    assert {"prompt", "completion", "reward", "error", "metrics", "stop_condition", "is_completed"} <= shared
    assert str(joined.features["reward"]) == "Value('float64')"
    assert str(joined.features["stop_condition"]) == "Value('string')"


@pytest.mark.parametrize(
    "values",
    [
        ["42", '{"a": 1}', "null", None],
        [1.5, None, 2],
        [True, False, None],
        [1, "one", [1], {"a": None}],
        [None, None],
        [2**53 + 1, 1],
        [{"a": 1}, {"a": "x", "b": []}],
    ],
)
def test_a_column_holds_any_mixture(values: list[Any]) -> None:
    made = results_dataset([{"example_id": i, "own": value} for i, value in enumerate(values)])
    assert made["own"][:] == values


@pytest.mark.parametrize(
    ("values", "of_results", "of_rows"),
    [
        ([1, 2], "float64", "int64"),
        ([1, 0.5], "float64", "float64"),
        ([2**53, 1], "Json", "int64"),
        ([2**63, 1], "Json", "Json"),
        (["a", None], "string", "string"),
        ([True, None], "bool", "bool"),
        ([True, 1], "Json", "Json"),
    ],
)
def test_a_column_has_the_first_type_that_fits_all_its_values(values: list[Any], of_results: str, of_rows: str) -> None:
    rows: list[Any] = [{"own": value} for value in values]
    for made, kind in ((results_dataset(rows), of_results), (rows_dataset(rows), of_rows)):
        assert made.features["own"] == (datasets.Json() if kind == "Json" else datasets.Value(kind))


def test_late_keys_and_cut_text_lose_no_row() -> None:
    made = results_dataset([{"example_id": 0}, {"example_id": 1, "late": 0.5, "error": ErrorInfo.of(ValueError("x"))}])
    assert made["late"][:] == [None, 0.5]
    assert made[1]["error"]["error"] == "ValueError"
    made = results_dataset([{"example_id": 0, "answer": "a\ud83d", "completion": [{"role": "assistant", "content": "b\ud83d"}]}])
    assert made[0] == {"example_id": 0, "answer": "a?", "completion": [{"role": "assistant", "content": "b?"}]}


def test_uploading_names_the_data_set_after_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[Any, ...]] = []
    monkeypatch.setattr(datasets.Dataset, "push_to_hub", lambda self, name, **kwargs: sent.append((len(self), name, kwargs)))
    outputs = with_tools()
    assert push_to_hub(outputs, private=True) == "ToolEnv_call_n3_r1"
    assert push_to_hub(outputs, "me/mine") == "me/mine"
    assert sent == [(3, "ToolEnv_call_n3_r1", {"private": True}), (3, "me/mine", {})]


@pytest.mark.parametrize(
    ("env_id", "model", "name"),
    [
        ("reasoning-gym/ab-v0", "vendor/model:x", "reasoning-gym_ab-v0_vendor_model-x_n5_r2"),
        ("-e--nv..x", "é m", "e-nv.x_-m_n5_r2"),
        ("e" * 100, "m", "e" * 90 + "_n5_r2"),
    ],
)
def test_a_name_is_one_that_the_hub_takes(env_id: str, model: str, name: str) -> None:
    from huggingface_hub.utils import validate_repo_id

    outputs = with_tools()
    made = hub_name({**outputs["metadata"], "env_id": env_id, "model": model, "num_examples": 5, "rollouts_per_example": 2})
    assert made == name
    validate_repo_id(made)
