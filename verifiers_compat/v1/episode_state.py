"""`RolloutState`: the state of an episode of an `Env`, which shows the state of a rollout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verifiers_compat.types import State as EnvState

if TYPE_CHECKING:
    from verifiers_compat.v1.state import State
    from verifiers_compat.v1.task import Task


class RolloutState(EnvState):
    """The state of an episode of an `Env`, which knows the rollout that it shows."""

    __slots__ = ("rollout_state", "rollout_task", "scoring_failure")

    rollout_task: Task
    rollout_state: State
    scoring_failure: Exception | None
    """What scoring its group raised, where the rollout went well until then."""
