"""Servers that are started for a project: its manifest, a pool of processes that all end, and what is said where one does not start."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import shlex
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

import tests.openenv_servers
from tests.sandboxes.engine import container_engine
from tests.sandboxes.making import need
from vfgym.aio.background import on_background_loop, wait
from vfgym.errors import ConfigurationError, InfraError
from vfgym.sandboxes import Probe, SandboxSpec
from vfgym.sandboxes.container import ContainerBackend, _engine
from vfgym.wrappers.openenv import OpenEnvEnv, sandboxed
from vfgym.wrappers.openenv.project import read_project, servers_of
from vfgym.wrappers.openenv.protocol import ServerError
from vfgym.wrappers.openenv.sandboxed import SandboxedServer
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


def test_a_server_that_died_and_is_not_known_to_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the event loop a moment to hear of it."""
    source = started_by(write_project(tmp_path))
    assert isinstance(source, StartedServers)
    env = OpenEnvEnv(source, lambda observation: [{"role": "user", "content": str(observation["total"])}])
    try:
        [started] = source._idle
        assert isinstance(started, ServerProcess)
        monkeypatch.setattr(ServerProcess, "is_alive", True)
        os.killpg(started._process.pid, signal.SIGKILL)
        assert env.reset(seed=4)[0][0].content == "4"
        assert started not in [*source._idle, *source._leased]
    finally:
        env.close()


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


def test_servers_that_are_being_started_end_with_their_environment(tmp_path: Path) -> None:
    """Whoever waits for one is told so. The test fails where a process is left."""
    source = started_by(write_project(tmp_path, start_command="sleep 600"))
    assert isinstance(source, StartedServers)

    async def start_and_close() -> None:
        leasing = asyncio.ensure_future(source.lease())
        done, _ = await asyncio.wait((leasing,), timeout=0.3)
        assert not done
        await source.close()
        with pytest.raises(InfraError, match="was closed while"):
            await leasing

    wait(on_background_loop(start_and_close))


def test_no_server_is_left_where_an_environment_cannot_be_defined(tmp_path: Path) -> None:
    source = started_by(write_project(tmp_path))
    assert isinstance(source, StartedServers)
    with pytest.raises(ConfigurationError, match="max_invalid_moves"):
        OpenEnvEnv(source, lambda observation: [], max_invalid_moves=0)
    assert source._idle == []


def test_a_project_without_a_backend_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = read_project(write_project(tmp_path, port=9000))
    silent = Probe(works=False, protects={}, problem="no container engine answers", install="start Docker")
    monkeypatch.setattr(ContainerBackend, "probe", lambda self: silent)
    for backend, words in (
        (None, "no container engine answers. To install it: start Docker"),
        ("podmann", "there is no backend 'podmann'"),
    ):
        with pytest.raises(ConfigurationError, match=words) as caught:
            servers_of(project, backend, start_timeout=1, request_timeout=1)
        assert "docker run -p 9000:9000 counting:1) and give url='http://127.0.0.1:9000'" in str(caught.value)
        assert "backend='unsafe'" in str(caught.value)


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (None, "is a folder with a .build.json"),
        ("{", "is not JSON"),
        ("[]", "must be an object"),
        ('{"contract": "gmy"}', "Did you mean `gym`"),
        ('{"port": "8000"}', "port must be a whole number, got '8000'"),
        ('{"port": 70000}', "port must be from 1 to 65535, got 70000"),
        ('{"image": 3}', "image must be text"),
        ("{}", "has no start_command"),
    ],
)
def test_a_malformed_project_is_an_error(tmp_path: Path, manifest: str | None, words: str) -> None:
    if manifest is not None:
        (tmp_path / ".build.json").write_text(manifest)
    with pytest.raises(ConfigurationError, match=words):
        started_by(tmp_path)


@pytest.mark.parametrize("seconds", [0, float("nan"), "5"])
def test_the_time_to_start_in_is_a_number_of_seconds(tmp_path: Path, seconds: Any) -> None:
    project = read_project(write_project(tmp_path))
    with pytest.raises(ConfigurationError, match="start_timeout must be a positive number of seconds"):
        servers_of(project, "unsafe", start_timeout=seconds, request_timeout=60)


STDLIB_SERVER = """
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

ThreadingHTTPServer(("0.0.0.0", 8000), Counting).serve_forever()
"""


def test_servers_run_in_sandboxes_without_a_network(tmp_path: Path) -> None:
    """The project's own folder is copied there; the sandboxes end with the environment."""
    need("bwrap")
    (tmp_path / "server.py").write_text(STDLIB_SERVER)
    (tmp_path / ".build.json").write_text(json.dumps({"start_command": "python3 server.py"}))
    play_two_at_once(tmp_path, "bwrap")


def test_who_looks_whether_a_socket_has_a_server_takes_no_call(tmp_path: Path) -> None:
    """As whoever removes the sockets of killed processes does."""
    need("bwrap")
    (tmp_path / "server.py").write_text(STDLIB_SERVER)
    (tmp_path / ".build.json").write_text(json.dumps({"start_command": "python3 server.py"}))
    source = servers_of(read_project(tmp_path), "bwrap", start_timeout=60, request_timeout=60)
    assert isinstance(source, StartedServers)
    env = OpenEnvEnv(source, lambda observation: [{"role": "user", "content": str(observation["total"])}])
    [server] = source._idle
    assert isinstance(server, SandboxedServer)
    for _ in range(20):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(server._socket)
    assert env.reset(seed=1)[0][-1].content == "1"
    assert [env.step("1").observation[-1].content for _ in range(8)] == [str(total) for total in range(2, 10)]
    env.close()
    assert not Path(server._socket).parent.exists()


def test_a_project_that_is_larger_than_a_sandbox_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("bwrap")
    (tmp_path / ".build.json").write_text(json.dumps({"start_command": "python3 server.py"}))
    with (tmp_path / "weights").open("wb") as file:
        file.truncate(40 << 20)
    monkeypatch.setattr(sandboxed, "SandboxSpec", functools.partial(SandboxSpec, disk_mb=16))
    source = servers_of(read_project(tmp_path), "bwrap", start_timeout=60, request_timeout=60)
    with pytest.raises(ConfigurationError, match="cannot be copied into a sandbox: No space left"):
        OpenEnvEnv(source, lambda observation: [])


@pytest.mark.exhaustive
def test_servers_run_in_containers_of_the_projects_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The image holds what they need: nothing is copied there."""
    with container_engine() as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.address)
        _engine.cache_clear()
        command = shlex.join(["python3", "-c", STDLIB_SERVER])
        (tmp_path / ".build.json").write_text(json.dumps({"start_command": command, "image": engine.image}))
        play_two_at_once(tmp_path, None)
        _engine().close()
        _engine.cache_clear()


def play_two_at_once(folder: Path, backend: str | None) -> None:
    """Play two episodes of a project at the same time, and close the environment."""
    source = servers_of(read_project(folder), backend, start_timeout=60, request_timeout=60)
    assert isinstance(source, StartedServers)
    env = OpenEnvEnv(source, lambda observation: [{"role": "user", "content": str(observation["total"])}])
    other = env.fork()
    env.reset(seed=1)
    other.reset(seed=2)
    for answer, total in (("2", "3"), ("3", "6")):
        assert env.step(answer).observation[-1].content == total
    outcome = other.step("8")
    assert (outcome.observation[-1].content, outcome.reward, outcome.terminated) == ("10", 10.0, True)
    started = [*source._leased, *source._idle]
    assert len(started) == 2
    env.close()
    other.close()
    assert not any(each.is_alive for each in started)


def test_a_server_that_fails_in_its_sandbox_says_what_it_wrote(tmp_path: Path) -> None:
    need("bwrap")
    (tmp_path / ".build.json").write_text(json.dumps({"start_command": "echo no such module; exit 3"}))
    source = servers_of(read_project(tmp_path), "bwrap", start_timeout=60, request_timeout=60)
    with pytest.raises(ConfigurationError, match=r"(?s)ended as soon as it was started.*no such module"):
        OpenEnvEnv(source, lambda observation: [])
