"""Short stories, rated by a model that answers in JSON."""

import json
import os

import verifiers as vf
from datasets import Dataset
from openai import AsyncOpenAI

JUDGE_PROMPT = """You are a careful editor. Rate the story below from 0 to 10.

Answer with JSON only, for example {"score": 7, "why": "a good end"}.

Topic: <<topic>>
Story: <<story>>"""


def load_environment(
    judge_model: str = "editor",
    judge_base_url: str = "https://api.openai.com/v1",
    judge_api_key_var: str = "JUDGE_API_KEY",
    num_train_examples: int = -1,
) -> vf.Environment:
    vf.ensure_keys([judge_api_key_var])
    topics = ["a lighthouse", "two snails", "the last train"]
    rows = [{"question": f"Write a story about {topic}.", "info": {"topic": topic}} for topic in topics]
    parser = vf.ThinkParser()
    rubric = vf.JudgeRubric(
        judge_client=AsyncOpenAI(base_url=judge_base_url, api_key=os.environ[judge_api_key_var]),
        judge_model=judge_model,
        judge_prompt=JUDGE_PROMPT,
        parser=parser,
    )

    async def quality(judge_client, judge_model, judge_prompt, parser, completion, info, state) -> float:
        prompt = judge_prompt.replace("<<topic>>", info["topic"]).replace("<<story>>", parser.parse_answer(completion) or "")
        answer = await judge_client.chat.completions.create(model=judge_model, messages=[{"role": "user", "content": prompt}])
        verdict = json.loads(answer.choices[0].message.content)
        state["verdict"] = verdict["why"]
        return verdict["score"] / 10

    def num_words(completion, parser) -> float:
        return float(len((parser.parse_answer(completion) or "").split()))

    rubric.add_reward_func(quality)
    rubric.add_metric(num_words)
    dataset = Dataset.from_list(rows)
    if num_train_examples > 0:
        dataset = dataset.select(range(num_train_examples))
    return vf.SingleTurnEnv(dataset=dataset, parser=parser, rubric=rubric)
