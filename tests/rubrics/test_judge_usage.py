"""What judges cost: their tokens and requests stand in `token_usage` and `usage` under names of their own, beside the policy's.

The judge is a model behind HTTP; its server counts what it was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import verifiers_compat as vf
import vfgym
from vfgym import lifecycle
from vfgym.model_server import ModelServer
from vfgym.results import load_results
from vfgym.testing import FakeModel

JUDGE_KEYS = {"judge_input_tokens", "judge_output_tokens", "judge_requests"}
POLICY_KEYS = {"input_tokens", "output_tokens", "final_input_tokens", "final_output_tokens"}
TEMPLATE = "{question}{response}{answer}"
ROWS = [{"question": "q", "answer": "a"}]


@pytest.fixture(autouse=True)
def _closes_its_judges() -> Iterator[None]:
    """A rubric keeps the connections of its judge until it is torn down, at the latest when the process ends."""
    before = set(lifecycle._to_tear_down)
    yield
    for each in [owner for key, owner in lifecycle._to_tear_down.items() if key not in before]:
        each.run_teardown()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer({"judge": lambda request: "yes", "policy": lambda request: "four", "refuses": _refuse}) as server:
        yield server


def _refuse(request: Any) -> str:
    raise RuntimeError("no verdict")


def config(server: ModelServer, **fields: Any) -> vfgym.ClientConfig:
    return vfgym.ClientConfig(api_base_url=server.openai_url, api_key="k", max_retries=0, **fields)


async def twice(judge: Any, prompt: Any, completion: Any, answer: Any, state: Any) -> float:
    """Ask the same twice, and something else once."""
    for _ in range(2):
        await judge(prompt, completion, answer, state)
    await judge(prompt, completion, answer + "!", state)
    return 1.0


async def without_state(judge: Any, prompt: Any, completion: Any, answer: Any) -> float:
    return float(await judge(prompt, completion, answer) == "yes")


async def of_a_group(judge: Any, prompts: Any, completions: Any, answers: Any, states: Any) -> list[float]:
    each = zip(prompts, completions, answers, states, strict=True)
    return [float(await judge(*arguments) == "yes") for arguments in each]


async def of_a_group_without_states(judge: Any, prompts: Any, completions: Any) -> list[float]:
    """One question about all of them."""
    await judge(prompts[0], completions[0], "")
    return [1.0] * len(prompts)


def judges(row: Any) -> dict[str, float]:
    return {name: row["token_usage"][name] for name in JUDGE_KEYS}


@pytest.mark.parametrize("rubric", [vfgym.JudgeRubric, vf.JudgeRubric])
def test_steps_of_a_model(server: ModelServer, rubric: Callable[..., Any], tmp_path: Any) -> None:
    of_judge = rubric(funcs=[twice], judge_client=config(server), judge_model="judge", judge_prompt=TEMPLATE)
    env = vfgym.SingleTurnEnv(ROWS, rubric=of_judge)
    agent = vfgym.ModelAgent(config(server), "policy")
    judged = vfgym.evaluate(env, agent, results_path=tmp_path, progress=False)
    plain = vfgym.evaluate(vfgym.SingleTurnEnv(ROWS, rubric=vfgym.Rubric()), agent, progress=False)
    (row,) = judged["outputs"]
    # A verdict that is kept is not a request.
    assert row["token_usage"]["judge_requests"] == 2 == sum(request.body["model"] == "judge" for request in server.requests)
    assert row["token_usage"]["judge_output_tokens"] == 2 * plain["outputs"][0]["token_usage"]["output_tokens"] * _length("yes", "four")
    assert row["token_usage"]["judge_input_tokens"] > 0
    assert {name: row["token_usage"][name] for name in POLICY_KEYS} == plain["outputs"][0]["token_usage"]
    assert judged["metadata"]["usage"] == row["token_usage"]
    assert plain["metadata"]["usage"].keys() == POLICY_KEYS
    assert load_results(tmp_path)["outputs"][0]["token_usage"] == row["token_usage"]


def _length(one: str, other: str) -> float:
    """Return how many tokens a text has as an answer, for each of another's: a token is a byte, and an answer has an end."""
    return (len(one) + 1) / (len(other) + 1)


@pytest.mark.parametrize("func", [twice, without_state, of_a_group, of_a_group_without_states])
async def test_rollouts(server: ModelServer, func: Any) -> None:
    rubric = vf.JudgeRubric(funcs=[func], judge_client=config(server), judge_model="judge", judge_prompt=TEMPLATE)
    env = vf.SingleTurnEnv(dataset=ROWS, rubric=rubric)
    results = await env.evaluate(config(server), "policy", num_examples=1, rollouts_per_example=3)
    assert [row["metrics"][func.__name__] for row in results["outputs"]] == [1.0] * 3
    asked = sum(request.body["model"] == "judge" for request in server.requests)
    assert asked > 0
    assert sum(row["token_usage"]["judge_requests"] for row in results["outputs"]) == pytest.approx(asked)
    assert all(row["token_usage"].keys() == JUDGE_KEYS | POLICY_KEYS for row in results["outputs"])
    assert results["metadata"]["usage"]["judge_requests"] == pytest.approx(asked / 3)
    output_tokens = sum(row["token_usage"]["judge_output_tokens"] for row in results["outputs"])
    assert output_tokens == pytest.approx(asked * 4)  # three bytes and an end


@pytest.mark.parametrize("is_authored", [False, True])
async def test_what_is_asked_without_a_state_is_of_the_rollout_that_is_scored(is_authored: bool) -> None:
    class Own(vfgym.JudgeRubric):
        async def score_rollout(self, state: Any) -> None:
            state["reward"] = await without_state(self.judge, state["prompt"], state["completion"], "")

    rubric: Any = (Own if is_authored else vfgym.JudgeRubric)(None if is_authored else without_state, judge_client=FakeModel(["yes"]))
    (row,) = vfgym.evaluate(vfgym.SingleTurnEnv(ROWS[:1], rubric=rubric), lambda observation, info: "four", progress=False)["outputs"]
    assert (row["reward"], row["token_usage"]["judge_requests"]) == (1.0, 1)


def test_a_judge_that_fails_was_asked(server: ModelServer) -> None:
    rubric = vfgym.JudgeRubric(twice, judge_client=config(server), judge_model="refuses", judge_prompt=TEMPLATE)
    env = vfgym.SingleTurnEnv(ROWS, rubric=rubric)
    (row,) = vfgym.evaluate(env, lambda observation, info: "four", progress=False)["outputs"]
    assert judges(row) == {"judge_requests": 1, "judge_input_tokens": 0, "judge_output_tokens": 0}


def test_the_mean_counts_rollouts_that_were_not_judged(server: ModelServer) -> None:
    async def sometimes(judge: Any, prompt: Any, completion: Any, answer: Any, state: Any) -> float:
        return 1.0 if answer == "a" else float(len(await judge(prompt, completion, answer, state)))

    rubric = vfgym.JudgeRubric(sometimes, judge_client=config(server), judge_model="judge", judge_prompt=TEMPLATE)
    rows = [*ROWS, {"question": "r", "answer": "b"}]
    results = vfgym.evaluate(vfgym.SingleTurnEnv(rows, rubric=rubric), vfgym.ModelAgent(config(server), "policy"), progress=False)
    assert [set(row["token_usage"]) - POLICY_KEYS for row in results["outputs"]] == [set(), JUDGE_KEYS]
    assert results["metadata"]["usage"]["judge_requests"] == 0.5
