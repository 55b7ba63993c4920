"""`MCPEnv` with the rollout API."""

from verifiers_compat.envs.tool_env import ToolEnv
from verifiers_compat.loading import create_getattr
from vfgym.envs import mcp
from vfgym.envs.mcp import MCPServerConfig


class MCPEnv(ToolEnv, mcp.MCPEnv):
    """`vfgym.envs.mcp.MCPEnv` with the rollout API."""

    _callable = mcp.MCPEnv._callable  # a model that asks for an unknown tool is told so in words


__all__ = ["MCPEnv", "MCPServerConfig"]

__getattr__ = create_getattr(__name__)
