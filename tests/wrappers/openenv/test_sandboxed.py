"""Servers in sandboxes: reached over lines that a relay inside keeps open, and ended with their environment."""

from __future__ import annotations

import asyncio
import functools
import shlex
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.sandboxes.engine import container_engine
from tests.sandboxes.making import need
from tests.wrappers.openenv.playing import SERVER, show_total, started_by, write_project
from vfgym.errors import ConfigurationError
from vfgym.sandboxes import ExecResult, SandboxSpec
from vfgym.sandboxes.container import _engine
from vfgym.wrappers.openenv import OpenEnvEnv, sandboxed
from vfgym.wrappers.openenv.protocol import ServerError
from vfgym.wrappers.openenv.sandboxed import SandboxedServer, start_sandboxed


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


class FakeSandbox:
    """A sandbox whose commands end as a test says, or never."""

    def __init__(self, outcome: Any = None, upload: Exception | None = None) -> None:
        self.outcome, self.problem = outcome, upload
        self.is_alive, self.closed = True, 0
        self.commands: list[Any] = []
        self.uploads: list[Any] = []
        self.cancelled = 0

    async def upload(self, source: Path, target: str) -> None:
        self.uploads.append((source, target))
        if self.problem is not None:
            raise self.problem

    async def exec(self, command: Any) -> ExecResult:
        self.commands.append(command)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        if self.outcome is not None:
            return ExecResult(0, *self.outcome)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        raise AssertionError

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture
def create(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what has a sandbox made, and the list of what it was made with."""

    def make(sandbox: FakeSandbox) -> list[Any]:
        made: list[Any] = []

        async def create(spec: SandboxSpec, backend: str) -> FakeSandbox:
            made.append((spec, backend))
            return sandbox

        monkeypatch.setattr(sandboxed, "create", create)
        return made

    return make


@pytest.mark.parametrize(("port", "inside"), [(8000, 61000), (61000, 61001), (61001, 61000)])
@pytest.mark.parametrize(("image", "backend"), [(None, "bwrap"), ("counting:1", "container")])
async def test_a_server_is_started_beside_a_relay(
    tmp_path: Path, create: Any, port: int, inside: int, image: str | None, backend: str
) -> None:
    """The folder is copied where no image holds it. What was started ends once, and leaves no socket."""
    sandbox = FakeSandbox()
    made, server = create(sandbox), SandboxedServer(3.5)
    assert not server.is_alive
    await server.start("serve", tmp_path, port, image, backend)
    await asyncio.sleep(0)
    assert made == [(SandboxSpec(image=image, memory_mb=2048, forwards={inside: server._socket}), backend)]
    assert sandbox.uploads == ([] if image else [(tmp_path, ".")])
    command, relay = sandbox.commands
    assert (command, relay[:2], relay[3:]) == ("serve", ["python3", "-c"], [str(inside), str(port), "4"])
    assert (server.server.timeout, server.is_alive) == (3.5, True)
    sandbox.is_alive = False
    assert not server.is_alive
    for _ in range(2):
        await server.stop()
        assert (sandbox.cancelled, not server.is_alive, Path(server._socket).parent.exists()) == (2, True, False)
    with pytest.raises(OSError, match=r"refused|Connect call failed"):
        await asyncio.open_connection("127.0.0.1", int(server.server.url.rpartition(":")[2]))


@pytest.mark.parametrize(
    ("outcome", "wrote"),
    [
        (("out\n", "error\n"), "out\nerror\n\nout\nerror"),
        (("", " \n"), "(nothing)"),
        (("x" * 3000, "y"), "x" * 1999 + "y"),
        (OSError("no such program"), "no such program\nno such program"),
    ],
    ids=["both", "nothing", "long", "error"],
)
async def test_a_server_that_ends_says_what_it_wrote_last(tmp_path: Path, create: Any, outcome: Any, wrote: str) -> None:
    sandbox = FakeSandbox(outcome)
    create(sandbox)
    with pytest.raises(ServerError) as caught:
        await start_sandboxed("serve", tmp_path, 8000, None, "bwrap", 60, 60)
    said, _, shown = str(caught.value).partition("\nIt wrote last:\n")
    assert said.endswith(" ended as soon as it was started. It was started by: serve")
    assert shown[-2000:] == wrote if len(wrote) < 2000 else shown == wrote
    assert sandbox.closed == 1


@pytest.mark.parametrize("problem", [OSError(28, "No space left"), OSError("odd")], ids=str)
async def test_a_folder_that_cannot_be_copied_leaves_nothing(tmp_path: Path, create: Any, problem: OSError) -> None:
    sandbox = FakeSandbox(upload=problem)
    made = create(sandbox)
    with pytest.raises(ConfigurationError, match=f"cannot be copied into a sandbox: {problem.strerror or 'odd'}$"):
        await start_sandboxed("serve", tmp_path, 8000, None, "bwrap", 60, 60)
    assert sandbox.closed == 1
    assert not Path(next(iter(made[0][0].forwards.values()))).parent.exists()


async def test_a_start_that_is_cancelled_ends_the_sandbox(tmp_path: Path, create: Any) -> None:
    sandbox = FakeSandbox()
    create(sandbox)
    starting = asyncio.ensure_future(start_sandboxed("serve", tmp_path, 8000, None, "bwrap", 60, 60))
    while not sandbox.commands:
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert (sandbox.closed, sandbox.cancelled) == (1, 2)


async def test_nobody_waits_for_a_server_that_has_ended(tmp_path: Path, create: Any) -> None:
    """Neither who called before nor who calls after it."""
    sandbox = FakeSandbox()
    create(sandbox)
    server = SandboxedServer(60)
    await server.start("serve", tmp_path, 8000, None, "bwrap")
    port = int(server.server.url.rpartition(":")[2])
    calls = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
    server._commands[0].cancel()
    calls += [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
    async with asyncio.timeout(20):
        assert [await reader.read() for reader, _ in calls] == [b""] * 6
    for _, writer in calls:
        writer.close()
    await server.stop()
