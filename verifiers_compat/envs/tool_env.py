"""`ToolEnv` with the rollout API."""

from verifiers_compat.envs.multiturn_env import MultiTurnEnv
from vfgym.envs import tool
from vfgym.envs.tool import ToolMonitorRubric


class ToolEnv(MultiTurnEnv, tool.ToolEnv):
    """`vfgym.ToolEnv` with the rollout API."""


__all__ = ["ToolEnv", "ToolMonitorRubric"]
