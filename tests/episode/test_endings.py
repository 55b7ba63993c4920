"""How an episode ended: decided once, by errors, by stop conditions, by what the environment says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from vfgym.endings import CUT_STOPS, UNREADABLE, Ending
from vfgym.episode.endings import end_flags, fail_ending, settle_ending
from vfgym.errors import AgentError, ModelError, SandboxError
from vfgym.state import State

FAILURE_REWARD = 0.0


def definition(*flags: bool) -> Any:
    return SimpleNamespace(failure_reward=FAILURE_REWARD, end_flags=lambda state: flags or (True, False))


def state_of(**items: Any) -> State:
    return State(**{"error": None, "stop_condition": "done", "trajectory": [], **items})


@pytest.mark.parametrize(
    ("items", "flags", "ending"),
    [
        *[({}, (True, False), Ending.TERMINATED), ({}, (False, True), Ending.TRUNCATED), ({}, (True, True), Ending.TERMINATED)],
        ({"ending": "truncated"}, (True, False), Ending.TRUNCATED),
        ({"ending": "terminated"}, (False, True), Ending.TERMINATED),
        ({"ending": "won"}, (True, False), Ending.ENVIRONMENT_FAILED),
        ({"error": ModelError("x")}, (True, False), Ending.ENVIRONMENT_FAILED),
        ({"error": SandboxError("x")}, (True, False), Ending.INFRASTRUCTURE_FAILED),
        ({"error": AgentError("x"), "ending": "truncated"}, (True, False), Ending.POLICY_FAILED),
        ({"stop_condition": UNREADABLE}, (True, False), Ending.POLICY_FAILED),
        ({"ending": ""}, (True, False), Ending.ENVIRONMENT_FAILED),
        ({"ending": "cut"}, (True, False), Ending.ENVIRONMENT_FAILED),
        *[({"stop_condition": stop, "ending": "terminated"}, (True, False), Ending.CUT) for stop in CUT_STOPS],
    ],
)
def test_how_it_ended(items: dict[str, Any], flags: tuple[bool, bool], ending: Ending) -> None:
    state = state_of(**items)
    settle_ending(definition(*flags), state)
    assert (state.ending, state["ending"]) == (ending, str(ending))
    assert state.failure_reward == (None if ending.counts_with_return else FAILURE_REWARD)


def test_whose_doing_was_noted_wins_and_a_second_look_keeps_it() -> None:
    state = state_of(error=SandboxError("x"))
    state.failure_cause = "policy"
    for _ in range(2):
        settle_ending(definition(), state)
        assert state.ending is Ending.POLICY_FAILED


@pytest.mark.parametrize(
    ("items", "noted", "of_reward", "ending"),
    [
        ({}, None, "environment", Ending.ENVIRONMENT_FAILED),
        ({}, None, "infrastructure", Ending.INFRASTRUCTURE_FAILED),
        ({}, "policy", "infrastructure", Ending.POLICY_FAILED),
        ({"error": SandboxError("x")}, None, "environment", Ending.INFRASTRUCTURE_FAILED),
        ({"stop_condition": UNREADABLE}, None, "environment", Ending.POLICY_FAILED),
    ],
)
def test_a_reward_function_that_failed_is_asked_last(items: dict[str, Any], noted: Any, of_reward: Any, ending: Ending) -> None:
    """What ended the episode says more of it."""
    state = state_of(**items)
    state.failure_cause, state.reward_failure_cause = noted, of_reward
    settle_ending(definition(), state)
    assert state.ending is ending


def test_a_second_look_at_an_ending_that_the_library_wrote_makes_no_error() -> None:
    state = state_of(stop_condition=next(iter(CUT_STOPS)))
    for _ in range(2):
        settle_ending(definition(), state)
    assert (state.ending, state["error"]) == (Ending.CUT, None)


def test_an_ending_that_a_hook_makes_up_is_an_error_that_suggests_the_right_one() -> None:
    state = state_of(ending="terminate")
    settle_ending(definition(), state)
    assert state["stop_condition"] == "has_error"
    assert "Did you mean `terminated`" in str(state["error"])
    own = ModelError("first")
    state = state_of(ending="won", error=own)
    settle_ending(definition(), state)
    assert state["error"] is own


def test_what_failed_beside_the_state() -> None:
    state = state_of()
    error = KeyError("x")
    assert fail_ending(definition(), state, error) is error
    assert (state.ending, state.failure_reward) == (Ending.ENVIRONMENT_FAILED, FAILURE_REWARD)
    assert isinstance(fail_ending(definition(), state_of(), SystemExit(1)), RuntimeError)
    for noted, raised, ending in [
        ("policy", SandboxError("x"), Ending.POLICY_FAILED),
        (None, SandboxError("x"), Ending.INFRASTRUCTURE_FAILED),
        (None, AgentError("x"), Ending.POLICY_FAILED),
    ]:
        state = state_of()
        state.failure_cause = noted  # type: ignore[assignment]
        assert fail_ending(definition(), state, raised) is raised
        assert (state.ending, state["ending"]) == (ending, str(ending))
    with pytest.raises(KeyboardInterrupt):
        fail_ending(definition(), state_of(), KeyboardInterrupt())


@pytest.mark.parametrize(
    ("ending", "own", "flags"),
    [
        (None, (True, True), (False, False)),
        (Ending.TERMINATED, (True, True), (True, True)),
        (Ending.TERMINATED, (False, True), Ending.TERMINATED.flags),
        (Ending.TRUNCATED, (False, True), (False, True)),
        (Ending.TRUNCATED, (True, False), Ending.TRUNCATED.flags),
        *[(each, (True, True), each.flags) for each in Ending if not each.counts_with_return],
    ],
)
def test_the_flags_of_gymnasium(ending: Ending | None, own: tuple[bool, bool], flags: tuple[bool, bool]) -> None:
    state = state_of()
    state.ending = ending
    assert end_flags(definition(*own), state) == flags
