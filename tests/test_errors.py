"""Errors that a caller made are also the standard ones, and Gymnasium's, so that existing ``except`` clauses catch them."""

from __future__ import annotations

import pickle

import gymnasium
import pytest

from vfgym import SingleTurnEnv
from vfgym.errors import Error, InvalidAction, ResetNeeded


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
