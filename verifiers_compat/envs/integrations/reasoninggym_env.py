"""`ReasoningGymEnv` with the rollout API."""

from verifiers_compat.envs.singleturn_env import SingleTurnEnv
from vfgym.envs import reasoning_gym


class ReasoningGymEnv(SingleTurnEnv, reasoning_gym.ReasoningGymEnv):
    """`vfgym.envs.reasoning_gym.ReasoningGymEnv` with the rollout API."""


__all__ = ["ReasoningGymEnv"]
