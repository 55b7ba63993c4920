"""What a process that was killed has left is removed when another creates a sandbox; one that ends by itself leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sandboxes.making import need
from tests.workers.processes import descendants, end_of
from vfgym.errors import SandboxError
from vfgym.sandboxes import SandboxSpec, backends, create, registry
from vfgym.sandboxes.registry import _find_place, identify, remove_left

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")

OWNER = """
import asyncio, sys
from vfgym.sandboxes import SandboxSpec, backends, create
from vfgym.sandboxes.registry import remove_left

async def main():
    sandbox = await create(SandboxSpec(), sys.argv[1])
    asyncio.ensure_future(sandbox.exec("setsid sleep 1000 & sleep 1000"))
    await sandbox.exec("mkdir -p shut/in; touch shut/in/file; chmod 000 shut/in shut")
    await sandbox.python("import subprocess; child = subprocess.Popen(['sleep', '1000'])")
    if sys.argv[2] == "agent":  # what a command of an unsafe sandbox may do
        await asyncio.wait([asyncio.ensure_future(sandbox.exec("kill -9 $(ps -o ppid= -p $PPID)"))], timeout=5)
    print(sandbox.id, flush=True)
    if sys.argv[2] != "exit":
        await asyncio.sleep(1000)

asyncio.run(main())
"""


def _started(backend: str, how: str, folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen([sys.executable, "-c", OWNER, backend, how], stdout=subprocess.PIPE, text=True, env=environment)


@pytest.mark.parametrize(("backend", "how"), [("bwrap", "killed"), ("unsafe", "killed"), ("unsafe", "agent")])
async def test_after_a_kill_the_next_create_leaves_nothing(backend: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need(backend)
    with _started(backend, how, tmp_path) as owner:
        assert owner.stdout is not None
        name = owner.stdout.readline().strip()
        assert name
        running = [*descendants(owner.pid), *_running_in(tmp_path)]
        owner.send_signal(signal.SIGKILL)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    remove_left(dict(backends()))  # as the first `create` of a process does
    await end_of(running)
    assert _running_in(tmp_path) == []
    assert [path.name for path in tmp_path.rglob("*")] == [f"vfgym-sandboxes-{os.geteuid()}"]


def test_a_record_that_was_being_written_is_removed_once_its_owner_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / f"vfgym-sandboxes-{os.geteuid()}"
    folder.mkdir(0o700)
    owners = {"vfgym-a": identify(os.getpid()), "vfgym-b": [os.getpid(), "another"], "vfgym-c": [1 << 30, "1"]}
    for name, (pid, started) in owners.items():
        (folder / f"{name}@{_find_place()}.{pid}-{started}.new").write_text("{")
    remove_left(dict(backends()))
    assert [path.name.partition("@")[0] for path in folder.iterdir()] == ["vfgym-a"]


class Remover:
    """Takes note of what it is to remove, and fails where a record is to fail."""

    def __init__(self) -> None:
        self.removed: list[registry.Record] = []

    def remove(self, record: registry.Record) -> None:
        self.removed.append(record)
        if record.container == "stuck":
            raise OSError("the engine does not answer")


def _written(folder: Path) -> list[str]:
    return sorted(path.name.partition("@")[0] for path in (folder / f"vfgym-sandboxes-{os.geteuid()}").iterdir())


def test_only_what_has_no_owner_any_more_is_removed_and_one_that_fails_keeps_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(registry, "_own", {})
    gone, mine, remover = [1 << 30, "1"], identify(os.getpid()), Remover()
    records = [
        registry.Record("vfgym-a", "own", gone, container="stuck"),
        registry.Record("vfgym-b", "own", gone, [5, "6"], "/folder", "container", ["/group", "/other"]),
        registry.Record("vfgym-c", "own", mine),
        registry.Record("vfgym-d", "of somebody else", gone),
    ]
    for record in records:
        registry.add(record, remover)
    broken = registry._path(registry.Record("vfgym-e", "own", gone))
    broken.write_text("{")
    elsewhere = broken.with_name("vfgym-f@elsewhere.json")
    elsewhere.write_text(broken.with_name(registry._path(records[1]).name).read_text())
    with caplog.at_level("ERROR", "vfgym"):
        remove_left({"own": remover})
    assert sorted(remover.removed, key=lambda record: record.id) == records[:2], "each as it was written down"
    assert _written(tmp_path) == ["vfgym-a", "vfgym-c", "vfgym-d", "vfgym-e", "vfgym-f"]
    assert sorted(record.getMessage() for record in caplog.records) == [
        f"what {registry._path(records[0])} names could not be removed",
        f"what {broken} names could not be removed",
    ]


def test_a_sandbox_that_is_removed_is_forgotten_and_one_that_can_not_be_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(registry, "_own", {})
    remover = Remover()
    records = [
        registry.Record(name, "own", identify(os.getpid()), container=container) for name, container in (("a", "stuck"), ("b", None))
    ]
    for record in records:
        registry.add(record, remover)
    records[1].groups.append("/group")
    registry.add(records[1], remover)
    assert '"/group"' in registry._path(records[1]).read_text(), "it is written down anew"
    with pytest.raises(OSError, match="does not answer"):
        registry.remove(records[0], remover)
    assert (_written(tmp_path), list(registry._own)) == (["a", "b"], ["a", "b"])
    registry._remove_own()
    assert remover.removed == [records[0], *records]
    assert (_written(tmp_path), list(registry._own)) == (["a"], ["a"])
    assert [record.getMessage() for record in caplog.records] == ["a could not be removed"]


@pytest.mark.parametrize("how", ["link", "group", "others"])
def test_a_folder_of_records_that_others_may_write_to_is_refused(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / f"vfgym-sandboxes-{os.geteuid()}"
    if how == "link":
        (tmp_path / "other").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "other")
    else:
        folder.mkdir()
        folder.chmod(0o720 if how == "group" else 0o702)
    with pytest.raises(SandboxError) as caught:
        registry._folder()
    assert str(caught.value) == f"{folder} must be a folder that belongs to you and that nobody else can write to; remove it, and try again"


def _running_in(folder: Path) -> list[int]:
    """Return the processes whose environment names a sandbox below a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{folder}/vfgym-sandbox-".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def test_a_process_that_ends_by_itself_leaves_nothing(tmp_path: Path) -> None:
    with _started("unsafe", "exit", tmp_path) as owner:
        assert owner.wait(60) == 0
    assert [path.name for path in tmp_path.rglob("*")] == [f"vfgym-sandboxes-{os.geteuid()}"]
    assert _running_in(tmp_path) == []


def _started_in(folder: Path) -> subprocess.Popen[bytes]:
    """Start a process whose environment names a sandbox's folder."""
    return subprocess.Popen(["sleep", "1000"], env={**os.environ, "HOME": str(folder)})


def test_what_starts_while_others_are_killed_is_killed_before_the_folder_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "vfgym-sandbox-a"
    folder.mkdir()
    started, kill = [_started_in(folder)], registry._kill
    in_time: list[bool] = []

    def kill_late(pid: int) -> None:
        if len(started) < 3:
            started.append(_started_in(folder))
        in_time.append(folder.exists())
        kill(pid)

    monkeypatch.setattr(registry, "_kill", kill_late)
    registry.remove_local(registry.Record("vfgym-a", "unsafe", identify(os.getpid()), folder=str(folder)))
    assert {process.wait(60) for process in started} == {-signal.SIGKILL}
    assert len(started) == 3
    assert all(in_time)
    assert not folder.exists()


def test_a_process_that_has_ended_is_not_running_though_its_parent_has_not_asked() -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        known = identify(process.pid)
        assert registry._is_running(known)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert identify(process.pid) == known, "its entry is there until somebody asks"
        assert not registry._is_running(known)


async def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("of the host")
    async with await create(SandboxSpec(), "unsafe") as sandbox:
        await sandbox.exec(f'cd "$HOME/.." && rm -r * && mv "$PWD" {tmp_path}/moved && ln -s {tmp_path}/other "$PWD"')
        assert [path.is_symlink() for path in tmp_path.glob("vfgym-sandbox-*")] == [True]
    assert (tmp_path / "other" / "file").read_text() == "of the host"
    assert list(tmp_path.glob("vfgym-sandbox-*")) == []


async def test_where_sandboxes_can_not_be_written_down_none_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    with pytest.raises(SandboxError, match=r"where sandboxes are written down, can't be made: .*Not a directory"):
        await create(SandboxSpec(), "unsafe")


async def test_another_fork_can_not_use_a_sandbox_and_does_not_end_it() -> None:
    need("bwrap")
    async with await create(SandboxSpec()) as sandbox:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        assert (await sandbox.exec("echo alive")).stdout == "alive\n"
