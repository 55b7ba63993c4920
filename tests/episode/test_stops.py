"""What ends an episode, and how that is recorded in its state."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from vfgym.aio.deadlines import DeadlinePassed
from vfgym.aio.steps import run_async, run_sync
from vfgym.episode.hooks import MarkedMethod
from vfgym.episode.stops import (
    LIMIT_REACHED,
    ROLLED_OUT,
    check_stops,
    complete,
    error_stop,
    model_failure,
    note_end,
    note_error,
    note_time_over,
)
from vfgym.errors import AgentError, Error, InfraError, LimitReached, ModelError, OverlongPromptError, SandboxError, WorkerTimeout
from vfgym.state import State


def state_of(*truncated: bool, **items: Any) -> State:
    steps = [{"is_truncated": each} for each in truncated]
    return State(**{"trajectory": steps, "error": None, "stop_condition": None, "is_completed": False, "is_truncated": False, **items})


def ended(state: State) -> tuple[Any, ...]:
    return state["is_completed"], state["stop_condition"], state["is_truncated"]


async def later(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


@pytest.mark.parametrize(
    ("answers", "stopped_by", "asked"),
    [([], None, 0), ([False, 0, None, ""], None, 4), ([False, True, True], 1, 2), ([1], 0, 1), ([later, True], None, 2)],
)
@pytest.mark.parametrize("is_bounded", [False, True])
def test_the_first_that_holds_stops_the_episode(answers: list[Any], stopped_by: int | None, asked: int, is_bounded: bool) -> None:
    asked_for: list[int] = []
    bounded: list[Any] = []

    def condition(number: int, answer: Any) -> MarkedMethod:
        def call(state: State) -> Any:
            asked_for.append(number)
            return later(False) if answer is later else answer

        return MarkedMethod(f"stop{number}", call)

    def bound(awaitable: Any) -> Any:
        bounded.append(awaitable)
        return awaitable

    state = state_of()
    stops = [condition(number, answer) for number, answer in enumerate(answers)]
    holds = run_sync(check_stops(stops, state, bound if is_bounded else None))
    expected = 1 if answers and answers[0] is later else stopped_by
    assert (holds, asked_for) == (expected is not None, [*range(asked)])
    assert ended(state) == ((True, f"stop{expected}", False) if holds else (False, None, False))
    assert len(bounded) == is_bounded * (later in answers)


async def test_a_condition_may_be_awaited() -> None:
    state = state_of()
    assert await run_async(check_stops([MarkedMethod("slow", lambda state: later(1))], state))
    assert state["stop_condition"] == "slow"


@pytest.mark.parametrize(
    ("state", "stop", "is_truncated"),
    [
        (state_of(), "done", False),
        (state_of(False, False), None, False),
        (state_of(False, True, False), "done", True),
        (state_of(is_truncated=True), "done", True),
        (state_of(), LIMIT_REACHED, True),
    ],
)
def test_an_episode_is_truncated_by_a_limit_or_an_answer_that_was_cut(state: State, stop: str | None, is_truncated: bool) -> None:
    complete(state, stop)
    assert ended(state) == (True, stop, is_truncated)


@pytest.mark.parametrize(
    ("error", "stop", "noted"),
    [
        (OverlongPromptError("x"), "prompt_too_long", {"prompt_too_long": True, "is_truncated": True, "error": None}),
        (LimitReached("tokens", 1, 1), LIMIT_REACHED, {LIMIT_REACHED: True, "is_truncated": True, "error": None}),
        (ModelError("x"), "has_error", {"is_truncated": False}),
        (SandboxError("x"), "has_error", {"is_truncated": False}),
    ],
)
def test_errors(error: Any, stop: str, noted: dict[str, Any]) -> None:
    state = state_of()
    note_error(state, error)
    assert (error_stop(state), {name: state[name] for name in noted}) == (stop, noted)
    assert state["error"] is (error if stop == "has_error" else None)
    assert (state.failure_cause is None) is (stop != "has_error")


@pytest.mark.parametrize(
    ("error", "cause"), [(Error("x"), "environment"), (SandboxError("x"), "infrastructure"), (AgentError("x"), "policy")]
)
def test_whose_doing_an_error_is(error: Error, cause: str) -> None:
    state = state_of()
    note_error(state, error)
    assert state.failure_cause == cause


def test_the_error_that_ended_an_episode_names_its_stop_before_its_limits() -> None:
    state = state_of()
    note_error(state, OverlongPromptError("x"))
    note_error(state, LimitReached("tokens", 1, 1))
    assert error_stop(state) == LIMIT_REACHED
    note_error(state, ModelError("x"))
    assert error_stop(state) == "has_error"


@pytest.mark.parametrize(
    ("limit", "stop"),
    [
        (None, "timeout_reached"),
        (SimpleNamespace(is_out_of_time=False), "timeout_reached"),
        (SimpleNamespace(is_out_of_time=True), LIMIT_REACHED),
    ],
)
def test_the_time_of_an_episode_or_of_its_rollout_is_over(limit: Any, stop: str) -> None:
    state, own = state_of(), state_of()
    assert note_time_over(state, limit) == stop
    note_end(own, DeadlinePassed(), limit)
    assert ended(own) == (True, stop, stop == LIMIT_REACHED)
    assert state.get("timed_out", False) is own.get("timed_out", False) is (stop == "timeout_reached")


def test_whose_doing_it_is_that_nobody_answers() -> None:
    bug = KeyError("x")
    failure: Any = model_failure(bug)
    assert (type(failure), failure.__cause__, failure.failure_cause) == (ModelError, bug, "policy")
    own = ModelError("x")
    assert model_failure(own) is own
    assert own.failure_cause == "policy"
    assert model_failure(InfraError("x")).failure_cause == "infrastructure"  # type: ignore[union-attr]
    assert model_failure(AgentError("x")).failure_cause == "policy"  # type: ignore[union-attr]
    of_a_worker = WorkerTimeout("x")
    assert model_failure(of_a_worker) is of_a_worker, "an error that knows better is no time that passed"
    late = model_failure(TimeoutError("late"))
    assert (type(late), late.args) == (DeadlinePassed, ("late",))


@pytest.mark.parametrize(
    ("error", "named", "stop"),
    [
        *[(None, None, ROLLED_OUT), (None, "own", "own"), (ModelError("x"), None, "has_error"), (ModelError("x"), "own", "own")],
        *[(OverlongPromptError("x"), None, "prompt_too_long"), (LimitReached("tokens", 1, 1), None, LIMIT_REACHED)],
        (DeadlinePassed(), None, "timeout_reached"),
        (DeadlinePassed(), "own", "own"),
    ],
)
def test_an_authors_own_rollout_names_its_stop_or_gets_one(error: Any, named: str | None, stop: str) -> None:
    state = state_of(stop_condition=named)
    note_end(state, error)
    assert state["stop_condition"] == stop
    assert state.get("timed_out", False) is isinstance(error, DeadlinePassed)
    assert state["error"] is (error if isinstance(error, ModelError) else None)
