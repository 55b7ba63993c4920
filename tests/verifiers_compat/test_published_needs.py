"""What published environments ask of helpers of the rollout API, through ``import verifiers as vf``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from tests.verifiers_compat.environments import ROW, look, single
from tests.verifiers_compat.models import Model, calling, evaluated


@pytest.mark.parametrize("n", [None, 0, -1])
def test_a_number_of_rows_that_is_not_positive_means_all(vf: Any, n: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from verifiers.utils import data_utils

    assert data_utils.EXAMPLE_DATASETS["math"].path == "chiayewken/competition_math"
    rows = [{"problem": f"P{number}", "level": "Level 1", "solution": rf"so $\boxed{{{number}}}$"} for number in range(3)]
    (tmp_path / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    local = dataclasses.replace(data_utils.EXAMPLE_DATASETS["math"], path=str(tmp_path))
    monkeypatch.setitem(data_utils.EXAMPLE_DATASETS, "math", local)
    assert vf.load_example_dataset("math", n=n)["answer"][:] == ["0", "1", "2"]
    assert len(vf.load_example_dataset("math", n=2)) == 2


def test_the_boxed_system_prompt_has_the_documented_wording(vf: Any) -> None:
    from verifiers.utils.data_utils import BOXED_SYSTEM_PROMPT

    assert BOXED_SYSTEM_PROMPT == r"Please reason step by step, and put your final answer within \boxed{}."


@pytest.mark.parametrize(("kind", "field"), [("input_audio", "input_audio"), ("audio", "input_audio"), ("audio", "audio")])
async def test_saved_audio_has_no_whitespace_and_a_format_in_lower_case(vf: Any, tmp_path: Path, kind: str, field: str) -> None:
    from verifiers.utils.message_utils import serialize_messages_for_output
    from verifiers.utils.save_utils import load_outputs

    heard = {"type": kind, field: {"data": " Ukl\nG ", "format": "WAV"}}
    kept = {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}
    env, model = single({"prompt": [{"role": "user", "content": [{"type": "text", "text": "Listen."}, heard]}]}), Model()
    await env.evaluate(model, "m", results_path=tmp_path)
    assert load_outputs(tmp_path)[0]["prompt"][0]["content"][1] == kept
    assert model.prompts[0][0]["content"][1] == heard
    for without in ({"type": "input_audio"}, {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}):
        said = serialize_messages_for_output([{"role": "user", "content": [heard, without]}])
        assert said == [{"role": "user", "content": [kept, {"type": "text", "text": "[audio]"}]}]


def test_rows_are_read_and_added_with_nothing_but_their_file(vf: Any, tmp_path: Path) -> None:
    from verifiers.utils.save_utils import load_outputs, save_new_outputs

    def rewards() -> list[float]:
        return [output["reward"] for output in load_outputs(tmp_path)]

    save_new_outputs([{"example_id": 0, "reward": 1.0}], tmp_path)
    whole = (tmp_path / "results.jsonl").read_text()
    assert rewards() == [1.0]
    (tmp_path / "results.jsonl").write_text(whole + '{"example_id": 1, "rew')
    assert rewards() == [1.0]
    save_new_outputs([{"example_id": 1, "reward": 0.5}], tmp_path)
    assert rewards() == [1.0, 0.5]
    (tmp_path / "results.jsonl").write_text(f'{whole}{{"example_id": 1, "rew\n{whole}')
    with pytest.raises(vf.Error, match="line 2"):
        rewards()


def test_numbers_of_nothing_are_zero(vf: Any) -> None:
    from verifiers.utils import metric_utils
    from verifiers.utils.usage_utils import compute_context_token_metrics

    assert compute_context_token_metrics([]) == {"final_input_tokens": 0, "final_output_tokens": 0}
    for name in ("Reward", "ErrorRate", "InputTokens", "OutputTokens", "FinalInputTokens", "FinalOutputTokens"):
        assert getattr(metric_utils, f"{name}Metric")().compute() == 0.0
    reward = metric_utils.RewardMetric()
    reward.add_outputs([{"example_id": 0}, {"example_id": 0, "reward": 1.0}])
    assert reward.compute() == 0.5
    passed = metric_utils.PassAtKMetric(2)
    passed.add_outputs([{"example_id": 0}, {"example_id": 0, "reward": 1.0}])
    assert passed.compute() == ({"1": 0.5, "2": 1.0}, {"1": 0.5, "2": 0.0})


def test_an_endpoint_given_as_a_dict_may_have_an_empty_list_of_endpoints(vf: Any) -> None:
    for empty in ([], None):
        config = vf.ClientConfig(endpoint_configs=[{"api_base_url": "http://localhost:1/v1", "endpoint_configs": empty}])
        assert [endpoint.api_base_url for endpoint in config.endpoints()] == ["http://localhost:1/v1"]
    with pytest.raises(ValueError, match="cannot be nested"):
        vf.ClientConfig(endpoint_configs=[{"endpoint_configs": [{"api_base_url": "http://localhost:1/v1"}]}])


async def test_tool_calls_are_written_as_data_and_read_as_text_too(vf: Any, tmp_path: Path) -> None:
    from verifiers.utils.eval_utils import print_results
    from verifiers.utils.message_utils import format_messages, messages_to_printable
    from verifiers.utils.save_utils import load_outputs

    env = vf.ToolEnv(tools=[look], dataset=[ROW])
    await evaluated(env, calling(("look", {"key": "a"})), "done", results_path=tmp_path)
    file = tmp_path / "results.jsonl"
    row = json.loads(file.read_text())
    assert isinstance(row["completion"][0]["tool_calls"][0], dict)
    row["completion"][0]["tool_calls"] = [json.dumps({"id": "c0", "name": "look", "arguments": '{"key": "a"}'})]
    file.write_text(json.dumps(row) + "\n")
    (loaded,) = load_outputs(tmp_path)
    assert "look" in str(format_messages(loaded["completion"]))
    assert "look" in json.dumps(messages_to_printable(loaded["completion"]))
    print_results({"outputs": [loaded], "metadata": json.loads((tmp_path / "metadata.json").read_text())})
