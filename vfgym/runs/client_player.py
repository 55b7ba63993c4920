"""The player that asks a client: it plays whole rollouts, for somebody who scores them.

`Rollouts.play` plays any environment: one with the library's turn loop by the episode machine, one whose author wrote
`rollout()` by calling that. Either way the cleanup handlers have run when it returns, and an `Error` is in the state.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from vfgym.aio.deadlines import DeadlinePassed
from vfgym.aio.steps import begin, run_async
from vfgym.calls import ends_run, rollout_failure
from vfgym.clients import is_permanent_refusal
from vfgym.context import AuthoredRollout, authored_limit, given
from vfgym.envs.chat import ChatEnv
from vfgym.envs.group import route_of
from vfgym.envs.multi_turn import MultiTurnEnv
from vfgym.episode import BaseEpisode, Episode, play
from vfgym.episode.inversion import in_time
from vfgym.episode.sessions import Sessions
from vfgym.episode.stops import note_end
from vfgym.errors import Error
from vfgym.limits import RolloutMeter
from vfgym.overrides import is_replaced
from vfgym.reseeding import SeededNumbers
from vfgym.results import fingerprint_of
from vfgym.runs.engine import GroupJob, PlayedRollout
from vfgym.runs.inputs import Inputs, Seeds
from vfgym.runs.retries import is_retryable, seconds_before_retry
from vfgym.state import State, make_placeholder_state

if TYPE_CHECKING:
    from vfgym.clients import Client


class RolloutFailed(Exception):
    """An exception that is not an `Error` broke a rollout off; its cause is what was raised.

    It never leaves the library: whoever rolls out records it, or raises the cause.
    """

    def __init__(self, state: State) -> None:
        """Keep the state as far as it got."""
        super().__init__("the rollout broke off")
        self.state = state


class Rollouts:
    """Plays one rollout after another, and keeps the games that it opened until it is closed."""

    def __init__(self) -> None:
        """Make a player without games."""
        self._sessions = Sessions()

    async def play(
        self,
        env: ChatEnv,
        task: dict[str, Any],
        client: Client,
        model: str,
        sampling_args: dict[str, Any] | None,
        numbers: SeededNumbers | None = None,
        limit: RolloutMeter | None = None,
    ) -> State:
        """Play one episode, without scoring it.

        Args:
            env: The environment that plays (see `ChatEnv.routed`).
            task: The input of the episode; it becomes the episode's own.
            client: Who is asked.
            model: Name of the model.
            sampling_args: Generation parameters.
            numbers: The episode's random numbers; fresh ones without it.
            limit: What it may spend.

        Raises:
            RolloutFailed: If an exception that is not an `Error` broke it off. The cleanup handlers have run.
        """
        if isinstance(env, MultiTurnEnv) and not is_replaced(env, "rollout", MultiTurnEnv.rollout):
            episode = Episode(env, self._sessions.of(env), numbers)
            episode.limit = limit
            return await self._play_turns(episode, task, client, model, sampling_args)
        return await play_authored(env, task, client, model, sampling_args, limit)

    async def _play_turns(self, episode: Episode, task: dict[str, Any], client: Client, model: str, sampling_args: Any) -> State:
        try:
            return cast(State, await begin(play(episode, task, client, model, sampling_args)))
        except BaseException as error:
            raise RolloutFailed(episode.state) from rollout_failure(error)
        finally:
            self._sessions.keep(episode)

    async def close(self) -> None:
        """Close the games, the newest first. One that fails to close keeps none of the others open."""
        await run_async(self._sessions.close())


async def play_authored(
    env: ChatEnv,
    task: dict[str, Any],
    client: Client,
    model: str,
    sampling_args: dict[str, Any] | None,
    limit: RolloutMeter | None = None,
) -> State:
    """Play one episode by an author's own `rollout`, then run the cleanup handlers.

    Raises:
        RolloutFailed: If an exception that is not an `Error` broke it off, or its state could not be made.
    """
    made: list[State] = []
    if limit is not None:
        limit.requests_are_turns = True
    episode = BaseEpisode(env)
    episode.limit = limit
    failure: Exception | None = None
    try:
        rollout = functools.partial(env.rollout, task, client, model, sampling_args)
        seconds = env.timeout_seconds if isinstance(env, MultiTurnEnv) else None
        deadline = None if seconds is None else time.monotonic() + seconds
        with given(authored=AuthoredRollout(env, limit, made)):
            state = await in_time(rollout, deadline if limit is None else limit.earlier_deadline(deadline), made)
        if not isinstance(state, State):
            raise TypeError(f"{type(env).__name__}.rollout() must return a State, got {type(state).__name__}")
        episode.state = state
        note_end(state, None, limit)
    except BaseException as raised:
        if ends_run(raised):
            if made:
                episode.state = made[-1]
                await run_async(episode.finish())
            raise
        error = rollout_failure(raised)
        try:  # a fresh one where it made none
            state = made[-1] if made else env.initial_state(env.tasks_of("train").copy_input(task), client, model, sampling_args)
        except Exception:
            raise RolloutFailed(make_placeholder_state(task, error)) from error
        episode.state = state
        if isinstance(error, Error | DeadlinePassed):
            note_end(state, error, limit)
        else:
            failure = error
    try:
        await run_async(episode.finish())
    except BaseException as error:
        failure = failure or rollout_failure(error)
    if failure is not None:
        raise RolloutFailed(state) from failure
    return state


@dataclass(slots=True)
class ClientPlayerConfig:
    """Who is asked in a run, for what, and how often."""

    definition: ChatEnv
    inputs: Inputs
    clients: Sequence[Client]
    """Groups (rollouts, where they are scored alone) take them in turn."""
    model: str
    sampling_args: dict[str, Any]
    in_groups: bool
    max_retries: int = 0
    """How often a rollout is repeated where an `InfraError` or an unusable response of the model ended it."""
    strict: bool = False
    is_saved: bool = False
    """Whether results are saved, each with the fingerprint of its task."""
    seeds: Seeds | None = None
    """Those of the rollouts' random numbers; fresh ones without them."""
    _turns: int = 0

    def client_of(self, group: GroupJob) -> Client:
        """Return who is asked for a rollout of a group."""
        if group.client is None or not self.in_groups:
            group.client = self.clients[self._turns % len(self.clients)]
            self._turns += 1
        return cast("Client", group.client)


class ClientPlayer:
    """Plays rollouts by asking a client, and keeps the games that it opened until it is closed."""

    def __init__(self, config: ClientPlayerConfig) -> None:
        """Play what is asked for."""
        self._config = config
        self._rollouts = Rollouts()

    async def play(self, group: GroupJob, number: int, limit: RolloutMeter | None = None) -> PlayedRollout:
        """Play one rollout, again where what ended it may go away by itself."""
        config, example = self._config, group.example
        fingerprint = None
        try:
            task = config.inputs.task(example, number)
            if config.is_saved:  # before the rollout, whose hooks may write to what it starts from
                fingerprint = fingerprint_of(task)
            route = route_of(task)
            env, task = config.definition.routed(task)
        except Exception as error:  # a row that cannot be read, or that belongs nowhere
            return PlayedRollout(
                number, config.definition, make_placeholder_state({"example_id": example.example_id}), error, fingerprint=fingerprint
            )
        client, limit = config.client_of(group), limit or authored_limit(config.definition)
        for attempt in range(config.max_retries + 1):
            failure: Exception | None = None
            numbers = None if config.seeds is None else SeededNumbers(config.seeds.of(example, number))
            if attempt:
                if limit is not None:
                    limit.is_over = False
                task = config.definition.routed(config.inputs.task(example, number))[1]
            try:
                state = await self._rollouts.play(env, task, client, config.model, config.sampling_args, numbers, limit)
            except RolloutFailed as failed:
                failure = failed.__cause__ if isinstance(failed.__cause__, Exception) else failed
                state = failed.state
                if config.strict or is_permanent_refusal(failure) or not isinstance(failure, Error):
                    break
            if attempt == config.max_retries or not is_retryable(state):
                break
            await asyncio.sleep(seconds_before_retry(attempt))
        return PlayedRollout(number, env, state, failure, route=route, fingerprint=fingerprint)

    async def close(self) -> None:
        """Close the games."""
        await self._rollouts.close()
