"""Containers: an image, a build from a Dockerfile, limits, and what is said where something is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sandboxes.engine import Engine
from vfgym.errors import ConfigurationError, SandboxError
from vfgym.sandboxes import SandboxSpec, backends, create, registry
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
