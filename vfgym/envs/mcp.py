"""`MCPEnv`: a tool environment whose tools live on servers that speak the Model Context Protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vfgym.aio.background import wait
from vfgym.envs.tool import ToolEnv
from vfgym.errors import ConfigurationError
from vfgym.lifecycle import forget_teardown, teardown
from vfgym.tools import Tool, ToolFunction
from vfgym.tools.mcp import MCPServerConfig, MCPSession

__all__ = ["MCPEnv", "MCPServerConfig", "RemoteTool", "mcp_error_text"]


def mcp_error_text(error: Exception) -> str:
    """Return what the model is told of an error: its text, marked as an error."""
    return f"Error: {error}"


class RemoteTool:
    """A tool of a server, as an async function of its arguments."""

    def __init__(self, session: MCPSession, name: str) -> None:
        """Call the tool that the server knows as `name`."""
        self.session = session
        self.name = name

    async def __call__(self, **arguments: Any) -> str | list[dict[str, Any]]:
        """Call the tool and return what it gave, as the content of a tool message."""
        return await self.session.call(self.name, arguments)

    def __repr__(self) -> str:
        return f"<RemoteTool {self.name} of {self.session.server.label}>"


class MCPEnv(ToolEnv):
    """A `ToolEnv` with the tools of MCP servers. All episodes share one session with each server.

    The servers are started, or connected to, when the environment is made, because they say which tools there are. A session
    whose server died is opened anew by the next call. A call that was under way is made once more if the tool's annotations say
    that it is read-only or idempotent; of any other the model is told that it may or may not have been carried out. What a tool
    reports as an error, arguments that cannot be sent, and a server that cannot be reached, are told to the model, unless
    `stop_errors` names `vfgym.errors.ToolCallError` or `vfgym.errors.InfraError`. `close` ends the sessions and the servers that
    were started; so does the end of the process.
    """

    def __init__(
        self,
        mcp_servers: Sequence[MCPServerConfig | Mapping[str, Any]] = (),
        max_turns: int = 10,
        error_formatter: Callable[[Exception], str] = mcp_error_text,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            mcp_servers: The servers (see `MCPServerConfig`): ``{"name", "command", "args", "env"}`` starts one and speaks
                to it over its pipes, ``{"name", "url"}`` speaks streamable HTTP.
            max_turns: Most answers of the model in one episode; unlimited where it is not positive.
            error_formatter: Makes the text of a tool message of an exception.
            **kwargs: Passed to `ToolEnv`; its ``tools`` are offered beside those of the servers.

        Raises:
            ConfigurationError: If a server is described wrongly, or two tools have the same name.
            vfgym.errors.InfraError: If a server cannot be reached.
            vfgym.errors.MissingExtra: If the MCP SDK is not installed.
        """
        if isinstance(mcp_servers, Mapping | MCPServerConfig):
            raise ConfigurationError(f"mcp_servers must be a list of servers, got one {type(mcp_servers).__name__}: put it into a list")
        servers = [MCPServerConfig.of(server) for server in mcp_servers]
        super().__init__(max_turns=max_turns, error_formatter=error_formatter, **kwargs)
        self.mcp_sessions = [MCPSession(server) for server in servers]
        try:
            for session, tools in zip(self.mcp_sessions, wait(self._listed()), strict=True):
                for tool in tools:
                    self._add_remote(session, tool)
        except BaseException:
            forget_teardown(self)
            wait(self.close_sessions())
            raise

    async def _listed(self) -> list[list[Tool]]:
        listings = await asyncio.gather(*(session.list_tools() for session in self.mcp_sessions), return_exceptions=True)
        tools: list[list[Tool]] = []
        for listing in listings:
            if isinstance(listing, BaseException):
                raise listing
            tools.append(listing)
        return tools

    def _add_remote(self, session: MCPSession, tool: Tool) -> None:
        name = session.server.tool_prefix + tool.name
        if name in self.tool_map:
            other = self.tool_map[name]
            where = f"the server {other.session.server.label}" if isinstance(other, RemoteTool) else "tools="
            raise ConfigurationError(
                f"the tool {name!r} of the server {session.server.label} has the name of one of {where}: give the server a tool_prefix"
            )
        remote = RemoteTool(session, tool.name)
        self._register(remote, ToolFunction.from_definition(tool.model_copy(update={"name": name}), remote))

    @teardown
    async def close_sessions(self) -> None:
        """End the sessions, and the servers that were started for them."""
        await asyncio.gather(*(session.close() for session in self.mcp_sessions), return_exceptions=True)
