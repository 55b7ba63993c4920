"""What a run can do, whichever way it plays: by stepping for an agent (`evaluate`) and by asking a client (`generate`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import verifiers_compat as vf
import vfgym
from vfgym.clients import Client
from vfgym.messages import AssistantMessage, Response

ROWS = [{"question": f"question {number}", "answer": str(number)} for number in range(4)]
EVAL_ROWS = [{"question": f"eval {number}", "answer": str(number)} for number in range(3)]

Answer: TypeAlias = Callable[[str], str]
Run: TypeAlias = Callable[..., Awaitable[Any]]


class Answers(Client):
    """Answers by a function of the last message."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    async def get_response(self, prompt: Any, model: Any, sampling_args: Any = None, tools: Any = None, **kwargs: Any) -> Response:
        return Response("", 0, "m", message=AssistantMessage(self.answer(prompt[-1]["content"])))


async def by_steps(env: vfgym.ChatEnv, answer: Answer, **options: Any) -> Any:
    async def agent(observation: Any, info: Any) -> str:
        return answer(observation[-1]["content"])

    return await vfgym.aevaluate(env, agent, progress=False, **options)


async def by_client(env: Any, answer: Answer, **options: Any) -> Any:
    options.pop("resume", None)
    return await env.evaluate(Answers(answer), "m", **options)


both = pytest.mark.parametrize("run", [by_steps, by_client])


def said(text: str) -> str:
    return text


def environment(**options: Any) -> Any:
    return vf.SingleTurnEnv(**{"dataset": ROWS, "eval_dataset": EVAL_ROWS, **options})


def questions(results: Any) -> list[str]:
    return [row["prompt"][-1]["content"] for row in results["outputs"]]


class Drawing(vf.MultiTurnEnv):
    """Shows a random number."""

    def env_response(self, messages: Any, state: Any) -> Any:
        return [{"role": "user", "content": str(state.rng.integers(10**9))}]


@both
async def test_the_random_numbers_of_rollouts_follow_from_the_seed(run: Run) -> None:
    async def drawn(**options: Any) -> list[str]:
        env = Drawing(eval_dataset=EVAL_ROWS, max_turns=2)
        results = await run(env, said, rollouts_per_example=2, **options)
        rows = sorted(results["outputs"], key=lambda row: (row["example_id"], row["rollout"]))
        return [row["completion"][1]["content"] for row in rows]

    first = await drawn(seed=1)
    assert len(set(first)) == 6
    assert await drawn(seed=1, max_concurrent=1) == first
    assert await drawn(seed=1, example_ids=[2]) == first[4:]
    assert not set(await drawn(seed=2)) & set(first)


@both
async def test_an_example_far_into_tasks_without_end_is_played_with_its_seed(run: Run) -> None:
    """Nothing is made of the examples before it."""
    env = vf.as_environment(vfgym.to_chat("FrozenLake-v1", max_turns=1))
    results = await run(env, lambda text: "<action>down</action>", example_ids=[2**31 - 1], seed=3)
    assert [(row["example_id"], row["error"]) for row in results["outputs"]] == [(2**31 - 1, None)]


@both
async def test_a_split_and_single_examples_can_be_played(run: Run) -> None:
    env = environment()
    assert questions(await run(env, said)) == ["eval 0", "eval 1", "eval 2"]
    assert questions(await run(env, said, split="train", num_examples=2)) == ["question 0", "question 1"]
    assert sorted(questions(await run(env, said, split="train", example_ids=[3, 1]))) == ["question 1", "question 3"]
    for wrong in ([7], [], [1, 1]):
        with pytest.raises(vfgym.errors.ConfigurationError, match="example_id"):
            await run(env, said, example_ids=wrong)
    with pytest.raises(vfgym.errors.ConfigurationError, match="num_examples and example_ids"):
        await run(env, said, example_ids=[1], num_examples=1)


@both
async def test_rollouts_scored_one_by_one_have_advantages_where_they_are_kept_together(run: Run) -> None:
    length = iter("aaabbbcccc")
    rewards = {"a": 1.0, "b": 2.0, "c": 6.0}

    def reward(completion: Any) -> float:
        return rewards[completion[-1]["content"]]

    env = environment(rubric=vf.Rubric(reward), eval_dataset=EVAL_ROWS[:1])
    answers = iter("abc")
    results = await run(env, lambda text: next(answers), rollouts_per_example=3, independent_scoring=False, state_columns=["advantage"])
    assert sorted(row["advantage"] for row in results["outputs"]) == [-2.0, -1.0, 3.0]
    alone = await run(env, lambda text: next(length), rollouts_per_example=3, independent_scoring=True, state_columns=["advantage"])
    assert [row["advantage"] for row in alone["outputs"]] == [None] * 3


@both
async def test_a_rubric_that_scores_groups_cannot_score_alone_and_nobody_is_asked(run: Run) -> None:
    asked: list[str] = []

    def rank(completions: list[Any]) -> list[float]:
        return [0.0 for _ in completions]

    def noted(text: str) -> str:
        asked.append(text)
        return text

    with pytest.raises(vfgym.errors.ConfigurationError, match="rank scores whole groups"):
        await run(environment(rubric=vf.Rubric(rank)), noted, independent_scoring=True)
    assert asked == []


async def test_on_start_says_how_far_an_earlier_run_went(tmp_path: Path) -> None:
    starts: list[tuple[int, int]] = []
    for num_examples in (2, 3):
        await by_steps(
            environment(),
            said,
            num_examples=num_examples,
            results_path=tmp_path,
            resume=True,
            on_start=lambda progress: starts.append((progress.done, progress.total)),
        )
    assert starts == [(0, 2), (2, 3)]


# An author's own methods


@pytest.mark.parametrize("is_async", [True, False])
async def test_an_authors_add_model_response_is_called_for_each_turn(is_async: bool) -> None:
    seen: list[tuple[int, str]] = []

    def note(prompt_messages: Any, response: Response) -> None:
        seen.append((len(prompt_messages), str(response.message["content"])))

    class Own(vf.MultiTurnEnv):
        async def env_response(self, messages: Any, state: Any) -> Any:
            return [{"role": "user", "content": "go on"}]

    class Awaited(Own):
        async def add_model_response(self, state: Any, prompt_messages: Any, response: Response) -> None:
            note(prompt_messages, response)
            await super().add_model_response(state, prompt_messages, response)
            state["trajectory"][-1]["extras"]["mine"] = True

    class Plain(Own):
        def add_model_response(self, state: Any, prompt_messages: Any, response: Response) -> Any:  # type: ignore[override]
            note(prompt_messages, response)
            return super().add_model_response(state, prompt_messages, response)

    env = (Awaited if is_async else Plain)(dataset=ROWS[:1], max_turns=2)
    results = await env.evaluate(Answers(said), "m", state_columns=["trajectory"])
    row = results["outputs"][0]
    assert seen == [(1, "question 0"), (3, "go on")]
    assert [message["content"] for message in row["completion"]] == ["question 0", "go on", "go on"]
    assert [step["extras"].get("mine") for step in row["trajectory"]] == [is_async or None] * 2


@both
async def test_scoring_methods_that_were_replaced_on_the_rubric_are_called(run: Run) -> None:
    env = environment()

    async def score_group(states: list[Any]) -> None:
        for state in states:
            state["reward"], state["metrics"] = 7.0, {"mine": 1.0}

    async def score_rollout(state: Any) -> None:
        await score_group([state])
        state["reward"] = 5.0

    env.rubric.score_rollout = score_rollout
    assert [row["reward"] for row in (await run(env, said, independent_scoring=True))["outputs"]] == [5.0] * 3
    env.rubric.score_group = score_group
    results = await env.evaluate(Answers(said), "m")
    assert [(row["reward"], row["metrics"]) for row in results["outputs"]] == [(7.0, {"mine": 1.0})] * 3
