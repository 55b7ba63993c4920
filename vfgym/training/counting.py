"""What a rollout counts with, for trainers that are told of one rollout at a time and see no group.

| ending | counts with |
|---|---|
| ``terminated``, ``truncated`` | its return |
| ``cut``, ``policy_failed`` | the lower of its return and the environment's ``failure_reward`` |
| ``environment_failed``, ``infrastructure_failed`` | nothing: `RolloutMissing` is raised, or the trainer is told None |

Where no ``failure_reward`` is declared, 0 stands for it: a trainer must be told some number, and knows no other rollouts here. See
`vfgym.endings` for what these are.
"""

from __future__ import annotations

import logging
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from vfgym.agents.base import seat_of
from vfgym.endings import Ending, ending_of, failure_cause
from vfgym.envs.seat import EpisodeSeat
from vfgym.errors import Error
from vfgym.state import State

logger = logging.getLogger(__name__)

MISSING = (Ending.ENVIRONMENT_FAILED, Ending.INFRASTRUCTURE_FAILED)
"""Endings that say nothing of the policy."""


class RolloutMissing(Error):
    """A rollout that failed by the doing of its environment or of what is underneath: it says nothing of the policy, and has no reward.

    Attributes:
        ending: How it ended.
    """

    def __init__(self, ending: Ending, error: BaseException | None) -> None:
        """Say how it ended, and which error ended it."""
        why = "a reward function failed" if error is None else f"{type(error).__name__}: {error}"
        super().__init__(f"this rollout has no reward, since it ended as {ending}: {why}")
        self.ending = ending
        self.failure_cause = ending.cause
        self.__cause__ = error


def count_reward(ending: Ending, earned: float, failure_reward: float | None, error: BaseException | None = None) -> float:
    """Return what a rollout counts with.

    Args:
        ending: How it ended.
        earned: Its return.
        failure_reward: What its environment declares that failing counts with; None where it declares nothing.
        error: What ended it, where it failed.

    Raises:
        RolloutMissing: If it counts with nothing.
    """
    if ending in MISSING:
        raise RolloutMissing(ending, error)
    return earned if ending.counts_with_return else min(earned, 0.0 if failure_reward is None else failure_reward)


def reward_after(error: Exception, earned: float, seat: EpisodeSeat) -> float | None:
    """Return what an episode counts with that ended with what it raised.

    Args:
        error: What was raised.
        earned: What the episode had earned.
        seat: Whose episode it is.

    Returns:
        None, after a warning, where it counts with nothing.
    """
    ending = Ending.of_cause(failure_cause(error, "environment"))
    try:
        return count_reward(ending, earned, declared_failure_reward(seat), error)
    except RolloutMissing as missing:
        logger.warning("%s", missing)
        return None


def declared_failure_reward(seat: EpisodeSeat) -> float | None:
    """Return what the environment declares that plays the episode of a seat: one of a group, or the group itself where that is silent."""
    playing: Any = getattr(seat.episode, "definition", None)
    declared: float | None = getattr(playing, "failure_reward", None)
    return seat.definition.failure_reward if declared is None else declared


class CountedRewards(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Lets the rewards of an episode sum to what it counts with: its last step makes up the difference.

    A step raises `RolloutMissing` where the episode says nothing of the policy.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        """Wrap a chat environment, which may be wrapped itself."""
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self._earned = 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self._earned = 0.0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Answer.

        Raises:
            RolloutMissing: If the episode ended and counts with nothing.
        """
        return self._settle(self.env.step(action))

    def truncate(self) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """End the episode, as a limit of its task would (see `EpisodeSeat.truncate`), and return what its last step does.

        Raises:
            RolloutMissing: If the episode counts with nothing.
        """
        return self._settle(seat_of(self.env).truncate())

    def _settle(self, outcome: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = outcome
        seat = seat_of(self.env)
        state = seat.state
        if isinstance(state, State) and state.get("is_completed"):  # else a wrapper ended the episode, as a limit of the task
            earned = self._earned + float(reward)
            counted = count_reward(ending_of(state), earned, declared_failure_reward(seat), state.get("error"))
            if counted != earned:
                reward = counted - self._earned
        self._earned += float(reward)
        return observation, float(reward), terminated, truncated, info
