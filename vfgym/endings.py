"""How a rollout ended, and by whose doing: one value, decided once (`vfgym.episode.endings`) and read everywhere.

| ending | what happened | counts with |
|---|---|---|
| ``terminated`` | the task is over | its return |
| ``truncated`` | a limit that belongs to the task ended it | its return |
| ``cut`` | a limit of whoever runs it, or of resources, ended it | the lower of its return and ``failure_reward`` |
| ``policy_failed`` | its answers could not be read, or the agent failed | the same |
| ``environment_failed`` | a hook, a tool or a reward function raised | the same |
| ``infrastructure_failed`` | a provider, the network, a sandbox's host failed, or a worker died | nothing: it is missing |
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal, TypeAlias, cast

from vfgym.errors import Error, FailureCause

EndingKind: TypeAlias = Literal["terminated", "truncated", "cut", "failed"]

CUT_STOPS = frozenset({"limit_reached", "timeout_reached", "prompt_too_long", "max_total_completion_tokens_reached", "quit"})
"""Stop conditions that are limits of whoever runs an episode, or of resources: they cut it."""

TRUNCATING_STOPS = frozenset({"max_turns_reached", "game_truncated", "truncated"})
"""Stop conditions that are limits of the task: they truncate an episode. What is in neither set terminates it."""

UNREADABLE = "too_many_invalid_moves"
"""The stop condition of episodes whose answers could not be read."""


class Ending(StrEnum):
    """How a rollout ended. It equals its name as text, which is what rows and ``info`` hold."""

    TERMINATED = "terminated"
    """The task is over."""
    TRUNCATED = "truncated"
    """A limit that belongs to the task ended it: a game's own, ``TimeLimit``, ``max_turns``."""
    CUT = "cut"
    """A limit of whoever runs it, or of resources, ended it: ``limits_each``, ``timeout_seconds``, the model's context, tokens."""
    POLICY_FAILED = "policy_failed"
    """Its answers could not be read; or the agent raised, exited, or ran out of memory."""
    ENVIRONMENT_FAILED = "environment_failed"
    """A hook, a tool or a reward function raised."""
    INFRASTRUCTURE_FAILED = "infrastructure_failed"
    """A provider, the network or a sandbox's host failed, or a worker died: nothing that the policy can provoke."""

    @classmethod
    def of_cause(cls, cause: FailureCause) -> Ending:
        """Return the ending of a rollout that failed for a cause."""
        return cls(f"{cause}_failed")

    @property
    def cause(self) -> FailureCause | None:
        """By whose doing it failed; None where it did not."""
        return cast("FailureCause", self.removesuffix("_failed")) if self.failed else None

    @property
    def kind(self) -> EndingKind:
        """``"terminated"``, ``"truncated"``, ``"cut"``, or ``"failed"`` whatever the cause."""
        return "failed" if self.failed else cast("EndingKind", str(self))

    @property
    def failed(self) -> bool:
        """Whether it failed, for any cause."""
        return self.endswith("_failed")

    @property
    def counts_with_return(self) -> bool:
        """Whether it counts with its return, whatever that is: its task came to an end of its own."""
        return self in (Ending.TERMINATED, Ending.TRUNCATED)

    @property
    def is_missing(self) -> bool:
        """Whether it says nothing of the policy, and counts with nothing."""
        return self is Ending.INFRASTRUCTURE_FAILED

    @property
    def flags(self) -> tuple[bool, bool]:
        """``(terminated, truncated)``, as `gymnasium.Env.step` returns them: what fails is terminated, what is cut is truncated."""
        truncated = self in (Ending.TRUNCATED, Ending.CUT)
        return not truncated, truncated


def failure_cause(error: BaseException, otherwise: FailureCause) -> FailureCause:
    """Return by whose doing an exception ended a rollout.

    Args:
        error: The exception. An `Error` may know (`Error.failure_cause`).
        otherwise: The cause where it does not: ``"policy"`` of what was raised while somebody answered, else ``"environment"``.
    """
    return (error.failure_cause if isinstance(error, Error) else None) or otherwise


def ending_of(rollout: Mapping[str, Any]) -> Ending:
    """Return how a rollout ended: a row, or a state that is over.

    Rows of older versions, and states that were made by hand, tell whether they failed and not why: these failed by the policy's doing.
    """
    ending = rollout.get("ending")
    if ending is not None:
        return Ending(ending)
    failed = rollout.get("failed")
    if failed if failed is not None else rollout.get("error") is not None or rollout.get("stop_condition") == UNREADABLE:
        return Ending.POLICY_FAILED
    stop_condition = rollout.get("stop_condition")
    if stop_condition in CUT_STOPS:
        return Ending.CUT
    return Ending.TRUNCATED if stop_condition in TRUNCATING_STOPS else Ending.TERMINATED
