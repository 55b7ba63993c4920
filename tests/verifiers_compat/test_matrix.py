"""The compatibility matrix: for each documented input the documented result, value for value.

Each test of the first part is one row of the matrix. The tables that rows refer to follow: how a rollout ends, what tools answer,
pass@k, cut token data, and token usage. The last part is runs that were once observed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
import vfgym.parsers
from tests.verifiers_compat.environments import ROW, Talk, asking, look, right, single
from tests.verifiers_compat.models import Model, calling, evaluated, response, roles, rolled_out, texts
from vfgym.model_server import Faults, ModelServer, Reply
from vfgym.testing import ScriptedClient


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(max_model_len=200) as running:
        yield running


# Prompts


def test_question_with_system_prompt_and_few_shot() -> None:
    shots = [{"role": "user", "content": "0 + 0?"}, {"role": "assistant", "content": "0"}]
    env = single(system_prompt="Calculate.", few_shot=shots)
    assert env.get_dataset()[0]["prompt"] == [
        {"role": "system", "content": "Calculate."},
        *shots,
        {"role": "user", "content": "1 + 1?"},
    ]


def test_a_prompt_with_its_own_system_message_stays_as_it_is() -> None:
    prompt = [{"role": "system", "content": "Mine."}, {"role": "user", "content": "hi"}]
    assert single({"prompt": prompt}, system_prompt="Yours.").get_dataset()[0]["prompt"] == prompt
    assert roles(single({"prompt": prompt[1:]}, system_prompt="Yours.").get_dataset()[0]["prompt"]) == ["system", "user"]


def test_a_string_example_id_column_is_renamed_and_rows_are_numbered() -> None:
    dataset = single({**ROW, "example_id": "x7"}, {**ROW, "example_id": "x9"}).get_dataset()
    assert dataset["src_id"][:] == ["x7", "x9"]
    assert dataset["example_id"][:] == [0, 1]


def test_an_integer_example_id_column_is_kept() -> None:
    assert single({**ROW, "example_id": 7}, {**ROW, "example_id": 3}).get_dataset()["example_id"][:] == [7, 3]


def test_an_env_id_column_is_dropped() -> None:
    assert "env_id" not in single({**ROW, "env_id": "x"}).get_dataset().column_names


def test_a_prompt_column_leaves_question_and_few_shot_aside() -> None:
    prompt = [{"role": "user", "content": "the prompt"}]
    env = single({"prompt": prompt, "question": "the question"}, few_shot=[{"role": "user", "content": "a shot"}])
    assert env.get_dataset()[0]["prompt"] == prompt
    assert env.get_dataset()[0]["question"] == "the question"


@pytest.mark.parametrize("row", [{"q": "no question"}, {"prompt": 3}, {"prompt": [{"role": "nobody", "content": "x"}]}])
def test_rows_that_are_no_tasks_are_refused(row: dict[str, Any]) -> None:
    with pytest.raises((ValueError, KeyError, TypeError), match=r"prompt|role"):
        vf.SingleTurnEnv(dataset=[row]).get_dataset()


# How rollouts end


async def test_single_turn_ok() -> None:
    (output,) = await evaluated(single(), "2")
    assert (output["stop_condition"], output["is_completed"], output["is_truncated"], output["error"]) == (
        "max_turns_reached",
        True,
        False,
        None,
    )
    assert output["metrics"] == {"right": 1.0, "num_turns": 1.0}


async def test_finish_reason_length_over_http() -> None:
    with ModelServer({"m": lambda request: Reply("cut", finish_reason="length")}) as server:
        (output,) = (await single().evaluate(asking(server.openai_url), "m"))["outputs"]
    assert (output["is_truncated"], output["stop_condition"], output["completion"][-1]["content"]) == (True, "max_turns_reached", "cut")


@pytest.mark.parametrize("client_type", ["openai_chat_completions", "openai_responses", "openai_completions", "anthropic_messages"])
async def test_overlong(server: ModelServer, client_type: Any) -> None:
    env = single({"question": "many words " * 500, "answer": "2"})
    config = asking(server.openai_url, client_type=client_type)
    if client_type == "anthropic_messages":
        config = config.model_copy(update={"api_base_url": server.url})
    (output,) = (await env.evaluate(config, "echo", {"max_tokens": 10}))["outputs"]
    assert (output["stop_condition"], output["is_truncated"], output["error"], output["completion"]) == ("prompt_too_long", True, None, [])


async def test_model_exception() -> None:
    with ModelServer(faults=Faults(server_error=1.0)) as server:
        (output,) = (await single().evaluate(asking(server.openai_url), "echo"))["outputs"]
    assert output["error"]["error"] == "ModelError"
    assert output["error"]["error_chain_str"] == "ModelError -> InternalServerError"
    assert output["stop_condition"] == "has_error"


@pytest.mark.parametrize(("finish_reason", "is_truncated"), [("stop", False), ("length", True)])
async def test_a_timeout_keeps_what_was_said_and_whether_an_earlier_turn_was_cut(finish_reason: str, is_truncated: bool) -> None:
    async def hang() -> Any:
        await asyncio.Event().wait()

    env = Talk(dataset=[ROW], timeout_seconds=0.05)
    client = Model(lambda number, state: hang() if number else response("first", finish_reason=finish_reason))
    state = await env.rollout(env.get_dataset()[0], client, "m")
    assert (state["stop_condition"], state["timed_out"], state["error"]) == ("timeout_reached", True, None)
    assert (state["is_completed"], state["is_truncated"]) == (True, is_truncated)
    assert state["completion"][0]["content"] == "first"


async def test_string_env_response_becomes_a_text_message_that_reaches_a_chat_api_as_a_user_message(server: ModelServer) -> None:
    class Texts(vf.MultiTurnEnv):
        async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> Any:
            return "more"

    (output,) = (await Texts(dataset=[ROW], max_turns=2).evaluate(asking(server.openai_url), "echo"))["outputs"]
    assert output["completion"][1] == {"role": "text", "content": "more"}
    assert server.requests[-1].body["messages"][-1] == {"role": "user", "content": "more"}


# Scores


async def test_group_func_list_and_raising_group_func() -> None:
    def ranks(completions: list[Any]) -> list[float]:
        return [0.25, 0.75]

    def breaks(states: list[Any]) -> list[float]:
        raise ValueError("no")

    rubric = vf.Rubric([ranks, breaks])
    outputs = await evaluated(vf.SingleTurnEnv(dataset=[ROW], rubric=rubric), "a", rollouts_per_example=2)
    assert [(output["metrics"]["ranks"], output["metrics"]["breaks"], output["reward"]) for output in outputs] == [
        (0.25, 0.0, 0.25),
        (0.75, 0.0, 0.75),
    ]


@pytest.mark.parametrize(("returned", "score"), [(None, 0.0), (True, 1.0), (False, 0.0), ("0.5", 0.5), ([1], 0.0), ({}, 0.0), (3, 3.0)])
async def test_what_a_reward_function_returns_becomes_a_number(returned: Any, score: float) -> None:
    env = vf.SingleTurnEnv(dataset=[ROW], rubric=vf.Rubric(lambda completion: returned))
    (output,) = await evaluated(env, "a")
    assert (output["metrics"]["<lambda>"], output["reward"]) == (score, score)


@pytest.mark.parametrize(
    ("rollouts", "rewards", "passes", "all_pass"),
    [
        (2, [1.0, 0.0], {"1": 0.5, "2": 1.0}, {"1": 0.5, "2": 0.0}),
        (2, [0.5, 0.5], {"1": 1.0, "2": 1.0}, {"1": 1.0, "2": 1.0}),
        (4, [1.0, 0.49, 0.0, 0.0], {"1": 0.25, "2": 0.5, "4": 1.0}, {"1": 0.25, "2": 0.0, "4": 0.0}),
        (5, [1.0, 1.0, 1.0, 0.0, 0.0], {"1": 0.6, "2": 0.9, "4": 1.0}, {"1": 0.6, "2": 0.3, "4": 0.0}),
        (1, [1.0], {}, {}),
    ],
)
async def test_pass_at_k(rollouts: int, rewards: list[float], passes: dict[str, float], all_pass: dict[str, float]) -> None:
    def given(completions: list[Any]) -> list[float]:
        return rewards

    env = vf.SingleTurnEnv(dataset=[ROW], rubric=vf.Rubric(given))
    metadata = (await env.evaluate(ScriptedClient(["x"]), "m", rollouts_per_example=rollouts))["metadata"]
    assert metadata["pass_at_k"] == pytest.approx(passes)
    assert metadata["pass_all_k"] == pytest.approx(all_pass)
    assert metadata["pass_threshold"] == 0.5


async def test_pass_at_k_counts_from_the_threshold_of_the_environment() -> None:
    env = vf.SingleTurnEnv(dataset=[ROW], rubric=vf.Rubric(lambda: 0.6), pass_threshold=0.7)
    metadata = (await env.evaluate(ScriptedClient(["x"]), "m", rollouts_per_example=2))["metadata"]
    assert (metadata["pass_at_k"], metadata["pass_threshold"]) == ({"1": 0.0, "2": 0.0}, 0.7)


# Results on disk


async def test_save_writes_two_files(tmp_path: Path) -> None:
    rows = [{"question": f"{number}?", "answer": "2"} for number in (3, 1, 2, 0)]
    env = single(*rows)
    results = await env.evaluate(ScriptedClient(["2"]), "m", save_results=True, results_path=tmp_path / "run", rollouts_per_example=2)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["metadata.json", "results.jsonl"]
    saved = [json.loads(line) for line in (tmp_path / "run" / "results.jsonl").read_text().splitlines()]
    assert [row["example_id"] for row in saved] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert saved[0]["prompt"] == [{"role": "user", "content": "3?"}]
    assert saved[0]["completion"] == [{"role": "assistant", "content": "2"}]
    metadata = json.loads((tmp_path / "run" / "metadata.json").read_text())
    assert {"date", "path_to_save"} <= set(results["metadata"])
    assert not {"date", "path_to_save"} & set(metadata)
    documented = {"env_id", "env_args", "model", "base_url", "num_examples", "rollouts_per_example", "sampling_args", "time_ms", "time"}
    documented |= {"avg_reward", "avg_metrics", "avg_error", "pass_at_k", "pass_all_k", "pass_threshold", "usage", "version_info"}
    assert documented | {"state_columns", "tools"} <= set(metadata)


# What was wanted and is there


# Table: how a rollout ends


class Scripted(Talk):
    """Raises what the model says."""

    async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
        if messages[-1]["content"] == "tool error":
            raise vf.ToolError("broken")
        return await super().env_response(messages, state, **kwargs)


@pytest.mark.parametrize(
    ("env", "answers", "expected"),
    [
        (single, ["2"], (True, False, "max_turns_reached", None)),
        (single, [response("2", finish_reason="length")], (True, True, "max_turns_reached", None)),
        (lambda: single(max_seq_len=3), [response("2", tokens=(2, 2))], (True, True, "max_turns_reached", None)),
        (lambda: vf.ToolEnv(tools=[look], dataset=[ROW]), ["done"], (True, False, "no_tools_called", None)),
        (lambda: vf.ToolEnv(tools=[look], dataset=[ROW], max_turns=1), ["done"], (True, False, "max_turns_reached", None)),
        (lambda: Scripted(dataset=[ROW]), ["tool error"], (True, False, "has_error", "ToolError")),
        (lambda: Scripted(dataset=[ROW]), [response("tool error", finish_reason="length")], (True, True, "has_error", "ToolError")),
    ],
    ids=["single turn", "cut", "cut by max_seq_len", "no tools called", "ties go by name", "error", "error after a cut turn"],
)
async def test_how_a_rollout_ends(env: Any, answers: list[Any], expected: tuple[Any, ...]) -> None:
    state = await rolled_out(env(), *answers)
    error = state["error"] and type(state["error"]).__name__
    assert (state["is_completed"], state["is_truncated"], state["stop_condition"], error) == expected


async def test_a_context_overflow_on_a_later_turn_keeps_what_was_said(server: ModelServer) -> None:
    class Long(vf.MultiTurnEnv):
        async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
            return [{"role": "user", "content": "many words " * 500}]

    (output,) = (await Long(dataset=[ROW]).evaluate(asking(server.openai_url), "echo", {"max_tokens": 10}))["outputs"]
    assert (output["is_completed"], output["is_truncated"], output["stop_condition"], output["error"]) == (
        True,
        True,
        "prompt_too_long",
        None,
    )
    assert roles(output["completion"])[0] == "assistant"


@pytest.mark.parametrize("limit", [8, 10])
async def test_a_cap_of_completion_tokens_ends_the_rollout(limit: int) -> None:
    env = Talk(dataset=[ROW])
    env.set_max_total_completion_tokens(limit)
    state = await rolled_out(env, *[response("x", usage=(1, 5))] * 4)
    assert (state["stop_condition"], len(state["trajectory"])) == ("max_total_completion_tokens_reached", 2)


# Table: what tools answer


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


def parts() -> list[dict[str, Any]]:
    """Give parts."""
    return [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]


def nothing() -> list[Any]:
    """Give no parts."""
    return []


def strings() -> list[str]:
    """Give texts."""
    return ["a", "b"]


def anything(value: Any = None) -> Any:
    """Give what is asked for."""
    return value


def fails() -> str:
    """Fail."""
    raise LookupError("not found")


TOOLS = [look, add, parts, nothing, strings, anything, fails]


@pytest.mark.parametrize(
    ("name", "arguments", "content"),
    [
        ("look", {"key": "ü✓"}, "value of ü✓"),
        ("add", {"a": 1}, "2"),
        ("parts", {}, parts()),
        ("nothing", {}, "[]"),  # content without a part is refused by the providers
        ("strings", {}, "['a', 'b']"),
        ("anything", {"value": {"k": 1, "n": None}}, "{'k': 1, 'n': None}"),
        ("anything", {}, "None"),
        ("anything", {"value": True}, "True"),
        ("anything", {"value": [{"type": "text"}]}, "[{'type': 'text'}]"),
        ("add", {"a": "1", "b": "2"}, "12"),  # arguments are not converted
        ("fails", {}, "not found"),
    ],
)
async def test_tool_outcomes(name: str, arguments: Any, content: Any) -> None:
    state = await rolled_out(vf.ToolEnv(tools=TOOLS, dataset=[ROW]), calling((name, arguments)), "done")
    (message,) = (message for message in state["completion"] if message["role"] == "tool")
    assert (message["tool_call_id"], message["content"]) == ("c0", content)
    assert state["stop_condition"] == "no_tools_called"


@pytest.mark.parametrize(
    ("name", "arguments", "error", "says"),
    [
        ("look", "{not json", "JSONDecodeError", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("look", "", "TypeError", "look() missing 1 required positional argument: 'key'"),  # empty text stands for no arguments
        ("look", "[1]", "TypeError", "look: the arguments should be a JSON object, got [1]"),
        ("nope", "{}", "KeyError", "'nope'"),
        ("look", {"zzz": "a"}, "TypeError", "look() got an unexpected keyword argument 'zzz'"),  # 3.13 suggests what is near
        ("add", {}, "TypeError", "add() missing 1 required positional argument: 'a'"),
    ],
)
async def test_tool_outcomes_that_the_model_is_to_blame_for(name: str, arguments: Any, error: str, says: str) -> None:
    """The model reads what Python says, and the error formatter gets the exception that Python raised."""
    env = vf.ToolEnv(tools=TOOLS, dataset=[ROW])
    for written in (says, error):
        state = await rolled_out(env, calling((name, arguments)), "done")
        assert texts(state["completion"]) == [written]
        assert (state["error"], state["stop_condition"]) == (None, "no_tools_called")
        env.error_formatter = lambda raised: type(raised).__name__


@pytest.mark.parametrize(
    ("name", "arguments", "stop_error", "error", "cause"),
    [
        ("look", "{not json", ValueError, vf.ToolParseError, ValueError),
        ("look", "{not json", vf.ToolParseError, vf.ToolParseError, ValueError),
        ("look", "{not json", Exception, vf.ToolParseError, ValueError),
        ("look", "{not json", vf.ToolError, vf.ToolParseError, ValueError),
        ("look", "[1]", TypeError, vf.ToolParseError, TypeError),
        ("nope", "{}", vf.ToolCallError, vf.ToolCallError, KeyError),
        ("nope", "{}", KeyError, vf.ToolCallError, KeyError),
        ("look", {}, vf.ToolCallError, vf.ToolCallError, TypeError),
        ("look", {}, TypeError, vf.ToolCallError, TypeError),
        ("fails", {}, LookupError, vf.ToolCallError, LookupError),
        ("fails", {}, vf.ToolError, vf.ToolCallError, LookupError),
        ("fails", {}, vf.ToolCallError, vf.ToolCallError, LookupError),
        ("fails", {}, vf.Error, vf.ToolCallError, LookupError),
    ],
)
async def test_tool_outcomes_that_stop(name: str, arguments: Any, stop_error: Any, error: Any, cause: Any) -> None:
    state = await rolled_out(vf.ToolEnv(tools=TOOLS, dataset=[ROW], stop_errors=[stop_error]), calling((name, arguments)), "done")
    assert state["stop_condition"] == "has_error"
    assert type(state["error"]) is error
    assert isinstance(state["error"].__cause__, cause)
    assert roles(state["completion"]) == ["assistant"]


@pytest.mark.parametrize(
    ("name", "arguments", "stop_error"),
    [("look", "{not json", vf.ToolCallError), ("fails", {}, vf.ToolParseError), ("fails", {}, ValueError)],
)
async def test_tool_outcomes_that_stop_errors_do_not_name(name: str, arguments: Any, stop_error: Any) -> None:
    state = await rolled_out(vf.ToolEnv(tools=TOOLS, dataset=[ROW], stop_errors=[stop_error]), calling((name, arguments)), "done")
    assert (state["error"], state["stop_condition"]) == (None, "no_tools_called")


async def test_an_mcp_environment_says_that_a_tool_was_not_found() -> None:
    state = await rolled_out(vf.MCPEnv(tools=[look], dataset=[ROW]), calling(("nope", {})), "done")
    assert texts(state["completion"]) == ["Error: unknown tool 'nope'; available: look"]


async def test_async_tools_of_one_answer_run_one_after_another() -> None:
    notes: dict[str, str] = {}

    async def save(key: str, text: str) -> str:
        """Save a note."""
        await asyncio.sleep(0)
        notes[key] = text
        return "saved"

    async def load(key: str) -> str:
        """Load a note."""
        return notes.get(key, "no such note")

    env = vf.ToolEnv(tools=[save, load], dataset=[ROW])
    state = await rolled_out(env, calling(("save", {"key": "a", "text": "hello"}), ("load", {"key": "a"})), "done")
    assert texts(state["completion"]) == ["saved", "hello"]


# Parsers


@pytest.mark.parametrize("name", vfgym.parsers.__all__)
def test_the_parsers_are_those_of_vfgym(name: str) -> None:
    """`tests/parsers` has the tables of what they read and how they score."""
    assert getattr(vf, name) is getattr(vfgym.parsers, name)


# Tables: token data and token usage


@pytest.mark.parametrize(
    ("limit", "lengths", "overlong", "is_truncated"),
    [(None, (3, 4), False, False), (7, (3, 4), False, False), (5, (3, 2), False, True), (3, (3, 0), False, True), (2, (2, 0), True, True)],
)
async def test_max_seq_len_cuts_the_token_data(limit: int | None, lengths: tuple[int, int], overlong: bool, is_truncated: bool) -> None:
    state = await rolled_out(single(max_seq_len=limit), response("the whole text", tokens=(3, 4)))
    (step,) = state["trajectory"]
    tokens = step["tokens"]
    assert (len(tokens["prompt_ids"]), len(tokens["completion_ids"])) == lengths
    assert (len(tokens["prompt_mask"]), len(tokens["completion_mask"]), len(tokens["completion_logprobs"])) == (*lengths, lengths[1])
    assert set(tokens["prompt_mask"]) <= {0}
    assert set(tokens["completion_mask"]) <= {1}
    assert (tokens["overlong_prompt"], tokens["is_truncated"]) == (overlong, is_truncated)
    assert step["is_truncated"] is state["is_truncated"] is is_truncated
    assert state["completion"][-1]["content"] == "the whole text"
    assert "tokens" not in state["completion"][-1]
    assert state["stop_condition"] == "max_turns_reached"


async def test_usage_counts_calls_outside_the_trajectory() -> None:
    class Summarizes(Talk):
        async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
            summary = await self.get_model_response(state, [vf.UserMessage("summarize")])
            return [{"role": "user", "content": summary.message.content}]

    env = Summarizes(dataset=[ROW], max_turns=2)
    client = Model(lambda number, state: response("x", usage=[(10, 5), (3, 2), (20, 5)][number]))
    state = await env.rollout(env.get_dataset()[0], client, "m")
    assert len(state["trajectory"]) == 2
    assert env.get_state_usage(state) == {"input_tokens": 33.0, "output_tokens": 12.0}
    output = await env.run_rollout(env.get_dataset()[0], Model(client.answer), "m")
    assert output["token_usage"] == {"input_tokens": 33, "output_tokens": 12, "final_input_tokens": 15, "final_output_tokens": 10}


async def test_usage_that_nobody_reported_is_left_out() -> None:
    env = single()
    results = await env.evaluate(ScriptedClient(["2"]), "m")
    assert "token_usage" not in results["outputs"][0]
    assert results["metadata"]["usage"] is None
    assert env.get_state_usage(await rolled_out(env, "2")) is None


async def test_the_usage_of_a_run_is_the_mean_over_rollouts() -> None:
    client = Model(lambda number, state: response("x", usage=[(10, 5), (30, 15)][number]))
    usage = (await single(ROW, ROW).evaluate(client, "m", max_concurrent=1))["metadata"]["usage"]
    assert usage == {"input_tokens": 20.0, "output_tokens": 10.0, "final_input_tokens": 20.0, "final_output_tokens": 10.0}


async def test_usage_can_be_counted_by_hand() -> None:
    env = single()
    state = await env.init_state(env.get_dataset()[0], Model(), "m")
    assert env.get_state_usage(state) is None
    env.increment_state_usage(state, 3, 2.0)
    assert env.get_state_usage(state) == {"input_tokens": 3.0, "output_tokens": 2.0}
    with pytest.raises(ValueError, match="negative"):
        env.increment_state_usage(state, input_tokens=-1)

    class Anthropic:
        usage = {"input_tokens": 4, "output_tokens": float("nan")}

    env.increment_state_usage_from_response(state, Anthropic())
    env.increment_state_usage_from_response(state, object())
    assert env.get_state_usage(state) == dict(state["usage"]) == {"input_tokens": 7.0, "output_tokens": 2.0}


# Runs that were observed


async def test_keys_of_the_state_after_a_plain_rollout() -> None:
    env = single()
    states: list[vf.State] = []
    env.add_rubric(vf.Rubric(lambda state: states.append(state) or 0.0))
    await evaluated(env, "2")
    (state,) = states
    observed = {"advantage", "client", "completion", "error", "final_env_response", "input", "is_completed", "is_truncated", "metrics"}
    observed |= {"model", "reward", "sampling_args", "stop_condition", "task", "timing", "tool_defs", "trajectory", "trajectory_id"}
    assert observed | {"usage", "usage_tracker"} <= set(state)
    assert not {"prompt", "answer", "example_id"} & set(state)
    assert (state["answer"], state["example_id"], state.get("answer")) == ("2", 0, "2")
    assert len(state["trajectory_id"]) == 32
    step = state["trajectory"][0]
    assert set(step) == {"prompt", "completion", "response", "tokens", "reward", "advantage", "is_truncated", "trajectory_id", "extras"}
    assert step["trajectory_id"] == state["trajectory_id"]


async def test_order_of_the_keys_of_an_output() -> None:
    env = vf.ToolEnv(tools=[look], dataset=[{**ROW, "info": {"x": 1}}], rubric=vf.Rubric(right))
    (output,) = await evaluated(env, response("2", usage=(1, 1)), state_columns=["trajectory_id"])
    documented = ["example_id", "prompt", "completion", "answer", "info", "reward", "error", "timing", "is_completed", "is_truncated"]
    documented += ["stop_condition", "metrics", "tool_defs", "token_usage", "right", "num_turns", "total_tool_calls", "look_calls"]
    assert [key for key in output if key in documented or key == "trajectory_id"] == [*documented, "trajectory_id"]
    assert json.loads(json.dumps(output))["timing"]["total"] > 0


async def test_a_rollout_with_an_error_is_scored_all_the_same() -> None:
    class Breaks(vf.MultiTurnEnv):
        async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
            raise vf.ToolError("broken") from ValueError("deep")

    env = Breaks(dataset=[ROW], rubric=vf.Rubric(lambda: 1.0))
    results = await env.evaluate(ScriptedClient(["x"]), "m")
    (output,) = results["outputs"]
    assert (output["reward"], results["metadata"]["avg_error"]) == (1.0, 1.0)
    assert output["error"]["error_chain_str"] == output["long_error_chain"] == "ToolError -> ValueError"
    assert output["error_chain"] == output["error"]["error_chain_repr"]


async def test_tool_env_with_a_token_cap() -> None:
    env = vf.ToolEnv(tools=[look], dataset=[ROW])
    env.set_max_total_completion_tokens(8)
    call = calling(("look", {"key": "a"}))
    (output,) = await evaluated(env, response(call, usage=(10, 5)), response(call, usage=(30, 5)), "never")
    assert (output["metrics"]["num_turns"], output["stop_condition"]) == (2.0, "max_total_completion_tokens_reached")
    assert output["token_usage"] == {"input_tokens": 40, "output_tokens": 10, "final_input_tokens": 25, "final_output_tokens": 10}


async def test_reward_functions_may_ask_for_any_column_and_the_task() -> None:
    seen: dict[str, Any] = {}

    def asks(question: str, difficulty: int, example_id: int, task: Any) -> float:
        seen.update(question=question, difficulty=difficulty, example_id=example_id, task=task)
        return 1.0

    env = vf.SingleTurnEnv(dataset=[{**ROW, "difficulty": 3}], rubric=vf.Rubric(asks))
    (output,) = await evaluated(env, "x")
    assert output["reward"] == 1.0
    assert (seen["question"], seen["difficulty"], seen["example_id"]) == ("1 + 1?", 3, 0)
    assert seen["task"]["question"] == "1 + 1?"
    assert seen["task"]["prompt"][0]["content"] == "1 + 1?"


async def test_metrics_of_one_name() -> None:
    rubrics = [vf.Rubric([lambda: 1.0, lambda: 2.0]), vf.Rubric([lambda: 1.0], weights=[3.0])]
    (output,) = await evaluated(vf.SingleTurnEnv(dataset=[ROW], rubric=vf.RubricGroup(rubrics)), "x")
    assert (output["metrics"]["<lambda>"], output["reward"]) == (3.0, 6.0)
