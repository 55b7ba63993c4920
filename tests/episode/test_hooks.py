"""Handlers that ask for more than the state are called by name."""

from __future__ import annotations

from vfgym.calls import CallPlan
from vfgym.episode.hooks import NamedCall
from vfgym.state import State


def test_a_handler_gets_what_it_asks_for() -> None:
    env = object()
    state = State(task={"answer": 0})
    assert NamedCall(CallPlan(lambda env, task, state: (env, task, state)), env)(state) == (env, {"answer": 0}, state)
    assert NamedCall(CallPlan(lambda task, other=1: (task, other)), env)(State()) == (None, 1)
