"""Rows as published environments bring them: what the model is sent and what is kept, where a row holds more than a question."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.verifiers_compat.models import Model, evaluated

INNER = {"prompt": [{"role": "user", "content": "inner"}], "answer": "2", "info": {"k": 1}}
OAI_TOOLS = [{"type": "function", "function": {"name": "look", "description": "", "parameters": {"type": "object", "properties": {}}}}]


def held(example_id: int) -> str:
    return json.dumps({"task": json.dumps({**INNER, "example_id": example_id})})


async def test_a_task_in_info_is_sent_as_it_is(vf: Any) -> None:
    """Beside a system prompt, too; its answer, info and id are those that reward functions and rows have."""
    seen: list[Any] = []

    def look(answer: Any, info: Any, task: Any) -> float:
        seen.append((answer, info, task["example_id"]))
        return 1.0

    rows = [{"question": "outer", "answer": "1", "info": held(number)} for number in (40, 41)]
    env, model = vf.SingleTurnEnv(dataset=rows, system_prompt="Be brief.", rubric=vf.Rubric(look)), Model()
    results = await env.evaluate(model, "m", max_concurrent=1)
    assert model.prompts == [INNER["prompt"]] * 2
    assert seen == [("2", {"k": 1}, 40), ("2", {"k": 1}, 41)]
    assert [(output["example_id"], output["answer"]) for output in results["outputs"]] == [(40, "2"), (41, "2")]
    assert [row["example_id"] for row in env.get_dataset()] == [40, 41]


async def test_rows_of_a_dataset_are_played_alike_when_they_are_given(vf: Any) -> None:
    env = vf.SingleTurnEnv(dataset=[{"question": "outer", "info": held(7)}], system_prompt="Be brief.", rubric=vf.Rubric(lambda: 1.0))
    model = Model()
    state = await env.rollout(env.get_dataset()[0], model, "m")
    assert (model.prompts, state["example_id"]) == ([INNER["prompt"]], 7)


async def test_the_older_name_of_tools_is_read_in_rows_too(vf: Any) -> None:
    for info in ({"oai_tools": OAI_TOOLS}, {"tool_defs": OAI_TOOLS, "oai_tools": []}):
        env = vf.SingleTurnEnv(dataset=[{"question": "?", "info": json.dumps(info)}], rubric=vf.Rubric(lambda: 1.0))
        [output] = await evaluated(env, "1")
        assert [tool["name"] for tool in output["tool_defs"]] == ["look"]


@pytest.mark.parametrize("shape", ["input_audio", "audio", "named audio"])
async def test_audio_is_saved_in_one_form(vf: Any, tmp_path: Path, shape: str) -> None:
    source = {"data": " QUJD\nREVG ", "format": "WAV"}
    part = {"type": shape.split()[-1], "input_audio" if shape != "named audio" else "audio": source}
    row = {"prompt": [{"role": "user", "content": [{"type": "text", "text": "Listen."}, part]}], "example_id": 0}
    model = Model()
    env = vf.SingleTurnEnv(dataset=[{"question": "?"}], rubric=vf.Rubric(lambda: 1.0))
    await env.generate([row], model, "m", results_path=tmp_path, save_results=True)
    [saved] = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert saved["prompt"][0]["content"][1] == {"type": "input_audio", "input_audio": {"data": "QUJDREVG", "format": "wav"}}
    assert model.prompts[0][0]["content"][1] == part


def test_lines_in_descriptions_of_arguments_stay(vf: Any) -> None:
    from verifiers.utils.tool_utils import convert_func_to_tool_def

    def tool(query: str, limit: int = 5) -> str:
        """Search.

        Args:
            query: What to look for:
                - words
                - "phrases"

                in any language.
            limit: Most results.
        """
        return query

    for definition in (convert_func_to_tool_def(tool), vf.ToolEnv(dataset=[{"question": "?"}], tools=[tool]).tool_defs[0]):
        described = [each["description"] for each in definition.parameters["properties"].values()]
        assert described == ['What to look for:\n- words\n- "phrases"\n\nin any language.', "Most results."]


async def test_older_results_had_states_and_say_what_to_ask_for(vf: Any) -> None:
    env = vf.SingleTurnEnv(dataset=[{"question": "?"}], rubric=vf.Rubric(lambda: 1.0))
    results = await env.evaluate(Model(), "m", state_columns=["trajectory_id"])
    assert results["reward"] == [1.0]
    assert results["outputs"][0]["trajectory_id"]
    for ask in (lambda: results["state"], lambda: results.state):
        with pytest.raises((KeyError, AttributeError), match=r"ask for what you need of them with state_columns=\["):
            ask()


async def test_a_row_for_no_environment_of_a_group_fails_alone(vf: Any) -> None:
    rubric = vf.Rubric(lambda: 1.0)
    members = [vf.SingleTurnEnv(dataset=[{"question": "?"}], rubric=rubric) for _ in range(2)]
    group = vf.EnvGroup(envs=members, env_names=["sums", "words"])
    rows = [{"prompt": INNER["prompt"], "example_id": i, "info": {"env_id": name}} for i, name in enumerate(("words", "verbs"))]
    fine, wrong = (await group.generate(rows, Model(), "m"))["outputs"]
    assert (fine["reward"], fine["error"]) == (1.0, None)
    assert "sums, words" in wrong["error"]["error_chain_repr"]
    assert "'verbs'" in wrong["error"]["error_chain_repr"]
    assert wrong["reward"] == 0.0
