"""Where results are, which run can be resumed, and temporary files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
from verifiers_compat.types import EvalConfig, RolloutOutput
from verifiers_compat.utils import path_utils, save_utils


@pytest.mark.parametrize("content", ["zeile\r\n\u00e4", b"\x00\xff"])
def test_temporary_files_are_written_as_they_are(content: str | bytes) -> None:
    path = path_utils.write_temp_file(content, ".txt")
    try:
        assert path.endswith(".txt")
        assert Path(path).read_bytes() == (content.encode() if isinstance(content, str) else content)
    finally:
        os.unlink(path)


def test_paths_of_results_begin_at_an_environments_own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = path_utils.get_results_path("owner/env", "vendor/model")
    assert path.parent == Path("outputs/evals/owner--env--vendor--model")
    assert len(path.name) == 8
    assert path != path_utils.get_results_path("owner/env", "vendor/model")
    assert path_utils.get_results_path("e", "m", tmp_path, "other").parent == tmp_path / "other" / "e--m"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "environments" / "my_env").mkdir(parents=True)
    assert path_utils.get_eval_runs_dir("owner/my-env", "m") == Path("environments/my_env/outputs/evals/owner--my-env--m")
    assert path_utils.get_eval_runs_dir("other", "m") == Path("outputs/evals/other--m")
    assert path_utils.get_eval_runs_dir("my-env", "m", output_dir="") == path_utils.get_eval_runs_dir("my-env", "m")
    assert path_utils.get_eval_runs_dir("my-env", "m", output_dir="there") == Path("there/evals/my-env--m")
    config = EvalConfig(
        env_id="my-env", model="m", client_config=vf.ClientConfig(), num_examples=1, rollouts_per_example=1, max_concurrent=1
    )
    assert path_utils.get_eval_results_path(config).parent == Path("environments/my_env/outputs/evals/my-env--m")
    assert path_utils.get_eval_results_path({"env_id": "e", "model": "m", "output_dir": "o"}).parent == Path("o/evals/e--m")
    assert path_utils.get_gepa_results_path("my-env", "m").parent == Path("environments/my_env/outputs/gepa/my-env--m")
    assert path_utils.get_gepa_results_path("o/e", "m", output_dir="o").parent == Path("o/gepa/o--e--m")


def _run(base: Path, age: int, rows: int, **metadata: Any) -> Path:
    path = path_utils.get_results_path("e", "m", base)
    saved = {"env_id": "e", "model": "m", "num_examples": 2, "rollouts_per_example": 2, **metadata}
    save_utils.save_outputs([RolloutOutput(example_id=0, rollout=number) for number in range(rows)], path)
    save_utils.save_metadata(saved, path)
    os.utime(path / "metadata.json", (10**9 - age,) * 2)
    return path


def test_the_newest_run_that_can_be_resumed_is_found(tmp_path: Path) -> None:
    def find(num_examples: int = 2, rollouts: int = 2) -> Path | None:
        return path_utils.find_latest_incomplete_eval_results_path("e", "m", num_examples, rollouts, None, tmp_path)

    assert find() is None
    _run(tmp_path, 3, 1)
    expected = _run(tmp_path, 2, 3)
    _run(tmp_path, 1, 4)
    _run(tmp_path, 0, 1, model="other")
    _run(tmp_path, 0, 1, rollouts_per_example=3)
    _run(tmp_path, 0, 1, num_examples=3)
    (_run(tmp_path, 0, 1) / "metadata.json").write_text("{")
    (_run(tmp_path, 0, 1) / "results.jsonl").unlink()
    assert find() == expected
    assert find(num_examples=1) is None
    assert find(num_examples=3, rollouts=1) is None
