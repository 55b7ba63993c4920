"""The tools of a rollout as a program in a sandbox reaches them, by MCP."""

from __future__ import annotations

import json

import verifiers_compat.v1 as vf
from tests.agent_programs import needs_sandbox
from tests.verifiers_compat.v1.playing import add, command

MCP = """
import subprocess
server = subprocess.Popen(json.load(open("mcp.json")), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def ask(number, method, **params):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\\n")
    server.stdin.flush()
    return json.loads(server.stdout.readline()).get("result")
assert ask(1, "initialize", protocolVersion="2025-06-18")["capabilities"] == {"tools": {}}
server.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\\n")
print(json.dumps([ask(2, "tools/list")["tools"][0]["inputSchema"]["required"],
    ask(3, "tools/call", name="add", arguments={"a": 1, "b": 2}), ask(4, "tools/call", name="add", arguments={"a": 1})["isError"]]))
"""


async def test_a_command_calls_the_tools_of_its_rollout_by_mcp() -> None:
    """By a server inside that the command starts; ``{"mcp": ...}`` is run to tell the command of it."""
    tell = """echo '["python3", "/tmp/vf_mcp_tools.py", "/tmp/vf_mcp_tools.json"]' > mcp.json"""
    state = await vf.Harness(command(MCP, tools={"mcp": tell}), model="m", toolsets=[add]).run({"prompt": "go"})
    assert state["error"] is None
    required, called, is_error = json.loads(state["completion"][0]["content"])
    assert (required, is_error) == (["a", "b"], True)
    assert called == {"content": [{"type": "text", "text": "3"}], "isError": False}


pytestmark = needs_sandbox
