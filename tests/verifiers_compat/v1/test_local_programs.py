"""Programs of this machine: functions of this process, and commands."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat.v1 as vf


async def test_what_a_program_returns_is_merged() -> None:
    async def nothing(state: vf.State) -> None:
        state["done_by"] = "me"

    async def same(state: vf.State) -> vf.State:
        state["done_by"] = "me"
        return state

    async def wrong(state: vf.State) -> int:
        return 3

    async def bound(state: vf.State, key: str) -> dict[str, Any]:
        return {"done_by": key}

    assert (await vf.Harness(nothing).run({}))["done_by"] == "me"
    assert (await vf.Harness(same).run({}))["done_by"] == "me"
    echoed = await vf.Harness({"command": ["echo", "me"]}, model="m").run({})
    assert (echoed["stop_condition"], echoed["completion"]) == ("command_completed", [{"role": "assistant", "content": "me"}])
    assert (await vf.Harness({"fn": bound, "bindings": {"key": "task.answer"}}).run({"answer": "you"}))["done_by"] == "you"
    with pytest.raises(TypeError, match=r"the program wrong of Harness must return None, its state, or a mapping .* got int"):
        await vf.Harness(wrong).run({})


PARENT = """
import os, signal, socket, subprocess, sys

connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], pass_fds=[connection.fileno()])
connection.sendall(f"{os.getpid()} {child.pid}".encode())
signal.pause()
"""


async def test_a_cancelled_command_is_killed_with_its_children() -> None:
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        async with asyncio.timeout(60):
            command = [sys.executable, "-c", PARENT, str(listening.getsockname()[1])]
            running = asyncio.ensure_future(vf.Harness({"command": command}, model="m").run({}))
            connection, _ = await loop.sock_accept(listening)
            with connection:
                own, child = map(int, (await loop.sock_recv(connection, 100)).split())
                os.kill(child, 0)
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
                with pytest.raises(ProcessLookupError):
                    os.kill(own, 0)
                assert await loop.sock_recv(connection, 1) == b"", "it ends with the last process that has it open: the child"


async def test_what_a_command_leaves_running_is_not_waited_for_but_killed() -> None:
    """It holds the output of the command open, and would never end."""
    program = f"import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {'import signal; signal.pause()'!r}]).pid)"
    async with asyncio.timeout(60):
        state = await vf.Harness({"command": [sys.executable, "-c", program]}, model="m").run({})
        assert state["stop_condition"] == "command_completed"
        while _is_running(int(state["completion"][0]["content"])):  # whoever adopted it has yet to see that it ended
            await asyncio.sleep(0)


def _is_running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
