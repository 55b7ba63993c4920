"""Rollouts: whole episodes in which a client is asked, played for somebody who scores them.

`Player.play` plays any environment: one with the library's turn loop by the episode machine, one whose author wrote
`rollout()` by calling that. Either way the cleanup handlers have run when it returns, and an `Error` is in the state.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast

from vfgym.aio.deadlines import DeadlinePassed
from vfgym.aio.steps import begin, run_async
from vfgym.calls import ends_run, rollout_failure
from vfgym.envs.chat import ChatEnv
from vfgym.envs.multi_turn import MultiTurnEnv
from vfgym.episode import BaseEpisode, Episode, play
from vfgym.episode.inversion import in_time, made_states
from vfgym.episode.sessions import Sessions
from vfgym.episode.stops import note_end
from vfgym.errors import Error
from vfgym.state import State, unbegun

if TYPE_CHECKING:
    from vfgym.clients import Client


class RolloutFailed(Exception):
    """An exception that is no `Error` broke a rollout off; its cause is what was raised.

    It never leaves the library: whoever rolls out records it, or raises the cause.
    """

    def __init__(self, state: State) -> None:
        """Keep the state as far as it got."""
        super().__init__("the rollout broke off")
        self.state = state


class Player:
    """Plays one rollout after another, and keeps the games that it opened until it is closed."""

    def __init__(self) -> None:
        """Make a player without games."""
        self._sessions = Sessions()

    async def play(self, env: ChatEnv, task: dict[str, Any], client: Client, model: str, sampling_args: dict[str, Any] | None) -> State:
        """Play one episode, without scoring it.

        Args:
            env: The environment that plays (see `ChatEnv.routed`).
            task: The input of the episode; it becomes the episode's own.
            client: Who is asked.
            model: Name of the model.
            sampling_args: Generation parameters.

        Raises:
            RolloutFailed: If an exception that is no `Error` broke it off. The cleanup handlers have run.
        """
        if isinstance(env, MultiTurnEnv) and type(env).rollout is MultiTurnEnv.rollout:
            return await self._play_turns(env, task, client, model, sampling_args)
        return await play_authored(env, task, client, model, sampling_args)

    async def _play_turns(self, env: MultiTurnEnv, task: dict[str, Any], client: Client, model: str, sampling_args: Any) -> State:
        episode = Episode(env, self._sessions.of(env))
        try:
            return cast(State, await begin(play(episode, task, client, model, sampling_args)))
        except BaseException as error:
            raise RolloutFailed(episode.state) from rollout_failure(error)
        finally:
            self._sessions.keep(episode)

    async def close(self) -> None:
        """Close the games, the newest first. One that fails to close keeps none of the others open."""
        await run_async(self._sessions.close())


async def play_authored(env: ChatEnv, task: dict[str, Any], client: Client, model: str, sampling_args: dict[str, Any] | None) -> State:
    """Play one episode by an author's own `rollout`, then run the cleanup handlers.

    Raises:
        RolloutFailed: If an exception that is no `Error` broke it off, or its state could not be made.
    """
    made: list[State] = []
    token = made_states.set((env, made))
    episode = BaseEpisode(env)
    failure: Exception | None = None
    try:
        rollout = functools.partial(env.rollout, task, client, model, sampling_args)
        state = await in_time(rollout, env.timeout_seconds if isinstance(env, MultiTurnEnv) else None, made)
        if not isinstance(state, State):
            raise TypeError(f"{type(env).__name__}.rollout() must return a State, got {type(state).__name__}")
        episode.state = state
        note_end(state, None)
    except BaseException as raised:
        if ends_run(raised):
            if made:
                episode.state = made[-1]
                await run_async(episode.finish())
            raise
        error = rollout_failure(raised)
        try:  # a fresh one where it made none
            state = made[-1] if made else env.initial_state(env.tasks_of("train").own_input(task), client, model, sampling_args)
        except Exception:
            raise RolloutFailed(unbegun(task, error)) from error
        episode.state = state
        if isinstance(error, Error | DeadlinePassed):
            note_end(state, error)
        else:
            failure = error
    finally:
        made_states.reset(token)
    try:
        await run_async(episode.finish())
    except BaseException as error:
        failure = failure or rollout_failure(error)
    if failure is not None:
        raise RolloutFailed(state) from failure
    return state
