"""Small servers of OpenEnv, projects that start them, and how their observations are shown."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from vfgym.wrappers.openenv.project import read_project, servers_of
from vfgym.wrappers.openenv.starting import StartedServers

SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Counting(BaseHTTPRequestHandler):
    total = 0

    def do_GET(self):
        self.answer({"action": {"properties": {"add": {"type": "integer"}}, "required": ["add"]}}, 200 if self.path == "/schema" else 404)

    def do_POST(self):
        data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Counting.total = data["seed"] if self.path == "/reset" else self.total + data["action"]["add"]
        self.answer({"observation": {"total": self.total}, "reward": self.total, "done": self.total > 9})

    def answer(self, data, status=200):
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

ThreadingHTTPServer(("0.0.0.0", int(sys.argv[1])), Counting).serve_forever()
"""
"""Adds up, for one episode at a time, with nothing but the standard library."""
COMMAND = shlex.join([sys.executable, "server.py", "8000"])

over_both = pytest.mark.parametrize("websockets", [True, False], ids=["websockets", "http"])
"""With a session for each episode, and with one environment behind plain HTTP."""


def write_project(folder: Path, **manifest: Any) -> Path:
    """Write a project of that server, and return its folder."""
    (folder / "server.py").write_text(SERVER)
    (folder / ".build.json").write_text(json.dumps({"image": "counting:1", "start_command": COMMAND, "contract": "gym", **manifest}))
    return folder


def started_by(project: Path, backend: str | None = "unsafe") -> StartedServers:
    source = servers_of(read_project(project), backend, start_timeout=60, request_timeout=50)
    assert isinstance(source, StartedServers)
    return source


def show_total(observation: dict[str, Any]) -> list[dict[str, str]]:
    return [{"role": "user", "content": str(observation["total"])}]
