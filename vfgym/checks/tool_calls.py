"""Checks of tools and of the conversation: schemas that can be called, every call answered, no message lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from vfgym.agents.base import seat_of
from vfgym.checks.comparison import Broken, Promise
from vfgym.checks.episodes import LONGEST, describe_message, episode_of
from vfgym.envs import ChatEnv, MultiTurnEnv, ToolEnv
from vfgym.envs.seat import as_response
from vfgym.errors import ToolError
from vfgym.messages import AssistantMessage, Message, ToolCall
from vfgym.tools import Tool, sample_arguments

_CALLS = 5
"""Sampled calls of each tool."""


def message_promises(definition: ChatEnv, make: Callable[[], gym.Env[Any, Any]]) -> list[Promise]:
    """Return what is promised of the messages of an environment, and of its tools where it has some."""
    promises: list[Promise] = [("loses no message of the conversation", lambda: _keeps_messages(make))]
    if definition.tool_defs:
        promises.append(("answers each tool call with one message, in order", lambda: _answers_calls(make)))
        if isinstance(definition, ToolEnv):
            promises.append(("its tools take what their schemas say", lambda: _takes_schemas(definition)))
    return promises


def _takes_schemas(definition: ToolEnv) -> str:
    rng = np.random.default_rng(0)
    for tool in definition.tool_defs:
        if not (tool.description or "").strip():
            raise Broken(f"the tool {tool.name} has no description: write a docstring, since it is all that a model knows of the tool")
        schema: dict[str, Any] = tool.parameters
        if unknown := [name for name in schema.get("required", ()) if name not in schema.get("properties", {})]:
            raise Broken(f"the schema of {tool.name} requires {', '.join(map(repr, unknown))}, and describes no such argument")
        for _ in range(_CALLS):
            call = _sample_call(tool, rng, 0)
            try:
                definition._arguments_of(call)
            except ToolError as error:
                raise Broken(f"{tool.name} refuses {call.arguments:.150}, which fits its schema: {error}") from error
    return f"{len(definition.tool_defs)} tools"


def _sample_call(tool: Tool, rng: np.random.Generator, number: int) -> ToolCall:
    return ToolCall(f"call_{number}", tool.name, json.dumps(sample_arguments(tool.parameters, rng)))


def _answers_calls(make: Callable[[], gym.Env[Any, Any]]) -> str:
    """Call every tool, an unknown one, and every tool again, in one message; and each tool alone."""
    env = make()
    rng = np.random.default_rng(0)
    tools: Sequence[Tool] = seat_of(env).definition.tool_defs
    several = [_sample_call(tool, rng, number) for number, tool in enumerate([*tools, *tools])]
    several.insert(len(tools), ToolCall("call_unknown", "no_such_tool", "{}"))
    compared = 0
    for calls in (several, *([_sample_call(tool, rng, 0)] for tool in tools)):
        env.reset(seed=0)
        begun = len(episode_of(env).conversation())
        message = AssistantMessage(None, tool_calls=calls)
        observation, _, terminated, truncated, _ = env.step(message)
        if terminated or truncated:
            continue  # where an answer ends the episode, nobody is left to be told
        _expect_answered(observation)
        if not any(each.get("tool_calls") for each in observation[begun:]):
            continue  # the environment shows a history of its own
        compared += 1
    return f"{compared} messages with calls" if compared else "not compared: each message with calls ends the episode"


def _expect_answered(conversation: Sequence[Message]) -> None:
    """Raise `Broken` unless each call is followed by one tool message for it, in the order of the calls, as providers ask for."""
    for index, message in enumerate(conversation):
        calls = message.get("tool_calls") or []
        answers = []
        for answer in conversation[index + 1 :]:
            if answer["role"] != "tool":
                break
            answers.append(answer["tool_call_id"])
        expected = [call.id for call in calls]
        if calls and answers != expected:
            names = ", ".join(f"{call.name} ({call.id})" for call in calls)
            raise Broken(f"the calls {names} should get one tool message each, in order; those that follow are for {answers}")


def _keeps_messages(make: Callable[[], gym.Env[Any, Any]]) -> str:
    env = make()
    definition = seat_of(env).definition
    if definition.replaces("get_prompt_messages"):
        return "not compared: get_prompt_messages shows a history of its own"
    renders_all = getattr(type(definition), "render_completion", None) is MultiTurnEnv.render_completion
    env.action_space.seed(2)
    turns = 0
    for seed in range(3):
        before, _ = env.reset(seed=seed)
        for turn in range(1, LONGEST + 1):
            action = env.action_space.sample()
            given = as_response(action).message
            observation, _, terminated, truncated, _ = env.step(action)
            turns += 1
            is_over = terminated or truncated
            if is_over and not renders_all:
                break
            _expect_extended(before, given, observation, f"after turn {turn} of the episode with seed {seed}")
            if is_over:
                break
            before = observation
    return f"{turns} turns"


def _expect_extended(before: Sequence[Message], answer: Message, after: Sequence[Message], where: str) -> None:
    """Raise `Broken` unless a conversation begins with the one before and its answer."""
    for index, message in enumerate(before):
        if index >= len(after) or after[index] != message:
            raise Broken(f"{where}, message {index + 1} of the conversation is lost or changed: it was {describe_message(message)}")
    place = len(before)
    if place >= len(after) or after[place]["role"] != "assistant" or after[place]["content"] != answer["content"]:
        shown = describe_message(after[place]) if place < len(after) else "nothing"
        raise Broken(f"{where}, the answer {describe_message(answer)} is lost: the conversation has {shown} in its place")
