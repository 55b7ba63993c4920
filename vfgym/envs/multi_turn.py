"""`MultiTurnEnv`: the documented turn loop, with its stop conditions and hooks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar

from vfgym.aio.steps import Steps, eager, run_async
from vfgym.calls import Ready, is_awaitable
from vfgym.context import authored_limit
from vfgym.envs.chat import ChatEnv
from vfgym.episode import BaseEpisode, Episode, play
from vfgym.episode.inversion import InvertedEpisode
from vfgym.episode.sessions import Sessions
from vfgym.errors import ConfigurationError
from vfgym.lifecycle import cleanup, stop
from vfgym.messages import Message, as_messages
from vfgym.overrides import hook, inline_hook, is_replaced
from vfgym.reseeding import SeededNumbers
from vfgym.rubrics import Rubric
from vfgym.state import State, TrajectoryStep
from vfgym.tasks import Row


class MultiTurnMonitorRubric(Rubric):
    """Measures what every environment with turns has: ``num_turns``."""

    def __init__(self) -> None:
        """Make the rubric."""
        super().__init__()
        self.add_metric(self.num_turns)

    def num_turns(self, state: State) -> float:
        """Return the number of answers of the model."""
        return float(len(state["trajectory"]))


class MultiTurnEnv(ChatEnv):
    """An environment in which model and environment take turns.

    After each answer of the model the stop conditions are checked; if none holds, `env_response` gives the messages that
    the model answers next. Hooks may be plain or async methods.
    """

    _hook_names: ClassVar[tuple[str, ...]] = (
        *ChatEnv._hook_names,
        "setup_state",
        "env_response",
        "get_prompt_messages",
        "render_completion",
        "add_trajectory_step",
        "apply_action",
    )

    _episode_type: ClassVar[type[Episode]] = Episode
    """What plays an episode with the library's own loop."""

    def __init__(self, max_turns: int = -1, timeout_seconds: float | None = None, **kwargs: Any) -> None:
        """Define an environment.

        Args:
            max_turns: Most answers of the model in one episode; unlimited where it is not positive.
            timeout_seconds: Seconds after which an episode ends, from before `setup_state` (from the call of your own `rollout`, until
                it calls this one); None for no limit.
            **kwargs: Passed to `ChatEnv` (``dataset``, ``rubric``, ...).
        """
        super().__init__(**kwargs)
        if not isinstance(max_turns, int):
            raise ConfigurationError(f"max_turns must be an integer (-1 for no limit), got {max_turns!r}")
        self.max_turns = max_turns
        self.timeout_seconds = timeout_seconds
        self.max_total_completion_tokens = -1
        self._has_own_stops = any(getattr(call, "__func__", None) not in self._known_stops for _, call in self.hooks.stops)
        """Whether there are stop conditions that `may_stop` does not know."""
        self.add_rubric(MultiTurnMonitorRubric())
        self._is_defined = True
        self.check_failure_reward()

    def set_max_total_completion_tokens(self, max_total_completion_tokens: int) -> None:
        """End episodes once the model wrote this many tokens, over all turns; no limit where it is not positive."""
        self.max_total_completion_tokens = max_total_completion_tokens

    # Hooks

    @hook
    def setup_state(self, state: State) -> Any:
        """Prepare an episode; write what it needs into `state`. Plain or async; a returned state replaces the given one."""
        return Ready(state)

    @hook
    def env_response(self, messages: list[Message], state: State) -> Any:
        """Return the environment's next messages. Plain or async.

        Args:
            messages: The whole conversation so far, the model's last answer included; a list of its own.
            state: The episode. Setting ``state["final_env_response"]`` to messages ends it.
        """
        raise NotImplementedError(f"{type(self).__name__} must write env_response(messages, state)")

    @inline_hook
    @eager
    def get_prompt_messages(self, state: State) -> Steps[list[Message]]:
        """Return the conversation that the model answers next. Override it to rewrite history. Plain or async."""
        trajectory = state["trajectory"]
        if not trajectory:
            return as_messages(state["prompt"], self.message_types, name="prompt")
        messages = [*trajectory[-1]["prompt"], *trajectory[-1]["completion"]]
        response: Any = self.env_response(messages.copy(), state)
        if is_awaitable(response):
            response = yield response
        return [*messages, *as_messages(response, self.message_types, name="env_response")]

    @hook
    def render_completion(self, state: State) -> Any:
        """Set ``state["completion"]``: all that came after the initial prompt. Plain or async."""
        trajectory = state["trajectory"]
        if not trajectory:
            state["completion"] = []
            return Ready()
        messages = [*trajectory[-1]["prompt"][len(state["prompt"]) :], *trajectory[-1]["completion"]]
        final = state["final_env_response"]
        if final:
            messages += as_messages(final, self.message_types, name="final_env_response")
        state["completion"] = messages
        return Ready()

    @inline_hook
    def add_trajectory_step(self, state: State, trajectory_step: TrajectoryStep) -> Any:
        """Record one turn. Override it to set a turn's reward, advantage or extras. Plain or async."""
        state["trajectory"].append(trajectory_step)
        return Ready()

    def record_turn(self, state: State, step: TrajectoryStep) -> Any:
        """Record one turn, where the author wrote the hook that does it."""
        return self.add_trajectory_step(state, step)

    @inline_hook
    def apply_action(self, message: Message, state: State) -> Any:
        """Carry out the model's move in a game, as the turn is recorded and before the stop conditions. Plain or async."""
        return Ready()

    # Rollouts

    async def rollout(self, input: Row, client: Any, model: str, sampling_args: dict[str, Any] | None = None) -> State:
        """Play one episode by asking `client`, and return its state, not scored."""
        episode, sessions = Episode(self), Sessions()
        episode.limit = authored_limit(self)
        try:
            return await run_async(play(episode, self.tasks_of("train").copy_input(input), client, model, sampling_args))
        finally:
            sessions.keep(episode)
            episode.state.session = None
            await run_async(sessions.close())

    def new_episode(self, session: Any = None, numbers: SeededNumbers | None = None) -> BaseEpisode:
        """Return an episode of this environment that has not begun; an inverted one where the author wrote `rollout`."""
        if is_replaced(self, "rollout", MultiTurnEnv.rollout):
            return InvertedEpisode(self, session, numbers, self.timeout_seconds)
        return self._episode_type(self, session, numbers)

    @property
    def can_go_back(self) -> bool:
        """Whether its episodes can be copied in the middle: where nobody overrides `rollout`, whose running code cannot be."""
        return type(self).rollout is MultiTurnEnv.rollout

    # Stop conditions

    @stop(priority=100)
    def has_error(self, state: State) -> bool:
        """Stop when an error was recorded."""
        return state.get("error") is not None

    @stop
    def prompt_too_long(self, state: State) -> bool:
        """Stop when the model's context was too short for the conversation."""
        return "prompt_too_long" in state

    @stop
    def max_turns_reached(self, state: State) -> bool:
        """Stop after `max_turns` answers."""
        return 0 < self.max_turns <= len(state["trajectory"])

    @stop
    def timeout_reached(self, state: State) -> bool:
        """Stop when the time was up."""
        return "timed_out" in state

    @stop
    def max_total_completion_tokens_reached(self, state: State) -> bool:
        """Stop when the model wrote as many tokens as it may."""
        limit = self.max_total_completion_tokens
        return limit > 0 and state["usage_tracker"].seen and state["usage_tracker"]["output_tokens"] >= limit

    @stop
    def has_final_env_response(self, state: State) -> bool:
        """Stop when the environment said its last."""
        return state.get("final_env_response") is not None

    _known_stops: ClassVar[frozenset[Callable[..., Any]]] = frozenset(
        {
            has_error,
            prompt_too_long,
            max_turns_reached,
            timeout_reached,
            max_total_completion_tokens_reached,
            has_final_env_response,
        }
    )
    """Stop conditions that `may_stop` looks up."""

    def may_stop(self, state: State) -> bool:
        """Say whether any stop condition may hold, by plain look-ups: asked at every turn, before the conditions themselves."""
        return (
            self._has_own_stops
            or state["error"] is not None
            or state["final_env_response"] is not None
            or 0 < self.max_turns <= len(state["trajectory"])
            or self.max_total_completion_tokens > 0
            or "prompt_too_long" in state
            or "timed_out" in state
        )

    @cleanup(priority=100)
    def render_state(self, state: State) -> Any:
        """Stamp the end of play and render the completion, before handlers of lower priority run."""
        timing = state["timing"]
        timing.generation.end = time.time()
        timing.model.pack()
        timing.env.pack()
        result = self.render_completion(state)
        return result if is_awaitable(result) else Ready()
