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


# Rows that are given


def results_of(*rows: dict[str, Any], **metadata: Any) -> Any:
    known = {"reward": 0.0, "error": None, "metrics": {}}
    return {
        "outputs": [{"example_id": number, **known, **row} for number, row in enumerate(rows)],
        "metadata": {"env_id": "e", "model": "m", **metadata},
    }


def records(run: Any, what: Any, *columns: str) -> list[tuple[Any, ...]]:
    frame = dataframe(run, what=what)
    return [tuple(row) for row in frame[list(columns)].astype(object).where(frame[list(columns)].notna(), None).to_numpy().tolist()]


SAID = {"role": "assistant", "content": "so", "tool_calls": [{"id": "1"}, {"id": "2"}]}
TOLD = {"role": "tool", "content": [{"type": "text", "text": "far"}], "tool_call_id": "1"}


def test_where_a_row_is_from_stands_first() -> None:
    run = results_of({"env_id": "own", "rollout": 2}, {}, tags=None, path_to_save=Path("there"))
    assert records(run, "rows", "run", "env_id", "model", "tags", "example_id", "rollout") == [
        ("there", "own", "m", "", 0, 2),
        ("there", "e", "m", "", 1, 0),
    ]
    assert dataframe(run, results_of({}))["run"].tolist() == ["there", "there", 1]


def test_numbers_texts_and_truth_values_are_columns_by_their_path() -> None:
    spent = {"cost": 0.0, "of": {"a": 1, "list": [1]}, "nothing": None}
    (row,) = dataframe(
        results_of({"spent": spent, "failed": False, "answer": "", "metrics": {"m": 2.0, "reward": 5.0}, "m": "old"})
    ).to_dict("records")
    assert {name: row[name] for name in ("spent.cost", "spent.of.a", "spent.nothing", "failed", "answer", "m", "reward", "ending")} == {
        **{"spent.cost": 0.0, "spent.of.a": 1, "spent.nothing": None, "failed": False, "answer": "", "m": 2.0, "reward": 5.0},
        "ending": "terminated",
    }
    assert {"spent.of.list", "spent", "error.error"}.isdisjoint(row)


def test_turns_have_what_they_earned_where_as_many_are_known() -> None:
    completion = [SAID, TOLD, {"role": "assistant", "content": None}]
    run = results_of(
        {"completion": completion, "step_rewards": [0.0, 2.0]},
        {"completion": completion, "step_rewards": [1.0]},
        {"completion": completion},
        {"completion": "text", "prompt": "text"},
        {"completion": None},
    )
    assert records(run, "turns", "example_id", "turn", "text", "num_tool_calls", "reward") == [
        *((0, 0, "so", 2, 0.0), (0, 1, "", 0, 2.0)),
        *((1, 0, "so", 2, None), (1, 1, "", 0, None)),
        *((2, 0, "so", 2, None), (2, 1, "", 0, None)),
        (3, 0, "text", 0, None),
    ]


def test_messages_may_be_one_text_and_have_their_calls() -> None:
    run = results_of({"prompt": "asked", "completion": "said"}, {"prompt": None, "completion": [SAID, TOLD]}, {})
    assert records(run, "messages", "example_id", "position", "is_prompt", "role", "text", "tool_calls", "tool_call_id") == [
        (0, 0, True, "user", "asked", None, None),
        (0, 1, False, "assistant", "said", None, None),
        (1, 0, False, "assistant", "so", '[{"id": "1"}, {"id": "2"}]', None),
        (1, 1, False, "tool", "far", None, "1"),
    ]


def test_requests_are_those_that_name_a_model_or_what_it_used() -> None:
    def step(response: Any, **extras: Any) -> dict[str, Any]:
        return {
            "prompt": [],
            "completion": [SAID, TOLD, {**SAID, "content": "then"}],
            "response": response,
            "extras": extras,
            "tokens": None,
        }

    usage = {"prompt_tokens": 0, "completion_tokens": 7}
    whole = {"id": "r", "model": "x", "created": 0, "message": {"finish_reason": "length"}, "usage": usage}
    steps = [
        step(None, reward=0.0),
        step({"id": "agent"}),
        step({"model": "", "usage": usage}),
        step({"model": "y"}),
        step(whole, reward=2.0),
    ]
    run = results_of({"trajectory": steps}, {})
    assert records(run, "requests", "turn", "id", "asked_model", "created", "finish_reason", "input_tokens", "output_tokens") == [
        (2, None, "", None, None, 0, 7),
        (3, None, "y", None, None, None, None),
        (4, "r", "x", 0, "length", 0, 7),
    ]
    assert records(run, "turns", "turn", "text", "num_tool_calls", "reward", "output_tokens", "extras.reward") == [
        (0, "so\nthen", 4, 0.0, None, 0.0),
        (1, "so\nthen", 4, None, None, None),
        (2, "so\nthen", 4, None, 7, None),
        (3, "so\nthen", 4, None, None, None),
        (4, "so\nthen", 4, 2.0, 7, 2.0),
    ]
    assert dataframe(results_of(), what="requests").empty
