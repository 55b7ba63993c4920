"""What adapters to trainers share, and what of them needs no trainer: tools as methods, conversations that only grow, refusals."""

from __future__ import annotations

import importlib
import inspect
import sys
import threading
from typing import Any, Literal, get_type_hints

import gymnasium as gym
import pytest

import vfgym
from tests.environments import Talk
from tests.programs import run_python
from tests.training.trainers import environments
from vfgym.errors import ConfigurationError, EpisodeNotPicklable, ResetNeeded
from vfgym.messages import AssistantMessage, ToolCall, UserMessage
from vfgym.tools import Tool
from vfgym.training.adapters import added_messages, branch_env, fork_env, read_answer, refuse_short_history, write_text
from vfgym.training.tool_methods import ToolEpisodes, hint_of, make_class, make_method

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


def make_episodes(env: Any) -> Any:
    return make_class(env, "a trainer")(fork_env(env))


def test_a_method_has_the_signature_and_the_docstring_of_its_tool() -> None:
    method = make_episodes(environments.make_sums()).add
    assert [*inspect.signature(method).parameters] == ["a", "b", "unit"]
    assert inspect.signature(method).parameters["unit"].default == "ones"
    assert get_type_hints(method) == {"a": int, "b": int, "unit": Literal["ones", "tens"], "return": str}
    assert inspect.getdoc(method) == (
        "Add two numbers.\n\nArgs:\n    a: The first.\n    b: The second.\n    unit: What they count.\n\nReturns:\n"
        "    What the environment answers."
    )


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ({"type": "number"}, float),
        ({"type": ["string", "null"]}, str | None),
        ({"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/Color"}]}, int | Literal["red"]),
        ({"type": "array", "items": {"enum": [1, 2]}}, list[Literal[1, 2]]),
        ({"type": "object", "properties": {"a": {}}}, dict),
        ({"const": "x"}, Literal["x"]),
        ({"enum": [[1]]}, Any),
        ({"$ref": "#/$defs/Tree"}, list[Any]),
        ({}, Any),
        (True, Any),
    ],
)
def test_type_hints_say_what_schemas_do(schema: Any, hint: Any) -> None:
    definitions = {"Color": {"enum": ["red"]}, "Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}
    assert hint_of(schema, definitions) == hint


@pytest.mark.parametrize("name", ["reset", "get_reward", "_hidden", "two words"])
def test_a_tool_that_cannot_be_a_method_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"the tool '{name}' cannot be a method"):
        make_method(Tool(name=name, description="", parameters={"type": "object"}), ToolEpisodes._call)


@pytest.mark.parametrize("name", ["two words", "class", "self"])
def test_an_argument_that_python_cannot_have_is_refused(name: str) -> None:
    tool = Tool(name="look", description="", parameters={"type": "object", "properties": {name: {}}})
    with pytest.raises(ConfigurationError, match=f"the argument '{name}' of the tool 'look' cannot be a Python argument"):
        make_method(tool, ToolEpisodes._call)


def test_a_method_takes_no_more_arguments_than_its_tool() -> None:
    with pytest.raises(TypeError, match="takes at most 3 arguments, got 4"):
        make_episodes(environments.make_sums()).add(1, 2, "ones", "more")


@pytest.mark.parametrize(
    "nested", ['{"name":' * 100_000 + "}" * 100_000, '{"name": "add", "arguments": ' + "[" * 100_000 + "]" * 100_000 + "}"]
)
def test_a_call_that_is_nested_too_deep_to_be_read_stays_text(nested: str) -> None:
    text = f"<tool_call>{nested}</tool_call>"
    assert read_answer(text, [{}]) == AssistantMessage(text)


def test_an_argument_that_python_cannot_name_is_refused() -> None:
    tool = Tool(name="look", description="", parameters={"type": "object", "properties": {"from here": {"type": "string"}}})
    with pytest.raises(ConfigurationError, match="argument 'from here' of the tool 'look'"):
        make_method(tool, ToolEpisodes._call)


def test_calls_of_methods_are_steps() -> None:
    """The environment checks the arguments and answers as ever; its last word comes with the last answer."""
    episodes = make_episodes(environments.make_sums())
    assert episodes.reset(example_id=2, split="train", prompt=[]) is None, "the row has the prompt"
    assert episodes.add(a=2, b=2) == "4"
    assert episodes.add(1, 2, unit="tens") == "30"
    assert "add: " in episodes.add(a="much", b=2)
    episodes._read_last_answer([{"role": "assistant", "content": "4"}])
    assert episodes.get_reward() == 1.375
    assert episodes.add(a=1, b=1) == "The episode is over."
    assert episodes.get_reward() == 1.375


def test_an_episode_whose_last_answer_nobody_says_ends_as_a_limit_would_end_it() -> None:
    episodes = make_episodes(environments.make_sums())
    episodes.reset(example_id=1)
    episodes.add(a=1, b=2)
    episodes._read_last_answer([{"role": "assistant", "content": "", "tool_calls": [{"type": "function"}]}])
    assert episodes.get_reward() == 0.125


def test_instances_without_rows_begin_alike() -> None:
    """So that the rollouts of a group are comparable, although the trainer says nothing of groups."""
    env = environments.make_sums()
    first, second = make_episodes(env), make_episodes(env)
    prompts = [first.reset() for _ in range(4)]
    assert prompts == [second.reset() for _ in range(4)]
    assert len(set(prompts)) > 1


def test_rewards_are_those_of_wrappers() -> None:
    env = gym.wrappers.TransformReward(environments.make_lake(as_tool=True), lambda reward: 2 * reward - 1)
    episodes = make_episodes(env)
    episodes.reset(example_id=0)
    for move in environments.INTO_A_HOLE:
        episodes.act(action=move)
    assert episodes.get_reward() == -2.0


def test_methods_need_an_episode() -> None:
    episodes = make_episodes(environments.make_sums())
    with pytest.raises(ResetNeeded, match="no episode has begun"):
        episodes.get_reward()
    with pytest.raises(ResetNeeded, match="no episode has begun"):
        episodes.add(a=1, b=2)
    episodes.reset()
    assert episodes.get_reward() == 0.0


def test_an_environment_without_tools_has_no_methods() -> None:
    with pytest.raises(ConfigurationError, match=r"SingleTurnEnv has no tools.*as_tool=True"):
        make_class(environments.make_guess(), "a trainer")


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
    assert added_messages(before, env.step("hello")[0], "a trainer") == [UserMessage("go on")]


# Environments


def test_an_id_is_made_once_and_played_on_forks() -> None:
    first, second = fork_env("gymnasium/FrozenLake-v1"), fork_env("gymnasium/FrozenLake-v1")
    assert first is not second
    assert first.unwrapped.definition is second.unwrapped.definition


class CountSteps(gym.Wrapper[Any, Any, Any, Any]):
    """Rewards an episode's nth step with n."""

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
    assert outcomes[0] == outcomes[1]
    assert [reward for _, reward, _, _ in outcomes[1]] == [2, 3, 4]


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
