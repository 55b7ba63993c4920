"""One episode of an evaluation, as plain synchronous code: it runs inside a worker's `vfgym.aio.bridge`.

So any Gymnasium wrapper around the environment is stepped as it is, while agents and hooks wait on the event loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias, cast

import gymnasium as gym

from vfgym.agents.base import Answering
from vfgym.agents.human import HumanAnswers
from vfgym.aio.background import wait
from vfgym.aio.deadlines import Before, DeadlinePassed
from vfgym.aio.threads import in_place, on_thread
from vfgym.calls import function_name, is_awaitable, rollout_failure
from vfgym.envs.chat import ChatEnv
from vfgym.episode import BaseEpisode
from vfgym.errors import Error, InvalidAction, ModelError
from vfgym.evaluation.replicas import Replica
from vfgym.lifecycle import is_blocking
from vfgym.messages import Message
from vfgym.state import State

Begin: TypeAlias = "Callable[[gym.Env[Any, Any]], Answering]"
"""Gives what answers in the episode that an environment has just begun."""


class Rollout(NamedTuple):
    """One episode that is to be played."""

    example_id: int
    number: int
    """Which rollout of the example it is, from 0."""
    seed: int
    """Seed of its random numbers."""
    fingerprint: str | None = None
    """That of its task (see `vfgym.results.fingerprint_of`)."""


class Played(NamedTuple):
    """An episode that was played, as far as it went."""

    rollout: Rollout
    definition: ChatEnv
    """The environment that played it: one of a group's, where the environment is a group."""
    state: State | None
    """The episode; None if it could not begin."""
    seen_return: float
    """Sum of the rewards as the wrappers passed them on."""
    error: Exception | None
    """What kept it from going on, other than the errors that the episode itself records."""


def play(replica: Replica, begin: Begin, rollout: Rollout) -> Played:
    """Play one episode to its end.

    What the environment or the agent raises becomes the episode's error, unless it ends the run (see `ends_run`); but not what
    `begin(env)` raises: it would recur in every episode, so it stops the run.
    """
    env, seat = replica
    try:
        observation, info = env.reset(seed=rollout.seed, options={"example_id": rollout.example_id, "split": "eval"})
    except BaseException as error:
        return Played(rollout, seat.definition, None, 0.0, rollout_failure(error))
    answer = begin(env)
    definition = cast(ChatEnv, cast(BaseEpisode, seat.episode).definition)
    state = cast(State, seat.state)
    seen_return = 0.0
    failure: Exception | None = None
    is_over = state["is_completed"]
    try:
        while not is_over:
            try:
                action = asked_in_time(answer, observation, info, cast(BaseEpisode, seat.episode).deadline)
            except DeadlinePassed as passed:
                observation, last_reward, _, _, info = seat.fail(passed)
                seen_return += last_reward
                break
            except BaseException as raised:
                of_agent = rollout_failure(raised)
                failure = None if isinstance(of_agent, Error) else of_agent
                observation, last_reward, _, _, info = seat.fail(_agent_error(of_agent))
                seen_return += last_reward
                break
            try:
                observation, reward, terminated, truncated, info = env.step(action)
            except InvalidAction as error:
                observation, last_reward, _, _, info = seat.fail(error)
                seen_return += last_reward
                break
            seen_return += float(reward)
            is_over = terminated or truncated
            state = cast(State, seat.state)
        if state["reward"] is None or not state["is_completed"]:
            seat.truncate()  # a wrapper ended the episode, or it was over before the first turn
    except BaseException as error:
        return Played(rollout, definition, state, seen_return, rollout_failure(error))
    state = cast(State, seat.state)
    if isinstance(answer, HumanAnswers):
        own_info = cast(BaseEpisode, seat.episode).info()  # a wrapper may have passed on something else
        answer.show_end(observation, own_info, None if seat.defers_scoring else seen_return)
    return Played(rollout, definition, state, seen_return, failure)


def asked_in_time(answer: Answering, observation: list[Message], info: dict[str, Any], deadline: float | None) -> Any:
    """Return what an agent answers, if it answers before the deadline of its episode.

    A blocking agent is asked on a thread, so that others go on meanwhile. A plain one holds up its caller, and so cannot be bounded.

    Args:
        answer: The agent.
        observation: What it is shown.
        info: What it is told besides.
        deadline: A time of `time.monotonic`; None for none (see `BaseEpisode.deadline`).

    Raises:
        DeadlinePassed: If it did not answer in time: it was cancelled, or its thread given up.
    """
    if is_blocking(answer):
        action: Any = _in_time(on_thread(answer, observation, info), deadline)
    else:
        action = in_place(function_name(answer), answer, observation, info)
    return _in_time(action, deadline) if is_awaitable(action) else action


def _in_time(awaitable: Awaitable[Any], deadline: float | None) -> Any:
    return wait(awaitable if deadline is None else Before(deadline, awaitable))


def _agent_error(error: Exception) -> Error:
    """Return what an agent raised as what ends its episode. A `TimeoutError` of its own is an error as any other, not the deadline."""
    if isinstance(error, Error):
        return error
    failure = ModelError(f"the agent failed: {error!r}")
    failure.__cause__ = error
    return failure
