"""The files of a run: what stands in them while it goes on and at its end, and files of other writers."""

from __future__ import annotations

import json
import math
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
from vfgym import Rubric, SingleTurnEnv, State, evaluate
from vfgym.errors import ConfigurationError
from vfgym.messages import ToolCall
from vfgym.results import ErrorInfo, ResultsError, ResultsWriter, RolloutOutput, Run, compare, load_results, rollout_output, summarize
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


def test_a_run_that_breaks_off_leaves_its_rows_as_they_came(tmp_path: Path) -> None:
    def agent(observation: Any, info: dict[str, Any]) -> str:
        if info["example_id"] == 2:
            raise KeyError("bug")
        return "x"

    with pytest.raises(KeyError):
        evaluate(SingleTurnEnv([{"question": "?"}] * 4), agent, strict=True, max_concurrent=1, results_path=tmp_path, progress=False)
    assert places(tmp_path) == [(0, 0), (1, 0)]


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


def test_what_a_run_has_given_so_far_stands_in_its_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfgym.results.files._SECONDS_BETWEEN_METADATA", 0.0)
    monkeypatch.setattr("vfgym.results.files._SHARE_OF_TIME", 1e9)
    seen: list[tuple[float | None, float, int]] = []

    def look(row: RolloutOutput, progress: Any) -> None:
        metadata = json.loads((tmp_path / "metadata.json").read_text())
        seen.append((metadata["avg_reward"], metadata["avg_reward_finished"], metadata["num_examples"]))

    env = SingleTurnEnv(
        [{"question": "?", "answer": str(i % 2)} for i in range(4)], rubric=Rubric(lambda completion, answer: float(answer == "0"))
    )
    evaluate(env, lambda o, i: "x", max_concurrent=1, results_path=tmp_path, on_progress=look, progress=False)
    assert seen == [(None, 1.0, 4), (None, 0.5, 4), (None, 2 / 3, 4), (0.5, 0.5, 4)], "no headline before all has been played"


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


@pytest.mark.parametrize("fields", [{"reward": "high"}, {"reward": []}, {"return": []}, {"metrics": {"m": "x"}}, {"metrics": {"m": []}}])
def test_a_row_whose_numbers_are_none_is_named(tmp_path: Path, fields: dict[str, Any]) -> None:
    with pytest.raises(ResultsError, match=r"line 1 of .*results.jsonl is not a rollout: its .* must be a number, got"):
        read(tmp_path, {"example_id": 0, **fields}, {"example_id": 1})


@pytest.mark.parametrize("is_last", [False, True])
def test_null_among_the_numbers_of_an_older_row_is_read_as_nan(tmp_path: Path, is_last: bool) -> None:
    """So they were written before such a number had a spelling of its own."""
    old = {"example_id": 0, "reward": None, "return": None, "metrics": {"m": None, "n": 1.0}, "m": None, "n": 1.0, "answer": None}
    rows = read(tmp_path, *sorted([old, {"example_id": 1}], key=lambda row: row["example_id"], reverse=is_last))
    assert len(rows) == 2
    row = rows[0]
    assert all(math.isnan(number) for number in (row["reward"], row["return"], row["metrics"]["m"], row["m"]))
    assert (row["metrics"]["n"], row["n"], row["answer"]) == (1.0, 1.0, None)


# Files of other writers


def read(tmp_path: Path, *rows: dict[str, Any], **metadata: Any) -> list[RolloutOutput]:
    (tmp_path / "metadata.json").write_text(json.dumps({"env_id": "e", **metadata}))
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    return load_results(tmp_path)["outputs"]


def test_tool_calls_may_be_json_text(tmp_path: Path) -> None:
    called = {"role": "assistant", "content": "", "tool_calls": ['{"id": "c1", "name": "add", "arguments": "{\\"a\\": 1}"}']}
    flat = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "name": "add", "arguments": '{"a": 1}'}]}
    steps = [{"prompt": [called], "completion": [called]}]
    (found,) = read(tmp_path, {"example_id": 0, "prompt": [flat], "completion": [called], "trajectory": steps})
    step = found["trajectory"][0]
    for messages in (found["prompt"], found["completion"], list(step["prompt"]), step["completion"]):
        assert messages[0]["tool_calls"] == [ToolCall("c1", "add", '{"a": 1}')]


def test_an_error_may_be_text(tmp_path: Path) -> None:
    chain = {"error_chain": "ModelError('x')", "long_error_chain": "ModelError"}
    first, second, third = read(
        tmp_path,
        {"example_id": 0, "error": "went wrong"},
        {"example_id": 1, "error": "went wrong", **chain},
        {"example_id": 2, "error": {"error": "E", "error_chain_repr": "E()", "error_chain_str": "E"}},
    )
    assert str(first["error"]) == "went wrong"
    assert second["error"] == {"error": "went wrong", "error_chain_repr": "ModelError('x')", "error_chain_str": "ModelError"}
    assert type(third["error"]) is ErrorInfo
    assert summarize([first, second, third], 1, 0.5)["avg_error"] == 1.0


def test_metrics_may_stand_beside_the_other_keys_only(tmp_path: Path) -> None:
    (found,) = read(tmp_path, {"example_id": 0, "exact": 1, "num_turns": 2.0, "note": "x", "budget": 3}, state_columns=["budget"])
    assert found["metrics"] == {"exact": 1, "num_turns": 2.0}
    assert found["reward"] == 0.0


@pytest.mark.parametrize("line", ["3", '"text"', "{}", '{"example_id": "a"}', '{"example_id": true}', ""])
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "metadata.json").write_text("{}")
    (tmp_path / "results.jsonl").write_text(f'{{"example_id": 0}}\n{line}\n{{"example_id": 1}}\n')
    with pytest.raises(ResultsError, match=r"line 2 of .*results.jsonl is not a rollout"):
        load_results(tmp_path)


DEEP = "[" * 100_000 + "]" * 100_000
"""JSON, but nested deeper than Python's reader goes."""


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("number", [1, 2])
def test_a_row_that_is_nested_too_deep_is_named(tmp_path: Path, number: int, ends: bool) -> None:
    """Also as the last line: it is whole, and leaving it out as one that a killed run left would lose a rollout."""
    lines = ['{"example_id": 0}', '{"example_id": 1}']
    lines[number - 1] = f'{{"example_id": 7, "info": {DEEP}}}'
    (tmp_path / "metadata.json").write_text("{}")
    (tmp_path / "results.jsonl").write_text("\n".join(lines) + "\n" * ends)
    with pytest.raises(ResultsError, match=rf"line {number} of .*results.jsonl is not a rollout: the JSON is nested more than 200 levels"):
        load_results(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", '{"a": ', DEEP])
def test_metadata_that_are_no_object_are_an_error(tmp_path: Path, text: str) -> None:
    read(tmp_path)
    (tmp_path / "metadata.json").write_text(text)
    with pytest.raises(ResultsError, match="cannot read results"):
        load_results(tmp_path)


# What is no row, and no file

GOOD = {"example_id": 0, "prompt": [], "completion": [{"role": "assistant", "content": "4"}], "reward": 1.0, "answer": "4"}

NOT_ROWS: list[tuple[Any, str]] = [
    ([], "it must be a JSON object, got list"),
    (5, "it must be a JSON object, got int"),
    ({**GOOD, "completion": 5}, "its completion must be a list of messages, got 5"),
    ({**GOOD, "prompt": {"role": "user"}}, "its prompt must be a list of messages, got {'role': 'user'}"),
    ({**GOOD, "completion": [None]}, "its completion must be a list of messages, each an object; got None"),
    ({**GOOD, "completion": ["a\nb"]}, "each an object; got 'a"),
    ({**GOOD, "completion": [{"role": "assistant", "tool_calls": 5}]}, "has a message whose tool_calls are not a list of calls: 5"),
    ({**GOOD, "metrics": []}, "its metrics must be an object, got []"),
    ({**GOOD, "timing": 5}, "its timing must be an object, got 5"),
    ({**GOOD, "rollout": "1"}, "its rollout must be an integer, got '1'"),
    ({**GOOD, "rollout": True}, "its rollout must be an integer, got True"),
    ({**GOOD, "fingerprint": [5]}, "its fingerprint must be text, got [5]"),
    ({**GOOD, "error": {}}, "its error must be text, or an object with the text `error`, got {}"),
    ({**GOOD, "error": 5}, "its error must be text"),
    ({**GOOD, "ending": "over"}, "its ending must be one of terminated, truncated, cut"),
    ({**GOOD, "token_usage": {"input_tokens": "7"}}, "its token_usage must be an object of numbers"),
    ({**GOOD, "spent": {"requests": 1}}, "its spent must be an object with the numbers requests"),
    ({**GOOD, "human": {"hints": None}}, "its human must be an object of numbers"),
    ({**GOOD, "tool_defs": [{"role": "x"}]}, "its tool_defs must be a list of tools, each with a name"),
    ({**GOOD, "metrics_errors": 5}, "its metrics_errors must be an object of texts, got 5"),
    ({**GOOD, "trajectory": [{}]}, "its trajectory must be a list of steps, each with prompt and completion, got [{}]"),
    (
        {**GOOD, "trajectory": [{"prompt": [], "completion": 5}]},
        "step 0 of its trajectory: the completion must be a list of messages, got 5",
    ),
    ({**GOOD, "trajectory": [{"prompt": [], "completion": [], "extras": 5}]}, "step 0 of its trajectory: extras must be an object, got 5"),
]

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


@pytest.mark.parametrize("place", [1, 2, 3], ids=["first", "in between", "last"])
@pytest.mark.parametrize(("row", "problem"), NOT_ROWS, ids=[problem for _, problem in NOT_ROWS])
def test_a_row_of_another_kind_is_one_line_that_names_its_place(row: Any, problem: str, place: int, tmp_path: Path) -> None:
    rows = [{**GOOD, "example_id": number} for number in range(2)]
    rows.insert(place - 1, row)
    with pytest.raises(ResultsError) as caught:
        read(tmp_path, *rows)
    assert str(caught.value).startswith(f"line {place} of {tmp_path / 'results.jsonl'} is not a rollout: ")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


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


def test_a_run_is_not_written_to_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "results.jsonl")
    with pytest.raises(ResultsError, match=r"results\.jsonl is not a plain file"):
        metadata_of_a_run(tmp_path)


def test_rows_of_other_writers_may_be_without_what_is_not_known(tmp_path: Path) -> None:
    metadata_of_a_run(tmp_path / "run")
    (tmp_path / "run" / "results.jsonl").write_text(json.dumps({"example_id": 0, "reward": 1.0}) + "\n")
    assert READING["score"](tmp_path / "run")["metadata"]["avg_reward"] == 1.0
    assert READING["csv"](tmp_path / "run")["rows"] == 1
    with pytest.raises(ConfigurationError, match="no rollout"):
        READING["sft"](tmp_path / "run")
