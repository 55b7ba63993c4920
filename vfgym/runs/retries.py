"""When a rollout is repeated: where what ended it may go away by itself."""

from __future__ import annotations

import random

from vfgym.errors import InfraError, InvalidModelResponseError
from vfgym.state import State

RETRYABLE = (InfraError, InvalidModelResponseError)
_FIRST_WAIT = 1.0
_LONGEST_WAIT = 60.0
"""Seconds before a rollout is repeated: they double from the first, with jitter."""


def is_retryable(state: State) -> bool:
    """Say whether an `InfraError` or an unusable response of the model ended an episode: what the rollout API documents."""
    return isinstance(state.get("error"), RETRYABLE)


def should_play_again(state: State) -> bool:
    """Say whether what ended an episode may go away by itself: an unusable response, or anything of the infrastructure's doing."""
    return is_retryable(state) or (state.ending is not None and state.ending.is_missing)


def seconds_before_retry(attempt: int) -> float:
    """Return how long to wait before a rollout is repeated; `attempt` counts from 0."""
    return min(_LONGEST_WAIT, _FIRST_WAIT * 2.0**attempt) * random.uniform(0.75, 1.25)
