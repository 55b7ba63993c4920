"""`MultiTurnEnv` with the rollout API."""

from collections.abc import Sequence, Set
from typing import Any

from verifiers_compat.envs.awaitables import awaitable_stop, unwrap_stop
from verifiers_compat.envs.environment import Environment
from vfgym.calls import is_awaitable
from vfgym.envs import multi_turn
from vfgym.envs.multi_turn import MultiTurnMonitorRubric
from vfgym.episode.hooks import MarkedMethod
from vfgym.episode.prompt import new_step
from vfgym.errors import HookMissing
from vfgym.lifecycle import Kind
from vfgym.messages import Message, Response
from vfgym.overrides import inline_hook
from vfgym.state import State, TrajectoryStep


class MultiTurnEnv(Environment, multi_turn.MultiTurnEnv):
    """`vfgym.MultiTurnEnv` with the rollout API."""

    has_error = awaitable_stop(multi_turn.MultiTurnEnv.has_error)
    prompt_too_long = awaitable_stop(multi_turn.MultiTurnEnv.prompt_too_long)
    max_turns_reached = awaitable_stop(multi_turn.MultiTurnEnv.max_turns_reached)
    timeout_reached = awaitable_stop(multi_turn.MultiTurnEnv.timeout_reached)
    max_total_completion_tokens_reached = awaitable_stop(multi_turn.MultiTurnEnv.max_total_completion_tokens_reached)
    has_final_env_response = awaitable_stop(multi_turn.MultiTurnEnv.has_final_env_response)

    def _handlers(self, kind: Kind) -> list[MarkedMethod]:
        return [unwrap_stop(handler) for handler in super()._handlers(kind)]

    def _complete_definition(self) -> None:
        own = multi_turn.MultiTurnEnv
        if all(getattr(type(self), name) is getattr(own, name) for name in ("env_response", "get_prompt_messages", "rollout")):
            raise HookMissing(f"{type(self).__name__} must write env_response(messages, state); SingleTurnEnv needs none")
        super()._complete_definition()

    def replaced_hooks(self) -> Set[str]:
        """Return which of the hooks that the machine does inline are replaced (see `ChatEnv.replaced_hooks`)."""
        replaced = super().replaced_hooks()
        return replaced | {"add_trajectory_step"} if "add_model_response" in replaced else replaced

    def record_turn(self, state: State, step: TrajectoryStep) -> Any:
        """Record one turn by the author's own `add_model_response`, where there is one, else by `add_trajectory_step`."""
        if self.replaces("add_model_response"):
            return self.add_model_response(state, list(step["prompt"]), step["response"])
        return super().record_turn(state, step)

    @inline_hook
    async def add_model_response(self, state: State, prompt_messages: Sequence[Message], response: Response) -> None:
        """Record a turn. An override is called for each turn, and calls this (or `add_trajectory_step`) to have it recorded.

        Args:
            state: The rollout.
            prompt_messages: The conversation that was answered.
            response: The answer.
        """
        recorded = self.add_trajectory_step(state, new_step(self, state, list(prompt_messages), response))
        if is_awaitable(recorded):
            await recorded


__all__ = ["MultiTurnEnv", "MultiTurnMonitorRubric"]
