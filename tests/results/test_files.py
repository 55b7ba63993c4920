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
from vfgym.results.files import is_in_use, open_plain, write_results
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


def test_what_failed_rollouts_count_with_is_written_into_their_lines_and_no_other(tmp_path: Path) -> None:
    failed = {"failed": True, "counted_reward": 0.0}
    rows = [row(0, 0, failed=False, counted_reward=0.5), *(row(0, number, **failed) for number in (1, 2, 3)), row(1, 0, failed=False)]
    with ResultsWriter(tmp_path, METADATA) as writer:
        for each in rows:
            writer.append(each)
        lines = (tmp_path / "results.jsonl").read_bytes().splitlines()
        settled = [dict(each) for each in rows]
        for each, counted in zip(settled, (9.0, -3.0, 0.0, float("-inf"), None), strict=True):
            each["counted_reward"] = counted
        writer.finish({"env_id": "f"}, settled)
    after = (tmp_path / "results.jsonl").read_bytes().splitlines()
    assert [new == old for new, old in zip(after, lines, strict=True)] == [True, False, True, False, True]
    assert [json.loads(line).get("counted_reward") for line in after] == [0.5, -3.0, 0.0, "-inf", None]
    assert json.loads(after[1]) == {**json.loads(lines[1]), "counted_reward": -3.0}
    assert json.loads((tmp_path / "metadata.json").read_text()) == {"env_id": "f"}


def test_rows_that_are_out_of_order_are_settled_as_they_are_put_in_order(tmp_path: Path) -> None:
    rows = [row(1, failed=True, counted_reward=0.0), row(0, failed=True, counted_reward=0.0)]
    with ResultsWriter(tmp_path, METADATA) as writer:
        for each in rows:
            writer.append(each)
        writer.finish(METADATA, [{**rows[0], "counted_reward": -1.0}, {**rows[1], "counted_reward": -2.0}])
    written = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert [(each["example_id"], each["counted_reward"]) for each in written] == [(0, -2.0), (1, -1.0)]


# One writer at a time


def test_a_directory_is_in_use_until_its_writer_is_closed(tmp_path: Path) -> None:
    writer = ResultsWriter(tmp_path, METADATA)
    assert is_in_use(tmp_path)
    with pytest.raises(ResultsError, match=f"another run is writing its results to {tmp_path}: wait until it has ended"):
        ResultsWriter(tmp_path, METADATA)
    assert is_in_use(tmp_path), "who was refused lets nobody in"
    for _ in range(2):
        writer.close()
        assert not is_in_use(tmp_path)
    with pytest.raises(KeyboardInterrupt), ResultsWriter(tmp_path, METADATA):
        raise KeyboardInterrupt
    assert not is_in_use(tmp_path)


def open_files(folder: Path) -> list[str]:
    """Return what this process has open below a directory, and the directory itself."""
    links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
    return [target for target in (os.readlink(link) for link in links if os.path.lexists(link)) if target.startswith(str(folder))]


@pytest.mark.parametrize("kind", ["rows", "pipe", "metadata"])
def test_a_writer_that_cannot_begin_leaves_the_directory_to_others(kind: str, tmp_path: Path) -> None:
    if kind == "rows":
        (tmp_path / "results.jsonl").write_text("{}\n")
        message = f"{tmp_path} holds the results of another run already: choose another directory, remove it, or resume that run"
    elif kind == "pipe":
        os.mkfifo(tmp_path / "results.jsonl")
        message = f"{tmp_path}/results.jsonl is not a plain file"
    else:
        (tmp_path / "metadata.json.tmp").mkdir()
        message = f"cannot write results to {tmp_path}: Is a directory. Give a directory that can be written, with room on its disk"
    with pytest.raises(ResultsError) as caught:
        ResultsWriter(tmp_path, METADATA)
    assert str(caught.value).startswith(message)
    assert open_files(tmp_path) == []
    assert not is_in_use(tmp_path)


def test_a_file_in_the_way_of_a_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "deep" / "deeper"):
        with pytest.raises(ResultsError) as caught:
            ResultsWriter(path, METADATA)
        assert str(caught.value) == (
            f"cannot write results to {path}: results_path must be a directory, and {tmp_path / 'file'} is a file. Choose another path"
        )


def test_what_was_made_is_removed_with_the_directories_that_hold_nothing_else(tmp_path: Path) -> None:
    for name, kept in (("a/b/c", []), ("d/e/f", ["d/e/f/notes"]), ("g/h/i", ["g/h/notes"])):
        for file in kept:
            (tmp_path / file).parent.mkdir(parents=True)
            (tmp_path / file).touch()
        writer = ResultsWriter(tmp_path / name, METADATA)
        writer.append(row(0))
        writer.discard()
        assert [str(file.relative_to(tmp_path)) for file in (tmp_path / name[0]).rglob("*") if file.is_file()] == kept
        assert (tmp_path / name).exists() is any(file.startswith(name) for file in kept)
        assert (tmp_path / name).parent.exists() is bool(kept)
        assert (tmp_path / name[0]).exists(), "two levels are those that a run makes"
    writer.discard()


def test_what_is_not_a_plain_file_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with open_plain(tmp_path / "file") as file:
        assert file.read() == b"text"
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(ResultsError) as caught:
            open_plain(path)
        assert str(caught.value) == f"{path} is not a plain file: it is a directory, a pipe or a device, and holds no results"
    with pytest.raises(FileNotFoundError):
        open_plain(tmp_path / "none")
    assert open_files(tmp_path) == []


def test_results_as_a_whole_are_written_as_a_run_writes_them(tmp_path: Path) -> None:
    results: Any = {"metadata": {**METADATA, "avg_reward": float("nan")}, "outputs": [row(1), row(0)]}
    write_results(tmp_path / "run", results)
    assert places(tmp_path / "run") == [(0, 0), (1, 0)]
    assert json.loads((tmp_path / "run" / "metadata.json").read_text()) == {"env_id": "e", "avg_reward": "nan"}
    assert not is_in_use(tmp_path / "run")
    with pytest.raises(ResultsError, match="holds the results of another run already"):
        write_results(tmp_path / "run", results)


def test_metadata_that_cannot_be_made_leave_those_that_were_written(tmp_path: Path) -> None:
    def make() -> dict[str, Any]:
        raise ValueError("not yet")

    with ResultsWriter(tmp_path, METADATA) as writer:
        writer.write_metadata({"env_id": "second"})
        writer._next_metadata = 0.0
        with pytest.raises(ValueError, match="not yet"):
            writer.update_metadata(make)
        assert json.loads((tmp_path / "metadata.json").read_text()) == {"env_id": "second"}
        assert not (tmp_path / "metadata.json.tmp").exists()


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
