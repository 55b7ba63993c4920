"""Results: the documented rows, their statistics, and files that lose nothing that was finished."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import logging
import math
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.environments import Talk
from vfgym import Response, Rubric, SingleTurnEnv, State, ToolEnv, Usage
from vfgym.errors import ToolCallError
from vfgym.messages import AssistantMessage, ToolCall
from vfgym.results import ErrorInfo, ResultsError, ResultsWriter, RolloutOutput, load_results, rollout_output, summarize
from vfgym.results.files import default_results_path
from vfgym.results.plain_json import NotPlain, as_json, json_text
from vfgym.results.statistics import pass_all, pass_at

DOCUMENTED_ORDER = [
    *("example_id", "prompt", "completion", "answer", "info", "reward", "ending", "failed", "counted_reward", "error", "timing"),
    *(
        "is_completed",
        "is_truncated",
        "stop_condition",
        "metrics",
        "tool_defs",
        "token_usage",
        "rollout",
        "return",
        "exact",
        "num_turns",
        "trajectory_id",
    ),
]


def exact(completion: Any, answer: str) -> float:
    return float(completion[-1].content == answer)


def answered(action: Any = "42", rubric: Rubric | None = None, **row: Any) -> State:
    """Return the state of an episode that was played and scored."""
    env = SingleTurnEnv([{"question": "6 * 7?", "answer": "42", **row}], rubric=rubric or Rubric(exact))
    env.reset(seed=0)
    env.step(action)
    assert env.state is not None
    return env.state


def tool_episode(*usages: Usage | None) -> State:
    """Return the state of an episode that called a tool in all turns but the last."""

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    env = ToolEnv(tools=[add], dataset=[{"question": "1 + 2?"}])
    env.reset(seed=0)
    for number, usage in enumerate(usages, start=1):
        calls = [ToolCall("c1", "add", '{"a": 1, "b": 2}')] if number < len(usages) else None
        message = AssistantMessage(None if calls else "3", tool_calls=calls)
        env.step(Response("r", 0, "m", usage, message))
    assert env.state is not None
    return env.state


# Rows


def test_a_row_has_the_documented_keys_in_order() -> None:
    state = answered(Response("r", 0, "m", Usage(5, 0, 2, 7), AssistantMessage("42")), info={"source": "book"})
    row = rollout_output(state, state_columns=["trajectory_id"])
    assert list(row) == DOCUMENTED_ORDER
    assert row["prompt"] == [{"role": "user", "content": "6 * 7?"}]
    assert row["completion"] == [{"role": "assistant", "content": "42"}]
    assert (row["reward"], row["return"], row["exact"], row["metrics"]) == (1.0, 1.0, 1.0, {"exact": 1.0, "num_turns": 1.0})
    assert (row["is_completed"], row["is_truncated"], row["stop_condition"]) == (True, False, "max_turns_reached")
    assert row["timing"]["total"] > 0


@pytest.mark.parametrize(
    ("of_turns", "at_the_end", "expected"),
    [
        ([1.0, 2.0, 3.0], 0.5, [1.0, 2.0, 3.5]),
        ([0.0, -1.0, 0.0], 0.0, [0.0, -1.0, 0.0]),
        ([0.0, 0.0, 3.0], 0.5, None),
        ([1.0, math.inf, 0.0], 0.5, None),
    ],
)
def test_what_turns_earned_is_told_where_not_all_came_with_the_last(of_turns: list[float], at_the_end: float, expected: Any) -> None:
    def by_turn(state: State) -> float:
        return of_turns[len(state["trajectory"]) - 1]

    rubric = Rubric(lambda: at_the_end)
    rubric.add_step_reward_func(by_turn)
    env = Talk(dataset=[{"question": "?"}], max_turns=3, rubric=rubric)
    env.reset(seed=0)
    for _ in range(3):
        env.step("so")
    assert env.state is not None
    row = rollout_output(env.state)
    assert row.get("step_rewards") == expected
    assert expected is None or sum(expected) == row["reward"]
    assert "step_rewards" not in rollout_output(env.state, is_counted=False)
    assert "step_rewards" not in rollout_output(env.state, error=ValueError("too late"))


def test_handlers_that_failed_after_the_episode_are_told() -> None:
    row = rollout_output(State(answered(), cleanup_errors={"close": "OSError()"}))
    assert row["cleanup_errors"] == {"close": "OSError()"}
    assert "cleanup_errors" not in rollout_output(answered())


def test_answer_info_usage_and_error_are_left_out_where_there_are_none() -> None:
    row = rollout_output(answered(answer=""))
    assert {"answer", "info", "token_usage", "error_chain"}.isdisjoint(row)
    assert row["error"] is None


def test_a_metric_named_like_a_standard_key_stands_in_metrics_only() -> None:
    def reward(completion: Any) -> float:
        return 0.25

    def info(completion: Any) -> float:
        return 3.0

    row = rollout_output(answered(rubric=Rubric([reward, info], weights=[2.0, 0.0])))
    assert row["metrics"] == {"reward": 0.25, "info": 3.0, "num_turns": 1.0}
    assert row["reward"] == 0.5
    assert "info" not in row


def test_reward_functions_that_failed_are_told_and_counted() -> None:
    def broken(completion: Any) -> float:
        raise ValueError("no number")

    row = rollout_output(answered(rubric=Rubric([exact, broken])))
    assert row["metrics_errors"] == {"broken": "ValueError('no number')"}
    assert list(row).index("metrics_errors") == list(row).index("metrics") + 1
    sound = rollout_output(answered())
    assert "metrics_errors" not in sound
    assert summarize([row, sound, row], 1, 0.5)["metrics_errors"] == {"broken": 2}
    assert summarize([sound], 1, 0.5)["metrics_errors"] == {}
    assert summarize([{**sound, "metrics_errors": None}], 1, 0.5)["metrics_errors"] == {}  # asked for as a state column


def test_messages_and_tools_become_plain_json() -> None:
    row = json.loads(json_text(rollout_output(tool_episode(None, None))))
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
    assert row["completion"][0] == {"role": "assistant", "content": None, "tool_calls": [call]}
    assert row["completion"][1] == {"role": "tool", "content": "3", "tool_call_id": "c1"}
    assert [(tool["name"], tool["description"]) for tool in row["tool_defs"]] == [("add", "Add two numbers.")]


def test_an_error_tells_its_causes() -> None:
    state = answered()
    error = ToolCallError("broke")
    error.__cause__ = ValueError("bad")
    state["error"] = error
    row = rollout_output(state)
    assert row["error"] == {
        "error": "ToolCallError",
        "error_chain_repr": "ToolCallError('broke') -> ValueError('bad')",
        "error_chain_str": "ToolCallError -> ValueError",
    }
    assert str(row["error"]) == row["error_chain"] == "ToolCallError('broke') -> ValueError('bad')"
    assert row["long_error_chain"] == "ToolCallError -> ValueError"


def test_an_error_that_causes_itself_is_told_once() -> None:
    error = ValueError("loop")
    error.__cause__ = error
    assert ErrorInfo.of(error)["error_chain_str"] == "ValueError"


def test_a_state_column_that_is_no_data_is_marked_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    state = answered()
    state["socket"] = object()
    state["day"] = date(2026, 1, 2)
    row = rollout_output(state, state_columns=["socket", "day", "absent", "reward"])
    assert row["socket"] == "<not kept: object has no form in JSON>"
    assert "leaves out socket: object has no form in JSON" in caplog.text
    assert (row["day"], row["absent"], row["reward"]) == ("2026-01-02", None, 1.0)


def test_the_trajectory_is_a_state_column_like_any_other() -> None:
    row = json.loads(json_text(rollout_output(tool_episode(Usage(4, 0, 2, 6), None), state_columns=["trajectory"])))
    first, second = row["trajectory"]
    assert [message["role"] for message in first["prompt"]] == ["user"]
    assert [message["role"] for message in second["prompt"]] == ["user", "assistant", "tool"]
    assert first["response"]["usage"]["completion_tokens"] == 2
    assert second["completion"] == [{"role": "assistant", "content": "3"}]


def test_token_usage_of_one_turn_is_the_same_in_total_and_at_the_end() -> None:
    usage = rollout_output(tool_episode(Usage(10, 0, 5, 15)))["token_usage"]
    assert usage == {"input_tokens": 10, "output_tokens": 5, "final_input_tokens": 10, "final_output_tokens": 5}


def test_token_usage_of_several_turns_counts_shared_context_each_time() -> None:
    usage = rollout_output(tool_episode(Usage(10, 0, 5, 15), Usage(30, 0, 5, 35)))["token_usage"]
    assert usage == {"input_tokens": 40, "output_tokens": 10, "final_input_tokens": 25, "final_output_tokens": 10}


# Plain JSON

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
)


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Place:
    row: int
    columns: tuple[int, ...]


@given(PLAIN)
def test_plain_data_stays_as_it_is(value: Any) -> None:
    assert as_json(value) == json.loads(json_text(value)) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, 2), [1, 2]),
        ({3: {4}}, {"3": [4]}),
        (np.float64(0.5), 0.5),
        (np.arange(3), [0, 1, 2]),
        (float("nan"), None),
        (Path("a/b"), "a/b"),
        (ValueError("x"), "ValueError('x')"),
        (Colour.RED, "red"),
        ({"places": [Place(1, (2,))]}, {"places": [{"row": 1, "columns": [2]}]}),
        ({"b", "a"}, ["a", "b"]),
        (np.array([1.5, np.inf]), [1.5, None]),
        (datetime.date(2026, 2, 3), "2026-02-03"),
        (datetime.time(4, 5), "04:05:00"),
        (Usage(1, 0, 2, 3), {"prompt_tokens": 1, "reasoning_tokens": 0, "completion_tokens": 2, "total_tokens": 3}),
    ],
)
def test_other_data_finds_its_form(value: Any, expected: Any) -> None:
    assert as_json(value) == expected


def test_what_has_no_form_is_refused_or_replaced() -> None:
    with pytest.raises(NotPlain, match="bytes has no form in JSON"):
        as_json({"a": b"x"})
    assert json.loads(json_text({"a": b"x", "b": float("inf")})) == {"a": "b'x'", "b": None}


# Statistics


def row(example_id: int, reward: float, **fields: Any) -> RolloutOutput:
    return RolloutOutput({"example_id": example_id, "reward": reward, "error": None, "metrics": {}, "return": reward, **fields})


def test_pass_at_k() -> None:
    rows = [row(0, 1.0), row(0, 0.0), row(1, 0.6), row(1, 0.4)]
    summary = summarize(rows, rollouts_per_example=2, pass_threshold=0.5)
    assert summary["pass_at_k"] == {"1": 0.5, "2": 1.0}
    assert summary["pass_all_k"] == {"1": 0.5, "2": 0.0}


def test_a_reward_of_just_the_threshold_passes() -> None:
    rows = [row(0, 0.5), row(0, 0.5)]
    summary = summarize(rows, rollouts_per_example=2, pass_threshold=0.5)
    assert (summary["pass_at_k"], summary["pass_all_k"]) == ({"1": 1.0, "2": 1.0}, {"1": 1.0, "2": 1.0})


def test_pass_at_k_counts_complete_examples_only_and_is_empty_for_single_rollouts() -> None:
    rows = [row(0, 1.0), row(0, 1.0), row(1, 0.0)]
    assert summarize(rows, rollouts_per_example=2, pass_threshold=0.5)["pass_at_k"] == {"1": 1.0, "2": 1.0}
    assert summarize(rows[:1], rollouts_per_example=1, pass_threshold=0.5)["pass_at_k"] == {}
    assert summarize([], rollouts_per_example=2, pass_threshold=0.5)["pass_at_k"] == {}


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_all_choices(drawn: tuple[int, int, int]) -> None:
    from itertools import combinations

    rollouts, passed, k = drawn
    choices = list(combinations([1] * passed + [0] * (rollouts - passed), k))
    assert pass_at(k, passed, rollouts) == pytest.approx(sum(any(choice) for choice in choices) / len(choices))
    assert pass_all(k, passed, rollouts) == pytest.approx(sum(all(choice) for choice in choices) / len(choices))


def test_the_standard_error_is_over_the_means_of_examples() -> None:
    rows = [row(0, 1.0), row(0, 0.0), row(1, 1.0), row(1, 1.0), row(2, 0.0), row(2, 0.0)]
    summary = summarize(rows, rollouts_per_example=2, pass_threshold=0.5)
    assert summary["avg_reward"] == 0.5
    assert summary["std_error"] == pytest.approx(np.std([0.5, 1.0, 0.0], ddof=1) / np.sqrt(3))
    assert summarize(rows[:2], rollouts_per_example=2, pass_threshold=0.5)["std_error"] is None


@pytest.mark.parametrize(
    ("rewards", "mean", "error"),
    [
        ([math.nan, 1.0], math.nan, math.nan),
        ([math.inf, 1.0], math.inf, math.nan),
        ([math.inf, -math.inf], math.nan, math.nan),
        ([1e200, -1e200], 0.0, math.inf),
        ([1.7e308, 1.7e308], math.inf, math.inf),
    ],
)
def test_numbers_beyond_all_bounds_have_means_too(rewards: list[float], mean: float, error: float) -> None:
    rows = [row(number, reward, metrics={"m": reward}) for number, reward in enumerate(rewards)]
    summary = summarize(rows, rollouts_per_example=1, pass_threshold=0.5)
    means = [summary["avg_reward"], summary["avg_return"], summary["avg_metrics"]["m"]]
    assert means == pytest.approx([mean] * 3, nan_ok=True)
    assert summary["std_error"] == pytest.approx(error, nan_ok=True)


def test_means_are_over_the_rows_that_have_a_value() -> None:
    tools = [{"name": "add"}]
    rows = [
        row(0, 1.0, metrics={"a": 1.0, "b": 4.0}, token_usage={"input_tokens": 4.0, "output_tokens": 2.0}, tool_defs=tools),
        row(1, 0.0, metrics={"a": 0.0}, error=ErrorInfo.of(ValueError()), tool_defs=tools),
    ]
    summary = summarize(rows, rollouts_per_example=1, pass_threshold=0.5)
    assert summary["avg_metrics"] == {"a": 0.5, "b": 4.0}
    assert summary["avg_error"] == 0.5
    assert summary["usage"] == {"input_tokens": 4.0, "output_tokens": 2.0}
    assert summary["tools"] == tools
    rows.append(row(2, 0.0, tool_defs=[{"name": "other"}]))
    assert summarize(rows, rollouts_per_example=1, pass_threshold=0.5)["tools"] is None


# Files

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


def test_a_broken_last_line_is_left_out_and_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with ResultsWriter(tmp_path, METADATA) as writer:
        writer.append(row(0, 1.0))
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"example_id": 1, "rew')
    with caplog.at_level(logging.WARNING):
        assert [output["example_id"] for output in load_results(tmp_path)["outputs"]] == [0]
    assert "the last line" in caplog.text


def test_any_other_broken_line_and_missing_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="cannot read results"):
        load_results(tmp_path)
    with ResultsWriter(tmp_path, METADATA) as writer:
        pass
    (writer.path / "results.jsonl").write_text('nonsense\n{"example_id": 1}\n')
    with pytest.raises(ResultsError, match="line 1 of"):
        load_results(tmp_path)


def test_the_default_directory_is_named_after_environment_and_model() -> None:
    path = default_results_path("reasoning-gym/ab-v0", "vendor/model:x", root="runs")
    assert path.parent == Path("runs/evals/reasoning-gym--ab-v0--vendor--model-x")
    assert len(path.name) == 8
    assert path != default_results_path("reasoning-gym/ab-v0", "vendor/model:x", root="runs")
