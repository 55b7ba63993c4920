"""When a rollout is repeated, and after how long."""

from __future__ import annotations

import random
from typing import Any

import pytest

from vfgym import State
from vfgym.endings import Ending
from vfgym.errors import Error, InfraError, InvalidModelResponseError, ModelError
from vfgym.runs.retries import is_retryable, seconds_before_retry, should_play_again


@pytest.mark.parametrize(
    ("error", "is_repeated"),
    [
        (InfraError("no disk"), True),
        (InvalidModelResponseError("no choices"), True),
        (ModelError("it refuses"), False),
        (Error("something else"), False),
        (ValueError("a bug"), False),
        (None, False),
    ],
)
def test_what_may_go_away_by_itself_is_repeated(error: Any, is_repeated: bool) -> None:
    state = State(error=error)
    assert is_retryable(state) is is_repeated
    assert should_play_again(state) is is_repeated


@pytest.mark.parametrize("ending", [None, *Ending])
def test_an_ending_of_the_infrastructures_doing_is_repeated(ending: Ending | None) -> None:
    state = State(error=None)
    state.ending = ending
    assert not is_retryable(state)
    assert should_play_again(state) is (ending is Ending.INFRASTRUCTURE_FAILED)


@pytest.mark.parametrize(("attempt", "seconds"), [(0, 1), (1, 2), (2, 4), (5, 32), (6, 60), (7, 60), (500, 60)])
def test_waits_double_up_to_a_minute_with_jitter(attempt: int, seconds: float) -> None:
    random.seed(0)
    waits = [seconds_before_retry(attempt) for _ in range(200)]
    assert 0.75 * seconds <= min(waits) < 0.8 * seconds
    assert 1.2 * seconds < max(waits) <= 1.25 * seconds
