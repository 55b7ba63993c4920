"""What becomes of played rollouts: rows, on disk whatever ends the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vfgym import Rubric, SingleTurnEnv
from vfgym.errors import ConfigurationError, InfraError, LimitReached, WorkersLost
from vfgym.limits import Spending
from vfgym.results import ResultsError, RolloutOutput, Run
from vfgym.runs.engine import GroupJob, PlayedRollout
from vfgym.runs.failure_rewards import FailureRewards
from vfgym.runs.inputs import Example
from vfgym.runs.recorder import Recorder

ROWS = [{"question": f"{number}?", "answer": str(number)} for number in range(2)]


def right(completion: Any, answer: str) -> float:
    return float(completion[-1]["content"] == answer)


ENV = SingleTurnEnv(ROWS, rubric=Rubric(right))


def run_of(path: Path | None = None, **options: Any) -> Run:
    version: Any = {"vf_version": "0", "vf_commit": None, "env_version": None, "env_commit": None}
    fields = {"state_columns": [], "version_info": version, "path_to_save": path, **options}
    return Run(
        env_id="quiz",
        env_args={},
        model="m",
        num_examples=2,
        rollouts_per_example=2,
        pass_threshold=0.5,
        seed=0,
        max_concurrent=1,
        **fields,
    )


def group(example_id: int = 0, *answers: str, **fields: Any) -> GroupJob:
    played = []
    for number, answer in enumerate(answers or ("0", "1")):
        seat = ENV.fork()
        seat.reset(seed=0, options={"example_id": example_id})
        seat.step(answer)
        played.append(PlayedRollout(number, ENV, seat.state, seen_return=0.0, **fields))  # type: ignore[arg-type]
    return GroupJob(Example(example_id, example_id, len(played), example_id), range(len(played)), played)


def on_disk(path: Path) -> tuple[list[Any], Any]:
    return [json.loads(line) for line in (path / "results.jsonl").read_text().splitlines()], json.loads(
        (path / "metadata.json").read_text()
    )


def test_rows_are_kept_told_and_written_with_what_the_rollout_knows(tmp_path: Path) -> None:
    told: list[list[RolloutOutput]] = []
    with Recorder(run_of(tmp_path), None, on_rows=told.append) as recorder:
        recorder.add(group(0, seed=0, fingerprint="f", pair={"player": 0, "pair": 0}, route=["a"], spent=Spending()))
        assert len(on_disk(tmp_path)[0]) == 2
        recorder.add(group(1))
        outputs = recorder.finish()
    first, *_, last = outputs["outputs"]
    assert [[row["example_id"] for row in rows] for rows in told] == [[0, 0], [1, 1]]
    assert [row["reward"] for row in outputs["outputs"]] == [1.0, 0.0, 0.0, 1.0]
    assert (first["env_id"], first["seed"], first["player"], first["pair"], first["fingerprint"]) == ("quiz", 0, 0, 0, "f")
    assert (first["return"], first["spent"]["requests"]) == (0.0, 0)
    assert "a" in str(first["info"])
    assert not {"seed", "spent", "info"} & last.keys()
    rows, metadata = on_disk(tmp_path)
    assert [(row["example_id"], row["rollout"]) for row in rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert metadata["avg_reward"] == 0.5


@pytest.mark.parametrize(
    ("error", "played", "is_left"),
    [
        (ConfigurationError("nothing fits"), False, False),
        (ConfigurationError("nothing fits"), True, True),
        (LookupError("a bug"), False, True),
        (KeyboardInterrupt(), True, True),
    ],
)
def test_whatever_ends_a_run_what_was_finished_is_on_disk(error: BaseException, played: bool, is_left: bool, tmp_path: Path) -> None:
    path = tmp_path / "results"

    def run() -> None:
        with Recorder(run_of(path), None) as recorder:
            if played:
                recorder.add(group())
            raise error

    with pytest.raises(type(error)):
        run()
    assert path.exists() is is_left
    if is_left:
        rows, metadata = on_disk(path)
        assert (len(rows), metadata["stopped_by"]) == (2 * played, None)


@pytest.mark.parametrize("error", [WorkersLost("all gone"), ResultsError("the disk is full"), LimitReached("tokens", 5, 7)])
def test_what_was_finished_is_told_with_what_ended_the_run(error: Any, tmp_path: Path) -> None:
    def run() -> None:
        with Recorder(run_of(tmp_path), None) as recorder:
            recorder.add(group())
            for rollouts in (2, 3):
                recorder.note_redone(rollouts)
            raise error

    with pytest.raises(type(error)) as caught:
        run()
    rows, metadata = on_disk(tmp_path)
    assert len(rows) == 2
    if isinstance(error, LimitReached):
        assert metadata["stopped_by"] == {"limit": "tokens", "allowed": 5, "used": 7}
    else:
        assert [row["reward"] for row in caught.value.outputs["outputs"]] == [1.0, 0.0]
        assert caught.value.outputs["metadata"]["redone"] == 5
    if not isinstance(error, ResultsError):  # nothing can be written then
        assert (metadata["redone"], metadata["avg_reward"]) == (5, 0.5)


def test_columns_that_no_worker_has_seen_are_those_that_each_misses(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(run_of(state_columns=["question", "completions", "answr"]), None)
    recorder.made.note_columns(["completions", "answr"], ["completion"])
    recorder.made.note_columns(["question", "answr"], ["answer"])
    recorder.made.note_columns(["answr"], [])
    assert (recorder.made.unseen, recorder.made.known) == ({"answr"}, ["answer"])
    recorder.finish()
    assert [record.getMessage().partition("Did")[2] for record in caplog.records] == [" you mean `answer`?"]


def test_a_failed_rollout_counts_as_declared_and_the_limit_that_ended_the_run_is_named() -> None:
    declared = FailureRewards(SingleTurnEnv(ROWS, rubric=Rubric(right), failure_reward=-2.0), "train")
    job = group(0, "0", "0", "0")
    job.played[1].fail(LookupError("a bug"))
    job.played[2].fail(InfraError("no disk"))
    with Recorder(run_of(), None, declared=declared) as recorder:
        recorder.add(job)
        rows = recorder.finish()["outputs"]
    assert [row["failed"] for row in rows] == [False, True, True]
    assert [row["counted_reward"] for row in rows] == [1.0, -2.0, None]
    job.played[0].state["reward"] = -3.0
    with Recorder(run_of(), None, declared=declared) as recorder:
        recorder.add(job)
        assert [row["counted_reward"] for row in recorder.finish()["outputs"]] == [-3.0, -3.0, None], "failing never pays"
    with Recorder(run_of(), None) as recorder:
        recorder.add(group())
        assert recorder.finish({"limit": "tokens"})["metadata"]["stopped_by"] == {"limit": "tokens"}  # type: ignore[typeddict-item]


def test_a_column_that_no_state_has_is_named_and_one_that_is_zero_is_not(caplog: pytest.LogCaptureFixture) -> None:
    job = group()
    job.played[1].state["zero"] = 0
    with Recorder(run_of(state_columns=["zero", "completions", "answer"]), None) as recorder:
        recorder.add(job)
        rows = recorder.finish()["outputs"]
    assert [row["zero"] for row in rows] == [None, 0]
    (record,) = caplog.records
    assert "'completions'" in record.getMessage()
    assert "Did you mean `completion`" in record.getMessage()


def test_rows_of_an_authors_own_are_kept_and_the_first_has_what_was_spent() -> None:
    spent = Spending()
    spent.add(Spending(), 1.0, requests=3)
    rows = [RolloutOutput({"example_id": 5, "reward": 1.0, "mine": number}) for number in range(2)]
    job = group(0, "0", rows=rows, spent=spent)
    recorder = Recorder(run_of(), None)
    recorder.add(job)
    assert [(row["example_id"], row["mine"], row["spent"]["requests"]) for row in recorder.outputs] == [(5, 0, 3), (5, 1, 0)]
