"""Playing one rollout, and again where what failed may go away by itself."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from vfgym.clients import Client, is_permanent_refusal
from vfgym.envs.chat import ChatEnv
from vfgym.errors import Error, InfraError, InvalidModelResponseError
from vfgym.rollouts import Player, RolloutFailed
from vfgym.state import State

RETRYABLE = (InfraError, InvalidModelResponseError)
_FIRST_WAIT = 1.0
_LONGEST_WAIT = 60.0
"""Seconds before a rollout is repeated: they double from the first, with jitter."""


async def play_with_retries(
    player: Player,
    env: ChatEnv,
    new_task: Callable[[], dict[str, Any]],
    client: Client,
    model: str,
    sampling_args: dict[str, Any],
    *,
    max_retries: int,
    strict: bool,
) -> tuple[State, Exception | None]:
    """Play one rollout; repeat it where an `InfraError` or an unusable response of the model ended it.

    Args:
        player: Who plays.
        env: The environment that plays.
        new_task: Gives the task, afresh for each attempt.
        client: Who is asked.
        model: Name of the model.
        sampling_args: Generation parameters.
        max_retries: How often it is repeated at most.
        strict: Whether an exception that is no `Error` is raised.

    Returns:
        The state, and the exception that broke the rollout off, where that is no `Error`.

    Raises:
        Exception: An SDK's error that says that the key or the model is refused: no other rollout can succeed either. With `strict`,
            any that is no `Error`.
    """
    for attempt in range(max_retries + 1):
        failure: Exception | None = None
        try:
            state = await player.play(env, new_task(), client, model, sampling_args)
        except RolloutFailed as failed:
            failure = failed.__cause__ if isinstance(failed.__cause__, Exception) else failed
            state = failed.state
            if strict or is_permanent_refusal(failure):
                raise failure from failure.__cause__
            if not isinstance(failure, Error):
                break
        if attempt == max_retries or not isinstance(state.get("error"), RETRYABLE):
            break
        await asyncio.sleep(min(_LONGEST_WAIT, _FIRST_WAIT * 2**attempt) * random.uniform(0.75, 1.25))
    return state, failure
