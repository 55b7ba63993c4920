"""`SingleTurnEnv` with the rollout API."""

from verifiers_compat.envs.multiturn_env import MultiTurnEnv
from vfgym.envs import single_turn


class SingleTurnEnv(MultiTurnEnv, single_turn.SingleTurnEnv):
    """`vfgym.SingleTurnEnv` with the rollout API."""


__all__ = ["SingleTurnEnv"]
