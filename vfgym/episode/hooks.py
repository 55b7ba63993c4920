"""An author's marked methods, ready to be called with a state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from vfgym.calls import CallPlan
from vfgym.state import State


class MarkedMethod(NamedTuple):
    """A marked method of an environment (a stop condition, a cleanup handler, ...), ready to be called with a state."""

    name: str
    call: Callable[[State], Any]


class Hooks(NamedTuple):
    """What an environment's author wrote, read once when the environment is made."""

    stops: list[MarkedMethod]
    setups: list[MarkedMethod]
    cleanups: list[MarkedMethod]
    updates: list[MarkedMethod]


class NamedCall:
    """Calls a handler that asks for more than the state, by name."""

    __slots__ = ("_env", "_plan")

    def __init__(self, plan: CallPlan, env: object) -> None:
        """Call `plan` with what belongs to a state, and with `env`."""
        self._plan = plan
        self._env = env

    def __call__(self, state: State) -> Any:
        """Call the handler."""
        return self._plan({"state": state, "task": state.get("task"), "env": self._env})
