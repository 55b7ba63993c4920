"""`IsolatedAgent`: an agent in processes of its own, which can be killed."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import os
import sys
from collections.abc import Awaitable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from vfgym.agents.base import Agent, Answering, per_episode, seat_of
from vfgym.agents.loading import AGENTS, load_agent
from vfgym.agents.oracle import keep_awaitable
from vfgym.errors import ConfigurationError, WorkerTimeout
from vfgym.messages import Message
from vfgym.workers import Limits, Workers

logger = logging.getLogger(__name__)

_LOADING_SECONDS = 60.0


class _Source(NamedTuple):
    """Where an agent comes from."""

    name: str
    directory: str
    path: tuple[str, ...]
    """That of Python's modules."""


class _Beginning(NamedTuple):
    """What a process must know to begin an episode."""

    source: _Source
    action_space: gym.Space[Any]
    observation_space: gym.Space[Any]
    rng: np.random.Generator


class IsolatedAgent:
    """An agent that answers in a process of its own in each episode, so that one that never returns can be stopped.

    An evaluation stops waiting for it at the deadline of the rollout (``timeout_seconds`` of the environment), and the process is killed.
    In a loop of your own, one answer may take that time. Processes are used again, for one episode after the other, and end with `close`,
    or with this object.

    The agent gets what is sent to it: observation and info. Where it has ``for_episode(env)``, `env` is a stand-in that has the spaces of
    the environment and random numbers (``np_random``), and no more. What it prints goes to standard error.
    """

    def __init__(self, name: str) -> None:
        """Load the agent in a process, to see that it can be.

        Args:
            name: The agent, as ``module:callable`` (see `vfgym.agents.load_agent`).

        Raises:
            ConfigurationError: If it is something else, there is no such agent, or it cannot be loaded within a minute.
        """
        if not isinstance(name, str) or ":" not in name:
            given = f"{name!r}, which has a name of its own" if isinstance(name, str) and name in AGENTS else repr(name)
            raise ConfigurationError(f"an agent that is to run in a process of its own must be named as module:callable; got {given}")
        self.name = name
        self._source = _Source(name, os.getcwd(), tuple(sys.path))
        self._idle = [_process()]
        self._has_warned = False
        try:
            self._idle[0].call_sync("check", self._source, wall_seconds=_LOADING_SECONDS)
        except WorkerTimeout as error:
            raise ConfigurationError(f"agent {name!r} was not loaded within {_LOADING_SECONDS:g} s") from error

    def for_episode(self, env: gym.Env[Any, Any]) -> Answering:
        """Return what answers in this episode."""
        seconds = getattr(seat_of(env).definition, "timeout_seconds", None)
        if seconds is None and not self._has_warned:
            self._has_warned = True
            logger.warning("nothing stops %s if it never answers: give the environment a deadline, such as timeout_seconds=60", self.name)
        rng = env.unwrapped.np_random.spawn(1)[0]
        # One more, so that an evaluation's own deadline comes first.
        limits: Limits = {} if seconds is None else {"wall_seconds": seconds + 1}
        return _IsolatedAnswers(self._idle, _Beginning(self._source, env.action_space, env.observation_space, rng), limits)

    def close(self) -> None:
        """End the processes of episodes that are over."""
        self._idle.clear()


class _IsolatedAnswers:
    """What answers in one episode. It has a process from the first answer on, and gives it back with its end, or an error."""

    def __init__(self, idle: list[Workers], beginning: _Beginning, limits: Limits) -> None:
        self._idle = idle
        self._beginning = beginning
        self._limits = limits
        self._process: Workers | None = None

    def __call__(self, observation: list[Message], info: dict[str, Any]) -> Any:
        return keep_awaitable(self._answer(observation, info))

    def __del__(self) -> None:
        self._give_back()

    async def _answer(self, observation: list[Message], info: dict[str, Any]) -> Any:
        try:
            if self._process is None:
                self._process = self._idle.pop() if self._idle else _process()
                await self._process.call("begin", self._beginning, **self._limits)
            return await self._process.call("answer", observation, info, **self._limits)
        except BaseException:
            self._give_back()  # a traceback may keep this object for long
            raise

    def _give_back(self) -> None:
        if self._process is not None:
            self._idle.append(self._process)
            self._process = None


def _process() -> Workers:
    return Workers(__name__, is_single=True)


# In the process


class _Seat(gym.Env[Any, Any]):
    """What an agent is given for the environment."""

    def __init__(self, beginning: _Beginning) -> None:
        self.action_space, self.observation_space = beginning.action_space, beginning.observation_space
        self.np_random = beginning.rng


_runner = asyncio.Runner()
"""Runs an async agent, whose connections belong to one loop."""
_answering: list[Answering] = []
"""What answers in the episode that has begun."""


@functools.cache
def _load_agent(source: _Source) -> Agent:
    os.chdir(source.directory)
    sys.path[:] = source.path
    return load_agent(source.name)


def check(source: _Source) -> None:
    """Load an agent, to see that it can be."""
    _load_agent(source)


def begin(beginning: _Beginning) -> None:
    """Begin an episode."""
    _answering[:] = [per_episode(_load_agent(beginning.source))(_Seat(beginning))]


def answer(observation: list[Message], info: dict[str, Any]) -> Any:
    """Return the agent's answer in the episode."""
    given = _answering[0](observation, info)
    return _runner.run(_await_answer(given)) if inspect.isawaitable(given) else given


async def _await_answer(given: Awaitable[Any]) -> Any:
    return await given
