"""Small servers of OpenEnv, projects that start them, and how their observations are shown."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

import tests.openenv_servers
from vfgym.wrappers.openenv.project import read_project, servers_of
from vfgym.wrappers.openenv.starting import StartedServers

COMMAND = shlex.join([sys.executable, str(Path(str(tests.openenv_servers.__file__))), "8000"])

over_both = pytest.mark.parametrize("websockets", [True, False], ids=["websockets", "http"])
"""With a session for each episode, and with one environment behind plain HTTP."""


def write_project(folder: Path, **manifest: Any) -> Path:
    """Write the manifest of a project, and return its folder."""
    (folder / ".build.json").write_text(json.dumps({"image": "counting:1", "start_command": COMMAND, "contract": "gym", **manifest}))
    return folder


def started_by(project: Path, backend: str | None = "unsafe") -> StartedServers:
    source = servers_of(read_project(project), backend, start_timeout=60, request_timeout=60)
    assert isinstance(source, StartedServers)
    return source


def show_total(observation: dict[str, Any]) -> list[dict[str, str]]:
    return [{"role": "user", "content": str(observation["total"])}]
