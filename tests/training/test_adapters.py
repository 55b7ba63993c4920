"""What adapters to trainers share, and what of them needs no trainer: tools as methods, conversations that only grow, refusals."""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Any

import gymnasium as gym
import pytest

import vfgym
from tests.environments import Talk
from tests.programs import run_python
from tests.training.trainers import environments
from vfgym.errors import ConfigurationError, EpisodeNotPicklable, ResetNeeded
from vfgym.messages import AssistantMessage, ToolCall, UserMessage
from vfgym.training.adapters import added_messages, branch_env, fork_env, read_answer, refuse_short_history, task_rows, write_text

TRAINERS = {
    "trl": "trl",
    "skyrl": "skyrl_gym",
    "gem": "gem",
    "tinker": "tinker_cookbook",
    "torchrl": "torchrl",
    "verl": "verl",
    "art": "art",
}


def test_training_loads_no_trainer() -> None:
    program = "import sys, vfgym.training, vfgym.training.adapters, vfgym.training.tool_methods; print(*sys.modules)"
    loaded = set(run_python(program, check=True).stdout.split())
    assert "vfgym.training" in loaded
    assert not loaded & {"torch", "transformers", "datasets", "ray", "stable_baselines3", *TRAINERS.values()}


@pytest.mark.parametrize("adapter", TRAINERS)
def test_an_adapter_without_its_trainer_says_what_to_install(adapter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, f"vfgym.training.{adapter}", raising=False)
    requirement = {"gem": "gem-llm", "art": "openpipe-art"}.get(adapter, TRAINERS[adapter].replace("_", "-"))
    with pytest.raises(ImportError, match=f"needs {TRAINERS[adapter]}, which is not installed: pip install '{requirement}[^a-z-]"):
        importlib.import_module(f"vfgym.training.{adapter}")


# Tools as methods


@pytest.mark.parametrize(
    "nested", ['{"name":' * 100_000 + "}" * 100_000, '{"name": "add", "arguments": ' + "[" * 100_000 + "]" * 100_000 + "}"]
)
def test_a_call_that_is_nested_too_deep_to_be_read_stays_text(nested: str) -> None:
    text = f"<tool_call>{nested}</tool_call>"
    assert read_answer(text, [{}]) == AssistantMessage(text)


# Conversations


def test_text_with_calls_is_read_where_there_are_tools() -> None:
    text = '<think>Easy.</think>I add. <tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
    assert read_answer(text, []) == AssistantMessage(text)
    read = read_answer(text, [{"type": "function"}])
    assert (read["content"], read["reasoning_content"]) == ("I add.", "Easy.")
    assert [(call.name, call.arguments) for call in read["tool_calls"]] == [("add", '{"a": 1}')]


def test_text_that_is_written_can_be_read() -> None:
    message = AssistantMessage("I add.", tool_calls=[ToolCall("call_0", "add", '{"a": 1}')])
    assert read_answer(write_text([message]), [{}]) == message
    picture = UserMessage([{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": "data:,"}}])
    assert write_text([picture]) == "Look."
    calls = [ToolCall("a", "add", "{no json"), ToolCall("b", "end", "")]
    said = '<tool_call>{"name": "add", "arguments": "{no json"}</tool_call>\n\n<tool_call>{"name": "end", "arguments": ""}</tool_call>'
    silent = [UserMessage(""), AssistantMessage(None, tool_calls=calls)]
    assert (write_text([picture, *silent, picture]), write_text([])) == (f"Look.\n\n{said}\n\nLook.", "")


@pytest.mark.parametrize("limit", [{"history": 0}, {"history": 3}, {"max_prompt_tokens": 4000}])
def test_a_short_history_is_refused_before_anything_is_played(limit: dict[str, int]) -> None:
    env = fork_env(environments.make_lake(**limit))
    with pytest.raises(ConfigurationError, match=r"a trainer puts what an environment answers behind .* vfgym\.training\.samples"):
        refuse_short_history(env, "a trainer")


def test_a_conversation_that_is_rewritten_is_refused_when_it_is() -> None:
    class Forgets(Talk):
        def get_prompt_messages(self, state: Any) -> Any:
            return [UserMessage(f"turn {len(state['trajectory'])}")]

    env = fork_env(Forgets())
    refuse_short_history(env, "a trainer")
    before, _ = env.reset(seed=0)
    after = env.step("hello")[0]
    with pytest.raises(ConfigurationError, match="this environment rewrote its conversation"):
        added_messages(before, after, "a trainer")


def test_what_is_added_is_what_comes_behind_the_answer() -> None:
    env = fork_env(Talk())
    before, _ = env.reset(seed=0)
    after = env.step("hello")[0]
    assert added_messages(before, after, "a trainer") == [UserMessage("go on")]
    assert added_messages(before, [*after, UserMessage("now")], "a trainer") == [UserMessage("go on"), UserMessage("now")]
    assert added_messages(before, after[:-1], "a trainer") == []
    for wrong in (before, []):
        with pytest.raises(ConfigurationError, match="a trainer puts what an environment answers behind"):
            added_messages(before, wrong, "a trainer")


# Tasks


@pytest.mark.parametrize(("number", "ids"), [(None, [0, 1, 2]), (2, [0, 1]), (3, [0, 1, 2]), (4, [0, 1, 2])])
def test_the_first_tasks_are_taken(number: int | None, ids: list[int]) -> None:
    rows = task_rows(environments.make_guess(), "train", number)
    assert rows == [
        ([{"role": "user", "content": f"{example_id} + 2?"}], {"example_id": example_id, "split": "train"}) for example_id in ids
    ]


def test_tasks_are_those_of_the_split() -> None:
    env = environments.make_guess(eval_dataset=[{"question": "9 + 9?", "answer": "18"}], system_prompt="Add.")
    prompt = [{"role": "system", "content": "Add."}, {"role": "user", "content": "9 + 9?"}]
    assert task_rows(env, "eval", None) == [(prompt, {"example_id": 0, "split": "eval"})]


def test_of_tasks_that_have_no_end_a_thousand_are_taken() -> None:
    lake = environments.make_lake()
    assert [len(task_rows(lake, "train", number)) for number in (None, 1, 1001)] == [1000, 1, 1001]


# Environments


def test_an_id_is_made_once_and_played_on_forks() -> None:
    first, second = fork_env("gymnasium/FrozenLake-v1"), fork_env("gymnasium/FrozenLake-v1")
    assert first is not second
    assert first.unwrapped.definition is second.unwrapped.definition


class CountSteps(gym.Wrapper[Any, Any, Any, Any]):
    steps: Any = None

    def reset(self, **arguments: Any) -> Any:
        self.steps = [0]
        return super().reset(**arguments)

    def step(self, action: Any) -> Any:
        self.steps[0] += 1
        observation, _, *rest = super().step(action)
        return observation, self.steps[0], *rest


def test_a_branch_goes_on_alike_inside_its_own_wrappers() -> None:
    """What wrappers keep of the episode is copied with it; the definition is shared."""
    env = fork_env(CountSteps(environments.make_lake(is_slippery=True)))
    env.reset(seed=3)
    env.step("<action>down</action>")
    branch = branch_env(env)
    assert branch.unwrapped.definition is env.unwrapped.definition
    outcomes = [[each.step("<action>up</action>")[:4] for _ in range(3)] for each in (env, branch)]
    assert (outcomes[0], [reward for _, reward, _, _ in outcomes[1]]) == (outcomes[1], [2, 3, 4])


def test_what_cannot_be_copied_is_named() -> None:
    """An item of the episode, or a wrapper; and there must be an episode."""

    class Locked(Talk):
        def setup_state(self, state: Any) -> None:
            state["lock"] = threading.Lock()

    env = fork_env(CountSteps(Locked()))
    with pytest.raises(ResetNeeded, match="no episode has begun"):
        branch_env(env)
    env.reset(seed=0)
    with pytest.raises(EpisodeNotPicklable, match=r"state\['lock'\]"):
        branch_env(env)
    wrapped = fork_env(CountSteps(Talk()))
    wrapped.reset(seed=0)
    wrapped.steps = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(EpisodeNotPicklable, match=r"a wrapper around Talk cannot be copied: .*lock"):
        branch_env(wrapped)


def test_what_a_trainer_cannot_play_is_refused() -> None:
    def best(completions: Any) -> list[float]:
        return [1.0] * len(completions)

    with pytest.raises(ConfigurationError, match=r"scores whole groups \(best\)"):
        fork_env(Talk(rubric=vfgym.Rubric(best)))
    with pytest.raises(ConfigurationError, match="is not a chat environment"):
        fork_env(gym.make("FrozenLake-v1"))

    class Unrecorded(gym.Wrapper[Any, Any, Any, Any]):
        def __init__(self, env: Any, factor: float) -> None:
            super().__init__(env)

    with pytest.raises(ConfigurationError, match="the wrapper Unrecorded does not record its arguments"):
        fork_env(Unrecorded(Talk(), 2.0))
