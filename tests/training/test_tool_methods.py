"""Tools as methods: signatures that say what schemas do, and calls that are steps."""

from __future__ import annotations

import inspect
from typing import Any, Literal, get_type_hints

import gymnasium as gym
import pytest

import vfgym
from tests.training.trainers import environments
from vfgym.errors import ConfigurationError, ResetNeeded, SandboxError
from vfgym.tools import Tool
from vfgym.training.adapters import fork_env
from vfgym.training.counting import RolloutMissing
from vfgym.training.tool_methods import ToolEpisodes, hint_of, make_class, make_method


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
        *[({"type": "object", "properties": {"a": {}}}, dict), ({"const": "x"}, Literal["x"]), ({"enum": [[1]]}, Any)],
        *[({"$ref": "#/$defs/Tree"}, list[Any]), ({}, Any), (True, Any), (False, Any), ({"$ref": "#/$defs/Missing"}, Any)],
        *[({"type": name}, kind) for name, kind in {"string": str, "integer": int, "boolean": bool, "null": None, "array": list}.items()],
        *[({"oneOf": [{"type": "integer"}, {"type": "null"}]}, int | None), ({"anyOf": [{"type": "integer"}, {}]}, Any)],
        *[({"const": 0}, Literal[0]), ({"const": None}, Literal[None]), ({"enum": ["a", None, False]}, Literal["a", None, False])],
        *[({"enum": ["a", 0.5]}, Any), ({"anyOf": [{"type": "integer"}]}, int), ({"type": "date"}, Any)],
        ({"type": ["array", "null"], "items": {"$ref": "#/$defs/Color"}}, list[Literal["red"]] | None),
    ],
)
def test_type_hints_say_what_schemas_do(schema: Any, hint: Any) -> None:
    definitions = {"Color": {"enum": ["red"]}, "Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}
    assert hint_of(schema, definitions) == hint


def test_arguments_without_a_default_come_first_and_descriptions_are_one_line() -> None:
    properties = {
        "c": {"type": "integer", "default": 0, "description": "How\n  many."},
        "a": {"type": "string"},
        "d": {"type": "string"},
        "b": {"type": "boolean", "default": False},
    }
    called: list[Any] = []
    tool = Tool(name="look", description="Look\naround.", parameters={"type": "object", "properties": properties, "required": ["a", "d"]})
    method = make_method(tool, lambda *args: called.append(args) or "seen")  # type: ignore[func-returns-value]
    empty = inspect.Parameter.empty
    parameters = [*inspect.signature(method).parameters.values()][1:]
    assert [(each.name, each.default) for each in parameters] == [("a", empty), ("d", empty), ("c", 0), ("b", False)]
    assert inspect.getdoc(method) == (
        "Look around.\n\nArgs:\n    a: The a.\n    d: The d.\n    c: How many.\n    b: The b.\n\nReturns:\n"
        "    What the environment answers."
    )
    assert (method("object", "x", "y", b=True), called) == ("seen", [("object", "look", {"a": "x", "d": "y", "b": True})])
    bare = make_method(Tool(name="look", description="", parameters={"type": "object"}), ToolEpisodes._call)
    assert inspect.getdoc(bare) == "Call look.\n\nReturns:\n    What the environment answers."


@pytest.mark.parametrize("name", ["reset", "get_reward", "_hidden", "two words"])
def test_a_tool_that_cannot_be_a_method_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"the tool '{name}' cannot be a method"):
        make_method(Tool(name=name, description="", parameters={"type": "object"}), ToolEpisodes._call)


@pytest.mark.parametrize("name", ["from here", "class", "self"])
def test_an_argument_that_python_cannot_have_is_refused(name: str) -> None:
    tool = Tool(name="look", description="", parameters={"type": "object", "properties": {name: {}}})
    with pytest.raises(ConfigurationError, match=f"the argument '{name}' of the tool 'look' cannot be a Python argument"):
        make_method(tool, ToolEpisodes._call)


def test_a_method_takes_no_more_arguments_than_its_tool() -> None:
    with pytest.raises(TypeError, match="takes at most 3 arguments, got 4"):
        make_episodes(environments.make_sums()).add(1, 2, "ones", "more")


def test_calls_of_methods_are_steps() -> None:
    """The environment checks the arguments and answers as ever; its last word comes with the last answer."""
    episodes = make_episodes(environments.make_sums())
    assert episodes.reset(example_id=2, split="train", prompt=[]) is None, "the row has the prompt"
    assert (episodes.add(a=2, b=2), episodes.add(1, 2, unit="tens")) == ("4", "30")
    assert "add: " in episodes.add(a="much", b=2)
    episodes._read_last_answer([{"role": "assistant", "content": "4"}])
    assert (episodes.get_reward(), episodes.add(a=1, b=1), episodes.get_reward()) == (1.375, "The episode is over.", 1.375)


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


def test_a_row_chooses_its_task_and_split_and_counts_as_no_episode_without_a_row() -> None:
    env = environments.make_sums(eval_dataset=[{"question": f"{n} + 9?", "answer": str(n + 9)} for n in range(2)])
    episodes, other = make_episodes(env), make_episodes(env)
    for example_id, split in ((0, "train"), (1, "eval"), (0, "eval"), (0, None)):
        assert episodes.reset(example_id=example_id, split=split) is None
        state = episodes._env.unwrapped.state
        assert (state["example_id"], state["prompt"][-1].content) == (example_id, f"{example_id} + {9 if split == 'eval' else 2}?")
    assert episodes.reset(example_id=None, split="eval") == other.reset()


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


def broken_reward() -> float:
    raise ValueError("the reward is broken")


class Breaks(vfgym.ToolEnv):
    failure: Exception

    def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
        raise self.failure


def make_breaking(failure: Exception, **arguments: Any) -> Any:
    env = Breaks(tools=[environments.add], dataset=[{"question": "?"}], **arguments)
    env.failure = failure
    return make_class(env, "a trainer")(fork_env(env))


@pytest.mark.parametrize("failure", [KeyError("gone"), SandboxError("gone")])
def test_a_tool_that_breaks_leaves_its_rollout_without_a_reward(failure: Exception) -> None:
    episodes = make_breaking(failure, failure_reward=-2.0)
    episodes.reset()
    with pytest.raises((KeyError, RolloutMissing), match="gone"):
        episodes.add(a=1, b=1)
    assert episodes.get_reward() is None
    assert episodes.add(a=1, b=1) == "The episode is over."
    assert episodes.get_reward() is None
    episodes.reset()
    assert episodes.get_reward() == 0.0, "the next episode is not missing"


def test_a_tool_that_the_policy_breaks_costs_what_failing_costs() -> None:
    episodes = make_breaking(vfgym.errors.AgentError("the agent broke it"), failure_reward=-2.0)
    episodes.reset()
    episodes.add(a=1, b=1)
    assert episodes.get_reward() == -2.0


def test_a_last_answer_whose_reward_fails_stops_no_trainer() -> None:
    env = environments.make_sums()
    env.rubric.add_reward_func(broken_reward)
    episodes = make_class(env, "a trainer")(fork_env(env))
    episodes.reset()
    episodes._read_last_answer([{"role": "assistant", "content": "2"}])
    assert episodes.get_reward() is None
