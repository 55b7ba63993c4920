"""Errors that a caller made are also the standard ones, and Gymnasium's, so that existing ``except`` clauses catch them."""

from __future__ import annotations

import pickle
from collections.abc import Iterable

import gymnasium
import pytest

from vfgym import SingleTurnEnv, errors
from vfgym.errors import Error, InvalidAction, MissingExtra, ResetNeeded, did_you_mean


def test_stepping_before_reset_is_what_gymnasium_calls_it() -> None:
    for expected in (gymnasium.error.ResetNeeded, RuntimeError, Error):
        with pytest.raises(expected):
            SingleTurnEnv([{"question": "?"}]).step("x")


def test_a_wrong_action_is_what_gymnasium_calls_it() -> None:
    env = SingleTurnEnv([{"question": "?"}])
    env.reset(seed=0)
    for expected in (gymnasium.error.InvalidAction, ValueError, Error):
        with pytest.raises(expected):
            env.step(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [InvalidAction, ResetNeeded])
def test_they_go_through_pickle(kind: type[Error]) -> None:
    again = pickle.loads(pickle.dumps(kind("what was wrong")))
    assert (type(again), str(again)) == (kind, "what was wrong")


@pytest.mark.parametrize(
    ("cause", "kinds"),
    [
        ("policy", ["InvalidModelResponseError", "EmptyModelResponseError", "ToolParseError", "AgentError", "InvalidAction"]),
        ("infrastructure", ["InfraError", "TunnelError", "SandboxError", "BrowserSandboxError", "WorkerDied", "WorkersLost"]),
        (None, ["Error", "ModelError", "OverlongPromptError", "ToolError", "ToolCallError", "WorkerTimeout", "InvalidMessage"]),
        (None, ["ConfigurationError", "ResetNeeded", "EpisodeBusy", "EpisodeNotPicklable", "WouldDeadlock", "MissingExtra"]),
    ],
)
def test_some_errors_know_by_whose_doing_a_rollout_fails(cause: str | None, kinds: list[str]) -> None:
    assert [getattr(errors, kind).failure_cause for kind in kinds] == [cause] * len(kinds)


@pytest.mark.parametrize(
    ("kind", "also"),
    [
        *[(errors.InvalidMessage, ValueError), (errors.ConfigurationError, ValueError), (errors.UnknownArgument, TypeError)],
        *[
            (errors.UnknownArgument, errors.ConfigurationError),
            (errors.HookMissing, TypeError),
            (errors.HookMissing, errors.ConfigurationError),
        ],
        *[(errors.EpisodeBusy, RuntimeError), (errors.EpisodeNotPicklable, TypeError), (errors.WouldDeadlock, RuntimeError)],
        *[(errors.WorkerTimeout, TimeoutError), (MissingExtra, ImportError), (errors.BrowserSandboxError, errors.SandboxError)],
        *[
            (errors.EmptyModelResponseError, errors.ModelError),
            (errors.ToolParseError, errors.ToolError),
            (errors.WorkersLost, errors.InfraError),
        ],
    ],
)
def test_errors_are_what_they_refine(kind: type[Error], also: type[BaseException]) -> None:
    assert issubclass(kind, also)
    assert issubclass(kind, Error)


def test_a_missing_extra_is_named_also_after_pickle() -> None:
    for error in (MissingExtra("math", "MathRubric"), pickle.loads(pickle.dumps(MissingExtra("math", "MathRubric")))):
        assert str(error) == "MathRubric needs an optional dependency: pip install 'vfgym[math]'"
        assert (error.extra, error.needed_for) == ("math", "MathRubric")


@pytest.mark.parametrize(
    ("given", "known", "sentence"),
    [
        ("tokens", ["tok", "token", "cost"], " Did you mean `token`, `tok`?"),
        ("abcd", ["abc", "abcdxx", "ab", "abcde"], " Did you mean `abcde`, `abc`, `abcdxx`?"),
        ("ab", iter(["ax"]), " Did you mean `ax`?"),
        ("abc", ["xyz", "axy"], ""),
        ("", ["a"], ""),
        ("a", [], ""),
    ],
)
def test_near_names_are_told_the_nearest_first(given: str, known: Iterable[str], sentence: str) -> None:
    """Up to three, of which at least half agrees."""
    assert did_you_mean(given, known) == sentence
