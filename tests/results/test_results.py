"""Results: the documented rows, their statistics, and files that lose nothing that was finished."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vfgym.results import ResultsError, ResultsWriter, RolloutOutput, load_results
from vfgym.results.files import default_results_path


def row(example_id: int, reward: float, **fields: Any) -> RolloutOutput:
    return RolloutOutput({"example_id": example_id, "reward": reward, "error": None, "metrics": {}, "return": reward, **fields})


METADATA = {"env_id": "e", "path_to_save": Path("x")}


def test_rows_are_on_disk_as_soon_as_they_are_appended(tmp_path: Path) -> None:
    with ResultsWriter(tmp_path / "new" / "run", METADATA) as writer:
        for example_id in (1, 0):
            writer.append(row(example_id, 0.5))
            assert len(load_results(writer.path)["outputs"]) == 2 - example_id
        results = load_results(writer.path)
    assert [output["example_id"] for output in results["outputs"]] == [0, 1]
    assert results["metadata"] == {"env_id": "e", "path_to_save": tmp_path / "new" / "run"}


def test_metadata_is_replaced_as_a_whole(tmp_path: Path) -> None:
    with ResultsWriter(tmp_path, METADATA) as writer:
        writer.write_metadata({"env_id": "e", "avg_reward": 1.0})
    assert json.loads((tmp_path / "metadata.json").read_text()) == {"env_id": "e", "avg_reward": 1.0}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["metadata.json", "results.jsonl"]


def test_results_of_another_run_are_not_touched(tmp_path: Path) -> None:
    with ResultsWriter(tmp_path, METADATA) as writer:
        writer.append(row(0, 1.0))
    before = (tmp_path / "results.jsonl").read_bytes()
    with pytest.raises(ResultsError, match="holds the results of another run already"):
        ResultsWriter(tmp_path, METADATA)
    assert (tmp_path / "results.jsonl").read_bytes() == before


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ResultsError, match=rf"cannot write results to {tmp_path / 'file' / 'run'}: .* {tmp_path / 'file'} is a file"):
        ResultsWriter(tmp_path / "file" / "run", METADATA)


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").symlink_to("/dev/full")
    with (
        ResultsWriter(tmp_path, METADATA) as writer,
        pytest.raises(ResultsError, match=f"cannot write results to {tmp_path}: No space left on device"),
    ):
        writer.append(row(0, 1.0))


def test_the_default_directory_is_named_after_environment_and_model() -> None:
    path = default_results_path("reasoning-gym/ab-v0", "vendor/model:x", root="runs")
    assert path.parent == Path("runs/evals/reasoning-gym--ab-v0--vendor--model-x")
    assert default_results_path("a b", "m+1.5_x", is_model=True).parent == Path("outputs/evals/a-b--m+1.5_x")
    assert default_results_path("e", "module:f", is_model=False).parent == Path("outputs/evals/e--agent=module-f")
    assert len(path.name) == 8
    assert path != default_results_path("reasoning-gym/ab-v0", "vendor/model:x", root="runs")
