"""`dataframe`: a row for each rollout, turn, message or request of several runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import vfgym
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelServer
from vfgym.results import GenerateOutputs, dataframe

LAKE = "gymnasium/FrozenLake-v1"


def play(agent: Any = "random", **kwargs: Any) -> GenerateOutputs:
    return vfgym.evaluate(LAKE, agent, **{"num_examples": 2, "rollouts_per_example": 2, "progress": False, **kwargs})


def test_rows_of_several_runs_are_one_table(tmp_path: Path) -> None:
    play(results_path=tmp_path / "saved", tags=["a", "b"])
    here = play(lambda observation, info: "right", model="right")
    frame = dataframe(tmp_path / "saved", here)
    assert list(frame.columns[:6]) == ["run", "env_id", "model", "tags", "example_id", "rollout"]
    assert frame["run"].tolist() == [str(tmp_path / "saved")] * 4 + [1] * 4
    assert frame["model"].tolist() == ["random"] * 4 + ["right"] * 4
    assert frame["tags"].tolist() == ["a,b"] * 4 + [""] * 4
    assert frame["reward"].tolist()[4:] == [row["reward"] for row in here["outputs"]]
    assert frame["num_turns"].tolist()[4:] == [row["num_turns"] for row in here["outputs"]]
    assert frame["timing.generation.duration"].gt(0).all()
    assert not {"prompt", "completion", "metrics"}.intersection(frame.columns), "lists stand in the other tables"


@pytest.mark.parametrize("columns", [[], ["trajectory"]], ids=["answers", "trajectory"])
def test_turns_are_answers(columns: list[str]) -> None:
    run = play(lambda observation, info: "right", state_columns=columns)
    frame = dataframe(run, what="turns")
    per_rollout = [int(row["num_turns"]) for row in run["outputs"]]
    assert frame["turn"].tolist() == [turn for count in per_rollout for turn in range(count)]
    assert set(frame["text"]) == {"right"}
    if columns:
        rewards = frame.groupby(["example_id", "rollout"])["reward"].sum().tolist()
        assert rewards == [row["reward"] for row in run["outputs"]]


def test_messages_are_the_whole_conversation() -> None:
    def lookup(city: str) -> str:
        """Look up a city."""
        return "far"

    env = vfgym.ToolEnv(tools=[lookup], dataset=[{"question": "Where?"}], rubric=vfgym.Rubric(lambda: 1.0), system_prompt="Be brief.")

    def agent(observation: Any, info: Any) -> Any:
        if observation[-1]["role"] == "tool":
            return "Far."
        return vfgym.AssistantMessage(tool_calls=[vfgym.ToolCall("c1", "lookup", '{"city": "Oslo"}')])

    run = vfgym.evaluate(env, agent, progress=False)
    frame = dataframe(run, what="messages")
    assert frame["role"].tolist() == ["system", "user", "assistant", "tool", "assistant"]
    assert frame["is_prompt"].tolist() == [True, True, False, False, False]
    assert frame["text"].tolist() == ["Be brief.", "Where?", "", "far", "Far."]
    assert json.loads(frame["tool_calls"][2])[0]["function"]["name"] == "lookup"
    assert frame["tool_call_id"][3] == "c1"
    assert dataframe(run, what="turns")["num_tool_calls"].tolist() == [1, 0]


def test_requests_are_what_trajectories_tell_of_models() -> None:
    with ModelServer() as server:
        model = vfgym.ModelAgent(vfgym.ClientConfig(api_base_url=server.openai_url, api_key_var="NONE"), "echo")
        run = play(model, state_columns=["trajectory"], env_args={"max_turns": 2})
    frame = dataframe(run, what="requests")
    assert len(frame) == 8
    assert set(frame["asked_model"]) == {"echo"}
    assert frame["input_tokens"].sum() == sum(row["token_usage"]["input_tokens"] for row in run["outputs"])
    assert frame["output_tokens"].sum() == sum(row["token_usage"]["output_tokens"] for row in run["outputs"])
    assert set(frame["finish_reason"]) == {"stop"}
    assert dataframe(play(state_columns=["trajectory"]), what="requests").empty, "nobody asked a model"


def test_wrong_calls_say_what_to_do() -> None:
    run = play()
    with pytest.raises(ConfigurationError, match="state_columns=\\['trajectory'\\]"):
        dataframe(run, what="requests")
    with pytest.raises(ConfigurationError, match=r"must be one of rows, turns, messages, requests, got 'turn'.*`turns`"):
        dataframe(run, what="turn")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="needs the directory of a run"):
        dataframe()
