"""What ends an episode: stop conditions, errors, and how an author's own rollout ended; and how that is recorded in the state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from vfgym.aio.deadlines import DeadlinePassed
from vfgym.aio.steps import Steps
from vfgym.calls import is_awaitable
from vfgym.endings import failure_cause
from vfgym.episode.hooks import MarkedMethod
from vfgym.errors import Error, LimitReached, ModelError, OverlongPromptError
from vfgym.limits import RolloutMeter
from vfgym.state import State, write

ROLLED_OUT = "rollout_completed"
"""Stop condition of an author's `rollout()` that names none itself."""

LIMIT_REACHED = "limit_reached"
"""Stop condition of an episode that used up what its rollout, or whoever asked, may spend (see `vfgym.limits`)."""


def check_stops(stops: list[MarkedMethod], state: State, bounded: Callable[[Awaitable[Any]], Awaitable[Any]] | None = None) -> Steps[bool]:
    """Check stop conditions in order; the first that holds completes the state and names itself in it.

    Args:
        stops: The conditions.
        state: The episode.
        bounded: Bounds what is awaited, where the episode has a deadline.
    """
    for name, call in stops:
        holds = call(state)
        if holds is False:  # what nearly every condition says nearly every time
            continue
        if is_awaitable(holds):
            holds = yield (holds if bounded is None else bounded(holds))
        if holds:
            complete(state, name)
            return True
    return False


def complete(state: State, stop_condition: str | None) -> None:
    """Mark a state as completed, and as truncated where a limit ended it or an answer was cut. It may be one that was made by hand.

    Args:
        state: The episode.
        stop_condition: What ended it; None where that has no name.
    """
    is_truncated = (
        stop_condition == LIMIT_REACHED or state.get("is_truncated", False) or any([step["is_truncated"] for step in state["trajectory"]])
    )
    write(state, {"is_completed": True, "stop_condition": stop_condition, "is_truncated": is_truncated})


def note_error(state: State, error: Error) -> None:
    """Record an error that ends the episode. An overlong prompt and a limit that is used up are truncations and no errors."""
    if isinstance(error, OverlongPromptError):
        state["prompt_too_long"] = True
        state["is_truncated"] = True
    elif isinstance(error, LimitReached):
        state[LIMIT_REACHED] = True
        state["is_truncated"] = True
    else:
        state["error"] = error
        state.failure_cause = failure_cause(error, otherwise="environment")


def model_failure(error: BaseException) -> Error | DeadlinePassed:
    """Return why whoever answers could not, as what ends an episode: a time that passed, or an `Error`, which is the policy's doing.

    Only an error that knows better is not: a provider's, say.
    """
    if isinstance(error, TimeoutError) and not isinstance(error, Error):
        return DeadlinePassed(*error.args)
    failure = error
    if not isinstance(failure, Error):
        failure = ModelError(f"the model failed: {error!r}")
        failure.__cause__ = error
    failure.failure_cause = failure_cause(failure, otherwise="policy")
    return failure


def error_stop(state: State) -> str:
    """Return the stop condition that stands for the error that was noted last."""
    if state["error"] is not None:
        return "has_error"
    return LIMIT_REACHED if LIMIT_REACHED in state else "prompt_too_long"


def note_time_over(state: State, limit: RolloutMeter | None) -> str:
    """Record that the time of an episode is over, and return the stop condition for it.

    Args:
        state: The episode.
        limit: What its rollout may spend.
    """
    if limit is not None and limit.is_out_of_time:
        return LIMIT_REACHED
    state["timed_out"] = True
    return "timeout_reached"


def note_end(state: State, error: Exception | None, limit: RolloutMeter | None = None) -> None:
    """Record how an author's own rollout ended, unless it has named its stop condition itself.

    Args:
        state: The episode.
        error: An `Error` or a `DeadlinePassed` that the rollout raised; None where it returned.
        limit: What it may spend.
    """
    stop_condition = ROLLED_OUT
    if isinstance(error, DeadlinePassed):
        stop_condition = note_time_over(state, limit)
    elif isinstance(error, Error):
        note_error(state, error)
        stop_condition = error_stop(state)
    if state["stop_condition"] is None:
        complete(state, stop_condition)
