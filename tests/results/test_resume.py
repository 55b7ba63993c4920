"""Resuming: only what is missing is played, rows find their tasks by fingerprint, and nothing is lost or stands twice."""

from __future__ import annotations

import json
import logging
import math
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from vfgym import Rubric, SingleTurnEnv, ToolEnv, evaluate
from vfgym.errors import ConfigurationError, InfraError
from vfgym.messages import (
    AssistantMessage,
    Message,
    MessageTypes,
    ResponseMessage,
    SystemMessage,
    TextMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from vfgym.results import EarlierRun, GenerateOutputs, ResultsError, ResultsWriter, RolloutOutput, Run, Slot, find_incomplete, load_results
from vfgym.results.files import Piece
from vfgym.results.metadata import version_info
from vfgym.results.resume import check_settings, earlier_metadata, find_differing_setting, has_rows, recorded_spending

ROWS = [{"question": f"{i} + 1?", "answer": str(i + 1), "info": {"number": i}} for i in range(6)]


class Counting:
    """An agent that counts how often each question was asked."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.broken: set[str] = set()
        self.stops_after = -1

    def __call__(self, observation: list[Message], info: dict[str, Any]) -> str:
        question = str(observation[-1].content)
        if self.stops_after == sum(self.asked.values()):
            raise KeyboardInterrupt
        self.asked[question] += 1
        if question in self.broken:
            raise InfraError("gone")
        return str(int(question.split()[0]) + 1)


def exact(completion: Any, answer: str) -> float:
    return float(completion[-1].content == answer)


def run(path: Path, rows: list[dict[str, Any]] = ROWS, agent: Any = None, **kwargs: Any) -> GenerateOutputs:
    env = SingleTurnEnv(rows, rubric=kwargs.pop("rubric", None) or Rubric(exact))
    options = {"model": "m", "rollouts_per_example": 2, "resume": True, "progress": False, **kwargs}
    return evaluate(env, agent or Counting(), results_path=path, **options)


def cut(path: Path, keep: Callable[[int], bool]) -> None:
    """Leave only some lines of the rows, as a run that was killed would."""
    file = path / "results.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(line for number, line in enumerate(lines) if keep(number)))


def stored(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "results.jsonl").read_text().splitlines()]


def without_times(rows: Any) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key not in ("timing", "trajectory_id")} for row in rows]


def keys_of(rows: Any) -> list[tuple[int, int]]:
    return [(row["example_id"], row["rollout"]) for row in rows]


# What is played


def test_only_what_is_missing_is_played(tmp_path: Path) -> None:
    whole = run(tmp_path)
    before = (tmp_path / "results.jsonl").read_bytes().splitlines()
    cut(tmp_path, lambda number: number not in (1, 4, 11))
    agent = Counting()
    told: list[tuple[int, int]] = []
    resumed = run(tmp_path, agent=agent, on_progress=lambda row, progress: told.append((progress.done, progress.total)))
    assert agent.asked == {"0 + 1?": 1, "2 + 1?": 1, "5 + 1?": 1}
    assert told == [(10, 12), (11, 12), (12, 12)]
    assert without_times(resumed["outputs"]) == without_times(whole["outputs"])
    assert load_results(tmp_path)["outputs"] == json.loads(json.dumps(resumed["outputs"]))
    after = (tmp_path / "results.jsonl").read_bytes().splitlines()
    assert [number for number in range(12) if after[number] != before[number]] == [1, 4, 11], "kept rows are kept to the byte"
    assert keys_of(stored(tmp_path)) == [(i, n) for i in range(6) for n in range(2)]
    assert resumed["metadata"]["avg_reward"] == 1.0
    assert resumed["metadata"]["time"] > whole["metadata"]["time"]


def test_a_finished_run_asks_nobody_and_writes_no_row(tmp_path: Path) -> None:
    whole = run(tmp_path)
    before = (tmp_path / "results.jsonl").stat()
    agent = Counting()
    again = run(tmp_path, agent=agent)
    assert not agent.asked
    assert again["outputs"] == json.loads(json.dumps(whole["outputs"]))
    after = (tmp_path / "results.jsonl").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_group_that_is_scored_together_is_redone_as_a_whole(tmp_path: Path) -> None:
    def longest(completions: list[Any]) -> list[float]:
        return [float(len(completions))] * len(completions)

    run(tmp_path, rubric=Rubric(longest))
    cut(tmp_path, lambda number: number != 5)  # a rollout of example 2
    agent = Counting()
    results = run(tmp_path, agent=agent, rubric=Rubric(longest))
    assert (agent.asked, {row["reward"] for row in results["outputs"]}) == ({"2 + 1?": 2}, {2.0})
    assert keys_of(stored(tmp_path)) == [(i, n) for i in range(6) for n in range(2)]


def test_there_may_be_nothing_to_resume(tmp_path: Path) -> None:
    assert len(run(tmp_path / "new")["outputs"]) == 12
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "results.jsonl").touch()
    assert len(run(tmp_path / "empty")["outputs"]) == 12


def test_more_examples_may_be_played_than_before(tmp_path: Path) -> None:
    run(tmp_path, num_examples=2)
    agent = Counting()
    results = run(tmp_path, num_examples=5, agent=agent)
    assert agent.asked == {f"{i} + 1?": 2 for i in (2, 3, 4)}
    assert results["metadata"]["num_examples"] == 5
    assert without_times(results["outputs"]) == without_times(run(tmp_path / "other", num_examples=5)["outputs"])


# Which task a row is of


@pytest.mark.parametrize("seed", range(3))
def test_rows_follow_their_tasks_when_the_data_set_is_reordered(tmp_path: Path, seed: int) -> None:
    run(tmp_path)
    cut(tmp_path, lambda number: number not in (0, 7))
    order = random.Random(seed).sample(range(6), 6)
    agent = Counting()
    results = run(tmp_path, [ROWS[i] for i in order], agent)
    assert agent.asked == {"0 + 1?": 1, "3 + 1?": 1}
    assert [row["answer"] for row in results["outputs"]] == [str(i + 1) for i in order for _ in range(2)]
    assert keys_of(stored(tmp_path)) == [(i, n) for i in range(6) for n in range(2)]
    assert run(tmp_path, [ROWS[i] for i in order], agent)["outputs"] == json.loads(json.dumps(results["outputs"]))
    assert agent.asked.total() == 2


def test_equal_tasks_keep_their_number(tmp_path: Path) -> None:
    rows = [ROWS[0], ROWS[1], ROWS[0], ROWS[0]]
    run(tmp_path, rows)
    before = stored(tmp_path)
    cut(tmp_path, lambda number: number not in (0, 4))  # one rollout of the first, one of the third
    agent = Counting()
    results = run(tmp_path, rows, agent)
    assert agent.asked == {"0 + 1?": 2}
    assert keys_of(results["outputs"]) == keys_of(stored(tmp_path)) == [(i, n) for i in range(4) for n in range(2)]
    assert [row == old for row, old in zip(stored(tmp_path), before, strict=True)] == [number not in (0, 4) for number in range(8)]
    agent = Counting()
    run(tmp_path, [rows[1], rows[0], rows[2], rows[3]], agent)
    assert not agent.asked


def test_a_task_that_changed_is_played_and_its_old_rows_are_put_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run(tmp_path)
    before = (tmp_path / "results.jsonl").read_bytes().splitlines(keepends=True)
    rows = [*ROWS[:5], {**ROWS[5], "answer": "six"}]
    agent = Counting()
    results = run(tmp_path, rows, agent)
    assert agent.asked == {"5 + 1?": 2}
    assert [row["answer"] for row in results["outputs"]][-2:] == ["six", "six"]
    assert keys_of(stored(tmp_path)) == [(i, n) for i in range(6) for n in range(2)]
    assert f"2 rows of {tmp_path} belong to no task of this run" in caplog.text
    assert f"they are put aside in {tmp_path / 'unmatched.jsonl'}" in caplog.text
    assert (tmp_path / "unmatched.jsonl").read_bytes() == b"".join(before[-2:])
    run(tmp_path, [*ROWS[1:5], rows[5], ROWS[5]], agent)
    assert agent.asked == {"5 + 1?": 4}
    aside = (tmp_path / "unmatched.jsonl").read_bytes()
    assert aside == b"".join([*before[-2:], *before[:2]])
    with (tmp_path / "results.jsonl").open("ab") as file:
        file.write(aside)
    again = run(tmp_path, agent=(agent := Counting()))["outputs"]
    assert (not agent.asked, [row["answer"] for row in again]) == (True, [str(i + 1) for i in range(6) for _ in range(2)])
    assert (tmp_path / "results.jsonl").read_bytes().startswith(b"".join(before[:10])), "rows that were put aside can be put back"


def test_a_hook_that_writes_to_its_task_does_not_hide_it(tmp_path: Path) -> None:
    class Writing(SingleTurnEnv):
        def setup_state(self, state: Any) -> None:
            state["info"]["seen"] = True
            state["prompt"] = [*state["prompt"], {"role": "user", "content": "7 + 1?"}]

    agent = Counting()
    for _ in range(2):
        evaluate(Writing(ROWS), agent, results_path=tmp_path, resume=True, progress=False)
    assert agent.asked.total() == 6


def test_a_task_that_cannot_be_read_is_done_when_its_error_is_recorded(tmp_path: Path) -> None:
    rows = [ROWS[0], {"qestion": "?"}]
    agent = Counting()
    assert [row["error"] is None for row in run(tmp_path, rows, agent)["outputs"]] == [True, True, False, False]
    assert len(run(tmp_path, rows, agent)["outputs"]) == 4
    assert agent.asked.total() == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "other"}, "its model is 'm', and this run's is 'other'"),
        ({"rollouts_per_example": 3}, "its rollouts_per_example is 2, and this run's is 3"),
        ({"seed": 4}, "its seed is 0, and this run's is 4"),
        ({"env_id": "else"}, "its env_id is 'SingleTurnEnv', and this run's is 'else'"),
        ({"num_examples": 3}, "its num_examples is 6, and this run's is 3"),
        ({"rows": [{"question": "new?"}] * 6}, "none of its 12 rows belongs to a task of this run"),
    ],
)
def test_other_settings_are_refused_and_nothing_is_touched(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    run(tmp_path)
    before = (tmp_path / "results.jsonl").read_bytes(), (tmp_path / "metadata.json").read_bytes()
    with pytest.raises(ConfigurationError, match=message) as caught:
        run(tmp_path, **changes)
    assert str(tmp_path) in str(caught.value)
    assert ((tmp_path / "results.jsonl").read_bytes(), (tmp_path / "metadata.json").read_bytes()) == before


@pytest.mark.parametrize(
    ("theirs", "own", "differs"),
    [
        ({"n": 1, "extra_body": {}}, {}, False),
        ({}, {"n": 1, "extra_body": {}}, False),
        ({"n": 1, "extra_body": {}, "temperature": 0.5}, {"temperature": 0.5}, False),
        (None, {"extra_body": {}}, False),
        ({"n": 2, "extra_body": {}}, {}, True),
        ({"n": 1, "extra_body": {"top_k": 5}}, {}, True),
        ({"temperature": 0.5}, {}, True),
    ],
)
def test_a_run_is_resumed_whose_writer_adds_sampling_arguments_that_change_nothing(theirs: Any, own: Any, differs: bool) -> None:
    assert (find_differing_setting({"sampling_args": theirs}, {"sampling_args": own}) is not None) == differs


@pytest.mark.parametrize(
    ("theirs", "own", "differs"),
    [
        ({"env_id": "a"}, {"env_id": "b"}, "env_id"),
        ({"model": "a"}, {"model": "b"}, "model"),
        ({"is_model": True}, {"is_model": False}, "is_model"),
        ({"base_url": "http://x"}, {"is_model": False}, "is_model"),
        ({"base_url": "http://x"}, {"is_model": True}, None),
        ({"base_url": "http://x", "is_model": False}, {"is_model": False}, None),
        ({"base_url": ""}, {"is_model": False}, None),
        ({"rollouts_per_example": 1}, {"rollouts_per_example": 2}, "rollouts_per_example"),
        ({"env_args": {"n": 0}}, {"env_args": {"n": None}}, "env_args"),
        ({"env_args": {"n": 0}}, {"env_args": {}}, "env_args"),
        ({"env_args": {}}, {"env_args": None}, None),
        ({"env_args": {"f": "<f at 0x7fA0>"}}, {"env_args": {"f": "<f at 0x11>"}}, None),
        ({"env_args": {"api_key": "sk-a"}}, {"env_args": {"api_key": "sk-b"}}, None),
        ({"seed": 0}, {"seed": None}, "seed"),
        ({"seed": None}, {"seed": 0}, "seed"),
        ({"seed": None}, {"seed": None}, None),
        ({"limits_each": {"turns": 5}}, {"limits_each": {}}, "limits_each"),
        ({"limits_each": None}, {"limits_each": {}}, None),
        ({}, {"both_seats": True}, "both_seats"),
        ({"both_seats": True}, {}, "both_seats"),
        ({}, {"both_seats": False}, None),
        ({}, {"shard": (1, 2)}, "shard"),
        ({"shard": [1, 2]}, {"shard": (1, 2)}, None),
        ({"shard": [1, 2]}, {"shard": (2, 2)}, "shard"),
        ({"scored_again": True}, {}, "scored_again"),
        ({"scored_again": False}, {}, None),
        ({"seed": 1, "model": "a"}, {"seed": 2, "model": "b"}, "model"),
        ({"tags": ["a"], "num_examples": 1}, {"tags": [], "num_examples": 2}, None),
        ({}, {"env_id": "a", "seed": 3, "limits_each": {"turns": 5}}, None),
    ],
)
def test_each_setting_that_both_runs_know_must_agree(theirs: dict[str, Any], own: dict[str, Any], differs: str | None) -> None:
    assert find_differing_setting(theirs, own) == differs


def test_a_run_has_at_least_as_many_examples_as_the_one_that_it_goes_on_with() -> None:
    for before in ({}, {"num_examples": 0}, {"num_examples": 3}, {"num_examples": None}, {"num_examples": "all"}):
        check_settings("here", before, {"num_examples": 3})
    with pytest.raises(ConfigurationError, match=r"cannot resume here: its num_examples is 4, and this run's is 3\. Give at least as many"):
        check_settings("here", {"num_examples": 4}, {"num_examples": 3})
    with pytest.raises(ConfigurationError) as caught:
        check_settings("here", {"env_args": {"api_key": "sk-theirs", "n": 1}}, {"env_args": {"api_key": "sk-own"}, "num_examples": 1})
    assert "sk-" not in str(caught.value)
    with pytest.raises(ConfigurationError, match="its shard is False, and this run's is \\[1, 2\\]"):
        check_settings("here", {}, {"shard": [1, 2], "num_examples": 1})


def test_environment_arguments_must_agree_in_what_they_say(tmp_path: Path) -> None:
    def make(size: int = 2, key: Any = None, shape: Any = ()) -> SingleTurnEnv:
        return SingleTurnEnv(ROWS[:size])

    def play(**env_args: Any) -> GenerateOutputs:
        return evaluate(make, "oracle", env_args=env_args, results_path=tmp_path, resume=True, progress=False)

    play(size=3, key=exact, shape=(1, 2))
    play(shape=[1, 2], key=exact, size=3)
    with pytest.raises(ConfigurationError, match=r"its env_args is .*'size': 3.* and this run's is .*'size': 4"):
        play(size=4, key=exact, shape=(1, 2))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"resume": True}, "resume needs results_path"), ({"redo_errors": True}, "redo_errors says what a resumed run plays again")],
)
def test_options_that_say_nothing_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        evaluate(SingleTurnEnv(ROWS), "oracle", progress=False, **options)


def test_new_state_columns_are_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run(tmp_path, num_examples=1)
    run(tmp_path, num_examples=2, state_columns=["trajectory_id"])
    assert "are without the state columns trajectory_id" in caplog.text


def test_rows_of_other_code_are_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run(tmp_path, num_examples=1)
    metadata = json.loads((tmp_path / "metadata.json").read_text())
    metadata["versions"]["gymnasium"], metadata["version_info"]["env_version"] = "0.1", None
    (tmp_path / "metadata.json").write_text(json.dumps(metadata))
    run(tmp_path, num_examples=2)
    (message,) = caplog.messages
    assert message.endswith(f"were made by other code than the new ones: gymnasium was 0.1 and is {gymnasium.__version__}")


# Files that were cut, or written by others

RUN: dict[str, Any] = {
    "env_id": "e",
    "env_args": {},
    "model": "m",
    "num_examples": 3,
    "rollouts_per_example": 2,
    "pass_threshold": 0.5,
    "version_info": version_info(None),
    "seed": 0,
    "state_columns": [],
    "max_concurrent": 1,
    "path_to_save": None,
}
SLOTS = [Slot(i, n, f"{i:016x}") for i in range(3) for n in range(2)]


def small_row(slot: Slot, **fields: Any) -> RolloutOutput:
    return RolloutOutput({**slot._asdict(), "reward": 0.5, "failed": False, "error": None, "metrics": {}, **fields})


def write(path: Path, *rows: RolloutOutput, **changes: Any) -> Run:
    this = Run(**{**RUN, **changes})
    with ResultsWriter(path, this.metadata([])) as writer:
        for row in rows:
            writer.append(row)
    return this


def test_a_file_that_is_cut_at_any_byte_is_resumed(tmp_path: Path) -> None:
    rows = [small_row(slot) for slot in SLOTS]
    this = write(tmp_path, *rows)
    file = tmp_path / "results.jsonl"
    whole = file.read_bytes()
    ends = [index + 1 for index, byte in enumerate(whole) if byte == ord("\n")]
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        earlier = EarlierRun.load(tmp_path, this, SLOTS)
        done = [] if earlier is None else keys_of(earlier.rows)
        # A row is whole even without its line's end.
        assert done == keys_of(rows[: sum(end - 1 <= length for end in ends)])
        with ResultsWriter(tmp_path, this.metadata([]), earlier=earlier) as writer:
            for row in rows:
                if (row["example_id"], row["rollout"]) not in done:
                    writer.append(row)
            writer.finish(this.metadata(rows))
        assert file.read_bytes() == whole


def test_rows_of_other_writers_go_by_their_example_in_order(tmp_path: Path) -> None:
    this = write(tmp_path)
    foreign = [{"example_id": i, "reward": i / 4, "error": None, "metrics": {}} for i in (1, 0, 1)]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in foreign))
    earlier = EarlierRun.load(tmp_path, this, SLOTS)
    assert earlier is not None
    assert [(row["example_id"], row["rollout"]) for row in earlier.rows] == [(1, 0), (0, 0), (1, 1)]
    assert earlier.row_of(0, 1) is None
    with ResultsWriter(tmp_path, this.metadata([]), earlier=earlier) as writer:
        writer.finish(this.metadata(earlier.rows))
    assert [(row["example_id"], row["rollout"], row["fingerprint"]) for row in stored(tmp_path)] == [SLOTS[i] for i in (0, 2, 3)]


def test_metadata_of_other_writers_count_as_far_as_they_go(tmp_path: Path) -> None:
    this = write(tmp_path, small_row(SLOTS[0]))
    (tmp_path / "metadata.json").write_text(json.dumps({"env_id": "e", "model": "m", "num_examples": 3, "time_ms": 2500.0}))
    earlier = EarlierRun.load(tmp_path, this, SLOTS)
    assert earlier is not None
    assert (len(earlier.rows), earlier.seconds) == (1, 2.5)


@pytest.mark.parametrize("before", [b"", b'{"of": "another"}\n', b'{"cut": '])
def test_nothing_is_lost_or_stands_twice_when_putting_rows_aside_breaks_off(tmp_path: Path, before: bytes) -> None:
    rows = [small_row(slot) for slot in SLOTS]
    this = write(tmp_path, *rows)
    file, aside = tmp_path / "results.jsonl", tmp_path / "unmatched.jsonl"
    file.write_bytes(file.read_bytes().removesuffix(b"\n"))
    whole = file.read_bytes()
    aside.write_bytes(before)
    ended = before if before.endswith(b"\n") or not before else before + b"\n"
    lines = (whole + b"\n").splitlines(keepends=True)
    (tmp_path / "results.jsonl.tmp").mkdir()  # the file cannot be written anew
    with pytest.raises(ResultsError):
        ResultsWriter(tmp_path, this.metadata([]), earlier=EarlierRun.load(tmp_path, this, SLOTS[:4]))
    assert (file.read_bytes(), aside.read_bytes()) == (whole, ended + b"".join(lines[4:]))
    (tmp_path / "results.jsonl.tmp").rmdir()
    with ResultsWriter(tmp_path, this.metadata([]), earlier=EarlierRun.load(tmp_path, this, SLOTS[:4])):
        pass
    assert (file.read_bytes(), aside.read_bytes()) == (b"".join(lines[:4]), ended + b"".join(lines[4:]))


def test_of_two_rows_for_one_rollout_the_sound_one_counts(tmp_path: Path) -> None:
    this = write(tmp_path, small_row(SLOTS[0], error={"error": "E"}), small_row(SLOTS[0]), small_row(SLOTS[1]))
    earlier = EarlierRun.load(tmp_path, this, SLOTS)
    assert earlier is not None
    with ResultsWriter(tmp_path, this.metadata([]), earlier=earlier):
        pass
    assert [(row["rollout"], row["error"]) for row in stored(tmp_path)] == [(0, None), (1, None)]
    assert [json.loads(line)["error"] for line in (tmp_path / "unmatched.jsonl").read_text().splitlines()] == [{"error": "E"}]


# Rows that are kept, in memory


class OwnAssistantMessage(AssistantMessage):
    """What the model says, in a class of an environment's own."""


OWN_TYPES = MessageTypes(SystemMessage, UserMessage, OwnAssistantMessage, ToolMessage, TextMessage)


class Calculator(ToolEnv):
    """Shows its model what it needs two turns for."""

    message_types = OWN_TYPES

    def __init__(self) -> None:
        def add(a: int, b: int) -> int:
            return a + b

        super().__init__(tools=[add], dataset=ROWS[:2], system_prompt="add")


def adding(observation: list[Message], info: dict[str, Any]) -> Message:
    if observation[-1]["role"] == "tool":
        return AssistantMessage("done")
    return AssistantMessage(None, tool_calls=[ToolCall("c", "add", '{"a": 1, "b": 2}')])


def message_classes(row: Any) -> Any:
    steps = [(list(map(type, step["prompt"])), list(map(type, step["completion"]))) for step in row["trajectory"]]
    return list(map(type, row["prompt"])), list(map(type, row["completion"])), steps


def test_rows_that_are_kept_have_messages_like_new_ones(tmp_path: Path) -> None:
    def play() -> GenerateOutputs:
        return evaluate(Calculator(), adding, results_path=tmp_path, resume=True, state_columns=["trajectory"], progress=False)

    first = play()
    cut(tmp_path, lambda number: number == 0)
    kept, new = play()["outputs"]
    assert kept["completion"][-1].content == "done"
    assert kept["completion"][0].tool_calls[0].name == "add"
    assert OwnAssistantMessage in message_classes(kept)[1]
    assert message_classes(kept) == message_classes(new) == message_classes(first["outputs"][0])
    assert [type(step["response"]) for step in kept["trajectory"]] == [type(step["response"]) for step in new["trajectory"]]
    assert json.loads(json.dumps(kept)) == json.loads(json.dumps(first["outputs"][0]))
    message = kept["trajectory"][0]["completion"][0]
    assert kept["trajectory"][1]["prompt"][2] is message, "the turns share their messages"
    assert kept["trajectory"][1]["prompt"][0] is kept["prompt"][0]
    assert kept["trajectory"][0]["prompt"]._messages is kept["trajectory"][1]["prompt"]._messages


def test_responses_of_kept_rows_have_message_objects(tmp_path: Path) -> None:
    answer = {"role": "assistant", "content": "4"}
    response = {"id": "r", "created": 0, "model": "m", "usage": None, "message_fields": {"finish_reason": "stop"}}
    step = {"prompt": {"shared": 1, "new": []}, "completion": [answer], "response": response, "tokens": None}
    row = small_row(SLOTS[0], prompt=[{"role": "user", "content": "2+2?"}], completion=[answer], trajectory=[step])
    this = write(tmp_path)
    (tmp_path / "results.jsonl").write_text(json.dumps(row) + "\n")
    earlier = EarlierRun.load(tmp_path, this, SLOTS)
    assert earlier is not None
    message = earlier.rows[0]["trajectory"][0]["response"]["message"]
    assert (type(message), message.content, message.finish_reason) == (ResponseMessage, "4", "stop")
    assert earlier.row_of(0, 0) is earlier.rows[0]
    assert not earlier.needs_rewrite


MALFORMED: list[dict[str, Any]] = [
    {"prompt": [{"role": "user", "content": "fine"}], "completion": [{"role": "narrator", "content": "x"}]},
    {"prompt": [{"content": "no role"}], "completion": []},
    {"prompt": [{"role": "user", "content": "fine"}], "completion": [{"role": "tool", "content": "to what?"}]},
    {"prompt": [{"role": "user", "content": 4}], "completion": []},
    {
        "prompt": [{"role": "user", "content": "fine"}],
        "completion": [{"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": 4}}]}],
    },
]


@pytest.mark.parametrize("fields", MALFORMED)
def test_a_row_with_malformed_messages_is_kept_as_it_is(tmp_path: Path, fields: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    this = write(tmp_path, small_row(SLOTS[0], **fields), small_row(SLOTS[1], prompt=[{"role": "user", "content": "fine"}]))
    earlier = EarlierRun.load(tmp_path, this, SLOTS)
    assert earlier is not None
    malformed, sound = earlier.rows
    assert {key: malformed[key] for key in fields} == fields
    assert all(type(message) in (dict, str, type(None)) for key in fields for message in malformed[key])
    assert sound["prompt"][0].content == "fine"
    assert f"1 rows of {tmp_path} hold malformed messages" in caplog.text


def test_a_row_that_is_written_anew_keeps_what_messages_leave_out(tmp_path: Path) -> None:
    prompt = [{"content": [{"text": "?", "type": "text", "image_url": None}], "role": "user", "name": None}]
    this = write(tmp_path, small_row(SLOTS[2], example_id=7, prompt=prompt))
    earlier = EarlierRun.load(tmp_path, this, SLOTS)
    assert earlier is not None
    assert earlier.rows[0]["prompt"] == [{"role": "user", "content": [{"type": "text", "text": "?"}]}]
    with ResultsWriter(tmp_path, this.metadata([]), earlier=earlier):
        pass
    line = (tmp_path / "results.jsonl").read_bytes()
    assert [json.loads(line)[key] for key in ("example_id", "prompt")] == [1, prompt]
    assert json.dumps(prompt).encode() in line, "to the byte"


# Two runs, one directory


def test_only_one_run_writes_to_a_directory(tmp_path: Path) -> None:
    this = Run(**RUN)
    with ResultsWriter(tmp_path, this.metadata([])) as writer:
        writer.append(small_row(SLOTS[0]))
        earlier = EarlierRun.load(tmp_path, this, SLOTS)
        with pytest.raises(ResultsError, match="another run is writing its results"):
            ResultsWriter(tmp_path, this.metadata([]), earlier=earlier)
        writer.append(small_row(SLOTS[1]))
    with pytest.raises(ResultsError, match="has changed since it was read"):
        ResultsWriter(tmp_path, this.metadata([]), earlier=earlier)
    assert len(stored(tmp_path)) == 2


# What else is read of an earlier run


@pytest.mark.parametrize(
    ("metadata", "cost", "abandoned"),
    [
        ({}, None, 0),
        ({"cost": None, "abandoned_requests": None}, None, 0),
        ({"cost": 0, "abandoned_requests": 0}, 0.0, 0),
        ({"cost": 2, "abandoned_requests": 3}, 2.0, 3),
        ({"cost": 0.25}, 0.25, 0),
        ({"cost": True, "abandoned_requests": "3"}, None, 0),
        ({"cost": "2"}, None, 0),
    ],
)
def test_what_a_run_cost_so_far_is_read_from_its_metadata(metadata: dict[str, Any], cost: float | None, abandoned: int) -> None:
    spent = recorded_spending(metadata)
    assert (spent.cost, spent.abandoned) == (cost, abandoned)


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [({"time": 3}, 3.0), ({"time": 0.0, "time_ms": 2500.0}, 0.0), ({"time": 1.5, "time_ms": 9.0}, 1.5), ({"time": None}, 0.0), ({}, 0.0)],
)
def test_how_long_a_run_took_so_far_is_read_from_its_metadata(tmp_path: Path, fields: dict[str, Any], seconds: float) -> None:
    this = write(tmp_path, small_row(SLOTS[0]))
    (tmp_path / "metadata.json").write_text(json.dumps({"env_id": "e", "num_examples": 3, **fields}))
    earlier = EarlierRun.load(tmp_path, this, SLOTS)
    assert earlier is not None
    assert earlier.seconds == seconds


def test_a_directory_may_hold_no_run(tmp_path: Path) -> None:
    assert (earlier_metadata(None), earlier_metadata(tmp_path), has_rows(tmp_path), has_rows(tmp_path / "none")) == ({}, {}, False, False)
    write(tmp_path / "begun")
    assert (earlier_metadata(tmp_path / "begun")["env_id"], has_rows(tmp_path / "begun")) == ("e", False)
    (tmp_path / "begun" / "metadata.json").write_text("[")
    with pytest.raises(ResultsError):
        earlier_metadata(tmp_path / "begun")
    (tmp_path / "file").touch()
    with pytest.raises(ResultsError, match="results_path must be a directory"):
        has_rows(tmp_path / "file")
    (tmp_path / "results.jsonl").mkdir()
    with pytest.raises(ResultsError, match=f"cannot read results from {tmp_path}: "):
        has_rows(tmp_path)


def test_rollouts_with_errors_are_left_out_and_their_groups_where_these_are_scored_together(tmp_path: Path) -> None:
    rows = [small_row(slot) for slot in SLOTS[:5]]
    rows[1]["error"] = {"error": "E"}
    this = write(tmp_path, *rows)
    for redo_errors, whole_groups, kept in (
        (False, False, [0, 1, 2, 3, 4]),
        (True, False, [0, 2, 3, 4]),
        (False, True, [0, 1, 2, 3]),
        (True, True, [2, 3]),
    ):
        earlier = EarlierRun.load(tmp_path, this, SLOTS, redo_errors=redo_errors, whole_groups=whole_groups)
        assert earlier is not None
        assert keys_of(earlier.rows) == [SLOTS[number][:2] for number in kept]
        assert [earlier.row_of(*slot[:2]) is not None for slot in SLOTS] == [number in kept for number in range(6)]
        assert earlier.needs_rewrite is (len(kept) < 5)
        assert list(earlier.find_unmatched_lines()) == [], "what is played again is not put aside"
        lines = (tmp_path / "results.jsonl").read_bytes().splitlines(keepends=True)
        assert list(earlier.lines()) == [lines[number] for number in kept]
        ends = [sum(len(lines[number]) for number in kept[: place + 1]) for place in range(len(kept))]
        starts = [0, *ends[:-1]]
        assert earlier.pieces() == [Piece(SLOTS[n][:2], start, end) for n, start, end in zip(kept, starts, ends, strict=True)]


@pytest.mark.parametrize(
    ("declared", "before", "after"),
    [
        (0.0, {}, {"counted_reward": 0.0, "failure_reward": 0.0}),
        (0.0, {"counted_reward": None, "failure_reward": None}, {"counted_reward": 0.0, "failure_reward": 0.0}),
        (None, {"counted_reward": 0.0, "failure_reward": 0.0}, {"counted_reward": None, "failure_reward": None}),
        (-1.0, {"counted_reward": -1.0, "failure_reward": -1.0}, None),
    ],
)
def test_a_failed_rollout_counts_with_what_is_declared_now(tmp_path: Path, declared: Any, before: Any, after: Any) -> None:
    rows = [
        small_row(SLOTS[2], ending="policy_failed", failed=True, **before),
        small_row(SLOTS[0], ending="terminated", counted_reward=0.5),
    ]
    rows.append(small_row(SLOTS[1], ending="terminated", reward=math.nan, counted_reward=math.nan))
    this = write(tmp_path, *rows)
    asked: list[int] = []

    def declares(example: int) -> Any:
        asked.append(example)
        return declared

    earlier = EarlierRun.load(tmp_path, this, SLOTS, failure_reward=declares)
    assert earlier is not None
    assert sorted(asked) == [0, 0, 1]
    assert earlier.needs_rewrite is (after is not None)
    assert {key: earlier.rows[0].get(key) for key in after or before} == (after or before)
    assert [(row["counted_reward"], "failure_reward" in row) for row in earlier.rows[1:2]] == [(0.5, False)]
    as_it_was = EarlierRun.load(tmp_path, this, SLOTS)
    assert as_it_was is not None
    assert not as_it_was.needs_rewrite
    assert {key: as_it_was.rows[0].get(key) for key in before} == before


def test_tasks_that_cannot_be_read_go_by_their_example_and_their_number(tmp_path: Path) -> None:
    slots = [Slot(0, 0, None), Slot(0, 1, None), Slot(1, 0, None)]
    rows = [small_row(slot) for slot in (slots[1], slots[2])]
    earlier = EarlierRun.load(tmp_path, write(tmp_path, *rows, small_row(SLOTS[0])), slots)
    assert earlier is not None
    assert [earlier.row_of(*slot[:2]) is not None for slot in slots] == [False, True, True]
    assert not any("fingerprint" not in row or row["fingerprint"] is not None for row in earlier.rows)
    assert [json.loads(line)["fingerprint"] for line in earlier.find_unmatched_lines()] == [SLOTS[0].fingerprint]


def test_a_finished_run_is_found_where_it_may_be_and_one_without_rows_is_not_finished(tmp_path: Path) -> None:
    settings = {"env_id": "e", "num_examples": -1}
    write(tmp_path / "done", *[small_row(slot) for slot in SLOTS])
    assert find_incomplete(tmp_path, settings) is None
    for most, fits in ((-1, True), (3, True), (4, True), (2, False), (0, False)):
        found = find_incomplete(tmp_path, {**settings, "num_examples": most}, or_finished=True)
        assert found == (tmp_path / "done" if fits else None)
    assert find_incomplete(str(tmp_path), {"env_id": "e"}, or_finished=True) == tmp_path / "done"
    write(tmp_path / "empty")
    os.utime(tmp_path / "empty" / "metadata.json", (0, 0))
    assert find_incomplete(tmp_path, settings) == tmp_path / "empty"
    assert find_incomplete(tmp_path, settings, or_finished=True) == tmp_path / "done", "the newest"


def test_the_newest_run_with_something_left_is_found(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = {"env_id": "e", "model": "m", "rollouts_per_example": 2, "env_args": {}, "seed": 0, "num_examples": -1}
    assert find_incomplete(tmp_path / "none", settings) is None
    rows = [small_row(slot) for slot in SLOTS]
    write(tmp_path / "old", *rows[:2])
    write(tmp_path / "new", *rows[:4])
    write(tmp_path / "other", *rows[:4], seed=1)
    write(tmp_path / "broken", *rows[:5], small_row(SLOTS[5], error={"error": "E"}))
    write(tmp_path / "done", *rows)
    (tmp_path / "nonsense").mkdir()
    (tmp_path / "nonsense" / "metadata.json").write_text("[")
    for age, name in enumerate(("nonsense", "done", "broken", "other", "new", "old")):
        os.utime(tmp_path / name / "metadata.json", (1000 - age, 1000 - age))
    with caplog.at_level(logging.WARNING):
        assert find_incomplete(tmp_path, settings) == tmp_path / "new"
    assert "nonsense is passed over" in caplog.text
    assert find_incomplete(tmp_path, settings, redo_errors=True) == tmp_path / "broken"
    assert find_incomplete(tmp_path, {**settings, "seed": 1}) == tmp_path / "other"
    caplog.clear()
    assert find_incomplete(tmp_path, {**settings, "num_examples": 2}) is None
    told = [f"{name}, with {done} of 6 rollouts done, is not resumed: its num_examples is 3" for name, done in (("new", 4), ("old", 2))]
    assert all(any(text in message for message in caplog.messages) for text in told)
    assert not any("done" in message and f"{tmp_path / 'done'}," in message for message in caplog.messages), "nothing of it is left to do"
    earlier = EarlierRun.load(tmp_path / "new", Run(**RUN), SLOTS)
    with ResultsWriter(tmp_path / "new", Run(**RUN).metadata([]), earlier=earlier):
        assert find_incomplete(tmp_path, settings) == tmp_path / "old", "a run that is going on is not taken"


def test_runs_that_cannot_be_read_do_not_stop_the_search(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = {"env_id": "e", "model": "m", "rollouts_per_example": 2, "env_args": {}, "seed": 0, "num_examples": -1}
    write(tmp_path / "other", small_row(SLOTS[0]), seed=1)
    write(tmp_path / "broken", seed=1)
    (tmp_path / "broken" / "results.jsonl").unlink()
    (tmp_path / "broken" / "results.jsonl").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "metadata.json").write_text(json.dumps({"env_id": "somebody else's"}))
    assert find_incomplete(tmp_path, settings) is None
    assert len(caplog.messages) == 2, "and nothing of the foreign file"
    assert any(message.startswith(f"{tmp_path / 'other'}, with 1 of 6 rollouts done, is not resumed") for message in caplog.messages)
    assert any(message.startswith(f"{tmp_path / 'broken'} is passed over: ") for message in caplog.messages)
    caplog.clear()
    write(tmp_path / "this", small_row(SLOTS[0]))
    os.utime(tmp_path / "this" / "metadata.json", (0, 0))
    assert find_incomplete(tmp_path, settings) == tmp_path / "this"
    assert caplog.messages == [], "rows of other runs are not looked at where there is one to resume"
