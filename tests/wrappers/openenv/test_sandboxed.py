"""Servers in sandboxes: reached over lines that a relay inside keeps open, and ended with their environment."""

from __future__ import annotations

import functools
import json
import shlex
import socket
from pathlib import Path

import pytest

from tests.sandboxes.engine import container_engine
from tests.sandboxes.making import need
from vfgym.errors import ConfigurationError
from vfgym.sandboxes import SandboxSpec
from vfgym.sandboxes.container import _engine
from vfgym.wrappers.openenv import OpenEnvEnv, sandboxed
from vfgym.wrappers.openenv.project import read_project, servers_of
from vfgym.wrappers.openenv.sandboxed import SandboxedServer
from vfgym.wrappers.openenv.starting import StartedServers

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
