"""The tools of one rollout: hidden arguments, and real tool servers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import verifiers_compat.v1 as vf
from tests.verifiers_compat.v1.playing import add, read_of


def secret(text: str, key: str, task: vf.Task, state: vf.State, runtime: dict[str, Any]) -> str:
    """Tell what was filled in."""
    return f"{text} {key} {task['answer']} {state['info']['level']} {runtime['max_turns']}"


async def test_the_model_neither_sees_nor_sets_hidden_arguments() -> None:
    toolset = vf.Toolset([secret], bindings={"secret.key": "k"})
    task = {"answer": "42", "info": {"level": 3}}
    for more in ({"key": "mine"}, {"state": {}}):
        [text] = await read_of([toolset], ("secret", {"text": "hi", **more}), task=task)
        assert "unknown argument" in text
    assert await read_of([toolset], ("secret", {"text": "hi"}), task=task) == ["hi k 42 3 10"]
    definitions: list[Any] = []

    def look(state: vf.State) -> None:
        running = state.running
        assert running is not None
        definitions.append(running.tools["secret"].definition.parameters)

    await vf.Harness(program=look, toolsets=[toolset]).run({"prompt": "go"})
    assert list(definitions[0]["properties"]) == ["text"]


SERVER = """
import os
from mcp.server.mcpserver import MCPServer
server = MCPServer("test", log_level="CRITICAL")

@server.tool()
def shout(text: str) -> str:
    return text.upper() + os.environ.get("MARK", "")

@server.tool()
def whoami() -> str:
    return f"{os.getpid()}"

@server.tool()
def fail() -> str:
    raise ValueError("no")

server.run()
"""


async def test_a_tool_server(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER, encoding="utf-8")
    server = vf.MCPTool(sys.executable, [str(script)], env={"MARK": "!"})
    toolset = vf.Toolset([server, add], hide=["whoami"])
    texts = await read_of([toolset], ("shout", {"text": "hi"}), ("fail", {}), ("add", {"a": 1, "b": 1}), ("whoami", {}))
    assert texts[0] == "HI!"
    assert "fail" in texts[1]
    assert texts[2:] == ["2", "'whoami'"]
