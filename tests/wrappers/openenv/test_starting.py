"""Servers that are started for a project: its manifest, a pool of processes that all end, and what is said where one does not start."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import tests.openenv_servers
from vfgym.aio.background import on_background_loop, wait
from vfgym.errors import ConfigurationError
from vfgym.wrappers.openenv import OpenEnvEnv
from vfgym.wrappers.openenv.project import read_project, servers_of
from vfgym.wrappers.openenv.protocol import ServerError
from vfgym.wrappers.openenv.servers import ServerSource
from vfgym.wrappers.openenv.starting import ServerProcess, StartedServers, start_process

COMMAND = shlex.join([sys.executable, str(Path(str(tests.openenv_servers.__file__))), "8000"])


def write_project(folder: Path, **manifest: Any) -> Path:
    """Write the manifest of a project, and return its folder."""
    (folder / ".build.json").write_text(json.dumps({"image": "counting:1", "start_command": COMMAND, "contract": "gym", **manifest}))
    return folder


def started_by(project: Path) -> ServerSource:
    return servers_of(read_project(project), "unsafe", start_timeout=60, request_timeout=60)


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_as_many_servers_run_as_episodes_are_played_at_once(tmp_path: Path) -> None:
    """They are kept for the episodes that follow, one that died is replaced, and all end with the environment."""
    source = started_by(write_project(tmp_path))
    assert isinstance(source, StartedServers)
    env = OpenEnvEnv(source, lambda observation: [{"role": "user", "content": str(observation["total"])}])
    other = env.fork()
    env.reset(seed=1)
    other.reset(seed=2)
    assert (env.step("1").observation[-1].content, other.step("1").observation[-1].content) == ("2", "3")
    processes = [started._process for started in source._leased if isinstance(started, ServerProcess)]
    assert len(processes) == 2
    env.reset(seed=3)
    assert [started._process for started in source._leased if isinstance(started, ServerProcess)] == processes[::-1]
    os.killpg(processes[0].pid, signal.SIGKILL)
    assert "ServerError" in env.step("1").info["error"]
    assert env.reset(seed=4)[0][0].content == "4"
    ids = [started._process.pid for started in source._leased if isinstance(started, ServerProcess)]
    env.close()
    other.close()
    assert not any(is_running(number) for number in ids)


def test_a_server_that_does_not_start_says_what_it_wrote(tmp_path: Path) -> None:
    source = started_by(write_project(tmp_path, start_command="echo no such module; echo $PORT; exit 3"))
    with pytest.raises(ConfigurationError, match=r"(?s)ended as soon as it was started\. It was started by: echo.*no such module\n\d+"):
        OpenEnvEnv(source, lambda observation: [])


def test_a_server_that_is_not_reached_in_time_is_ended(tmp_path: Path) -> None:
    async def start() -> None:
        await start_process("sleep 600 & echo waiting; wait", tmp_path, 8000, start_timeout=0.3, request_timeout=60)

    with pytest.raises(ServerError, match=r"(?s)could not be reached 0.3 s after it was started.*waiting"):
        wait(on_background_loop(start))


def test_a_start_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    """The test fails where a process is left."""

    async def start_and_cancel() -> None:
        starting = asyncio.ensure_future(start_process("sleep 600", tmp_path, 8000, start_timeout=60, request_timeout=60))
        done, _ = await asyncio.wait((starting,), timeout=0.3)
        assert not done
        starting.cancel()
        await asyncio.wait((starting,))

    wait(on_background_loop(start_and_cancel))


def test_a_project_without_a_backend_says_what_to_do(tmp_path: Path) -> None:
    project = read_project(write_project(tmp_path, port=9000))
    for backend in (None, "podman"):
        with pytest.raises(ConfigurationError, match=r"docker run -p 9000:9000 counting:1\) and give url='http://127.0.0.1:9000'"):
            servers_of(project, backend, start_timeout=1, request_timeout=1)


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (None, "is a folder with a .build.json"),
        ("{", "is not JSON"),
        ("[]", "must be an object"),
        ('{"contract": "gmy"}', "Did you mean `gym`"),
        ('{"port": "8000"}', "port must be a whole number, got '8000'"),
        ('{"image": 3}', "image must be text"),
        ("{}", "has no start_command"),
    ],
)
def test_a_malformed_project_is_an_error(tmp_path: Path, manifest: str | None, words: str) -> None:
    if manifest is not None:
        (tmp_path / ".build.json").write_text(manifest)
    with pytest.raises(ConfigurationError, match=words):
        started_by(tmp_path)
