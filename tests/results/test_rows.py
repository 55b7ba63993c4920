"""Rows: the documented keys, and what stands under each."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from tests.environments import Talk
from vfgym import Response, Rubric, SingleTurnEnv, State, ToolEnv, Usage
from vfgym.endings import Ending, failure_cause
from vfgym.errors import InfraError, ModelError, ToolCallError
from vfgym.messages import AssistantMessage, ToolCall, UserMessage
from vfgym.results import ErrorInfo, RolloutOutput, rollout_output, summarize
from vfgym.results.dropped_values import DroppedValueLog
from vfgym.results.plain_json import json_text
from vfgym.results.rows import STANDARD_KEYS, row_line, row_order, saved_part, step_rewards, token_usage
from vfgym.state import UsageTracker

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


def test_what_there_is_none_of_is_left_out_and_zero_is_not() -> None:
    row = rollout_output(answered(answer=""))
    assert {"answer", "info", "token_usage", "error_chain"}.isdisjoint(row)
    assert row["error"] is None
    row = rollout_output(answered(), rollout=2, seen_return=0.0, fingerprint="", began={"env_id": "e", "seed": 0})
    assert (row["reward"], row["return"], row["rollout"], row["fingerprint"], row["seed"]) == (1.0, 0.0, 2, "", 0)
    failed = rollout_output(answered(), error=ValueError("late"), failure_reward=0.0)
    assert (failed["ending"], failed["counted_reward"], failed["failure_reward"]) == ("environment_failed", 0.0, 0.0)
    assert {"failure_reward", "fingerprint", "env_id"}.isdisjoint(rollout_output(answered()))
    assert "counted_reward" not in rollout_output(answered(), is_counted=False)
    row = rollout_output(State(answered(), cleanup_errors={"close": "OSError()"}))
    assert row["cleanup_errors"] == {"close": "OSError()"}
    assert "cleanup_errors" not in rollout_output(answered())


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


def test_an_error_tells_its_causes_once_and_a_traceback_where_it_is_not_the_librarys() -> None:
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
    error = ValueError("loop")
    error.__cause__ = error
    assert ErrorInfo.of(error)["error_chain_str"] == "ValueError"
    for error, keeps, kept in [(ValueError("x"), True, True), (ValueError("x"), False, False), (ToolCallError("x"), True, False)]:
        try:
            raise error
        except Exception as caught:
            caught.add_note("in turn 3")
            info = ErrorInfo.of(caught, keeps_traceback=keeps)
        assert ("traceback" in info) == kept
        assert info["error_chain_repr"] == f"{error!r} (in turn 3)"


def test_token_usage_of_several_turns_counts_shared_context_each_time() -> None:
    usage = rollout_output(tool_episode(Usage(10, 0, 5, 15), Usage(30, 0, 5, 35)))["token_usage"]
    assert usage == {"input_tokens": 40, "output_tokens": 10, "final_input_tokens": 25, "final_output_tokens": 10}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("E('x')", "E('x')"),
        ("E('x') -> F()", "E('x') (the rows have all of it)"),
        ("E\nF", "E (the rows have all of it)"),
        ("x" * 160, "x" * 160),
        ("x" * 161, f"{'x' * 160}... (the rows have all of it)"),
    ],
)
def test_an_error_is_one_line_of_a_table(text: str, line: str) -> None:
    assert ErrorInfo(error="E", error_chain_repr=text).one_line() == line


@pytest.mark.parametrize("name", ["input_audio", "audio"])
def test_audio_is_saved_in_one_form(name: str) -> None:
    saved = saved_part({"type": name, name: {"data": "ab\n c", "format": "WAV"}})
    assert saved == {"type": "input_audio", "input_audio": {"data": "abc", "format": "wav"}}
    for empty in ({}, {name: None}, {name: {"data": " "}}, {name: {"data": 5}}):
        assert saved_part({"type": name, **empty}) == {"type": "text", "text": "[audio]"}
    text = {"type": "text", "text": "a\nb"}
    assert saved_part(text) is text


def test_rows_are_sorted_by_example_and_then_rollout() -> None:
    rows = [{"example_id": 1}, {"example_id": 0, "rollout": 10}, {"example_id": 0, "rollout": 2}, {"example_id": 0, "rollout": None}]
    assert [row_order(row) for row in sorted(rows, key=row_order)] == [(0, 0), (0, 2), (0, 10), (1, 0)]


def test_a_row_is_one_line_and_what_stands_as_text_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    row = RolloutOutput(example_id=4, completion=[{"role": "assistant", "content": "a\nb\u2028c\x85d"}], own=b"x")
    line = row_line(row)
    assert len(line.splitlines()) == 1
    assert json.loads(line) == {**row, "own": "b'x'"}
    assert caplog.messages == []
    assert row_line(row, text_log=DroppedValueLog()) == line
    assert "example 4, rollout 0 holds as text only own: bytes has no form in JSON" in caplog.text


# Second cases


@pytest.mark.parametrize("name", sorted(STANDARD_KEYS))
def test_no_metric_overwrites_a_standard_key(name: str) -> None:
    plain, row = rollout_output(State(answered(), metrics={})), rollout_output(State(answered(), metrics={name: 7.0, "own": 0.0}))
    assert row["metrics"] == {name: 7.0, "own": 0.0}
    assert row["own"] == 0.0
    assert (name in row) is (name in plain)
    assert name == "metrics" or name == "timing" or row.get(name) == plain.get(name)


def test_a_state_column_is_added_and_takes_the_place_of_a_metric_alone() -> None:
    state = State(answered(), exact="a column", reward=1.0, nothing=None, own=object(), key={"api_key": "sesame"})
    columns = ["exact", "reward", "nothing", "absent", "own", "key"]
    row = rollout_output(state, state_columns=columns)
    assert (row["exact"], row["metrics"]["exact"]) == ("a column", 1.0), "a metric stands in metrics, too"
    assert (row["reward"], row["nothing"], row["absent"], row["key"]) == (1.0, None, None, {"api_key": "***"})
    assert row["own"] == "<not kept: object has no form in JSON>"
    assert list(row)[-4:] == ["nothing", "absent", "own", "key"]
    circle: list[Any] = []
    circle.append(circle)
    assert rollout_output(State(answered(), circle=circle), state_columns=["circle"])["circle"].startswith("<not kept: ")


@pytest.mark.parametrize(
    ("error", "of_state", "ending"),
    [
        (ToolCallError("x"), {}, "environment_failed"),
        (InfraError("x"), {}, "infrastructure_failed"),
        (ModelError("x"), {}, None),
        (ValueError("x"), {"ending": Ending.POLICY_FAILED}, "policy_failed"),
        (ValueError("x"), {"ending": Ending.CUT}, "environment_failed"),
        (None, {"ending": Ending.CUT}, "cut"),
    ],
)
def test_what_kept_an_episode_from_going_on_decides_its_ending_unless_it_failed_before(
    error: Any, of_state: Any, ending: str | None
) -> None:
    state = answered()
    state.ending = of_state.get("ending")
    row = rollout_output(state, error=error)
    expected = Ending(ending) if ending else Ending.of_cause(failure_cause(error, otherwise="environment"))
    assert (row["ending"], row["failed"], row["error"] is None) == (str(expected), expected.failed, error is None)
    state["error"] = KeyError("of the state")
    assert rollout_output(state, error=error)["error"]["error"] == (type(error).__name__ if error else "KeyError")


def test_a_long_traceback_keeps_its_end() -> None:
    try:
        raise ValueError("x" * 20_000 + "the end")
    except ValueError as error:
        kept = ErrorInfo.of(error, keeps_traceback=True)["traceback"]
        assert ErrorInfo.of(ValueError("never raised"), keeps_traceback=True).keys().isdisjoint({"traceback"})
    assert (len(kept), kept.rstrip().endswith("the end")) == (10_000, True)
    first, second, third = ValueError("1"), KeyError("2"), OSError("3")
    first.__cause__, second.__cause__ = second, third
    first.__context__ = RuntimeError("while")
    assert ErrorInfo.of(first)["error_chain_str"] == "ValueError -> KeyError -> OSError"


def test_a_row_holds_lists_of_its_own_and_audio_in_one_form() -> None:
    heard = UserMessage([{"type": "audio", "audio": {"data": "a b", "format": "MP3"}}, {"type": "text", "text": "?"}])
    state = State(answered(), prompt=[UserMessage("first"), heard], completion="text", human={"hints": 1})
    row = rollout_output(state)
    assert row["prompt"][1]["content"] == [
        {"type": "input_audio", "input_audio": {"data": "ab", "format": "mp3"}},
        {"type": "text", "text": "?"},
    ]
    assert state["prompt"][1] is heard
    state["prompt"].append(UserMessage("later"))
    state["human"]["hints"] = 2
    assert (len(row["prompt"]), row["completion"], row["human"]) == (2, "text", {"hints": 1})
    assert rollout_output(State(answered(), prompt=None, human=True)).keys() & {"human", "prompt"} == {"prompt"}
    for label, kept in (("math", True), ("", True), (3, False), (None, False)):
        state = answered()
        state["input"]["task"] = label
        assert ("task" in rollout_output(state)) is kept


def test_tokens_that_were_counted_count_before_those_of_the_turns_and_judges_stand_apart() -> None:
    state = tool_episode(Usage(10, 0, 5, 15), None, Usage(30, 0, 4, 34))
    of_turns = {"input_tokens": 40.0, "output_tokens": 9.0}
    final = {"final_input_tokens": 25.0, "final_output_tokens": 9.0}
    tracker = UsageTracker()
    assert token_usage(State(state, usage_tracker=None)) == {**of_turns, **final}
    assert token_usage(State(state, usage_tracker=tracker)) == {**of_turns, **final}
    tracker.add(100, 0)
    assert token_usage(State(state, usage_tracker=tracker)) == {"input_tokens": 100.0, "output_tokens": 0.0, **final}
    assert token_usage(State(state, usage_tracker=tracker, trajectory=[])) == {"input_tokens": 100.0, "output_tokens": 0.0}
    judged = UsageTracker()
    judged.judges.requests, judged.judges.input_tokens, judged.judges.output_tokens = 0.5, 7.0, 3.0
    judges = {"judge_input_tokens": 7.0, "judge_output_tokens": 3.0, "judge_requests": 0.5}
    assert token_usage(State(state, usage_tracker=judged)) == {**of_turns, **final, **judges}
    assert token_usage(State(state, usage_tracker=judged, trajectory=[])) == judges
    assert token_usage(State(usage_tracker=None)) is None
    assert token_usage(tool_episode(Usage(3, 0, 5, 8), Usage(1, 0, 2, 3))) == {
        **{"input_tokens": 4.0, "output_tokens": 7.0, "final_output_tokens": 7.0},
        "final_input_tokens": 0.0,  # the history was cut: no fewer than none
    }


def test_what_comes_after_the_last_turn_is_earned_by_it() -> None:
    state = State(trajectory=[{}, {}])
    for rewards, earned in (
        ([1.0, 2.0, 4.0], [1.0, 6.0]),
        ([1.0, 2.0], [1.0, 2.0]),
        ([0.0, 2.0, 4.0], [0.0, 6.0]),
        ([0.0, 0.0, 4.0], None),
    ):
        state.rewards = rewards
        assert step_rewards(state) == earned
    state.rewards = []
    assert step_rewards(state) is None
