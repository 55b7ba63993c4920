"""A candidate gets into the conversations of every kind of environment, and one that takes no system prompt is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import verifiers_compat as vf
import vfgym
from tests.verifiers_compat.environments import Countdown, asking
from tests.verifiers_compat.gepa.planted import ROWS, SMALL, START, WRITTEN, doubles, is_formatted, serve
from verifiers_compat import v1
from verifiers_compat.gepa import OptimizedPrompt, optimize_prompt
from verifiers_compat.gepa.examples import Example
from verifiers_compat.gepa.prompts import PromptCheck, current_prompt, has_system_message, with_prompt
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelRequest, scripted


def conversation(row: dict[str, str], system: str | None = START, role: str = "system") -> dict[str, Any]:
    said = [{"role": role, "content": system}] if system else []
    return {"prompt": [*said, {"role": "user", "content": row["question"]}], "answer": row["answer"]}


def by_taskset(**kwargs: Any) -> v1.Env:
    """Return the planted task as a taskset."""

    async def is_formatted(task: Any, state: Any) -> float:
        return float(state["completion"][-1]["content"] == f"<answer>{task['answer']}</answer>")

    harness = kwargs.pop("harness", None)
    return v1.Env(v1.Taskset(source=kwargs.pop("rows", ROWS), rewards=[is_formatted], **kwargs), harness)


def in_group() -> vf.EnvGroup:
    return vf.EnvGroup([doubles(rows=ROWS[:4]), doubles(rows=ROWS[4:])], env_names=["low", "high"])


def improve(env: Any, **kwargs: Any) -> OptimizedPrompt:
    with serve() as server:
        return optimize_prompt(env, asking(server.openai_url), "player", **{"reflection_model": "writer", **SMALL, **kwargs})


@pytest.mark.parametrize(
    ("env", "start"),
    [
        (doubles(), START),
        (doubles(system_prompt=None), ""),
        (doubles(rows=[conversation(row) for row in ROWS], system_prompt=None), START),
        (doubles(rows=[conversation(row) for row in ROWS], system_prompt="Not used."), START),
        (doubles(rows=[conversation(row, None) for row in ROWS]), START),
        (doubles(rows=lambda: ROWS), START),
        (in_group(), START),
        (by_taskset(system_prompt=START), START),
        (by_taskset(harness=v1.Harness(system_prompt=START)), START),
        (by_taskset(), ""),
    ],
)
def test_candidates_are_what_the_model_is_told(env: Any, start: str) -> None:
    """Whether the system prompt is of the environment, its rows, a taskset, a harness, or was none. It is there again afterwards."""
    before = env.get_dataset()[0]["prompt"]
    result = improve(env)
    assert (result.start.prompt, result.start.score, result.best.prompt, result.best.score) == (start, 0.0, WRITTEN, 1.0)
    assert env.get_dataset()[0]["prompt"] == before


def test_a_prompt_that_is_given_takes_the_place_of_the_first() -> None:
    result = improve(doubles(), system_prompt=f"{START} <answer> goes around it.")
    assert (result.start.score, len(result.candidates), result.calls) == (1.0, 1, 4)


@pytest.mark.parametrize(
    "game",
    [
        lambda: vf.GymEnv(Countdown, action_parser=int, num_train_episodes=4, num_eval_episodes=2, system_prompt=START),
        lambda: vfgym.to_chat(Countdown, max_turns=3, system_prompt=START),
    ],
    ids=["GymEnv", "to_chat"],
)
def test_games_are_told_too(game: Callable[[], Any]) -> None:
    """Those that begin their conversations themselves."""

    def moves(request: ModelRequest) -> str:
        return "1" if request.messages[0]["content"] == WRITTEN else "I do not know."

    with serve(player=moves, writer=scripted([f"```{WRITTEN}```"])) as server:
        result = optimize_prompt(game(), asking(server.openai_url), "player", reflection_model="writer", **{**SMALL, "perfect_score": 3.0})
    assert (result.start.prompt, result.start.score, result.best.prompt, result.best.score) == (START, 0.0, WRITTEN, 3.0)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (doubles(rows=[conversation(row, f"Number {number}.") for number, row in enumerate(ROWS)]), "the examples have 8 different system"),
        (doubles(rows=[conversation(ROWS[0]), ROWS[1]], system_prompt=None), "the examples have 2 different system prompts"),
        (
            vf.SingleTurnEnv(dataset=[{"prompt": "1, doubled?"}] * 4, message_type="completion", rubric=vf.Rubric(is_formatted)),
            "plain text .* have no system prompt",
        ),
        (
            by_taskset(system_prompt=START, harness=v1.Harness(system_prompt=START, config={"system_prompt_merge": "concat"})),
            "there are several",
        ),
        (by_taskset(rows=[{**row, "system_prompt": START} for row in ROWS]), "there are several"),
    ],
)
def test_prompts_that_one_text_cannot_replace_are_refused(env: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        improve(env)


def test_an_environment_that_takes_no_system_prompt_is_refused() -> None:
    class Deaf(vf.SingleTurnEnv):
        async def setup_state(self, state: vf.State) -> vf.State:
            state["prompt"] = [message for message in state["prompt"] if message["role"] != "system"]
            return state

    with pytest.raises(ConfigurationError, match=r"does not take a system prompt: .* begins in the same way"):
        improve(Deaf(dataset=ROWS, rubric=vf.Rubric(is_formatted), system_prompt=START))


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_message_of_the_system_is_replaced_or_left_out(role: str) -> None:
    """Whatever its role is called; a task without one stays as it is."""
    task = conversation(ROWS[0], role=role)
    assert has_system_message(task["prompt"])
    assert with_prompt(task, "Go.")["prompt"] == [{"role": role, "content": "Go."}, task["prompt"][1]]
    assert with_prompt(task, "")["prompt"] == task["prompt"][1:]
    assert task == conversation(ROWS[0], role=role)
    without = conversation(ROWS[0], None)
    assert with_prompt(without, "Go.") == without
    assert not has_system_message(without["prompt"])
    assert not has_system_message([])
    env = doubles(rows=[conversation(row, role=role) for row in ROWS], system_prompt=None)
    assert current_prompt(env, [Example("train", 0), Example("train", 7)]) == START


def test_a_conversation_that_no_prompt_changes_is_found() -> None:
    """Of one example, among rollouts without an error."""
    check = PromptCheck()
    row = {"prompt": [{"role": "user", "content": "?"}], "error": None, "example_id": 3}
    first, second = Example("train", 0), Example("train", 1)
    check.check(first, "a", {**row, "error": {"error": "E"}})
    check.check(first, "a", row)
    check.check(first, "a", row)
    check.check(second, "b", row)
    check.check(first, "b", {**row, "prompt": [{"role": "user", "content": "!"}]})
    with pytest.raises(ConfigurationError, match="example_id 3 begins in the same way"):
        check.check(first, "b", row)


# Replacing the system prompt


def test_a_system_prompt_can_be_replaced_in_an_environment_and_in_a_group() -> None:
    env = doubles(rows=[ROWS[0], conversation(ROWS[1], "My own.")], eval_dataset=ROWS[:1])
    assert env.get_dataset()["prompt"][0][0]["content"] == START
    for told in ("Go.", None):
        env.set_kwargs(system_prompt=told)
        first, second = env.get_dataset()["prompt"]
        assert [message["content"] for message in first] == [told, "0, doubled?"][told is None :]
        assert second[0]["content"] == "My own."
        assert env.get_eval_dataset()[0]["prompt"] == first == [dict(message) for message in env.reset(options={"example_id": 0})[0]]
    group = in_group()
    group.set_system_prompt("Go.")
    assert {row["prompt"][0]["content"] for row in group.get_dataset()} == {"Go."}


# Examples and records
