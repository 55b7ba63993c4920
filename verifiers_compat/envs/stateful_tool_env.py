"""`StatefulToolEnv` with the rollout API."""

from verifiers_compat.envs.tool_env import ToolEnv
from vfgym.envs import stateful_tool


class StatefulToolEnv(ToolEnv, stateful_tool.StatefulToolEnv):
    """`vfgym.StatefulToolEnv` with the rollout API."""


__all__ = ["StatefulToolEnv"]
