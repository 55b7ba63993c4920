"""What is called where an isolated agent runs: it is loaded, begins an episode, and answers. All of it comes back as JSON data."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import sys
from collections.abc import Awaitable, Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from vfgym.agents.base import Agent, Answering, per_episode
from vfgym.agents.loading import load_agent
from vfgym.errors import InvalidMessage
from vfgym.messages import Message, Response, ResponseMessage, ResponseTokens, as_message
from vfgym.messages.responses import as_plain


class Source(NamedTuple):
    """Where an agent comes from."""

    name: str
    directory: str
    path: tuple[str, ...]
    """That of Python's modules."""


class Beginning(NamedTuple):
    """What a process must know to begin an episode."""

    source: Source
    action_space: gym.Space[Any]
    observation_space: gym.Space[Any]
    rng: np.random.Generator


class _Seat(gym.Env[Any, Any]):
    """What an agent is given for the environment."""

    def __init__(self, beginning: Beginning) -> None:
        self.action_space, self.observation_space = beginning.action_space, beginning.observation_space
        self.np_random = beginning.rng


@functools.cache
def _runner() -> asyncio.Runner:
    """Return what runs an async agent, whose connections belong to one loop."""
    return asyncio.Runner()


_answering: list[Answering] = []
"""What answers in the episode that has begun."""


@functools.cache
def _load_agent(source: Source) -> Agent:
    os.chdir(source.directory)
    sys.path[:] = source.path
    return load_agent(source.name)


def check(source: Source) -> None:
    """Load an agent, to see that it can be."""
    _load_agent(source)


def begin(beginning: Beginning) -> None:
    """Begin an episode."""
    _answering[:] = [per_episode(_load_agent(beginning.source))(_Seat(beginning))]


def answer(observation: list[Message], info: dict[str, Any]) -> dict[str, Any]:
    """Return the agent's answer in the episode, as data (see `read_answer`).

    Raises:
        TypeError: If it is nothing that has a form in JSON.
    """
    given = _answering[0](observation, info)
    value = _runner().run(_await_answer(given)) if inspect.isawaitable(given) else given
    if isinstance(value, Response):
        return {"response": _plain(value.model_dump())}
    if isinstance(value, Message):
        return {"message": _plain(as_plain(value))}
    return {"value": _plain(value)}


async def _await_answer(given: Awaitable[Any]) -> Any:
    return await given


def _plain(value: Any) -> Any:
    """Return JSON data."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"an agent in a process of its own answers with text, a message, a Response or JSON data; got {value!r:.200}")


def read_answer(data: Any) -> Any:
    """Return the answer that data of another process stand for. They may be anything.

    Raises:
        InvalidMessage: If they are no answer.
    """
    match data:
        case {"value": value}:
            return value
        case {"message": dict(fields)}:
            return as_message(fields)
        case {"response": {"message": dict(fields)}}:
            tokens = fields.get("tokens")
            try:
                own = {**fields, "tokens": ResponseTokens(**tokens)} if isinstance(tokens, dict) else fields
                return Response(**{**data["response"], "message": ResponseMessage(**own)})
            except TypeError as error:
                raise InvalidMessage(f"an agent's process said something that is no Response: {error}") from error
    raise InvalidMessage("an agent's process said something that is no answer")
