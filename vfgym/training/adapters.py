"""What the adapters to trainers share: environments of their own, and conversations that only grow, as text or as messages."""

from __future__ import annotations

import functools
import importlib.util
import json
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym

from vfgym.agents.base import seat_of
from vfgym.bounded_json import parse_json
from vfgym.copying import deep_copy, new_memo
from vfgym.errors import ConfigurationError, EpisodeNotPicklable
from vfgym.messages import AssistantMessage, Message, content_text, plain
from vfgym.runs.replicas import make_env, replicate, why_not_replicable
from vfgym.runs.spec import check_integer
from vfgym.training.local_policy import parse_text
from vfgym.wrappers.games.turns import GameTurnsEnv

Env = gym.Env[Any, Any]

_MOST_ENDLESS = 1000
"""How many tasks a data set takes of those that have no end."""


def require_trainer(module: str, requirement: str) -> None:
    """Raise if a trainer is not installed. It is not imported.

    Args:
        module: What would be imported.
        requirement: What has to be installed for it.

    Raises:
        ImportError: It says what to install.
    """
    if importlib.util.find_spec(module) is None:
        raise ImportError(
            f"this adapter needs {module}, which is not installed: pip install '{requirement}' (where it does not go beside what is"
            " installed, in a virtual environment of its own)",
            name=module,
        )


def fork_env(env: str | Env) -> Env:
    """Return an environment whose episodes nobody else plays: a fork inside wrappers like those around the one that is given.

    Args:
        env: A chat environment, wrapped or not, or the id of one, which is made once in a process.

    Raises:
        ConfigurationError: If it is not a chat environment, it scores whole groups, or a wrapper cannot be made again.
    """
    made = _make_once(env) if isinstance(env, str) else env
    definition = seat_of(made).definition
    if definition.requires_group_rollouts:
        raise ConfigurationError(
            f"the rubric scores whole groups ({', '.join(definition.rubric.group_function_names)}), and this trainer plays and scores each"
            " rollout alone: name singular arguments in the reward function, or take groups of vfgym.rollout"
        )
    if (reason := why_not_replicable(made)) is not None:
        raise ConfigurationError(f"a trainer plays many episodes at once, so the environment must be made again for each: {reason}")
    return replicate(made)


def task_rows(env: str | Env, split: str, num_examples: int | None) -> list[tuple[list[dict[str, Any]], dict[str, Any]]]:
    """Return the prompts of tasks as plain data, each with which task it is of (``example_id``, ``split``).

    A task begins with its ``example_id`` as seed, so that the rollouts of a group begin alike.

    Args:
        env: A chat environment, or the id of one.
        split: ``"train"`` or ``"eval"``.
        num_examples: Take the first so many; None for all, or for 1,000 of tasks that have no end (the seeds of a game).

    Raises:
        ConfigurationError: If there are no tasks, or an argument does not fit.
    """
    if num_examples is not None:
        num_examples = check_integer("num_examples", num_examples, "a positive integer, or None", least=1)
    env = fork_env(env)
    tasks = seat_of(env).definition.tasks_of(split)
    most = num_examples if num_examples is not None else _MOST_ENDLESS if tasks.is_endless else len(tasks)
    rows = []
    for index in range(most if tasks.is_endless else min(most, len(tasks))):
        example_id = tasks.example_id_of(index)
        task = {"example_id": example_id, "split": split}
        observation, _ = env.reset(seed=example_id, options=dict(task))
        rows.append((plain(observation), task))
    env.close()
    if not rows:
        raise ConfigurationError(f"{type(seat_of(env).definition).__name__} has no tasks to train on: its {split} dataset is empty")
    return rows


@functools.cache
def _make_once(env_id: str) -> Env:
    return make_env(env_id, {})


def branch_env(env: Env) -> Env:
    """Return another environment in which the same episode goes on (see `EpisodeSeat.branch`), inside copies of the wrappers.

    Raises:
        ResetNeeded: If no episode has begun, or it was broken off.
        EpisodeNotPicklable: If something in the episode, or a wrapper, cannot be copied.
    """
    seat = seat_of(env)
    memo = new_memo(seat.definition.shared_parts().values())
    memo[id(seat)] = seat.branch()
    try:
        return deep_copy(env, memo)
    except Exception as error:
        raise EpisodeNotPicklable(f"a wrapper around {type(seat.definition).__name__} cannot be copied: {error}") from error


def refuse_short_history(env: Env, trainer: str) -> None:
    """Raise if an environment shows a part of its conversation only, to a trainer whose conversations only grow.

    Raises:
        ConfigurationError: It says why this cannot be.
    """
    definition = seat_of(env).definition
    if isinstance(definition, GameTurnsEnv) and "get_prompt_messages" in definition.replaced_hooks():
        raise ConfigurationError(
            f"{trainer} puts what an environment answers behind the conversation so far, so a conversation of which a part is left out"
            " (history=, images=, max_prompt_tokens=) cannot be played: make the environment without these, or train on"
            " vfgym.training.samples, which gives a sample for each turn"
        )


def added_messages(before: Sequence[Message], observation: Sequence[Message], trainer: str) -> Sequence[Message]:
    """Return what an observation has behind the one before and the answer to it.

    Raises:
        ConfigurationError: If it does not go on from there: conversations of this trainer only grow.
    """
    known = len(before)
    if len(observation) <= known or list(observation[:known]) != list(before):
        raise ConfigurationError(
            f"{trainer} puts what an environment answers behind the conversation so far, and this environment rewrote its conversation:"
            " such prompts cannot be played here, but vfgym.training.samples gives a sample for each turn of them"
        )
    return observation[known + 1 :]


def read_answer(text: str, tools: Sequence[Mapping[str, Any]]) -> AssistantMessage:
    """Return the message that a model's text is: where there are tools, with the calls and the thoughts in it.

    >>> read_answer("The answer is 4.", [])
    AssistantMessage(content='The answer is 4.')
    """
    if not tools:
        return AssistantMessage(text)
    said = parse_text(text)
    return AssistantMessage(said.content, reasoning_content=said.reasoning, tool_calls=said.tool_calls or None)


def write_text(messages: Sequence[Message]) -> str:
    r"""Return messages as one text: their texts, and calls as `read_answer` reads them. Pictures are left out.

    >>> from vfgym.messages import UserMessage
    >>> write_text([UserMessage("1 + 1?"), UserMessage("Be quick.")])
    '1 + 1?\n\nBe quick.'
    """
    return "\n\n".join(part for message in messages for part in _parts(message) if part)


def _parts(message: Message) -> list[str]:
    calls = [{"name": call.name, "arguments": _value(call.arguments)} for call in message.get("tool_calls") or ()]
    return [content_text(message["content"] or ""), *(f"<tool_call>{json.dumps(call)}</tool_call>" for call in calls)]


def _value(arguments: str) -> Any:
    try:
        return parse_json(arguments)
    except ValueError:
        return arguments
