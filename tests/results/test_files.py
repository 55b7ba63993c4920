"""The files of a run: what stands in them while it goes on and at its end, and files of other writers."""

from __future__ import annotations

import json
import os
import resource
import signal
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vfgym
from vfgym import State
from vfgym.errors import ConfigurationError
from vfgym.results import ResultsError, ResultsWriter, RolloutOutput, Run, compare, load_results, rollout_output
from vfgym.results.export import export
from vfgym.runs.rescoring import score
from vfgym.view.page import build_page

METADATA = {"env_id": "e", "path_to_save": Path("x"), "date": "2026-01-01"}


def row(example_id: int, rollout: int = 0, **fields: Any) -> RolloutOutput:
    return RolloutOutput({"example_id": example_id, "rollout": rollout, "reward": 0.5, "error": None, "metrics": {}, **fields})


def places(path: Path) -> list[tuple[int, int]]:
    return [(each["example_id"], each["rollout"]) for each in map(json.loads, (path / "results.jsonl").read_text().splitlines())]


def test_rows_are_put_in_order_at_the_end(tmp_path: Path) -> None:
    drawn = [(2, 1), (0, 1), (1, 0), (0, 0), (2, 0), (1, 1)]
    with ResultsWriter(tmp_path, METADATA) as writer:
        for example_id, rollout in drawn:
            writer.append(row(example_id, rollout, text="é" * example_id))
        assert places(tmp_path) == drawn
        writer.finish(METADATA)
    assert places(tmp_path) == sorted(drawn)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["metadata.json", "results.jsonl"]


def test_rows_that_are_in_order_are_left_as_they_are(tmp_path: Path) -> None:
    with ResultsWriter(tmp_path, METADATA) as writer:
        for example_id in range(3):
            writer.append(row(example_id))
        before = (tmp_path / "results.jsonl").stat().st_ino
        writer.finish(METADATA)
    assert (tmp_path / "results.jsonl").stat().st_ino == before


def test_neither_path_nor_date_is_written(tmp_path: Path) -> None:
    with ResultsWriter(tmp_path, METADATA):
        assert json.loads((tmp_path / "metadata.json").read_text()) == {"env_id": "e"}


def test_metadata_is_kept_up_to_date_about_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = {"now": 0.0, "seconds_to_write": 0.0}
    monkeypatch.setattr("vfgym.results.files.time.monotonic", lambda: clock["now"])
    made: list[float] = []

    def make() -> dict[str, Any]:
        made.append(clock["now"])
        clock["now"] += clock["seconds_to_write"]
        return {"env_id": "e", "at": made[-1]}

    with ResultsWriter(tmp_path, METADATA) as writer:
        for tenth in range(80):
            clock["seconds_to_write"] = 0.0 if tenth < 35 else 0.15
            writer.update_metadata(make)
            clock["now"] += 0.1
    assert [round(at) for at in made[:3]] == [1, 2, 3]
    assert made[4] - made[3] >= 3.0, "what takes 0.15 seconds is done every three"
    assert json.loads((tmp_path / "metadata.json").read_text())["at"] == made[-1]


def test_a_disk_that_is_full_at_the_end_leaves_all_rows(tmp_path: Path) -> None:
    with ResultsWriter(tmp_path, METADATA) as writer:
        for example_id in (1, 0):
            writer.append(row(example_id, text="x" * 4000))
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
        try:
            with pytest.raises(ResultsError, match=f"cannot write results to {tmp_path}"):
                writer.finish(METADATA)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, ignored)
    assert places(tmp_path) == [(1, 0), (0, 0)]
    assert not (tmp_path / "results.jsonl.tmp").exists()


def test_a_row_that_is_written_in_part_is_cut_off_so_that_others_can_follow(tmp_path: Path) -> None:
    with ResultsWriter(tmp_path, METADATA) as writer:
        writer.append(row(3, text="x" * 3000))
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
        try:
            with pytest.raises(ResultsError, match="cannot write results"):
                writer.append(row(2, text="x" * 3000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, ignored)
        assert places(tmp_path) == [(3, 0)]
        writer.append(row(1))
        writer.finish(METADATA)
    assert places(tmp_path) == [(1, 0), (3, 0)]


def test_nothing_is_written_after_a_part_that_cannot_be_cut_off(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").symlink_to("/dev/full")
    with ResultsWriter(tmp_path, METADATA) as writer:
        for _ in range(2):
            with pytest.raises(ResultsError, match="No space left on device"):
                writer.append(row(0))


# Numbers that JSON does not know


@given(st.dictionaries(st.sampled_from(["exact", "ratio", "reward", "info"]), st.floats()), st.floats(), st.floats())
def test_any_reward_and_metric_is_read_back(metrics: dict[str, float], reward: float, seen: float) -> None:
    state = State(input={"example_id": 3, "info": {"n": 1}}, reward=reward, metrics=metrics)
    row = rollout_output(state, seen_return=seen)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        run = Run(
            env_id="e",
            env_args={},
            model="m",
            num_examples=1,
            rollouts_per_example=1,
            pass_threshold=0.5,
            version_info={"vf_version": "0", "vf_commit": None, "env_version": None, "env_commit": None},
            seed=0,
            state_columns=[],
            max_concurrent=1,
            path_to_save=path,
        )
        written = run.metadata([row])
        with ResultsWriter(path, {}) as writer:
            writer.append(row)
            writer.finish(written)
        for name in ("results.jsonl", "metadata.json"):
            json.loads((path / name).read_text(), parse_constant=pytest.fail)  # which JSON proper does not have
        read = load_results(path)
    assert repr(read["outputs"]) == repr([row])
    for key in ("avg_reward", "avg_return", "std_error", "avg_metrics"):
        assert repr(read["metadata"][key]) == repr(written[key])  # type: ignore[literal-required]


# What is no row, and no file

GOOD = {"example_id": 0, "prompt": [], "completion": [{"role": "assistant", "content": "4"}], "reward": 1.0, "answer": "4"}

READING: dict[str, Any] = {
    "load": load_results,
    "compare": lambda run: compare(run, run),
    "view": lambda run: build_page(run),
    "score": lambda run: score(run, vfgym.Rubric(lambda completion: 1.0)),
    "csv": lambda run: export(run, to="csv", path=run / "out.csv"),
    "sft": lambda run: export(run, to="sft", path=run / "out.jsonl"),
    "resume": lambda run: vfgym.evaluate(
        vfgym.SingleTurnEnv([{"question": "?"}]), lambda *_: "4", results_path=run, resume=True, progress=False
    ),
}
"""Who reads a run."""


def metadata_of_a_run(path: Path) -> None:
    env = vfgym.SingleTurnEnv([{"question": "?"}])
    vfgym.evaluate(env, lambda observation, info: "4", results_path=path, progress=False)


@pytest.mark.parametrize("who", READING)
@pytest.mark.parametrize("row", [[], {**GOOD, "completion": 5}])
def test_whoever_reads_a_run_says_so(who: str, row: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    metadata_of_a_run(run)
    (run / "results.jsonl").write_text(json.dumps(row) + "\n")
    with pytest.raises(ResultsError, match=r"line 1 of .*results\.jsonl is not a rollout: it"):
        READING[who](run)


@pytest.mark.parametrize("who", READING)
@pytest.mark.parametrize("name", ["results.jsonl", "metadata.json"])
def test_a_pipe_is_not_waited_for(who: str, name: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    metadata_of_a_run(run)
    (run / name).unlink()
    os.mkfifo(run / name)
    with pytest.raises(ResultsError, match=f"{name} is not a plain file"):
        READING[who](run)


def test_rows_of_other_writers_may_be_without_what_is_not_known(tmp_path: Path) -> None:
    metadata_of_a_run(tmp_path / "run")
    (tmp_path / "run" / "results.jsonl").write_text(json.dumps({"example_id": 0, "reward": 1.0}) + "\n")
    assert READING["score"](tmp_path / "run")["metadata"]["avg_reward"] == 1.0
    assert READING["csv"](tmp_path / "run")["rows"] == 1
    with pytest.raises(ConfigurationError, match="no rollout"):
        READING["sft"](tmp_path / "run")
