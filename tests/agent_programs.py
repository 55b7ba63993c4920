"""Small agent programs, which need nothing but Python, and environments that they play."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vfgym import sandboxes
from vfgym.envs.cli_agent import CliAgentEnv
from vfgym.errors import ConfigurationError

LIBRARY = """
import json, os, sys, threading, time, urllib.error, urllib.request

def post(path, body, api="OPENAI"):
    request = urllib.request.Request(
        os.environ[api + "_BASE_URL"] + path,
        json.dumps({"model": "any", **body}).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ[api + "_API_KEY"]},
    )
    return urllib.request.urlopen(request, timeout=60)

def events(answer):
    for line in answer:
        if line.startswith(b"data: ") and b"[DONE]" not in line:
            yield json.loads(line[6:])

def chat(messages, **more):
    return json.load(post("/chat/completions", {"messages": messages, **more}))["choices"][0]["message"]

def chat_stream(messages):
    found = events(post("/chat/completions", {"messages": messages, "stream": True}))
    return {"role": "assistant", "content": "".join(choice["delta"].get("content") or "" for event in found for choice in event["choices"])}

def anthropic_stream(messages):
    found = events(post("/v1/messages", {"messages": messages, "max_tokens": 9, "stream": True}, "ANTHROPIC"))
    return {"role": "assistant", "content": "".join(event["delta"]["text"] for event in found if event["type"] == "content_block_delta")}

def responses(messages):
    answer = json.load(post("/responses", {"input": messages}))
    return {"role": "assistant", "content": answer["output"][0]["content"][0]["text"]}

def user(text):
    return {"role": "user", "content": text}

def read_task():
    with open(os.environ["AGENT_INSTRUCTION_PATH"]) as file:
        return file.read()
"""
"""What the programs of tests begin with: a client of each protocol."""

TALK = """
messages = [user(read_task())]
for _ in range(2):
    messages.append(chat(messages))
    messages.append(user("go on"))
    print(messages[-2]["content"])
"""
"""Asks two questions, and prints the answers."""


def _find_problem() -> str:
    try:
        sandboxes.find_backend()
    except ConfigurationError as error:
        return str(error)
    return ""


PROBLEM = _find_problem()
needs_sandbox = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)
"""Skips where no sandbox can be made, and says what to install."""


class ProgramEnv(CliAgentEnv):
    """Is played by a program that is given as Python code."""

    def __init__(self, program: str = TALK, run_command: str = "python3 agent.py", **kwargs: Any) -> None:
        super().__init__(run_command, **{"dataset": [{"question": "Say yes.", "answer": "yes"}], **kwargs})
        self.program = LIBRARY + program

    async def post_sandbox_setup(self, state: Any) -> None:
        await state["sandbox"].write_file("agent.py", self.program)


def running(text: str) -> list[str]:
    """Return the processes of this machine whose command line has a text."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace") if entry.name.isdigit() else ""
        except OSError:
            continue
        if text in line:
            found.append(line)
    return found
