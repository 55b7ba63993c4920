"""An author's marked methods, ready to be called with a state; and the stop conditions among them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from vfgym.aio.steps import Steps
from vfgym.calls import CallPlan, is_awaitable
from vfgym.state import State, write

if TYPE_CHECKING:
    from vfgym.envs.chat import ChatEnv


ROLLED_OUT = "rollout_completed"
"""Stop condition of an author's `rollout()` that names none itself."""


class Handler(NamedTuple):
    """A marked method of an environment (a stop condition, a cleanup handler, ...), ready to be called with a state."""

    name: str
    call: Callable[[State], Any]


class Hooks(NamedTuple):
    """What an environment's author wrote, read once when the environment is made."""

    stops: list[Handler]
    setups: list[Handler]
    cleanups: list[Handler]
    updates: list[Handler]
    overridden: dict[str, bool]
    """For each hook whose own version the machine does inline: whether the author replaced it."""


class NamedCall:
    """Calls a handler that asks for more than the state, by name."""

    __slots__ = ("_env", "_plan")

    def __init__(self, plan: CallPlan, env: ChatEnv) -> None:
        """Call `plan` with what belongs to a state, and with `env`."""
        self._plan = plan
        self._env = env

    def __call__(self, state: State) -> Any:
        """Call the handler."""
        return self._plan({"state": state, "task": state.get("task"), "env": self._env})


def check_stops(stops: list[Handler], state: State, bounded: Callable[[Awaitable[Any]], Awaitable[Any]] | None = None) -> Steps[bool]:
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
    """Mark a state as completed, and as truncated where some answer of the model was cut.

    Args:
        state: The episode.
        stop_condition: What ended it; None where that has no name.
    """
    is_truncated = state["is_truncated"] or any([step["is_truncated"] for step in state["trajectory"]])
    write(state, {"is_completed": True, "stop_condition": stop_condition, "is_truncated": is_truncated})
