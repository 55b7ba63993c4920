"""`MCPEnv` with the rollout API."""

from verifiers_compat.envs.tool_env import ToolEnv
from verifiers_compat.loading import create_getattr
from vfgym.envs import mcp
from vfgym.envs.mcp import MCPServerConfig
from vfgym.errors import ToolError
from vfgym.messages import Message, ToolCall
from vfgym.tools.mcp import ReportedError


class MCPEnv(ToolEnv, mcp.MCPEnv):
    """`vfgym.envs.mcp.MCPEnv` with the rollout API: what a tool reports as an error is read as it reports it."""

    _callable = mcp.MCPEnv._callable  # a model that asks for an unknown tool is told so in words

    def _tell(self, error: Exception, call: ToolCall, kind: type[ToolError]) -> Message:
        message = super()._tell(error, call, kind)
        return self.message_types["tool"](str(error), tool_call_id=call.id) if isinstance(error, ReportedError) else message


__all__ = ["MCPEnv", "MCPServerConfig"]

__getattr__ = create_getattr(__name__)
