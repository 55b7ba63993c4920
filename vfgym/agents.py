"""Agents: who answers the conversation.

An agent is a function ``agent(observation, info)``, plain or async, that returns the next message: text, an assistant
message, or a `Response`. What an agent must remember of one episode it keeps in a function of its own for each episode,
which ``for_episode(env)`` gives; so one agent object serves any number of episodes at once.
"""

from __future__ import annotations

import asyncio
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
from vfgym.concurrency import in_bridge, wait
from vfgym.envs.face import Action, EpisodeFace, new_since, transcript
from vfgym.errors import ConfigurationError, ModelError, did_you_mean
from vfgym.messages import AssistantMessage, Message, ToolCall
from vfgym.spaces import MessageSpace
from vfgym.terminal import echo
from vfgym.threads import on_thread

Answering: TypeAlias = Callable[[list[Message], dict[str, Any]], Action | Awaitable[Action]]
"""A function from observation and info to the next message, plain or async."""


@runtime_checkable
class EpisodeAgent(Protocol):
    """An agent that knows its environment, or keeps something for one episode."""

    def for_episode(self, env: gym.Env[Any, Any]) -> Answering:
        """Return what answers in the one episode that `env` has just begun."""
        ...


Agent: TypeAlias = Answering | EpisodeAgent
"""Who answers the conversation."""


def per_episode(agent: Agent) -> Callable[[gym.Env[Any, Any]], Answering]:
    """Return a function from an environment that has just begun an episode to what answers in it for `agent`."""
    return agent.for_episode if isinstance(agent, EpisodeAgent) else lambda env: agent


def seat_of(env: gym.Env[Any, Any]) -> EpisodeFace:
    """Return the chat environment inside wrappers.

    Raises:
        ConfigurationError: If there is none: `env` is some other Gymnasium environment.
    """
    if not isinstance(env, gym.Env):
        raise ConfigurationError(f"a chat environment is needed, or the id of one, got {type(env).__name__}")
    seat: object = env.unwrapped
    if not isinstance(seat, EpisodeFace):
        name = repr(env.spec.id) if env.spec is not None else type(seat).__name__
        chat_id = f"gymnasium/{env.spec.id}" if env.spec is not None else ""
        registered = f"take {chat_id!r}, or " if chat_id in gym.registry else ""
        raise ConfigurationError(
            f"{name} is no chat environment, so it has no conversation to answer: {registered}wrap it with vfgym.to_chat({name})"
        )
    return seat


class RandomAgent:
    """Answers at random.

    Its answers are moves where the environment knows some (`ChatEnv.random_action`, ``info["legal_actions"]``), else samples of
    the action space. Its numbers follow from the seed that the episode was reset with, and leave the environment's own alone. So a run
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
        return _RandomAnswers(env, rng)


class _RandomAnswers:
    """What answers at random in one episode: an object and no closure, so that a copy goes on alike."""

    def __init__(self, env: gym.Env[Any, Any], rng: np.random.Generator) -> None:
        self._rng = rng
        space, seat = env.action_space, env.unwrapped
        self._seat = seat if isinstance(space, MessageSpace) and isinstance(seat, EpisodeFace) else None
        self._space = space
        if not isinstance(space, MessageSpace):
            self._space = copy.deepcopy(space)  # the space's own numbers may be shared by several episodes
            self._space.seed(int(rng.integers(2**31)))

    def __call__(self, observation: list[Message], info: dict[str, Any]) -> Any:
        episode = None if self._seat is None else self._seat.episode
        if episode is None:  # as at an opponent's seat, where samples are moves that the table draws
            return self._sample()
        move = episode.definition.random_action(episode.state, self._rng)
        if move is not None:
            return move
        legal = info.get("legal_actions")
        return legal[int(self._rng.integers(len(legal)))] if legal else self._sample()

    def _sample(self) -> Any:
        return self._space.sampler.sample(self._rng) if isinstance(self._space, MessageSpace) else self._space.sample()


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
            return definition.oracle(cast(Any, seat.state))

        first = right_answer()
        if (wait(first) if is_awaitable(first) else first) is None:
            name = definition.env_id or (env.spec.id if env.spec is not None else type(definition).__name__)
            raise ConfigurationError(f"{name} knows no right answer to its tasks, so the oracle cannot play it: take another agent")

        def checked(known: Any) -> Any:
            if known is None:
                raise ModelError(f"the environment knows no right answer to turn {len(cast(Any, seat.state)['trajectory']) + 1}")
            return known

        async def checked_later(known: Awaitable[Any]) -> Any:
            return checked(await known)

        def answer(observation: list[Message], info: dict[str, Any]) -> Any:
            known = right_answer()
            return awaited_by_evaluation(checked_later(known)) if is_awaitable(known) else checked(known)

        return answer


def awaited_by_evaluation(answer: Awaitable[Any]) -> Any:
    """Return an answer to come as it is where an evaluation awaits it, and what comes of it anywhere else."""
    return answer if in_bridge() else wait(answer)


class ScriptedAgent:
    """Gives prepared answers, in order, from the first one in each episode."""

    name = "scripted"

    def __init__(self, answers: Sequence[Action] | Mapping[int, Sequence[Action]]) -> None:
        """Make the agent.

        Args:
            answers: The answers of every episode, or those of each example, by ``example_id``.

        Raises:
            ConfigurationError: If text stands where a list of answers should.
        """
        for script in answers.values() if isinstance(answers, Mapping) else (answers,):
            if isinstance(script, str):
                raise ConfigurationError(f"the answers of an episode must be a list, with one for each turn, got the text {script!r:.80}")
        self.answers = answers

    def for_episode(self, env: gym.Env[Any, Any]) -> Answering:
        """Return what answers in this episode. It raises `ModelError` when there is no answer left."""
        return _ScriptedAnswers(self)

    def answers_to(self, example_id: int) -> Sequence[Action]:
        """Return the answers of the episodes of one example.

        Raises:
            ModelError: If there are none.
        """
        if not isinstance(self.answers, Mapping):
            return self.answers
        if example_id not in self.answers:
            raise ModelError(f"the script has no answers to example {example_id}; it has some to {', '.join(map(str, self.answers))}")
        return self.answers[example_id]


class _ScriptedAnswers:
    """What gives prepared answers in one episode: an object and no closure, so that a copy goes on alike."""

    def __init__(self, agent: ScriptedAgent) -> None:
        self._agent = agent
        self._given = 0

    def __call__(self, observation: list[Message], info: dict[str, Any]) -> Action:
        answers = self._agent.answers_to(info["example_id"])
        if self._given == len(answers):
            raise ModelError(f"the script has {self._given} answers, and the episode of example {info['example_id']} asks for one more")
        self._given += 1
        return answers[self._given - 1]


_STANDARD_INPUT = 0
"""File descriptor of ``sys.__stdin__``."""


class EndOfInput(BaseException):
    """Whoever types the answers has ended the input (Ctrl-D): an evaluation stops, and keeps what is finished.

    As with `KeyboardInterrupt`, it is no error of the episode, so nothing that records errors takes it for one.
    """


_MOST_LISTED = 40
"""Legal actions that a human is shown."""


class HumanAgent:
    """Shows the conversation on the terminal and reads the answer, one line; an empty one is asked for again.

    A line ``/tool {"a": 1}`` calls a tool of that name with these arguments. The end of the input is an
    `EOFError`, and in an evaluation `EndOfInput`.
    """

    name = "human"

    def for_episode(self, env: gym.Env[Any, Any]) -> HumanAnswers:
        """Return what asks the human in this episode."""
        return HumanAnswers()


class HumanAnswers:
    """What asks the human in one episode, and shows how it ends."""

    def __init__(self) -> None:
        """Begin with nothing shown."""
        self._shown: list[Message] = []

    def __call__(self, observation: list[Message], info: dict[str, Any]) -> Any:
        """Show what is new, and return what is typed: something to await in an evaluation."""
        self._show(self._new(observation))
        self._shown = observation
        tools = [tool["function"]["name"] for tool in info.get("tools") or ()]
        if tools:
            echo(f"(tools: {', '.join(tools)}; call one with /{tools[0]} " + '{"argument": "value"})')
        legal = info.get("legal_actions")
        if legal:
            more = f", and {len(legal) - _MOST_LISTED} more" if len(legal) > _MOST_LISTED else ""
            echo(f"(legal: {', '.join(legal[:_MOST_LISTED])}{more})")
        return _typed_later(tools) if in_bridge() else _typed_now(tools)

    def show_end(self, observation: list[Message], info: dict[str, Any], episode_return: float | None) -> None:
        """Show the last observation of the episode and what came of it.

        Args:
            observation: The last observation.
            info: What the episode itself tells (`vfgym.episode.BaseEpisode.info`): wrappers may drop what it has to have.
            episode_return: Sum of the rewards; None if the episode is scored later, with others of its task.
        """
        if observation != self._shown:
            new = self._new(observation)
            # Of an observation that goes on from none (with limited history, say), all but the end was shown in others.
            self._show(new if len(new) < len(observation) or not self._shown else new[-1:])
        if episode_return is None:
            echo(f"\nover ({info['stop_condition']}): it is scored together with the other rollouts of its task")
            return
        echo(f"\nover ({info['stop_condition']}): reward {episode_return:g}")
        if "rewards" in info:
            echo("  " + ", ".join(f"{player}: {reward:g}" for player, reward in info["rewards"].items()))
        for name, value in info["metrics"].items():
            echo(f"  {name}: {value:g}")

    def _new(self, observation: list[Message]) -> list[Message]:
        """Return what was not shown yet; what was typed stands in the terminal already."""
        new = new_since(self._shown, observation)
        goes_on = self._shown and len(new) < len(observation)
        return [message for message in new if message["role"] != "assistant"] if goes_on else new

    def _show(self, messages: Sequence[Message]) -> None:
        if messages:
            echo(transcript(messages))


_PROMPT = "> "
_ASK_AGAIN = "(nothing was typed, so nothing is sent)"


def _typed_now(tools: Sequence[str]) -> Action:
    while not (line := input(_PROMPT)).strip():
        echo(_ASK_AGAIN)
    return _typed(line, tools)


async def _typed_later(tools: Sequence[str]) -> Action:
    try:
        while not (line := await _line_of_input(_PROMPT)).strip():
            echo(_ASK_AGAIN)
    except EOFError:
        raise EndOfInput("the input ended: nobody answers any more") from None
    return _typed(line, tools)


async def _line_of_input(prompt: str) -> str:
    """Read a line as `input` does, while the event loop goes on and the task can be cancelled."""
    if sys.stdin is not sys.__stdin__ or not inspect.isbuiltin(input):  # a notebook, an editor: `input` asks in their own way
        return await on_thread(input, prompt)
    # No thread: one that waits in `input` takes the next line from whoever reads after a cancellation, and a process that ends
    # meanwhile aborts over the lock of the standard input.
    echo(prompt, end="", flush=True)
    line = b""
    while not line.endswith(b"\n"):
        await _readable(_STANDARD_INPUT)
        byte = os.read(_STANDARD_INPUT, 1)  # what follows the line is left to whoever reads next
        if not byte and not line:
            raise EOFError
        if not byte:
            break
        line += byte
    return line.decode(errors="replace").rstrip("\r\n")


async def _readable(file: int) -> None:
    """Wait until something can be read from a terminal or a pipe."""
    loop = asyncio.get_running_loop()
    is_ready = asyncio.Event()
    try:
        loop.add_reader(file, is_ready.set)
    except PermissionError:  # epoll takes no regular files, which can be read at any time
        return
    try:
        await is_ready.wait()
    finally:
        loop.remove_reader(file)


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
    target = import_named(module_name, f"agent {name!r}")
    for attribute in attributes.split("."):
        if not hasattr(target, attribute):
            owner = getattr(target, "__name__", type(target).__name__)
            raise ConfigurationError(f"agent {name!r}: {owner} has no {attribute!r}.{did_you_mean(attribute, dir(target))}")
        target = getattr(target, attribute)
    if inspect.isclass(target):
        _check_needs_no_arguments(target, name)
    agent: Any = target() if inspect.isclass(target) else target
    if isinstance(agent, str):
        raise ConfigurationError(f"agent {name!r} must be a function or an object with for_episode(env), and it is text: {agent!r}")
    return as_agent(agent)


def _check_needs_no_arguments(cls: type, name: str) -> None:
    try:
        signature = inspect.signature(cls)
    except (TypeError, ValueError):  # some classes do not tell what they take: those written in C, or with a __signature__ that is none
        return
    try:
        signature.bind()
    except TypeError as error:
        raise ConfigurationError(
            f"agent {name!r}: {cls.__name__}{signature} cannot be made without arguments ({error}): name an agent that is made already,"
            " or a function (observation, info) -> message"
        ) from None


def import_named(module_name: str, needed_by: str) -> Any:
    """Import a module that a user named; it may lie in the current directory.

    Args:
        module_name: Name of the module.
        needed_by: What it was named for, as the beginning of a message.

    Raises:
        ConfigurationError: If there is no such module.
    """
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` has it
    if not all(part.isidentifier() for part in module_name.split(".")):
        raise ConfigurationError(f"{needed_by}: {module_name!r} is no name of a module")
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there, and misses something itself
        raise ConfigurationError(f"{needed_by}: there is no module {error.name!r}, neither installed nor in {here}") from error


def as_agent(value: Agent | str) -> Agent:
    """Return an agent given as itself or by its name (see `load_agent`).

    Raises:
        ConfigurationError: If it is neither, or a function that takes other arguments than observation and info.
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
    if not isinstance(value, EpisodeAgent):
        _check_arguments(value)
    return value


def _check_arguments(agent: Answering) -> None:
    try:
        signature = inspect.signature(agent)
    except (TypeError, ValueError):  # some functions written in C do not tell what they take
        return
    try:
        signature.bind([], {})
    except TypeError as error:
        raise ConfigurationError(
            f"an agent is called with (observation, info), and {function_name(agent)} takes {signature}: {error}"
        ) from None


def agent_name(value: Agent | str) -> str:
    """Return what an agent is called in results."""
    if isinstance(value, str):
        return value
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else function_name(cast(Callable[..., Any], value))
