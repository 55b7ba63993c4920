"""Episodes that checks play, what they answer in them, and what is compared of them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import gymnasium as gym

from vfgym.agents.base import seat_of
from vfgym.bounded_json import parse_json
from vfgym.checks.comparison import Broken
from vfgym.episode import BaseEpisode
from vfgym.messages import AssistantMessage, Response, ToolCall

LONGEST = 30
"""Turns after which a checked episode is cut off."""

SILLY_ANSWERS: tuple[Any, ...] = (
    "",
    "\x00 \N{PILE OF POO}" * 50,
    AssistantMessage(None),
    AssistantMessage(None, tool_calls=[ToolCall("1", "no_such_tool", "{}")]),
    {"role": "assistant", "content": [{"type": "text", "text": "parts"}]},
    AssistantMessage("", tool_calls=[ToolCall("1", "x", "{not json"), ToolCall("1", "x", "[1]")]),
)
"""Assistant messages that no model would send on purpose."""

_SEEDS = (3, None, None)
"""The seeds of the episodes that are compared: those without one go on from the one before."""


def episode_of(env: gym.Env[Any, Any]) -> BaseEpisode:
    """Return the episode that an environment has begun."""
    episode = seat_of(env).episode
    if episode is None:
        raise Broken("reset() began no episode")
    return episode


def play_episode(env: gym.Env[Any, Any], seed: int | None, actions: Sequence[Any] | None = None) -> list[Any]:
    """Play one episode with sampled (or given) actions, and return all that came back."""
    history: list[Any] = [env.reset(seed=seed)]
    for turn in range(LONGEST):
        action = env.action_space.sample() if actions is None else actions[turn]
        result = env.step(action)
        history.append((action, *result))
        if result[2] or result[3]:
            break
    return history


def score_of(env: gym.Env[Any, Any]) -> float:
    """Return what an episode has earned as a whole. One that goes on is truncated."""
    if not episode_of(env).is_over:
        seat_of(env).truncate()
    return float(episode_of(env).state["reward"])


def record_episodes(env: gym.Env[Any, Any]) -> list[Any]:
    """Play a few seeded episodes, close the environment, and return all that came back as JSON data."""
    env.action_space.seed(7)
    episodes = [as_plain(play_episode(env, seed), timings_of(env)) for seed in _SEEDS]
    env.close()
    return episodes


def expect_same_episodes(first: list[Any], second: list[Any], what: str) -> None:
    """Raise `Broken` if two records differ, and say where they begin to.

    Args:
        first: A record, as `record_episodes` returns it.
        second: The other.
        what: Who played them, for the message.
    """
    if first == second:
        return
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        for turn, (given, again) in enumerate(zip(one, other, strict=False)):
            if given != again:
                where = "reset()" if turn == 0 else f"turn {turn}"
                shown, shown_again = find_difference(given, again)
                raise Broken(f"{what} from the same seed differ, first in {where} of episode {number + 1}: {shown} and {shown_again}")
        if len(one) != len(other):
            raise Broken(f"{what} from the same seed differ: episode {number + 1} has {len(one) - 1} turns and {len(other) - 1}")


def describe_message(message: Any) -> str:
    """Return what a message says in a few words, for the text of an error: its content, or the tools that it calls.

    >>> describe_message("42"), describe_message(AssistantMessage(None, tool_calls=[ToolCall("1", "buy", '{"amount": 2}')]))
    ("'42'", 'calling buy({"amount": 2})')
    """
    message = message.message if isinstance(message, Response) else message
    if isinstance(message, Mapping):
        calls = message.get("tool_calls") or []
        if calls and not message["content"]:
            return ", ".join(f"calling {call['function']['name']}({call['function']['arguments']:.80})" for call in calls)
        message = message["content"]
    return f"{message!r:.100}"


def find_difference(one: Any, other: Any) -> tuple[str, str]:
    """Return the first parts that differ in two values of JSON data, shortened to be shown."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return next((find_difference(value, other[key]) for key, value in one.items() if value != other[key]), ("", ""))
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return next((find_difference(value, again) for value, again in zip(one, other, strict=True) if value != again), ("", ""))
    return f"{one!r:.100}", f"{other!r:.100}"


def as_plain(value: Any, timings: Collection[str] = ()) -> Any:
    """Return a value as JSON data, in which the metrics with these names are left out."""
    plain = parse_json(json.dumps(value, default=lambda other: other.tolist() if hasattr(other, "tolist") else repr(other)))
    return _without(plain, timings) if timings else plain


def _without(plain: Any, names: Collection[str]) -> Any:
    if isinstance(plain, dict):
        return {name: _without(value, names) for name, value in plain.items() if name not in names}
    return [_without(item, names) for item in plain] if isinstance(plain, list) else plain


def timings_of(env: gym.Env[Any, Any]) -> list[str]:
    """Return the metrics of an environment that measure seconds."""
    return seat_of(env).definition.rubric.timing_names
