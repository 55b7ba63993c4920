"""What a sandbox asks its agent, and what it makes of the answers. The agents here do what is asked of files in a folder of the host."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vfgym.errors import ConfigurationError, SandboxError
from vfgym.sandboxes import CellResult, ExecResult, SandboxSpec, agent_sandbox
from vfgym.sandboxes.agent_sandbox import AgentSandbox
from vfgym.sandboxes.inside.files import Files, walk
from vfgym.sandboxes.spec import TreeSnapshot


def encoded(text: bytes) -> str:
    return base64.b64encode(text).decode()


class NearAgent:
    """Answers in this process: file operations are done below a folder, for others the answer is given."""

    def __init__(self, folder: Path) -> None:
        self.files = Files(str(folder), "/workspace")
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, dict[str, Any]] = {}
        self.raises: dict[str, Exception] = {}
        self.end_reason: str | None = None
        self.fails_to_start: BaseException | None = None

    async def ask(self, do: str, *, within: float | None, **fields: Any) -> dict[str, Any]:
        self.asked.append((do, {"within": within, **fields}))
        if do in self.raises:
            raise self.raises[do]
        if do in self.answers:
            return self.answers[do]
        if do == "walk":
            return walk(self.files.find(fields["path"]), fields["path"])
        done: dict[str, Any] = getattr(self.files, do)(**fields)
        return done

    async def ready(self, seconds: float) -> None:
        self.asked.append(("ready", {"within": seconds}))
        if self.fails_to_start is not None:
            raise self.fails_to_start

    def calls(self, do: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.asked if name == do]


class NearSandbox(AgentSandbox):
    """A sandbox of such an agent."""

    backend = "near"
    most_bytes = 10
    is_closed = False

    def __init__(self, folder: Path) -> None:
        super().__init__(SandboxSpec())
        folder.mkdir()
        self.agent: NearAgent = NearAgent(folder)  # type: ignore[assignment]
        self.place = folder / "workspace"

    async def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NearSandbox:
    monkeypatch.setattr(agent_sandbox, "CHUNK", 4)
    return NearSandbox(tmp_path / "sandbox")


def tree(folder: Path) -> dict[str, tuple[int, Any]]:
    """Return the mode and the content of all that is in a folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        content: Any = os.readlink(path) if path.is_symlink() else None if path.is_dir() else path.read_bytes()
        found[str(path.relative_to(folder))] = (0 if path.is_symlink() else about.st_mode & 0o777, content)
    return found


# Commands and cells

RAN = {"exit_code": 3, "stdout": encoded(b"out\xff"), "stderr": encoded(b"err"), "timed_out": False, "truncated": True}


@pytest.mark.parametrize(
    ("command", "options", "asked"),
    [
        ("ls", {}, {"command": "ls"}),
        (("ls", ""), {"timeout": None, "input": None, "env": None}, {"command": ["ls", ""]}),
        ("ls", {"timeout": 0.5}, {"timeout": 0.5, "within": 60.5}),
        ("ls", {"input": "\u00e9"}, {"input": encoded("\u00e9".encode())}),
        ("ls", {"input": b"\xff"}, {"input": encoded(b"\xff")}),
        ("ls", {"input": ""}, {}),
        ("", {"env": {"A": ""}, "working_dir": "deep"}, {"command": "", "env": {"A": ""}, "working_dir": "deep"}),
    ],
)
async def test_a_command_is_asked_for_as_it_is_given(sandbox: NearSandbox, command: Any, options: Any, asked: dict[str, Any]) -> None:
    sandbox.agent.answers["exec"] = RAN
    result = await sandbox.exec(command, **options)
    assert result == ExecResult(exit_code=3, stdout="out\ufffd", stderr="err", timed_out=False, truncated=True)
    default: dict[str, Any] = {"within": None, "command": "ls", "timeout": None, "input": "", "env": {}, "working_dir": None}
    assert sandbox.agent.asked == [("exec", {**default, **asked})]
    sandbox.agent.answers["exec"] = {**RAN, "timed_out": True, "truncated": False}
    result = await sandbox.exec(command, **options)
    assert (result.timed_out, result.truncated) == (True, False)


SAID = {"stdout": encoded(b"out"), "stderr": encoded(b"err"), "value": "", "traceback": None, "timed_out": True}


@pytest.mark.parametrize("timeout", [None, 2])
async def test_a_cell_is_asked_for_without_a_limit_of_ours_since_it_waits_for_others(sandbox: NearSandbox, timeout: float | None) -> None:
    sandbox.agent.answers["cell"] = {**SAID, "state_is_lost": False, "truncated": True, "count": 2}
    assert await sandbox.python("1", timeout=timeout) == CellResult("out", "err", "", None, True, False, True, 2)
    assert sandbox.agent.asked == [("cell", {"within": None, "code": "1", "timeout": timeout})]
    changed = {"value": None, "traceback": "", "timed_out": False, "state_is_lost": True, "truncated": False, "count": 0}
    sandbox.agent.answers["cell"] |= changed
    assert await sandbox.python("") == CellResult("out", "err", None, "", False, True, False, 0)


@pytest.mark.parametrize("timeout", [0, 0.0, -1, True, float("nan"), "1"])
async def test_a_time_limit_that_is_none_is_refused(sandbox: NearSandbox, timeout: Any) -> None:
    for ask in (sandbox.exec, sandbox.python):
        with pytest.raises(ConfigurationError, match=f"timeout must be a number of seconds above 0, or None for no limit, got {timeout!r}"):
            await ask("1", timeout=timeout)
    assert sandbox.agent.asked == []


async def test_what_is_no_command_no_cell_and_no_file_is_refused(sandbox: NearSandbox) -> None:
    for command in ([], ["ls", 1], ["ls", "a\0"], ()):
        with pytest.raises(ConfigurationError, match="a command must be a line for the shell, or a list of texts that is not empty"):
            await sandbox.exec(command)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="env must map names to texts, got 'A': int"):
        await sandbox.exec("ls", env={"A": 1})  # type: ignore[dict-item]
    with pytest.raises(ConfigurationError, match="a cell must be a text, got bytes"):
        await sandbox.python(b"1")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="a file is written from bytes or a text, got NoneType"):
        await sandbox.write_file("a", None)  # type: ignore[arg-type]
    assert sandbox.agent.asked == []


async def test_it_is_alive_until_its_agent_has_ended_and_the_interpreter_is_ended_alone(sandbox: NearSandbox) -> None:
    sandbox.agent.answers["end_interpreter"] = {}
    await sandbox.end_interpreter()
    assert (sandbox.agent.asked, sandbox.is_alive) == ([("end_interpreter", {"within": 60.0})], True)
    sandbox.agent.end_reason = ""
    assert not sandbox.is_alive


# Files


@pytest.mark.parametrize("data", [b"", b"a", b"abcd", b"abcde", b"abcdefgh", b"abcdefghij"])
async def test_files_of_every_size_are_written_and_read_in_parts(sandbox: NearSandbox, data: bytes) -> None:
    """One that is empty, too; one as large as may be, and none that is larger."""
    forms: list[Any] = [data, data.decode(), bytearray(data)]
    for given in forms:
        await sandbox.write_file("a/file", "of before")
        await sandbox.write_file("a/file", given)
        assert await sandbox.read_file("a/file") == data
    assert {fields["mode"] for fields in sandbox.agent.calls("write")} == {None}
    (sandbox.place / "a/file").write_bytes(b"12345678901")
    with pytest.raises(SandboxError, match="a/file has 11 bytes, more than the 10 that a copy from this sandbox may have") as caught:
        await sandbox.read_file("a/file")
    assert caught.value.failure_cause == "policy"


async def test_a_file_that_is_cut_off_while_it_is_read_ends_there(sandbox: NearSandbox) -> None:
    parts = iter(["abcd", "e", ""])
    sandbox.agent.answers["read"] = Answers(lambda: encoded(next(parts).encode()))
    assert await sandbox.read_file("file") == b"abcde"
    assert [fields["offset"] for fields in sandbox.agent.calls("read")] == [0, 4, 5]


class Answers(dict[str, Any]):
    """A part of a file that says it has 9 bytes."""

    def __init__(self, part: Callable[[], str]) -> None:
        super().__init__(size=9)
        self.part = part

    def __missing__(self, key: str) -> str:
        return self.part()


def made(folder: Path) -> Path:
    """Make a folder with files of two modes, a folder in it, an empty one, and links to a file, to a folder, and to nothing."""
    (folder / "deep/er").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "a").write_bytes(b"12345")
    (folder / "deep/er/b").write_bytes(b"67890")
    (folder / "deep/er/b").chmod(0o755)
    (folder / "a").chmod(0o600)
    (folder / "to-a").symlink_to("deep/../a")
    (folder / "to-deep").symlink_to("deep")
    (folder / "nowhere").symlink_to("/etc/passwd")
    return folder


async def test_what_is_in_a_folder_is_copied_in_and_out_with_files_for_links(sandbox: NearSandbox, tmp_path: Path) -> None:
    local = made(tmp_path / "local")
    assert await sandbox.upload(local, "in") == ["nowhere", "to-deep"]
    files = {"a": b"12345", "deep/er/b": b"67890", "to-a": b"12345", "deep": None, "deep/er": None, "empty": None}
    assert {path: content for path, (_, content) in tree(sandbox.place / "in").items()} == files
    assert [(sandbox.place / "in" / name).stat().st_mode & 0o777 for name in ("a", "to-a", "deep/er/b")] == [0o600, 0o644, 0o755]
    assert [fields["mode"] for fields in sandbox.agent.calls("write") if fields["path"] == "in/a"] == [None, 0o600], "which may forbid more"
    assert await sandbox.upload(str(local / "to-a"), "one/file") == []
    assert (sandbox.place / "one/file").read_bytes() == b"12345"
    with pytest.raises(SandboxError, match="in has more than the 10 bytes that a copy from this sandbox may have") as caught:
        await sandbox.download("in", tmp_path / "out")
    assert caught.value.failure_cause == "policy"
    (sandbox.place / "in/to-a").unlink()
    (sandbox.place / "in/away").symlink_to("/etc/passwd")
    assert await sandbox.download("in", str(tmp_path / "out")) == ["away"], "10 bytes are as much as may be"
    del files["to-a"]
    (tmp_path / "out/to-a").unlink(missing_ok=True)
    assert {path: content for path, (_, content) in tree(tmp_path / "out").items()} == files
    assert await sandbox.download("in/a", tmp_path / "new/a") == []
    assert (tmp_path / "new/a").read_bytes() == b"12345"


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (FileNotFoundError(2, "gone", "x"), FileNotFoundError),
        (NotADirectoryError(20, "no", "x"), NotADirectoryError),
        (OSError(24, "too many", "x"), SandboxError),
        (PermissionError(13, "no", "x"), SandboxError),
    ],
)
@pytest.mark.parametrize("operation", ["walk", "read"])
async def test_that_something_can_not_be_read_is_the_doing_of_what_ran_there(
    sandbox: NearSandbox, tmp_path: Path, operation: str, error: OSError, raised: type[Exception]
) -> None:
    (sandbox.place / "file").write_text("x")
    sandbox.agent.raises[operation] = error
    with pytest.raises(raised) as caught:
        await sandbox.download("file", tmp_path / "out")
    if isinstance(caught.value, SandboxError):
        assert str(caught.value) == f"file can't be copied out of the sandbox: {error}"
        assert (caught.value.failure_cause, caught.value.__cause__) == ("policy", error)


async def test_a_snapshot_has_all_that_is_there_and_what_came_later_is_gone(sandbox: NearSandbox) -> None:
    made(sandbox.place / "in")
    (sandbox.place / "in/empty").chmod(0o500)
    before = tree(sandbox.place)
    snapshot = await sandbox.snapshot()
    assert snapshot.left_out == "files that are not in its working directory"
    (sandbox.place / "in/a").write_text("changed")
    (sandbox.place / "in/empty").chmod(0o700)
    (sandbox.place / "in/to-a").unlink()
    (sandbox.place / "new").touch()
    await sandbox.restore(snapshot)
    assert tree(sandbox.place) == before
    (sandbox.place / "b").write_text("1")
    with pytest.raises(SandboxError, match="the files of the sandbox have more than the 10 bytes that a snapshot may have") as caught:
        await sandbox.snapshot()
    assert caught.value.failure_cause == "policy"


@pytest.mark.parametrize(("has_interpreter", "left_out"), [(True, "the interpreter of its cells"), (False, None)])
async def test_where_snapshots_have_all_files_only_the_new_ones_are_kept(
    sandbox: NearSandbox, has_interpreter: bool, left_out: str | None
) -> None:
    sandbox.snapshots_have_all_files = True
    (sandbox.place / "kept").write_text("1")
    (sandbox.place / "new").write_text("2")
    sandbox.agent.answers["walk_new"] = {"entries": [["/workspace/new", "file", 0o600, 1]], "has_interpreter": has_interpreter}
    snapshot = await sandbox.snapshot()
    assert ([(entry.path, data) for entry, data in snapshot.entries], snapshot.left_out) == ([("/workspace/new", b"2")], left_out)
    (sandbox.place / "new").unlink()
    sandbox.agent.answers["remove_new"] = {"problem": None}
    await sandbox.restore(snapshot)
    assert tree(sandbox.place) == {"kept": (0o644, b"1"), "new": (0o600, b"2")}
    sandbox.agent.answers["remove_new"] = {"problem": ""}
    with pytest.raises(SandboxError, match=r"the files of the sandbox can't be made again: $"):
        await sandbox.restore(snapshot)


async def test_files_that_can_be_neither_kept_nor_made_again(sandbox: NearSandbox) -> None:
    error = sandbox.agent.raises["walk"] = sandbox.agent.raises["clear"] = OSError(24, "too many", ".")
    with pytest.raises(SandboxError, match=r"^the files of the sandbox can't be kept: .*too many") as kept:
        await sandbox.snapshot()
    with pytest.raises(SandboxError, match=r"^the files of the sandbox can't be made again: .*too many") as restored:
        await sandbox.restore(TreeSnapshot(()))
    assert (kept.value.failure_cause, kept.value.__cause__, restored.value.__cause__) == ("policy", error, error)
    assert restored.value.failure_cause != "policy"


@pytest.mark.parametrize("path", ["in", ".", "in/a", "in/empty", "nothing", "in/a/b"])
async def test_a_copy_takes_the_place_of_what_the_other_sandbox_has(sandbox: NearSandbox, tmp_path: Path, path: str) -> None:
    """Links are copied as links; where nothing is, nothing is left."""
    made(sandbox.place / "in")
    for name in ("er", ""):
        (sandbox.place / "in/deep" / name).chmod(0o500)
    other = NearSandbox(tmp_path / "other")
    (other.place / "in/empty").mkdir(parents=True)
    (other.place / "in/empty/old").touch()
    (other.place / "beside").touch()
    await sandbox.copy_to(other, path)
    source, copied = sandbox.place / path, other.place / path
    if path in ("nothing", "in/a/b"):
        assert not copied.exists()
    elif source.is_file():
        assert (copied.read_bytes(), copied.stat().st_mode & 0o777) == (b"12345", 0o600)
    else:
        assert tree(copied) == tree(source)
    assert (other.place / "beside").exists() == (path != ".")
    folders = [os.path.basename(fields["path"]) for fields in other.agent.calls("make_folder") if fields["mode"] == 0o500]
    assert folders == (["er", "deep"] if path in ("in", ".") else []), "one that can't be written to after what is in it"


async def test_a_copy_to_another_sandbox_is_bounded_and_says_whose_doing_a_failure_is(sandbox: NearSandbox, tmp_path: Path) -> None:
    other = NearSandbox(tmp_path / "other")
    (sandbox.place / "a").write_bytes(b"12345")
    (sandbox.place / "b").write_bytes(b"67890")
    await sandbox.copy_to(other, ".")
    assert tree(other.place) == tree(sandbox.place)
    sandbox.agent.raises["read"] = PermissionError(13, "no", "a")
    with pytest.raises(SandboxError, match=r"^/workspace/a can't be copied out of the sandbox: .*no") as caught:
        await sandbox.copy_to(other, "a")
    assert caught.value.failure_cause == "policy"
    (sandbox.place / "c").write_bytes(b"1")
    other.agent.asked.clear()
    with pytest.raises(SandboxError, match="has more than the 10 bytes that a copy from this sandbox may have") as caught:
        await sandbox.copy_to(other, ".")
    assert (caught.value.failure_cause, other.agent.asked) == ("policy", [])
    other.agent.raises["clear"] = PermissionError(13, "no", "a")
    with pytest.raises(PermissionError):  # what the other sandbox has is not this one's doing
        await sandbox.copy_to(other, "a")
    with pytest.raises(SandboxError, match="files can't be copied into a sandbox of the backend other"):
        await sandbox.copy_to(type("Other", (), {"backend": "other"})(), "a")


# Beginning


@pytest.mark.parametrize("error", [None, SandboxError("no"), KeyError("no"), asyncio.CancelledError()])
@pytest.mark.parametrize("fails", ["start", "ready"])
async def test_a_sandbox_that_can_not_be_started_is_closed(sandbox: NearSandbox, fails: str, error: BaseException | None) -> None:
    async def start() -> None:
        if fails == "start" and error is not None:
            raise error

    sandbox.agent.fails_to_start = error if fails == "ready" else None
    if error is None:
        await sandbox._wait_for_start(start(), 7.0)
        assert (sandbox.agent.asked, sandbox.is_closed) == ([("ready", {"within": 7.0})], False)
        return
    with pytest.raises(type(error)):
        await sandbox._wait_for_start(start(), 7.0)
    assert sandbox.is_closed


async def test_where_waiting_is_cancelled_what_begins_is_closed_once_it_has_begun(sandbox: NearSandbox) -> None:
    begun, goes_on, events = asyncio.Event(), asyncio.Event(), []

    async def start() -> None:
        begun.set()
        await goes_on.wait()
        events.append(sandbox.is_closed)

    waiting = asyncio.create_task(sandbox._wait_for_start(start(), 7.0))
    await begun.wait()
    waiting.cancel()
    await asyncio.sleep(0)
    assert not sandbox.is_closed
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (events, sandbox.is_closed) == ([False], True)
