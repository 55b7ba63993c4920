"""Servers in sandboxes: reached over lines that a relay inside keeps open, and ended with their environment."""

from __future__ import annotations

import functools
import shlex
import socket
from pathlib import Path

import pytest

from tests.sandboxes.engine import container_engine
from tests.sandboxes.making import need
from tests.wrappers.openenv.playing import SERVER, show_total, started_by, write_project
from vfgym.errors import ConfigurationError
from vfgym.sandboxes import SandboxSpec
from vfgym.sandboxes.container import _engine
from vfgym.wrappers.openenv import OpenEnvEnv, sandboxed
from vfgym.wrappers.openenv.sandboxed import SandboxedServer


@pytest.fixture
def project(tmp_path: Path) -> Path:
    need("bwrap")
    return write_project(tmp_path, start_command="python3 server.py 8000")


def test_servers_run_in_sandboxes_without_a_network(project: Path) -> None:
    """The project's own folder is copied there; the sandboxes end with the environment."""
    play_two_at_once(project, "bwrap")


def test_who_looks_whether_a_socket_has_a_server_takes_no_call(project: Path) -> None:
    """As whoever removes the sockets of killed processes does."""
    source = started_by(project, "bwrap")
    env = OpenEnvEnv(source, show_total)
    [server] = source._idle
    assert isinstance(server, SandboxedServer)
    for _ in range(20):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(server._socket)
    assert env.reset(seed=1)[0][-1].content == "1"
    assert [env.step("1").observation[-1].content for _ in range(8)] == [str(total) for total in range(2, 10)]
    env.close()
    assert not Path(server._socket).parent.exists()


def test_a_project_that_is_larger_than_a_sandbox_is_an_error(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (project / "weights").open("wb") as file:
        file.truncate(40 << 20)
    monkeypatch.setattr(sandboxed, "SandboxSpec", functools.partial(SandboxSpec, disk_mb=16))
    with pytest.raises(ConfigurationError, match="cannot be copied into a sandbox: No space left"):
        OpenEnvEnv(started_by(project, "bwrap"), show_total)


@pytest.mark.exhaustive
def test_servers_run_in_containers_of_the_projects_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The image holds what they need: nothing is copied there."""
    with container_engine() as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.address)
        _engine.cache_clear()
        command = shlex.join(["python3", "-c", SERVER, "8000"])
        play_two_at_once(write_project(tmp_path, start_command=command, image=engine.image), None)
        _engine().close()
        _engine.cache_clear()


def play_two_at_once(folder: Path, backend: str | None) -> None:
    """Play two episodes of a project at the same time, and close the environment."""
    source = started_by(folder, backend)
    env = OpenEnvEnv(source, show_total)
    other = env.fork()
    env.reset(seed=1)
    other.reset(seed=2)
    assert [env.step(answer).observation[-1].content for answer in ("2", "3")] == ["3", "6"]
    outcome = other.step("8")
    assert (outcome.observation[-1].content, outcome.reward, outcome.terminated) == ("10", 10.0, True)
    started = [*source._leased, *source._idle]
    assert len(started) == 2
    env.close()
    other.close()
    assert not any(each.is_alive for each in started)


def test_a_server_that_fails_in_its_sandbox_says_what_it_wrote(project: Path) -> None:
    write_project(project, start_command="echo no such module; exit 3")
    with pytest.raises(ConfigurationError, match=r"(?s)ended as soon as it was started.*no such module"):
        OpenEnvEnv(started_by(project, "bwrap"), show_total)
