"""Groups of environments that play one task: they begin alike, and the next task comes when all have ended."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.utils import seeding

from vfgym.aio.steps import Steps
from vfgym.endings import ending_of
from vfgym.envs.seat import Luck
from vfgym.episode import Outcome
from vfgym.episode.scoring import score_together
from vfgym.reseeding import SeededNumbers
from vfgym.results.samples import group_advantages, group_rewards
from vfgym.runs.rollout import as_error
from vfgym.tasks import TaskStream
from vfgym.vector.members import VectorMember
from vfgym.vector.running import Phases


class TaskGroup:
    """Environments that play one task after another, each time from one seed."""

    def __init__(self, members: Sequence[VectorMember]) -> None:
        """Join environments. Each waits at the end of its episode; where they defer scoring, they are scored together."""
        self._members = members
        self._seats = [member.seat for member in members]
        self._rng: np.random.Generator | None = None
        self._streams: dict[str, TaskStream] = {}

    def reset(self, seed: int | None, options: Mapping[str, Any] | None) -> Phases:
        """Begin episodes of one task, whether or not those before have ended."""
        seed, options = self._draw(seed, options or {})
        yield [member.reset(seed, options) for member in self._members]

    def step(self, actions: Sequence[Any]) -> Phases:
        """Play an action in each environment whose episode has not ended, and begin with the next task once all have."""
        moving = []
        for member, action in zip(self._members, actions, strict=True):
            if member.is_over:
                member.last = member.last._replace(reward=0.0, observation=member.observe_again())
            else:
                moving.append(member.step(action))
        yield moving
        if all(member.is_over for member in self._members):
            ended = [member.last for member in self._members]
            scores: list[dict[str, Any]] = []
            yield [self._score(ended, scores)]
            yield from self.reset(None, None)
            for member, last, score in zip(self._members, ended, scores, strict=True):
                member.last = last._replace(observation=member.last.observation, info={**score, **member.last.info})

    def luck(self) -> Luck | None:
        """Return what decides of its next task; None where nothing was drawn yet."""
        return None if self._rng is None else Luck(SeededNumbers.drawn_from(self._rng), self._streams)

    def set_luck(self, luck: Luck | None) -> None:
        """Let the next task be decided so."""
        self._rng, self._streams = (None, {}) if luck is None else (luck.numbers.generator, luck.streams)

    def _draw(self, seed: int | None, options: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        """Return seed and options with which every member begins: they follow from the last seed that was given."""
        if seed is not None or self._rng is None:
            self._rng, _ = seeding.np_random(seed)
            self._streams = {}
        if seed is None:
            seed = int(self._rng.integers(2**31))
        definition = self._seats[0].definition
        if definition.choose_task(seed, options) is None:
            split = options.get("split", "train")
            tasks = definition.tasks_of(split)
            stream = self._streams.get(split)
            if stream is None or stream.tasks is not tasks:  # they may have been replaced
                self._streams[split] = stream = TaskStream(tasks)
            options = {**options, "example_id": tasks.example_id_of(stream.draw(self._rng))}
        return seed, options

    def _score(self, ended: Sequence[Outcome], scores: list[dict[str, Any]]) -> Steps[None]:
        """Find what the group tells of each member, as a part of its info."""
        for seat in self._seats:
            if seat.state is not None and not seat.state["is_completed"]:  # a wrapper ended the episode
                yield from seat.truncate_steps()
        episodes = [seat.episode for seat in self._seats if seat.episode is not None]
        definition, states = episodes[0].definition, [episode.state for episode in episodes]
        finals = [last.info for last in ended]
        if self._seats[0].defers_scoring:
            for state, failure in zip(states, (yield from score_together(definition, states)), strict=True):
                if failure is not None and state["error"] is None:
                    state["error"] = as_error(failure)
            finals = [{**info, "metrics": {**info["metrics"], **state["metrics"]}} for info, state in zip(finals, states, strict=True)]
        for state in states:
            if not ending_of(state).counts_with_return and state.failure_reward is None:
                state.failure_reward = self._seats[0].definition.failure_reward
        rewards = group_rewards(states)
        advantages = group_advantages(states, rewards, has_own=definition.rubric.provides_advantages)
        for last, info, reward, advantage in zip(ended, finals, rewards, advantages, strict=True):
            counted = math.nan if reward is None else reward  # so that the vector's array of them stays one of numbers
            scores.append({"final_obs": last.observation, "final_info": info, "group_reward": counted, "group_advantage": advantage})
