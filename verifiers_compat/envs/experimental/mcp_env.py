"""`MCPEnv` with the rollout API."""

from verifiers_compat.envs.tool_env import ToolEnv
from vfgym.envs import mcp
from vfgym.envs.mcp import MCPServerConfig


class MCPEnv(ToolEnv, mcp.MCPEnv):
    """`vfgym.envs.mcp.MCPEnv` with the rollout API."""


__all__ = ["MCPEnv", "MCPServerConfig"]
