"""Token samples for trainers: one a step, or whole rollouts in which only the model's tokens count."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.environments import Talk
from vfgym import Response, Rubric, evaluate
from vfgym.errors import ConfigurationError
from vfgym.messages import Message, ResponseMessage, ResponseTokens
from vfgym.results import load_results, processed_outputs
from vfgym.state import State

PROMPTS = [[1, 2], [1, 2, 10, 11, 3], [1, 2, 10, 11, 3, 12, 4, 5]]
COMPLETIONS = [[10, 11], [12], [13, 14]]


def step(prompt: list[int], completion: list[int], **fields: Any) -> dict[str, Any]:
    tokens = {
        "prompt_ids": prompt,
        "prompt_mask": [0] * len(prompt),
        "completion_ids": completion,
        "completion_mask": [1] * len(completion),
        "completion_logprobs": [-0.5] * len(completion),
        "is_truncated": False,
    }
    return {"tokens": tokens, "reward": None, "is_truncated": False, **fields}


def row(*steps: dict[str, Any], reward: float = 1.0) -> dict[str, Any]:
    return {"example_id": 7, "reward": reward, "trajectory": list(steps)}


TALK = [step(prompt, completion) for prompt, completion in zip(PROMPTS, COMPLETIONS, strict=True)]


def test_a_sample_is_a_step_or_a_rollout_as_far_as_prompts_go_on() -> None:
    samples = processed_outputs([row(*TALK), row(TALK[0], reward=0.25)])
    assert samples["prompt_ids"] == [*PROMPTS, PROMPTS[0]]
    assert samples["completion_ids"] == [*COMPLETIONS, COMPLETIONS[0]]
    assert samples["completion_mask"] == [[1, 1], [1], [1, 1], [1, 1]]
    assert samples["prompt_mask"][1] == [0] * 5
    assert samples["rewards"] == [1.0, 1.0, 1.0, 0.25]
    assert samples["is_truncated"] == [False] * 4
    samples = processed_outputs([row(*TALK, reward=0.5)], interleaved=True)
    assert samples == {
        "prompt_ids": [[1, 2]],
        "prompt_mask": [[0, 0]],
        "completion_ids": [[10, 11, 3, 12, 4, 5, 13, 14]],
        "completion_mask": [[1, 1, 0, 1, 0, 0, 1, 1]],
        "completion_logprobs": [[-0.5, -0.5, 0.0, -0.5, 0.0, 0.0, -0.5, -0.5]],
        "rewards": [0.5],
        "is_truncated": [False],
    }
    steps = [TALK[0], step([1, 2, 99, 3], [12]), step([1, 2, 99, 3, 12], [13], is_truncated=True)]
    samples = processed_outputs([row(*steps), row(TALK[0])], interleaved=True)
    assert samples["prompt_ids"] == [[1, 2], [1, 2, 99, 3], [1, 2]]
    assert samples["completion_ids"] == [[10, 11], [12, 13], [10, 11]]
    assert samples["is_truncated"] == [False, True, False]
    steps = [{**TALK[0], "reward": 0.0}, TALK[1], {**TALK[2], "reward": 3.0}]
    assert processed_outputs([row(*steps)])["rewards"] == [0.0, 1.0, 3.0]
    assert processed_outputs([row(*steps)], interleaved=True)["rewards"] == [1.0]


@pytest.mark.parametrize("interleaved", [False, True])
def test_what_says_nothing_of_the_policy_is_left_out_and_failing_counts_with_the_least(interleaved: bool) -> None:
    ended = [("terminated", 3.0), ("infrastructure_failed", 2.0), ("environment_failed", 2.0), ("policy_failed", 5.0), ("cut", 1.0)]
    rows = [{**row(TALK[0], reward=reward), "ending": ending, "counted_reward": None} for ending, reward in ended]
    assert processed_outputs(rows, interleaved=interleaved)["rewards"] == [3.0, 3.0, 1.0]
    declared = [{**each, "failure_reward": -1.0} for each in rows]
    assert processed_outputs(declared, interleaved=interleaved)["rewards"] == [3.0, -1.0, -1.0]


def test_rows_without_turns_and_turns_without_tokens_are_errors() -> None:
    silent = step([], [], tokens=None)
    for interleaved in (False, True):
        with pytest.raises(ConfigurationError, match="turn 1 of example 7 has no token data"):
            processed_outputs([row(TALK[0], silent)], interleaved=interleaved)
        with pytest.raises(ConfigurationError, match="example 7 has no trajectory"):
            processed_outputs([{"example_id": 7, "reward": 1.0}], interleaved=interleaved)
        assert processed_outputs([], interleaved=interleaved)["rewards"] == []


@pytest.mark.parametrize("interleaved", [False, True])
def test_rows_in_memory_from_disk_and_states_give_the_same(tmp_path: Any, interleaved: bool) -> None:
    states: list[State] = []

    def score(state: State) -> float:
        states.append(state)
        return 0.5

    def answer(observation: list[Message], info: dict[str, Any]) -> Response:
        turn = len(observation) // 2
        tokens = ResponseTokens(PROMPTS[turn], [0] * len(PROMPTS[turn]), COMPLETIONS[turn], [1] * len(COMPLETIONS[turn]), [-0.5] * 2)
        return Response("r", 0, "m", None, ResponseMessage("x", tokens=tokens))

    env = Talk(max_turns=3, rubric=Rubric(score))
    outputs = evaluate(env, answer, state_columns=["trajectory"], results_path=tmp_path, progress=False)
    samples = processed_outputs(outputs["outputs"], interleaved=interleaved)
    assert len(samples["rewards"]) == (1 if interleaved else 3)
    assert samples == processed_outputs(load_results(tmp_path)["outputs"], interleaved=interleaved)
    assert samples == processed_outputs(states, interleaved=interleaved) == json.loads(json.dumps(samples))
