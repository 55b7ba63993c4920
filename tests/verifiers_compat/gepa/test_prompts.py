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
from verifiers_compat.gepa.examples import Example, choose_examples
from verifiers_compat.gepa.feedback import conversation_text, reflective_record
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelRequest, scripted

CONCAT = {"system_prompt_merge": "concat"}


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
    for _ in range(2):
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


# Replacing the system prompt


def test_a_system_prompt_can_be_replaced() -> None:
    """For episodes and datasets alike; rows with a system message of their own keep it."""
    env = doubles(rows=[ROWS[0], conversation(ROWS[1], "My own.")], eval_dataset=ROWS[:1])
    assert env.get_dataset()["prompt"][0][0]["content"] == START
    for told in ("Go.", None):
        env.set_kwargs(system_prompt=told)
        first, second = env.get_dataset()["prompt"]
        assert [message["content"] for message in first] == [told, "0, doubled?"][told is None :]
        assert second[0]["content"] == "My own."
        assert env.get_eval_dataset()[0]["prompt"] == first == [dict(message) for message in env.reset(options={"example_id": 0})[0]]


def test_the_system_prompts_of_a_group_are_replaced_together() -> None:
    group = in_group()
    group.set_system_prompt("Go.")
    assert {row["prompt"][0]["content"] for row in group.get_dataset()} == {"Go."}


# Examples and records


def numbered(count: int) -> list[dict[str, str]]:
    return [{"question": str(number)} for number in range(count)]


@pytest.mark.parametrize(
    ("num_rows", "num_eval_rows", "train", "val"),
    [
        (20, 9, range(6), range(4)),
        (3, 2, range(3), range(2)),
        (20, 0, range(6), range(6, 10)),
        (5, 0, range(3), range(3, 5)),
        (2, 0, range(1), range(1, 2)),
        (1, 0, range(1), range(1)),
    ],
)
def test_examples_are_for_training_or_for_validation(num_rows: int, num_eval_rows: int, train: range, val: range) -> None:
    """Where there is one split, they are not the same ones; but for a single one."""
    env = vf.SingleTurnEnv(dataset=numbered(num_rows), eval_dataset=numbered(num_eval_rows) if num_eval_rows else None)
    split = "eval" if num_eval_rows else "train"
    assert choose_examples(env, 6, 4) == ([Example("train", place) for place in train], [Example(split, place) for place in val])


def test_a_record_shows_a_conversation_and_what_it_was_scored_with() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"key": "a"}'}}
    row = {
        "prompt": [
            {"role": "system", "content": "Look."},
            {"role": "user", "content": [{"type": "text", "text": "Where?"}, {"type": "image_url"}]},
        ],
        "completion": [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "content": "here"}],
        **{"metrics": {"found": 0.5}, "metrics_errors": {"kind": "KeyError('b')"}, "answer": ["here", "there"], "error": None},
        **{"is_truncated": True, "stop_condition": "max_turns_reached", "hints": {"a": 1}},
    }
    assert reflective_record(row, 0.5, ["hints", "unknown"]) == {
        "Inputs": "Where?\n[image_url]",
        "Generated Outputs": '[assistant]\ncalls look({"key": "a"})\n\n[tool]\nhere',
        "Feedback": 'Score: 0.5\nfound: 0.5\nExpected answer: ["here", "there"]\nThe rollout was cut off (max_turns_reached).\n'
        "kind could not be computed: KeyError('b')",
        "hints": '{"a": 1}',
    }
    failed = {**row, "is_truncated": False, "metrics_errors": {}, "error": {"error_chain_repr": "ModelError('gone')"}}
    assert reflective_record(failed, 0.0, [])["Feedback"].endswith("The rollout failed: ModelError('gone')")
    assert conversation_text([]) == ""
