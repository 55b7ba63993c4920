"""Results: states as rows, rows and metadata on disk, as a dataset and on the hub."""

from __future__ import annotations

import datetime
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import datasets
import pytest
from pydantic import BaseModel

import verifiers_compat as vf
from verifiers_compat.types import RolloutOutput, RolloutTiming, State
from verifiers_compat.utils import path_utils, save_utils
from vfgym.errors import ToolError
from vfgym.results import ResultsError
from vfgym.testing import ScriptedClient


@pytest.fixture
async def outputs() -> Any:
    """The outputs of a real run: two examples, two rollouts each."""

    def right(completion: Any, answer: str) -> float:
        return float(completion[-1]["content"] == answer)

    rows = [{"question": f"{number}?", "answer": str(number), "info": {"n": number}} for number in range(2)]
    env = vf.SingleTurnEnv(dataset=rows, rubric=vf.Rubric(funcs=[right]), env_id="sums")
    return await env.evaluate(ScriptedClient(["1"]), "me/model", rollouts_per_example=2)


class Model(BaseModel):
    """Data of an author."""

    when: datetime.date


PLAIN: list[tuple[Any, Any]] = [
    ([1, "a", None, {"k": 0.5}], [1, "a", None, {"k": 0.5}]),
    (Model(when=datetime.date(2026, 1, 2)), {"when": "2026-01-02"}),
    (Path("a/b"), "a/b"),
    (ToolError("x"), "ToolError('x')"),
    ({1: (2,)}, {"1": [2]}),
]


@pytest.mark.parametrize(("value", "plain"), PLAIN)
def test_values_that_have_a_form_in_json(value: Any, plain: Any) -> None:
    assert save_utils.is_json_serializable(value)
    assert save_utils.make_serializable(value) == plain


def test_values_that_have_none() -> None:
    assert not save_utils.is_json_serializable({"f": print})
    assert save_utils.make_serializable({"f": print}) == {"f": repr(print)}


def _state(example_id: int, **items: Any) -> State:
    return State(input={"example_id": example_id, "prompt": []}, reward=0.5, metrics={"m": 1.0}, timing=RolloutTiming(1.0), **items)


def test_states_become_numbered_rows() -> None:
    rows = save_utils.states_to_outputs([_state(3, x=Path("p")), _state(4), _state(3)], ["x"])
    assert [(row["example_id"], row["rollout"], row["reward"], row["m"]) for row in rows] == [
        (3, 0, 0.5, 1.0),
        (4, 0, 0.5, 1.0),
        (3, 1, 0.5, 1.0),
    ]
    assert rows[0]["x"] == "p"
    assert "x" not in save_utils.state_to_output(_state(3, x=1))
    kept = save_utils.state_to_output(_state(3, x=0, y=print, z=2), ["x", "y"])
    assert (kept["x"], kept["rollout"], kept["y"], "z" in kept) == (
        0,
        0,
        "<not kept: builtin_function_or_method has no form in JSON>",
        False,
    )
    assert save_utils.serialize_timing(RolloutTiming(1.0))["start_time"] == 1.0


def test_the_builder_keeps_the_statistics(outputs: Any, tmp_path: Path) -> None:
    builder = save_utils.GenerateOutputsBuilder("sums", {"a": 1}, "me/model", 2, 2, results_path=tmp_path, base_url="http://x")
    assert (builder.build_metadata()["avg_reward"], builder.build()["outputs"]) == (0.0, [])
    builder.add_outputs(reversed(outputs["outputs"]))
    built = builder.build()
    assert built["outputs"] == outputs["outputs"]
    metadata = built["metadata"]
    assert (metadata["avg_reward"], metadata["pass_at_k"], metadata["env_args"]) == (0.5, {"1": 0.5, "2": 0.5}, {"a": 1})
    assert (metadata["base_url"], metadata["path_to_save"]) == ("http://x", tmp_path)
    assert metadata["version_info"] == {"vf_version": version("vfgym"), "vf_commit": None, "env_version": None, "env_commit": None}
    counts = ("num_examples", "rollouts_per_example", "env_id", "model", "seed", "pass_threshold", "state_columns")
    assert [metadata[name] for name in counts] == [2, 2, "sums", "me/model", 0, 0.5, []]
    assert built is not builder.build()


def test_what_is_known_of_a_run_is_in_its_metadata(outputs: Any) -> None:
    """Without a path, nothing is saved; changed arguments change no run."""
    arguments = {"a": 1}
    given: dict[str, Any] = {"pass_threshold": 0.0, "version_info": {"vf_version": "1"}, "seed": 7, "state_columns": ["x"]}
    builder = save_utils.GenerateOutputsBuilder("e", arguments, "m", 3, 2, **given, max_concurrent=5, sampling_args={"n": 0})
    arguments["a"] = 2
    builder.add_outputs(outputs["outputs"][:1])
    builder.add_outputs(outputs["outputs"][1:2])
    assert [(row["example_id"], row["rollout"]) for row in builder.build()["outputs"]] == [(0, 0), (0, 1)]
    metadata = builder.build_metadata()
    known = {**given, "max_concurrent": 5, "sampling_args": {"n": 0}, "env_args": {"a": 1}, "num_examples": 3, "rollouts_per_example": 2}
    assert {name: metadata[name] for name in known} == known
    assert (metadata["path_to_save"], metadata["pass_at_k"]["1"]) == (None, 1.0)


def test_what_is_saved_can_be_loaded(outputs: Any, tmp_path: Path) -> None:
    """The date and the path stay in memory; rows come back in their order."""
    folder = tmp_path / "new" / "run"
    save_utils.save_outputs(outputs["outputs"][:2], folder)
    assert not path_utils.is_valid_eval_results_path(folder)
    save_utils.save_metadata(outputs["metadata"], folder)
    assert path_utils.is_valid_eval_results_path(folder)
    save_utils.save_new_outputs(reversed(outputs["outputs"][2:]), folder)
    loaded = save_utils.load_outputs(folder)
    assert [(row["example_id"], row["rollout"], row["reward"]) for row in loaded] == [(0, 0, 0.0), (0, 1, 0.0), (1, 0, 1.0), (1, 1, 1.0)]
    assert loaded[0]["completion"] == outputs["outputs"][0]["completion"]
    metadata = json.loads((folder / "metadata.json").read_text())
    assert metadata == save_utils.sanitize_metadata(outputs["metadata"])
    assert not {"date", "path_to_save"} & metadata.keys()
    assert sorted(path.name for path in folder.iterdir()) == ["metadata.json", "results.jsonl"]
    save_utils.save_outputs([], folder)
    assert save_utils.load_outputs(folder) == []
    with pytest.raises(ValueError, match="mode"):
        save_utils.save_outputs([], folder, mode="x")  # type: ignore[arg-type]


def test_rows_are_added_after_whole_lines(tmp_path: Path) -> None:
    """Wherever a killed run was cut off, every whole row stays, and no line is broken."""
    save_utils.save_metadata({}, tmp_path)
    first, second = (RolloutOutput(example_id=0, rollout=number) for number in range(2))
    save_utils.save_outputs([first], tmp_path)
    whole = (tmp_path / "results.jsonl").read_bytes()
    for end in range(len(whole) + 1):
        (tmp_path / "results.jsonl").write_bytes(whole[:end])
        save_utils.save_new_outputs([second], tmp_path)
        expected = [0, 1] if end >= len(whole) - 1 else [1]
        assert [row["rollout"] for row in save_utils.load_outputs(tmp_path)] == expected


def test_a_whole_line_that_cannot_be_read_stays(tmp_path: Path) -> None:
    """Whoever reads the file is told of it."""
    deep = "[" * 300 + "]" * 300
    (tmp_path / "results.jsonl").write_text(deep)
    save_utils.save_new_outputs([RolloutOutput(example_id=0, rollout=0), RolloutOutput(example_id=0, rollout=1)], tmp_path)
    assert [line == deep for line in (tmp_path / "results.jsonl").read_text().splitlines()] == [True, False, False]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_file_that_could_not_be_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    save_utils.save_metadata({"model": "a"}, tmp_path)
    save_utils.save_outputs([RolloutOutput(example_id=0, rollout=0)], tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*paths: Any) -> None:
        raise error

    monkeypatch.setattr(save_utils.os, "replace", fail)
    for save in (lambda: save_utils.save_metadata({}, tmp_path), lambda: save_utils.save_outputs([], tmp_path)):
        with pytest.raises(error):
            save()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_resuming_with_other_settings_is_refused(outputs: Any, tmp_path: Path) -> None:
    save_utils.save_metadata(outputs["metadata"], tmp_path)
    save_utils.validate_resume_metadata(tmp_path, "sums", "me/model", 2, 2)
    save_utils.validate_resume_metadata(tmp_path, "sums", "me/model", 5, 2)
    for other, told in (
        (("other", "me/model", 2, 2), "env_id is 'sums'.*'other'"),
        (("sums", "m", 2, 2), "model is 'me/model'"),
        (("sums", "me/model", 2, 3), "rollouts_per_example is 2.*3"),
        (("sums", "me/model", 1, 2), "num_examples is 2.*1"),
    ):
        with pytest.raises(ValueError, match=told):
            save_utils.validate_resume_metadata(tmp_path, *other)
    with pytest.raises(ResultsError):
        save_utils.validate_resume_metadata(tmp_path / "nothing", "sums", "me/model", 2, 2)


def test_a_run_as_a_dataset(outputs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with different keys lose none. It is published under its name."""
    outputs["outputs"][0]["only_here"] = 1
    rows = save_utils.make_dataset(outputs)
    assert rows["reward"][:] == [0.0, 0.0, 1.0, 1.0]
    assert rows[0]["only_here"] == 1
    pushed: list[tuple[int, str]] = []
    monkeypatch.setattr(datasets.Dataset, "push_to_hub", lambda self, name: pushed.append((len(self), name)))
    name = save_utils.get_hf_hub_dataset_name(outputs)
    assert name == "sums_me_model_n2_r2"
    save_utils.push_results_to_hf_hub(outputs)
    save_utils.push_results_to_hf_hub(outputs, "mine/results")
    assert pushed == [(4, name), (4, "mine/results")]
