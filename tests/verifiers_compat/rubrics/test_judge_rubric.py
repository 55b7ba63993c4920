"""`JudgeRubric` without a prompt of one's own: a judge that says yes or no."""

from __future__ import annotations

import re
from typing import Any

import pytest

import verifiers_compat as vf
from tests.verifiers_compat.environments import asking
from tests.verifiers_compat.models import Model, evaluated
from vfgym.model_server import ModelRequest, ModelServer


def compare(request: ModelRequest) -> str:
    """Find what was asked, what is right and what was answered in the prompt, and judge by that."""
    blocks = re.findall(r"```\n(.*?)\n```", request.messages[-1]["content"], re.DOTALL)
    assert blocks[0] == "What is the capital of France?"
    return "Yes" if blocks[1].lower() in blocks[2].lower() else "no"


@pytest.mark.parametrize(("answer", "reward"), [("It is PARIS, of course.", 1.0), ("London", 0.0), ("", 0.0)])
async def test_a_judge_is_asked_for_yes_or_no(answer: str, reward: float) -> None:
    async def correct(judge: Any, prompt: Any, completion: Any, answer: Any, state: Any) -> float:
        return float("yes" in (await judge(prompt, completion, answer, state)).lower())

    with ModelServer({"gpt-4.1-nano": compare}) as server:
        rubric = vf.JudgeRubric(judge_client=asking(server.openai_url))
        rubric.add_reward_func(correct)
        rows = [{"question": "What is the capital of France?", "answer": "Paris"}]
        [output] = await evaluated(vf.SingleTurnEnv(dataset=rows, system_prompt="Be brief.", rubric=rubric), answer)
    assert output["reward"] == reward
    assert '"yes" or "no"' in vf.rubrics.judge_rubric.DEFAULT_JUDGE_PROMPT


async def test_a_judge_prompt_may_be_any_text_and_only_judge_looks_into_it() -> None:
    template = 'Answer as {"score": 7}. The criteria are {criteria}.'
    rubric = vf.JudgeRubric(judge_prompt=template, judge_client=Model(lambda number, state: "yes"))
    assert (rubric.judge_prompt, rubric.class_objects["judge_prompt"]) == (template, template)
    with pytest.raises(ValueError, match=r'the field \{"score"\}: it may have \{question\}, \{answer\}, \{response\}'):
        await rubric.judge("6 * 7?", "42", "42")
    rubric.judge_prompt = "Is {response} the answer to {question}, which is {answer}?"
    assert await rubric.judge("6 * 7?", "42", "42") == "yes"
    assert rubric.judge_client.prompts == [[{"role": "user", "content": "Is 42 the answer to 6 * 7?, which is 42?"}]]
    with pytest.raises(ValueError, match="must be text"):
        vf.JudgeRubric(judge_prompt=7)
