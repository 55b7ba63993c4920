"""The player that steps: an agent answers, and any Gymnasium wrapper around the environment is stepped as it is.

An episode is plain synchronous code inside a `vfgym.aio.bridge`, so agents and hooks wait on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import gymnasium as gym
import numpy as np

from vfgym.agents.base import Answering
from vfgym.agents.human import HumanAnswers
from vfgym.agents.model import ModelAgent
from vfgym.aio.background import wait
from vfgym.aio.bridge import bridge
from vfgym.aio.deadlines import Before, DeadlinePassed
from vfgym.aio.threads import in_place, on_thread
from vfgym.calls import function_name, is_awaitable, rollout_failure
from vfgym.envs.chat import ChatEnv
from vfgym.episode import BaseEpisode
from vfgym.errors import Error, InvalidAction, ModelError
from vfgym.lifecycle import is_blocking
from vfgym.limits import RolloutMeter
from vfgym.messages import Message
from vfgym.runs.engine import GroupJob, PlayedRollout
from vfgym.runs.failure_rewards import FailureRewards
from vfgym.runs.inputs import Example
from vfgym.runs.pairs import SeatPairs
from vfgym.runs.replicas import Replica
from vfgym.runs.retries import seconds_before_retry, should_play_again
from vfgym.state import State, make_placeholder_state

Begin: TypeAlias = "Callable[[gym.Env[Any, Any]], Answering]"
"""Gives what answers in the episode that an environment has just begun."""


@dataclass(slots=True)
class StepPlayerConfig:
    """What is played in a run by stepping, who answers, and how often."""

    begin: Begin
    split: str
    seed_of: Callable[[Example, int], int]
    """Gives the seed of a rollout, by its number."""
    declared: FailureRewards
    fingerprint: Callable[[Example], str | None] = lambda example: None
    """Gives the fingerprint of an example's task; None for one that cannot be read."""
    max_retries: int = 0
    """How often a rollout is repeated where the infrastructure or an unusable response of the model ended it."""
    policy: Any = None
    """Who answers: its ``policy_version`` is kept with each turn, where it has one."""
    pairs: SeatPairs | None = None
    """Whom the policy plays in each rollout, where each game is played from both seats."""
    members_begin_alike: bool = False
    """Whether the rollouts of a group have one seed; an agent's own random numbers differ all the same."""
    ask: Callable[[Answering, list[Message], dict[str, Any], BaseEpisode], Any] = field(
        default=lambda answer, observation, info, episode: ask_in_time(answer, observation, info, episode.deadline)
    )
    """Asks who answers in an episode, which ends if this raises."""
    asked_version: Callable[[], Any] | None = None
    """Returns the version that was asked last; None for the one that `policy` has when it has answered."""


@dataclass(slots=True)
class EpisodeUnderWay:
    """An episode that is played, as it stands before a turn."""

    played: PlayedRollout
    answer: Answering
    """Who answers in it."""
    observation: list[Message]
    info: dict[str, Any]
    seen_return: float = 0.0
    num_turns: int = 0


class StepPlayer:
    """Plays rollouts by stepping an environment for an agent, inside a bridge: any Gymnasium wrapper is stepped as it is."""

    def __init__(self, config: StepPlayerConfig, replica: Replica) -> None:
        """Play what is asked for, on this environment."""
        self._config = config
        self.replica = replica
        self._env, self._seat = replica
        self.under_way: EpisodeUnderWay | None = None
        """The episode that is played; None where there is none."""

    async def go_on(self, group: GroupJob, under_way: EpisodeUnderWay, limit: RolloutMeter | None = None) -> PlayedRollout:
        """Play a rollout to its end whose episode already runs in this player's environment."""
        self.under_way = under_way
        return await bridge(self._go_on, group.example, under_way, limit)

    def _go_on(self, example: Example, under_way: EpisodeUnderWay, limit: RolloutMeter | None) -> PlayedRollout:
        played = self._play_on(under_way, limit)
        played.route, played.seed = self._config.declared.route(example.example_id), self._config.seed_of(example, played.number)
        return played

    async def play(self, group: GroupJob, number: int, limit: RolloutMeter | None = None) -> PlayedRollout:
        """Play one rollout, again where what ended it may go away by itself."""
        return await bridge(self._play, group.example, number, limit)

    async def close(self) -> None:
        """Leave the environment to whoever made it."""

    def _play(self, example: Example, number: int, limit: RolloutMeter | None) -> PlayedRollout:
        config, seat = self._config, self._seat
        fingerprint = config.fingerprint(example)  # before the episode, whose hooks may write to what it starts from
        route = config.declared.route(example.example_id)
        for attempt in range(config.max_retries + 1):
            is_last = attempt == config.max_retries
            # One that will be thrown away ends without being scored, so that every reward function is called once.
            seat.throws_away = None if is_last else should_play_again
            played = self._attempt(example, number, limit)
            if is_last or not should_play_again(played.state):
                break
            wait(asyncio.sleep(seconds_before_retry(attempt)))
        played.route, played.fingerprint, played.seed = route, fingerprint, config.seed_of(example, number)
        if config.pairs is not None:
            played.pair = config.pairs.of(example, number)
        return played

    def _attempt(self, example: Example, number: int, limit: RolloutMeter | None) -> PlayedRollout:
        """Play one episode to its end.

        What the environment or the agent raises becomes the episode's error, unless it ends the run (see `ends_run`); but not what
        ``begin(env)`` raises: it would recur in every episode, so it stops the run.
        """
        config, env, seat = self._config, self._env, self._seat
        seat.next_limit = limit
        if limit is not None:
            limit.is_over = False
        try:
            options: dict[str, Any] = {"example_id": example.example_id, "split": config.split}
            if config.pairs is not None:
                options["player"] = config.pairs.player_of(number)
            observation, info = env.reset(seed=config.seed_of(example, number), options=options)
        except BaseException as error:
            failure = rollout_failure(error)
            return PlayedRollout(
                number, seat.definition, make_placeholder_state({"example_id": example.example_id}), failure, seen_return=0.0
            )
        if config.members_begin_alike:
            _pass_over_children(seat.np_random, number)  # what an agent spawns for itself comes after
        answer = config.begin(env)
        episode = cast(BaseEpisode, seat.episode)
        played = PlayedRollout(number, cast(ChatEnv, episode.definition), episode.state, seen_return=0.0, is_scored=not seat.defers_scoring)
        self.under_way = EpisodeUnderWay(played, answer, observation, info)
        return self._play_on(self.under_way, limit)

    def _play_on(self, under_way: EpisodeUnderWay, limit: RolloutMeter | None) -> PlayedRollout:
        """Play an episode to its end, from before a turn."""
        try:
            return self._take_turns(under_way, limit)
        finally:
            self.under_way = None

    def _take_turns(self, under_way: EpisodeUnderWay, limit: RolloutMeter | None) -> PlayedRollout:
        config, env, seat = self._config, self._env, self._seat
        played, answer = under_way.played, under_way.answer
        observation, info = under_way.observation, under_way.info
        is_over = played.state["is_completed"]
        seen_return, num_turns = under_way.seen_return, under_way.num_turns
        try:
            while not is_over:
                try:
                    action = config.ask(answer, observation, info, cast(BaseEpisode, seat.episode))
                except BaseException as raised:
                    of_agent = raised if isinstance(raised, DeadlinePassed) else rollout_failure(raised)
                    observation, last_reward, _, _, info = seat.fail(_agent_error(of_agent, config.policy))
                    if not isinstance(of_agent, Error | DeadlinePassed):
                        played.failure = of_agent
                    seen_return += last_reward
                    break
                version = config.asked_version() if config.asked_version is not None else getattr(config.policy, "policy_version", None)
                try:
                    observation, reward, terminated, truncated, info = env.step(action)
                except InvalidAction as error:
                    observation, last_reward, _, _, info = seat.fail(error)
                    seen_return += last_reward
                    break
                if version is not None:
                    _note_version(cast(State, seat.state), version)
                seen_return += float(reward)
                is_over = terminated or truncated
                num_turns += 1
                reached = None if limit is None or is_over else limit.find_used_up_after(num_turns)
                if reached is not None:  # an author's own rollout goes on by itself
                    observation, last_reward, _, _, info = seat.fail(reached)
                    seen_return += last_reward
                    break
                played.state = cast(State, seat.state)
                under_way.observation, under_way.info, under_way.seen_return, under_way.num_turns = (
                    observation,
                    info,
                    seen_return,
                    num_turns,
                )
            if played.state["reward"] is None or not played.state["is_completed"]:
                seat.truncate()  # a wrapper ended the episode, or it was over before the first turn
        except BaseException as error:
            played.fail(error)
            played.seen_return = seen_return
            return played
        played.state, played.seen_return = cast(State, seat.state), seen_return
        if isinstance(answer, HumanAnswers):
            own_info = cast(BaseEpisode, seat.episode).info()  # a wrapper may have passed on something else
            answer.show_end(observation, own_info, None if seat.defers_scoring else seen_return)
        return played


def _note_version(state: State, version: Any) -> None:
    """Keep with the last turn which policy answered."""
    if state["trajectory"]:
        state["trajectory"][-1]["extras"]["policy_version"] = version


def _pass_over_children(rng: np.random.Generator, number: int) -> None:
    """Let a generator spawn as if it had spawned so many already. To spawn them would cost 20 µs each."""
    bits: Any = rng.bit_generator
    seeds = bits.seed_seq
    later = np.random.SeedSequence(
        seeds.entropy, spawn_key=seeds.spawn_key, pool_size=seeds.pool_size, n_children_spawned=seeds.n_children_spawned + number
    )
    bits.__setstate__((bits.state, later))


def ask_in_time(answer: Answering, observation: list[Message], info: dict[str, Any], deadline: float | None) -> Any:
    """Return what an agent answers, if it answers before the deadline of its episode.

    A blocking agent is asked on a thread, so that others go on meanwhile. A plain one holds up its caller, and so cannot be bounded.

    Args:
        answer: The agent.
        observation: What it is shown.
        info: What it is told besides.
        deadline: A time of `time.monotonic`; None for none (see `BaseEpisode.deadline`).

    Raises:
        DeadlinePassed: If it did not answer in time: it was cancelled, or its thread given up.
    """
    if is_blocking(answer):
        action: Any = _in_time(on_thread(answer, observation, info), deadline)
    else:
        action = in_place(function_name(answer), answer, observation, info)
    return _in_time(action, deadline) if is_awaitable(action) else action


def _in_time(awaitable: Awaitable[Any], deadline: float | None) -> Any:
    return wait(awaitable if deadline is None else Before(deadline, awaitable))


def _agent_error(error: Exception, agent: Any) -> Error | DeadlinePassed:
    """Return what an agent raised as what ends its episode. A `TimeoutError` of its own is an error as any other, not the deadline.

    It is the agent's own doing, whatever it calls it: only what a client says of its provider is believed.
    """
    if isinstance(error, DeadlinePassed):
        return error
    if isinstance(error, Error):
        if not isinstance(agent, ModelAgent) and "failure_cause" not in vars(error):
            error.failure_cause = "policy"
        return error
    failure = ModelError(f"the agent failed: {error!r}")
    failure.__cause__ = error
    return failure
