"""`MultiTurnEnv` with the rollout API."""

from verifiers_compat.envs.environment import Environment
from vfgym.envs import multi_turn
from vfgym.envs.multi_turn import MultiTurnMonitorRubric


class MultiTurnEnv(Environment, multi_turn.MultiTurnEnv):
    """`vfgym.MultiTurnEnv` with the rollout API."""


__all__ = ["MultiTurnEnv", "MultiTurnMonitorRubric"]
