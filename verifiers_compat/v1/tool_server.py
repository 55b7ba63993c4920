"""The tools of a rollout as a program in a sandbox reaches them: over HTTP, or by MCP."""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING

from verifiers_compat.v1.sandboxes import port_of
from vfgym.sandboxes import Sandbox

if TYPE_CHECKING:
    from verifiers_compat.v1.runtime import Runtime

MCP_COMMAND = ("python3", "/tmp/vf_mcp_tools.py", "/tmp/vf_mcp_tools.json")
"""Starts the MCP server of the rollout's tools, in the sandbox of its program."""


def program_text(name: str) -> str:
    """Return a program that is copied into sandboxes (see `verifiers_compat.v1.inside`)."""
    return resources.files("verifiers_compat.v1.inside").joinpath(name).read_text(encoding="utf-8")


def tools_url(running: Runtime, sandbox: Sandbox) -> str:
    """Return the address below which a tool is called, from a sandbox."""
    return running.endpoint_config("messages", port_of(sandbox))["base_url"] + "/tools"


async def offer_tools(running: Runtime, sandbox: Sandbox) -> None:
    """Write the MCP server of the rollout's tools into a sandbox: `MCP_COMMAND` starts it."""
    definitions = [
        {"name": tool.name, "description": tool.definition.description, "inputSchema": tool.definition.parameters}
        for tool in running.tools.values()
    ]
    await sandbox.write_file(MCP_COMMAND[1], program_text("call_tools.py"))
    await sandbox.write_file(MCP_COMMAND[2], json.dumps({"url": tools_url(running, sandbox), "tools": definitions}))
