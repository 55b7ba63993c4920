"""`Retries`: how often something is tried, after which errors and pauses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import verifiers_compat as vf
from verifiers_compat.envs import sandbox_retries
from verifiers_compat.envs.sandbox_retries import Retries, is_retryable_sandbox_api_error, is_retryable_sandbox_read_error
from verifiers_compat.utils.threaded_sandbox_client import CommandTimeoutError
from vfgym.errors import ConfigurationError


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made, none of which takes time."""
    made: list[float] = []

    async def sleep(seconds: float) -> None:
        made.append(seconds)

    monkeypatch.setattr(sandbox_retries.asyncio, "sleep", sleep)
    return made


def failing(times: int, error: Exception) -> Callable[..., Any]:
    """Return a function that fails so many times, then returns its arguments and how often it was called."""
    calls = 0

    async def func(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls <= times:
            raise error
        return args, kwargs, calls

    return func


async def test_pauses_grow_up_to_the_longest_one_and_arguments_are_handed_on(pauses: list[float]) -> None:
    retries = Retries(max_retries=6, base_delay=0.5, backoff_factor=3.0, max_backoff_seconds=10.0, jitter=0.0)
    assert await retries(failing(5, ValueError()))(1, a=2) == ((1,), {"a": 2}, 6)
    assert pauses == [0.5, 1.5, 4.5, 10.0, 10.0]


async def test_a_pause_is_longer_by_chance_by_the_jitter_at_most(pauses: list[float]) -> None:
    await Retries(max_retries=50, base_delay=1.0, backoff_factor=1.0, jitter=0.5)(failing(49, ValueError()))()
    assert all(1.0 <= pause <= 1.5 for pause in pauses)
    assert len({*pauses}) > 1


@pytest.mark.parametrize("most", [1, 2])
async def test_the_last_error_is_raised(pauses: list[float], most: int) -> None:
    func = failing(9, ValueError("gone"))
    with pytest.raises(ValueError, match="gone"):
        await Retries(max_retries=most)(func)()
    assert len(pauses) == most - 1


async def test_other_errors_are_raised_at_once(pauses: list[float]) -> None:
    with pytest.raises(KeyError):
        await Retries()(failing(1, KeyError()), ValueError)()
    assert pauses == []
    assert (await Retries()(failing(1, ValueError()), ValueError)())[-1] == 2


@pytest.mark.parametrize("number", [0, -1, True, 1.5, "2", None])
def test_a_number_of_attempts_that_is_none_is_refused(number: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"max_retries must be the number of attempts, 1 or more, got {number!r}"):
        Retries(max_retries=number)


def lasting() -> vf.SandboxError:
    error = vf.SandboxError("its programs used up its memory")
    error.failure_cause = "policy"
    return error


@pytest.mark.parametrize(
    ("error", "of_operation", "of_reading"),
    [
        (vf.SandboxError("no room"), True, True),
        (lasting(), False, False),
        (ValueError(), False, False),
        (CommandTimeoutError("a", "b", 1), False, True),
        (TimeoutError(), False, True),
    ],
)
def test_errors_that_may_pass_are_told_from_those_that_stay(error: Exception, of_operation: bool, of_reading: bool) -> None:
    assert (is_retryable_sandbox_api_error(error), is_retryable_sandbox_read_error(error)) == (of_operation, of_reading)
