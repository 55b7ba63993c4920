"""`MultiTurnEnv` with the rollout API."""

from collections.abc import Sequence

from verifiers_compat.envs.awaitables import asked_plainly, awaitable_stop
from verifiers_compat.envs.environment import Environment
from vfgym.calls import is_awaitable
from vfgym.envs import multi_turn
from vfgym.envs.multi_turn import MultiTurnMonitorRubric
from vfgym.episode.hooks import Handler
from vfgym.episode.prompt import new_step
from vfgym.lifecycle import Kind
from vfgym.messages import Message, Response
from vfgym.state import State


class MultiTurnEnv(Environment, multi_turn.MultiTurnEnv):
    """`vfgym.MultiTurnEnv` with the rollout API."""

    has_error = awaitable_stop(multi_turn.MultiTurnEnv.has_error)
    prompt_too_long = awaitable_stop(multi_turn.MultiTurnEnv.prompt_too_long)
    max_turns_reached = awaitable_stop(multi_turn.MultiTurnEnv.max_turns_reached)
    timeout_reached = awaitable_stop(multi_turn.MultiTurnEnv.timeout_reached)
    max_total_completion_tokens_reached = awaitable_stop(multi_turn.MultiTurnEnv.max_total_completion_tokens_reached)
    has_final_env_response = awaitable_stop(multi_turn.MultiTurnEnv.has_final_env_response)

    def _handlers(self, kind: Kind) -> list[Handler]:
        return [asked_plainly(handler) for handler in super()._handlers(kind)]

    async def add_model_response(self, state: State, prompt_messages: Sequence[Message], response: Response) -> None:
        """Record a turn, for whoever writes the loop by hand: the library's own loop does it itself.

        Args:
            state: The rollout.
            prompt_messages: The conversation that was answered.
            response: The answer.
        """
        recorded = self.add_trajectory_step(state, new_step(self, state, list(prompt_messages), response))
        if is_awaitable(recorded):
            await recorded


__all__ = ["MultiTurnEnv", "MultiTurnMonitorRubric"]
