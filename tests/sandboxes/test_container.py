"""Containers: an image, a build from a Dockerfile, limits, and what is said where something is missing."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.sandboxes.engine import Engine
from vfgym.errors import ConfigurationError, SandboxError
from vfgym.sandboxes import SandboxSpec, backends, container, create, registry
from vfgym.sandboxes.container import _engine

BUILDS = pytest.mark.exhaustive


async def test_where_no_engine_answers_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _engine.cache_clear()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody")
    probe = backends()["container"].probe()
    assert not probe.works
    assert "does not answer" in str(probe.problem)
    with pytest.raises(ConfigurationError, match="the backend container of sandboxes does not work here: no container engine answers"):
        await create(SandboxSpec(), "container")


@BUILDS
async def test_a_container_runs_commands_and_cells_and_is_removed(engine: Engine) -> None:
    spec = SandboxSpec(image=engine.image, env={"COLOUR": "green"}, disk_mb=16)
    async with await create(spec, "container") as sandbox:
        assert (await sandbox.exec("echo $COLOUR; pwd")).stdout == "green\n/workspace\n"
        assert (await sandbox.python("6 * 7")).value == "42"
        await sandbox.write_file("a/b", b"data")
        assert await sandbox.read_file("/workspace/a/b") == b"data"
        snapshot = await sandbox.snapshot()
        await sandbox.exec("rm -r a")
        await sandbox.restore(snapshot)
        assert await sandbox.read_file("a/b") == b"data"
        full = await sandbox.exec("head -c 1G /dev/zero > big; head -c 1G /dev/zero > /etc/big; stat -c %s big")
        assert int(full.stdout) <= 16 << 20
    assert _engine().containers.list(all=True, filters={"name": sandbox.id}) == []


@BUILDS
@pytest.mark.parametrize("room", [0, 1, 2])
async def test_a_command_that_no_process_is_left_for_is_told_so(engine: Engine, room: int) -> None:
    """A command takes two: its program, and one that looks after it."""
    async with await create(SandboxSpec(image=engine.image, processes=16), "container") as sandbox:
        cell = await sandbox.python(FILLS.format(room=room))
        assert cell.traceback is None
        result = await sandbox.exec("echo fine")
    if room < 2:
        assert (result.exit_code, "Resource temporarily unavailable" in result.stderr) == (126, True), result
    else:
        assert (result.exit_code, result.stdout) == (0, "fine\n"), result


FILLS = """
import os, signal, time
children = []
try:
    while True:
        children.append(os.fork())
        if children[-1] == 0:
            time.sleep(1000)
except OSError:
    pass
for child in children[:{room}]:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


@BUILDS
async def test_a_container_has_so_many_cpus_and_runs_its_start_command(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    """The command runs beside others, which do not end it; where it fails, that is logged."""
    spec = SandboxSpec(image=engine.image, cpus=0.5, start_command="mkfifo /tmp/asked; echo $$ > /tmp/asked; echo oh no >&2; exit 3")
    async with await create(spec, "container") as sandbox:
        assert _engine().api.inspect_container(sandbox.id)["HostConfig"]["NanoCpus"] == 500_000_000
        await sandbox.exec("until [ -p /tmp/asked ]; do :; done", timeout=60)
        asked = await sandbox.exec("cat /tmp/asked", timeout=60)
        assert asked.stdout.strip().isdigit()
        while not caplog.records:
            await sandbox.exec("true")
    assert "ended with code 3: oh no" in caplog.text


@BUILDS
async def test_what_a_killed_owner_left_is_removed(engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    container = _engine().containers.run(engine.image, ["sleep", "1000"], name="vfgym-left", detach=True, network_mode="none")
    backend = backends()["container"]
    registry.add(registry.Record("vfgym-left", "container", [1, "never"], container="vfgym-left"), backend)
    registry._own.clear()
    registry.remove_left(dict(backends()))
    assert _engine().containers.list(all=True, filters={"id": container.id}) == []


@BUILDS
async def test_an_image_is_built_from_a_dockerfile(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {engine.image}\nCOPY note.txt /app/note.txt\nRUN mkdir /made\n")
    (tmp_path / "note.txt").write_text("from the host")
    async with await create(SandboxSpec(dockerfile=tmp_path, working_dir="/app"), "container") as sandbox:
        assert (await sandbox.exec("cat note.txt; ls -d /made")).stdout == "from the host/made\n"
    (tmp_path / "Dockerfile").write_text(f"FROM {engine.image}\nRUN echo broken && exit 3\n")
    with pytest.raises(SandboxError, match=r"Dockerfile can't be built"):
        await create(SandboxSpec(dockerfile=tmp_path), "container")


@BUILDS
async def test_an_image_that_is_not_there_is_named(engine: Engine) -> None:
    with pytest.raises(SandboxError, match="the image localhost/no-such-image:1 is not there, and can't be pulled"):
        await create(SandboxSpec(image="localhost/no-such-image:1"), "container")


# Without an engine: what it would be asked for, and what comes from its connection


@pytest.mark.parametrize(
    ("spec", "changed"),
    [
        ({}, {}),
        ({"network": False}, {}),
        ({"network": True}, {"network_mode": None}),
        (
            {"memory_mb": 100, "processes": 4, "cpus": 0.5},
            {"mem_limit": "164m", "memswap_limit": "164m", "pids_limit": 4, "nano_cpus": 500_000_000},
        ),
        (
            {"disk_mb": 8, "working_dir": "/app"},
            {
                "mem_limit": "1096m",
                "memswap_limit": "1096m",
                "read_only": True,
                "tmpfs": {"/tmp": "size=8m,mode=1777,exec", "/app": "size=8m,mode=1777,exec"},
                "shm_size": "8m",
            },
        ),
        (
            {"readable_paths": ["/usr/lib", "/usr/bin"]},
            {"binds": {path: {"bind": path, "mode": "ro"} for path in ("/usr/lib", "/usr/bin")}},
        ),
    ],
)
def test_what_an_engine_is_asked_to_keep(spec: dict[str, Any], changed: dict[str, Any]) -> None:
    """The agent's own 64 MB, and what may lie in its ``tmpfs``, come on top of the memory of programs."""
    options = {
        "auto_remove": True,
        "mem_limit": "1088m",
        "memswap_limit": "1088m",
        "pids_limit": 128,
        "security_opt": ["no-new-privileges"],
        "cap_drop": ["AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP", "SYS_CHROOT"],
        "binds": {},
        "network_mode": "none",
        **changed,
    }
    assert container._host_options(SandboxSpec(**spec)) == {name: value for name, value in options.items() if value is not None}


class Stream:
    """What the package docker returns of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self._response = connection, self
        self.fileno, self.close = connection.fileno, connection.close


def frame(stream: int, text: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(text).to_bytes(4, "big") + text


@pytest.fixture
def pipe() -> Iterator[container.SocketPipe]:
    ours, theirs = socket.socketpair()
    with theirs:
        pipe = container.SocketPipe(Stream(ours))
        assert ours.fileno() == -1, "what the package keeps of it is closed"
        yield pipe
        pipe.close()
        assert theirs.recv(1) == b""


@pytest.mark.parametrize("size", [1, 7, 8, 9, 100])
def test_output_is_taken_from_frames_however_they_are_cut(pipe: container.SocketPipe, size: int) -> None:
    data = frame(1, b"one") + frame(2, b"oh ") + frame(1, b"") + frame(1, b"two") + frame(2, b"no\xff\n")
    assert b"".join(pipe.decode(data[start : start + size]) for start in range(0, len(data), size)) == b"onetwo"
    assert pipe.explain_end() == ("oh no\ufffd", "policy")


def test_why_a_container_has_ended_is_the_end_of_what_it_wrote(pipe: container.SocketPipe) -> None:
    assert pipe.explain_end() == ("its container was ended", None)
    pipe.decode(frame(2, b" \n"))
    assert pipe.explain_end() == ("its container was ended", None)
    pipe.decode(frame(2, b"a" * 10) + frame(2, b"b" * 1995))
    assert pipe.explain_end() == ("a" * 5 + "b" * 1995, "policy")


class Images:
    """The images of an engine that pulls and builds, or says what is wrong."""

    def __init__(self, *names: str, error: Exception | None = None) -> None:
        self.names, self.error = [*names], error
        self.done: list[Any] = []

    @property
    def images(self) -> Images:
        return self

    def get(self, name: str) -> None:
        if name not in self.names:
            raise docker_errors().ImageNotFound(name)

    def pull(self, name: str) -> None:
        self._do("pull", name)

    def build(self, **options: Any) -> tuple[Any, list[Any]]:
        self._do("build", options)
        return SimpleNamespace(id=f"sha256:{len(self.done)}"), []

    def _do(self, *done: Any) -> None:
        self.done.append(done)
        if self.error is not None:
            raise self.error


def docker_errors() -> Any:
    return pytest.importorskip("docker.errors")


def test_an_image_is_pulled_where_it_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    images = Images("acme/here", "python:3.12-slim")
    monkeypatch.setattr(container, "_engine", lambda: images)
    for given, found in ((None, "python:3.12-slim"), ("acme/here", "acme/here"), ("acme/away", "acme/away")):
        assert container.find_image(SandboxSpec(image=given)) == found
    assert images.done == [("pull", "acme/away")]
    images.error = docker_errors().DockerException("no network")
    with pytest.raises(SandboxError, match="the image acme/away is not there, and can't be pulled: no network"):
        container.find_image(SandboxSpec(image="acme/away"))


def test_an_image_is_built_anew_where_a_file_its_name_or_its_mode_has_changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    images = Images()
    monkeypatch.setattr(container, "_engine", lambda: images)
    monkeypatch.setattr(container, "_builds", {})
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/note").write_text("1")
    spec = SandboxSpec(dockerfile=tmp_path)

    def builds() -> int:
        assert container.find_image(spec) == container.find_image(spec) == f"sha256:{len(images.done)}"
        return len(images.done)

    assert builds() == 1
    (tmp_path / "deep/note").write_text("2")
    assert builds() == 2
    (tmp_path / "deep/note").chmod(0o700)
    assert builds() == 3
    (tmp_path / "deep/note").rename(tmp_path / "deep/other")
    assert builds() == 4
    [options, *others] = [options for _, options in images.done]
    assert {name: value for name, value in options.items() if name != "tag"} == {"path": str(tmp_path), "rm": True, "forcerm": True}
    assert len({each["tag"] for each in (options, *others)}) == 4


def test_a_build_that_fails_says_why_and_is_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    images = Images()
    monkeypatch.setattr(container, "_engine", lambda: images)
    monkeypatch.setattr(container, "_builds", {})
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    spec, errors = SandboxSpec(dockerfile=tmp_path), docker_errors()
    log = [{"stream": "Step 1\n"}, {"error": "broken"}, {"aux": {}}]
    for error, said in (
        (errors.BuildError("exit 3", iter(log)), "can't be built: exit 3\nStep 1\nbroken"),
        (errors.DockerException("no"), "can't be built: no"),
        (TypeError("no folder"), "can't be built: no folder"),
    ):
        images.error = error
        with pytest.raises(SandboxError) as caught:
            container.find_image(spec)
        assert str(caught.value) == f"the image of {tmp_path}/Dockerfile {said}"
    images.error = None
    assert container.find_image(spec) == "sha256:4"


@pytest.mark.parametrize(("failures", "is_there"), [(0, True), (1, True), (9, True), (10, True), (0, False), (3, False)])
def test_a_container_that_is_ending_is_removed_once_it_can_be(failures: int, is_there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried ten times; one that is not there any more is removed."""
    errors, asked = docker_errors(), []

    def remove_container(name: str, force: bool) -> None:
        asked.append((name, force))
        if len(asked) <= failures:
            raise errors.APIError("removal is in progress")
        if not is_there:
            raise errors.NotFound("gone")

    monkeypatch.setattr(container, "_engine", lambda: SimpleNamespace(api=SimpleNamespace(remove_container=remove_container)))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    record = registry.Record("vfgym-a", "container", [1, "never"], container="vfgym-b")
    if failures < 10:
        backends()["container"].remove(record)
    else:
        with pytest.raises(errors.APIError):
            backends()["container"].remove(record)
    assert asked == [("vfgym-b", True)] * min(failures + 1, 10)
