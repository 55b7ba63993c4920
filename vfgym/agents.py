"""Agents: who answers the conversation.

An agent is a function ``agent(observation, info)``, plain or async, that returns the next message: text, an assistant
message, or a `Response`. What an agent must remember of one episode it keeps in a function of its own for each episode,
which ``for_episode(env)`` gives; so one agent object serves any number of episodes at once.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

import gymnasium as gym
import numpy as np

from vfgym.calls import function_name, is_awaitable
from vfgym.concurrency import wait
from vfgym.envs.face import Action, EpisodeFace, transcript
from vfgym.errors import ConfigurationError, ModelError, did_you_mean
from vfgym.messages import AssistantMessage, Message, ToolCall
from vfgym.spaces import MessageSpace

Answering: TypeAlias = "Callable[[list[Message], dict[str, Any]], Action | Awaitable[Action]]"
"""A function from observation and info to the next message, plain or async."""


@runtime_checkable
class EpisodeAgent(Protocol):
    """An agent that knows its environment, or keeps something for one episode."""

    def for_episode(self, env: gym.Env[Any, Any]) -> Answering:
        """Return what answers in the one episode that `env` has just begun."""
        ...


Agent: TypeAlias = "Answering | EpisodeAgent"
"""Who answers the conversation."""


def per_episode(agent: Agent) -> Callable[[gym.Env[Any, Any]], Answering]:
    """Return a function from an environment that has just begun an episode to what answers in it for `agent`."""
    return agent.for_episode if isinstance(agent, EpisodeAgent) else lambda env: agent


def seat_of(env: gym.Env[Any, Any]) -> EpisodeFace:
    """Return the chat environment inside wrappers.

    Raises:
        ConfigurationError: If there is none: `env` is some other Gymnasium environment.
    """
    seat: object = env.unwrapped
    if not isinstance(seat, EpisodeFace):
        name = repr(env.spec.id) if env.spec is not None else type(seat).__name__
        raise ConfigurationError(f"{name} is no chat environment, so it has no conversation to answer: wrap it with vfgym.to_chat({name})")
    return seat


class RandomAgent:
    """Answers with a random legal action where ``info["legal_actions"]`` names some, else with a sample of the action space.

    Its numbers follow from the seed that the episode was reset with, and leave the environment's own alone. So a run
    replays under its seed, whatever runs beside it.
    """

    name = "random"

    def __init__(self, seed: int | None = None) -> None:
        """Make the agent.

        Args:
            seed: Makes another agent, with other answers to the same episodes.
        """
        self.seed = seed

    def for_episode(self, env: gym.Env[Any, Any]) -> Answering:
        """Return what answers in this episode, with random numbers of its own."""
        rng = env.unwrapped.np_random.spawn(1)[0]
        if self.seed is not None:
            rng = np.random.default_rng([self.seed, int(rng.integers(2**63))])
        space = env.action_space
        sample = _own_sampler(space, rng)

        def answer(observation: list[Message], info: dict[str, Any]) -> Any:
            legal = info.get("legal_actions")
            if legal and isinstance(space, MessageSpace):
                return legal[int(rng.integers(len(legal)))]
            return sample()

        return answer


def _own_sampler(space: gym.Space[Any], rng: np.random.Generator) -> Callable[[], Any]:
    """Return a function that samples `space` with `rng`. The space's own numbers may be shared by several episodes."""
    if isinstance(space, MessageSpace):
        return lambda: space.sampler.sample(rng)
    own = copy.deepcopy(space)
    own.seed(int(rng.integers(2**31)))
    return own.sample


class OracleAgent:
    """Gives the right answer, as the environment knows it."""

    name = "oracle"

    def for_episode(self, env: gym.Env[Any, Any]) -> Answering:
        """Return what answers in this episode.

        Raises:
            ConfigurationError: If the environment knows no right answer.
        """
        seat = seat_of(env)
        definition = seat.definition

        def right_answer() -> Any:
            known = definition.oracle(cast(Any, seat.state))
            return wait(known) if is_awaitable(known) else known

        if right_answer() is None:
            name = definition.env_id or (env.spec.id if env.spec is not None else type(definition).__name__)
            raise ConfigurationError(f"{name} knows no right answer to its tasks, so the oracle cannot play it: take another agent")

        def answer(observation: list[Message], info: dict[str, Any]) -> Any:
            known = right_answer()
            if known is None:
                raise ModelError(f"the environment knows no right answer to turn {len(cast(Any, seat.state)['trajectory']) + 1}")
            return known

        return answer


class ScriptedAgent:
    """Gives prepared answers, in order, from the first one in each episode."""

    name = "scripted"

    def __init__(self, answers: Sequence[Action] | Mapping[int, Sequence[Action]]) -> None:
        """Make the agent.

        Args:
            answers: The answers of every episode, or those of each example, by ``example_id``.
        """
        self.answers = answers

    def for_episode(self, env: gym.Env[Any, Any]) -> Answering:
        """Return what answers in this episode. It raises `ModelError` when there is no answer left."""
        given = 0

        def answer(observation: list[Message], info: dict[str, Any]) -> Any:
            nonlocal given
            answers = self._answers_to(info["example_id"])
            if given == len(answers):
                raise ModelError(f"the script has {given} answers, and the episode of example {info['example_id']} asks for one more")
            given += 1
            return answers[given - 1]

        return answer

    def _answers_to(self, example_id: int) -> Sequence[Action]:
        if not isinstance(self.answers, Mapping):
            return self.answers
        if example_id not in self.answers:
            raise ModelError(f"the script has no answers to example {example_id}; it has some to {', '.join(map(str, self.answers))}")
        return self.answers[example_id]


class HumanAgent:
    """Shows the conversation on the terminal and reads the answer, one line.

    A line ``/tool {"a": 1}`` calls a tool of that name with these arguments.
    """

    name = "human"

    def for_episode(self, env: gym.Env[Any, Any]) -> Answering:
        """Return what asks the human in this episode."""
        shown: list[Message] = []

        def answer(observation: list[Message], info: dict[str, Any]) -> Any:
            nonlocal shown
            is_continued = observation[: len(shown)] == shown
            print(transcript(observation[len(shown) :] if is_continued else observation))
            shown = observation
            tools = [tool["function"]["name"] for tool in info.get("tools") or ()]
            if tools:
                print(f"(tools: {', '.join(tools)}; call one with /{tools[0]} " + '{"argument": "value"})')
            if info.get("legal_actions"):
                print(f"(legal: {', '.join(info['legal_actions'])})")
            return _typed(input("> "), tools)

        return answer


def _typed(line: str, tools: Sequence[str]) -> Action:
    name, _, arguments = line.removeprefix("/").partition(" ")
    if not line.startswith("/") or name not in tools:
        return line
    return AssistantMessage(None, tool_calls=[ToolCall(f"typed_{name}", name, arguments.strip() or json.dumps({}))])


AGENTS: Mapping[str, Callable[[], Agent]] = {"random": RandomAgent, "oracle": OracleAgent, "human": HumanAgent}
"""The agents that have a name of their own."""


def load_agent(name: str) -> Agent:
    """Return an agent by its name, or import one.

    Args:
        name: One of `AGENTS`, or ``module:callable``; the module may lie in the current directory. A class is instantiated
            without arguments.

    Raises:
        ConfigurationError: If there is no such agent.
    """
    if ":" not in name:
        if name not in AGENTS:
            known = ", ".join(AGENTS)
            raise ConfigurationError(f"there is no agent {name!r}: give one of {known}, or module:callable.{did_you_mean(name, AGENTS)}")
        return AGENTS[name]()
    module_name, _, attributes = name.partition(":")
    target = _imported(module_name, name)
    for attribute in attributes.split("."):
        if not hasattr(target, attribute):
            owner = getattr(target, "__name__", type(target).__name__)
            raise ConfigurationError(f"agent {name!r}: {owner} has no {attribute!r}.{did_you_mean(attribute, dir(target))}")
        target = getattr(target, attribute)
    agent: Any = target() if inspect.isclass(target) else target
    if isinstance(agent, str):
        raise ConfigurationError(f"agent {name!r} must be a function or an object with for_episode(env), and it is text: {agent!r}")
    return as_agent(agent)


def _imported(module_name: str, name: str) -> Any:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` has it
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there, and misses something itself
        raise ConfigurationError(f"agent {name!r}: there is no module {error.name!r}, neither installed nor in {here}") from error


def as_agent(value: Agent | str) -> Agent:
    """Return an agent given as itself or by its name (see `load_agent`).

    Raises:
        ConfigurationError: If it is neither.
    """
    if isinstance(value, str):
        return load_agent(value)
    if inspect.isclass(value):
        raise ConfigurationError(f"an agent must be an object, got the class {value.__name__}: make one, {value.__name__}()")
    if not callable(value) and not isinstance(value, EpisodeAgent):
        raise ConfigurationError(
            "an agent must be a function (observation, info) -> message, an object with for_episode(env), or the name of one;"
            f" got {type(value).__name__}"
        )
    return value


def agent_name(value: Agent | str) -> str:
    """Return what an agent is called in results."""
    if isinstance(value, str):
        return value
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else function_name(cast(Callable[..., Any], value))
