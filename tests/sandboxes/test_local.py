"""Sandboxes that are processes of this machine: what their agent is told, why one ended, and what is left where none can be started."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest

from vfgym.aio.background import background_loop
from vfgym.errors import SandboxError
from vfgym.sandboxes import SandboxSpec, agent_client, backends, create
from vfgym.sandboxes.local import ProcessPipe, ProcessSandbox, agent_command, agent_settings, parts_of_environment, search_path


def test_what_the_agent_is_told_by_default() -> None:
    spec = SandboxSpec(memory_mb=512, open_files=64)
    assert agent_settings(spec, processes=None, disk_mb=None) == {
        "limits": [("CORE", 0), ("DATA", 512 << 20), ("NOFILE", 64)],
        "most_memory": 512 << 20,
        "most_output": 1 << 20,
        "cpu_seconds": None,
        "env": {},
        "working_dir": "/workspace",
        "folders": [],
        "writable": [],
        "most_files": None,
        "counted": [],
        "most_shared": 0,
        "counts_sockets": False,
        "most_terminals": None,
        "filters": {},
        "root": "/",
        "uid": None,
        "python": None,
    }


def test_what_the_agent_is_told_of_each_limit(tmp_path: Path) -> None:
    """CPU time is limited in whole seconds, rounded up; what backends add goes over the defaults."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to("/usr/bin/python3")
    env = {"COLOUR": "green"}
    spec = SandboxSpec(cpu_seconds=1.25, env=env, working_dir="/app", python=tmp_path)
    told = agent_settings(spec, processes=7, disk_mb=3, folders=["/home"], uid=0)
    assert told["limits"][3:] == [("CPU", 2), ("NPROC", 7), ("FSIZE", 3 << 20)]
    assert {name: told[name] for name in ("cpu_seconds", "env", "working_dir", "python", "folders", "uid")} == {
        "cpu_seconds": 1.25,
        "env": env,
        "working_dir": "/app",
        "python": f"{tmp_path}/bin/python",
        "folders": ["/home"],
        "uid": 0,
    }
    told["env"]["COLOUR"] = "red"
    assert dict(spec.env) == {"COLOUR": "green"}, "what the agent is told is a copy"
    assert search_path(spec, "/opt/python/bin/python3.12", "/usr/bin:/bin") == f"{tmp_path}/bin:/opt/python/bin:/usr/bin:/bin"
    assert search_path(SandboxSpec(), "/opt/python/bin/python3.12", "/usr/bin:/bin") == "/opt/python/bin:/usr/bin:/bin"


def test_an_environment_stands_on_its_interpreter_which_is_not_named_where_all_can_read_it(tmp_path: Path) -> None:
    (tmp_path / "own/bin").mkdir(parents=True)
    (tmp_path / "own/bin/python").symlink_to(tmp_path / "base/bin/python3")
    assert parts_of_environment(f"{tmp_path}/own") == [f"{tmp_path}/own", f"{tmp_path.resolve()}/base"]
    (tmp_path / "own/bin/python").unlink()
    (tmp_path / "own/bin/python").symlink_to("/usr/bin/no-such-python")
    assert parts_of_environment(f"{tmp_path}/own") == [f"{tmp_path}/own"]


class Group:
    """Limits of the kernel, which were reached or not."""

    def __init__(self, was_short: bool) -> None:
        self.was_short = was_short

    def was_short_of_memory(self) -> bool:
        return self.was_short


KILLED = ("its process was killed", None)
SHORT = ("its programs used up its memory (64 MB), and it was killed", "policy")


@pytest.mark.parametrize(
    ("group", "written", "explained"),
    [
        (None, b"", KILLED),
        (None, None, KILLED),
        (None, b" \n", KILLED),
        (None, b" it raised\xff\n", ("it raised\ufffd", "policy")),
        (None, b"a" + b"b" * 2000, ("b" * 2000, "policy")),
        (Group(False), b"it raised", ("it raised", "policy")),
        (Group(True), b"it raised", SHORT),
    ],
)
def test_why_a_process_has_ended_is_what_it_wrote_or_that_its_memory_was_used_up(group: Any, written: bytes | None, explained: Any) -> None:
    """None is written by one whose standard error another process has open still."""
    with contextlib.ExitStack() as ends, open(os.devnull, "r+b") as null:
        errors, writing = os.pipe()
        ends.callback(os.close, errors)
        pipe = ProcessPipe(null.fileno(), null.fileno(), errors, ends.pop_all())
        pipe.group, pipe.most_memory_mb = group, 64
        if written is not None:
            os.write(writing, written)
            os.close(writing)
        assert pipe.explain_end() == explained
        pipe.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(errors)
        if written is None:
            os.close(writing)


async def test_where_the_agent_can_not_be_sent_the_cause_is_raised_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(agent_client, "_MOST_FRAME", 1 << 10)
    backend = backends()["unsafe"]
    sandbox = ProcessSandbox(SandboxSpec(), backend, f"{tmp_path}/vfgym-sandbox-a")
    background_loop()  # whose own descriptors stay
    before = os.listdir("/proc/self/fd")
    with pytest.raises(SandboxError, match="are too much for one request to a sandbox, which may have 0"):
        await sandbox.start(agent_command("/usr/bin/python3"), {}, agent_settings(SandboxSpec(), processes=None, disk_mb=None))
    assert sandbox._process is not None
    assert sandbox._process.returncode is not None, "it was waited for"
    assert len(os.listdir("/proc/self/fd")) == len(before)
    assert [path.name for path in tmp_path.rglob("*")] == [f"vfgym-sandboxes-{os.geteuid()}"]
    await sandbox.close()


async def test_where_no_process_can_be_started_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("vfgym.sandboxes.unsafe.find_interpreter", lambda: f"{tmp_path}/nothing")
    background_loop()  # whose own descriptors stay
    before = os.listdir("/proc/self/fd")
    with pytest.raises(SandboxError, match=f"the sandbox could not be started: .*{tmp_path}/nothing"):
        await create(SandboxSpec(), "unsafe")
    assert len(os.listdir("/proc/self/fd")) == len(before)
    assert [path.name for path in tmp_path.rglob("*")] == [f"vfgym-sandboxes-{os.geteuid()}"]
