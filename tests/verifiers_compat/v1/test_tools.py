"""The tools of one rollout: hidden arguments, and real tool servers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import verifiers_compat.v1 as vf
from tests.models import calling
from vfgym.testing import ScriptedClient


async def told(toolsets: Any, *calls: tuple[str, dict[str, Any]], task: dict[str, Any] | None = None) -> list[Any]:
    """Make the calls in one message and return what the model reads."""
    player = vf.Harness(client=ScriptedClient([calling(*calls), "done"]), model="m", toolsets=toolsets)
    state = await player.run({"prompt": "go", **(task or {})})
    await player.teardown()
    return [message["content"] for message in state["completion"] if message["role"] == "tool"]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def secret(text: str, key: str, task: vf.Task, state: vf.State, runtime: dict[str, Any]) -> str:
    """Tell what was filled in."""
    return f"{text} {key} {task['answer']} {state['info']['level']} {runtime['max_turns']}"


async def test_the_model_neither_sees_nor_sets_hidden_arguments() -> None:
    toolset = vf.Toolset([secret], bindings={"secret.key": "k"})
    task = {"answer": "42", "info": {"level": 3}}
    [text] = await told([toolset], ("secret", {"text": "hi", "key": "mine"}), task=task)
    assert "unknown argument" in text
    [text] = await told([toolset], ("secret", {"text": "hi", "state": {}}), task=task)
    assert "unknown argument" in text
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
    texts = await told([toolset], ("shout", {"text": "hi"}), ("fail", {}), ("add", {"a": 1, "b": 1}), ("whoami", {}))
    assert texts[0] == "HI!"
    assert "fail" in texts[1]
    assert texts[2:] == ["2", "'whoami'"]
