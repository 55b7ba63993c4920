"""Agents: who answers the conversation.

An agent is a function ``agent(observation, info)``, plain or async, that returns the next message: text, an assistant
message, or a `Response`. What an agent must remember of one episode it keeps in a function of its own for each episode,
which ``for_episode(env)`` gives; so one agent object serves any number of episodes at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import gymnasium as gym

from vfgym.envs.seat import Action, EpisodeSeat
from vfgym.errors import ConfigurationError
from vfgym.messages import Message

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


@runtime_checkable
class NamedAgent(EpisodeAgent, Protocol):
    """An agent that holds connections or processes, and can be made again by what a run's spec says of it."""

    def as_spec(self) -> dict[str, Any] | None:
        """Return the fields of a `vfgym.RunSpec` that say who plays; None where they cannot."""
        ...

    def close(self) -> Awaitable[None] | None:
        """Release what it holds."""
        ...


def per_episode(agent: Agent) -> Callable[[gym.Env[Any, Any]], Answering]:
    """Return a function from an environment that has just begun an episode to what answers in it for `agent`."""
    return agent.for_episode if isinstance(agent, EpisodeAgent) else lambda env: agent


def seat_of(env: gym.Env[Any, Any]) -> EpisodeSeat:
    """Return the chat environment inside wrappers.

    Raises:
        ConfigurationError: If there is none: `env` is some other Gymnasium environment.
    """
    if not isinstance(env, gym.Env):
        raise ConfigurationError(f"a chat environment is needed, or the id of one, got {type(env).__name__}")
    seat: object = env.unwrapped
    if not isinstance(seat, EpisodeSeat):
        name = repr(env.spec.id) if env.spec is not None else type(seat).__name__
        chat_id = f"gymnasium/{env.spec.id}" if env.spec is not None else ""
        registered = f"take {chat_id!r}, or " if chat_id in gym.registry else ""
        raise ConfigurationError(
            f"{name} is not a chat environment, so it has no conversation to answer: {registered}wrap it with vfgym.to_chat({name})"
        )
    return seat
