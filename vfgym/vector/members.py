"""One environment of a vector: what it returned last, and its steps and resets."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker

from vfgym.aio.steps import Steps
from vfgym.episode import Outcome
from vfgym.runs.kept_episodes import EpisodeStart, OpenedEpisode, keep_episode, note_beginning, open_episode
from vfgym.runs.replicas import Replica


class VectorMember:
    """One environment of a vector.

    A chat environment's own steps are taken. One inside wrappers is called as it is, and so has to be begun inside a
    `vfgym.aio.bridge`, where it may wait.
    """

    __slots__ = ("_bare", "_beginning", "env", "is_over", "last", "replica", "resets", "seat")

    def __init__(self, replica: Replica, resets: AutoresetMode) -> None:
        """Take an environment that nobody else plays.

        Args:
            replica: The environment.
            resets: When it is reset after its episode has ended.
        """
        self.env = _without_checkers(replica.env)
        self.seat = replica.seat
        """The chat environment inside."""
        self.resets = resets
        self.last = Outcome([], 0.0, False, False, {})
        """What it returned last: for an action, or as it was reset."""
        self.is_over = False
        """Whether its episode has ended, and the next one has not begun."""
        self._bare = replica.seat if self.env is replica.seat else None
        self.replica = Replica(self.env, replica.seat)
        self._beginning: EpisodeStart | None = None

    @property
    def is_bare(self) -> bool:
        """Whether there are no wrappers around the chat environment but those that check its user."""
        return self._bare is not None

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> Steps[None]:
        """Begin an episode."""
        observation, info = yield from self._reset(seed, options)
        self.last, self.is_over = Outcome(observation, 0.0, False, False, info), False

    def step(self, action: Any) -> Steps[None]:
        """Play an action, and begin the next episode where it is time to."""
        if self.is_over and self.resets is AutoresetMode.NEXT_STEP:
            yield from self.reset()
            return
        if self.seat.defers_scoring and (episode := self.seat.episode) is not None and episode.is_over:
            last = episode.outcome()  # it was over before the first action, and is not scored here
        elif self._bare is None:
            observation, reward, terminated, truncated, info = self.env.step(action)
            last = Outcome(observation, float(reward), terminated, truncated, info)
        else:
            last = yield from self._bare.step_steps(action)
        if last.terminated or last.truncated:
            self.is_over = True
            if self.resets is AutoresetMode.SAME_STEP:
                observation, info = yield from self._reset(None, None)
                last = last._replace(observation=observation, info={"final_obs": last.observation, "final_info": last.info, **info})
                self.is_over = False
        self.last = last

    def keep(self, what: str) -> Steps[dict[str, Any]]:
        """Return its episode, and what it returned last, as plain data (see `keep_episode`)."""
        beside = {"what it returned last": tuple(self.last), "is over": self.is_over, "how it began": self._beginning}
        return (yield from keep_episode(what, self.replica, beside, self._beginning))

    def open(self, kept: Any) -> Steps[OpenedEpisode]:
        """Return an episode that was kept, ready to go on."""
        return (yield from open_episode(kept, self.replica))

    def go_on(self, opened: OpenedEpisode) -> Steps[None]:
        """Go on with an episode that was kept."""
        yield from opened.take()
        last, self.is_over, self._beginning = opened.beside.values()
        self.last = Outcome(*last)

    def observe_again(self) -> Any:
        """Return the last observation once more; what a caller did to the list that was returned is not in it, but for wrappers."""
        episode = None if self._bare is None else self._bare.episode
        return copy.copy(self.last.observation) if episode is None else episode.conversation()

    def _reset(self, seed: int | None, options: Mapping[str, Any] | None) -> Steps[tuple[Any, dict[str, Any]]]:
        self._beginning = note_beginning(self.seat, seed, options)
        if self._bare is None:
            return self.env.reset(seed=seed, options=None if options is None else dict(options))
        return (yield from self._bare.reset_steps(seed, options))


def _without_checkers(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Return an environment without the outer wrappers that check its user only: a vector does that itself."""
    while type(env) in (OrderEnforcing, PassiveEnvChecker):
        env = env.env  # type: ignore[attr-defined]
    return env
