"""`MultiTurnEnv` with the rollout API."""

from collections.abc import Sequence

from verifiers_compat.envs.environment import Environment
from vfgym.calls import is_awaitable
from vfgym.envs import multi_turn
from vfgym.envs.multi_turn import MultiTurnMonitorRubric
from vfgym.episode import new_step
from vfgym.messages import Message
from vfgym.responses import Response
from vfgym.state import State


class MultiTurnEnv(Environment, multi_turn.MultiTurnEnv):
    """`vfgym.MultiTurnEnv` with the rollout API."""

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
