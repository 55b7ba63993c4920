"""What every sandbox does, whatever its backend: commands, cells, files, copies, snapshots, ports, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import itertools
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sandboxes.making import need, opened
from vfgym.errors import ConfigurationError, SandboxError
from vfgym.sandboxes import Sandbox, SandboxSpec, create

BACKENDS = ("bwrap", "unsafe")


@pytest.fixture(scope="module", params=BACKENDS)
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with opened(request.param, env={"COLOUR": "green"}) as sandbox:
        yield sandbox


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    need(request.param)
    return str(request.param)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_it_can_be_neither_pickled_nor_copied(sandbox: Sandbox, copied: Callable[[Sandbox], object]) -> None:
    with pytest.raises(TypeError, match=r"a running sandbox \(vfgym-[0-9a-f]+\) can be neither pickled nor copied"):
        copied(sandbox)


# Commands

BIG = "0123456789" * 30_000


@pytest.mark.parametrize(
    ("command", "options", "result"),
    [
        ("echo out; echo err >&2; exit 3", {}, (3, "out\n", "err\n")),
        (["printf", "%s|", "a b", "$HOME"], {}, (0, "a b|$HOME|", "")),
        (["no-such-program"], {}, (127, "", "no-such-program: No such file or directory\n")),
        ("cat", {"input": "text\n"}, (0, "text\n", "")),
        ("cat", {}, (0, "", "")),
        ("cat", {"input": BIG}, (0, BIG, "")),
        ("echo $COLOUR $SIZE", {"env": {"SIZE": "large"}}, (0, "green large\n", "")),
        ("mkdir -p deep/er; cd deep/er; pwd | tail -c 19", {}, (0, "/workspace/deep/er\n", "")),
        ("pwd | tail -c 19", {"working_dir": "deep/er"}, (0, "/workspace/deep/er\n", "")),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_a_command_gives_its_exit_code_and_both_streams(sandbox: Sandbox, command: Any, options: Any, result: Any) -> None:
    """A list is a program with its arguments, a text a line for a shell."""
    if "working_dir" in options:
        assert (await sandbox.exec("mkdir -p deep/er; pwd", working_dir="nowhere")).exit_code == 127
        await sandbox.exec("mkdir -p deep/er")
    ran = await sandbox.exec(command, **options)
    assert (ran.exit_code, ran.stdout, ran.stderr) == result
    assert not ran.timed_out
    assert not ran.truncated


async def test_the_environment_of_the_host_is_not_there(sandbox: Sandbox) -> None:
    names = {line.partition("=")[0] for line in (await sandbox.exec("env")).stdout.splitlines()}
    assert names <= {"PATH", "HOME", "TMPDIR", "LANG", "LC_CTYPE", "COLOUR", "PWD", "SHLVL", "_", "OLDPWD"}


async def test_a_text_that_no_system_can_be_given_is_the_failure_of_its_request(sandbox: Sandbox) -> None:
    for text in ("a\0b", "\ud800"):
        result = await sandbox.exec(f"echo {text}")
        assert (result.exit_code, result.stderr[:11]) == (126, "/bin/bash: ")
        with pytest.raises(OSError, match=r"embedded null byte|surrogates not allowed"):
            await sandbox.read_file(text)
    assert (await sandbox.exec("echo alive")).stdout == "alive\n"


async def test_a_command_is_killed_at_its_time_limit_with_all_that_it_started(sandbox: Sandbox) -> None:
    result = await sandbox.exec("echo begun; sleep 1000 & sleep 1000", timeout=0.2)
    assert result.timed_out
    assert (result.exit_code, result.stdout) == (137, "begun\n")
    assert "sleep" not in await _running(sandbox)


async def test_what_a_command_leaves_ends_with_it(sandbox: Sandbox) -> None:
    result = await sandbox.exec("(setsid sleep 1000 >/dev/null 2>&1 &); nohup sleep 1000 >/dev/null 2>&1 & echo done")
    assert (result.stdout, "sleep" in await _running(sandbox)) == ("done\n", False)


async def test_a_cancelled_command_is_killed_and_others_go_on(sandbox: Sandbox) -> None:
    other = asyncio.ensure_future(sandbox.exec("read line; echo $line", input="x" * 200_000 + "\n"))
    task = asyncio.ensure_future(sandbox.exec("echo $$ > started; sleep 1000"))
    while b"\n" not in await _read(sandbox, "started"):
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert len((await other).stdout) == 200_001
    assert "sleep" not in await _running(sandbox)


async def test_commands_run_at_once(sandbox: Sandbox) -> None:
    await sandbox.exec("mkfifo meeting")
    writer, reader = sandbox.exec("echo hello > meeting"), sandbox.exec("cat meeting")
    assert [result.stdout for result in await asyncio.gather(writer, reader)] == ["", "hello\n"]


async def test_more_commands_at_once_than_there_may_be_are_refused(backend: str) -> None:
    async with await create(SandboxSpec(), backend) as sandbox:
        running = [asyncio.ensure_future(sandbox.exec(["sleep", "1000"])) for _ in range(130)]
        for refused in itertools.islice(asyncio.as_completed(running), 2):
            result = await refused
            assert (result.exit_code, "More than 128 commands at once" in result.stderr) == (126, True), result
        for task in running:
            task.cancel()
        await asyncio.wait(running)
        assert "sleep" not in await _running(sandbox)


async def test_output_beyond_the_limit_is_dropped(sandbox: Sandbox) -> None:
    result = await sandbox.exec("head -c 5000000 /dev/zero | tr '\\0' x; echo end >&2")
    assert result.truncated
    assert (len(result.stdout), result.stderr, result.exit_code) == (1 << 20, "end\n", 0)


async def _read(sandbox: Sandbox, path: str) -> bytes:
    try:
        return await sandbox.read_file(path)
    except FileNotFoundError:
        return b""


async def _running(sandbox: Sandbox) -> str:
    """Return the command lines of what runs in a sandbox, or below its agent."""
    script = (
        "import os\n"
        "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
        "    try:\n"
        "        if os.environ['HOME'].encode() in open(f'/proc/{pid}/environ', 'rb').read():\n"
        "            print(open(f'/proc/{pid}/cmdline').read())\n"
        "    except OSError:\n"
        "        pass\n"
    )
    return (await sandbox.exec(["python3", "-c", script])).stdout.replace(script, "")


# Cells


async def test_cells_keep_what_they_define(sandbox: Sandbox) -> None:
    first = await sandbox.python("import os\nx = 6\nprint('printed')\nos.system('echo by a child')\nx * 7")
    assert (first.stdout, first.value, first.traceback, first.stderr) == ("printed\nby a child\n", "42", None, "")
    second = await sandbox.python("x + 1")
    assert (second.value, second.count) == ("7", first.count + 1)
    assert (await sandbox.python("import pickle\nclass A:\n    x = 3\npickle.loads(pickle.dumps(A())).x")).value == "3"
    long = await sandbox.python("'x' * 3_000_000")
    assert (long.truncated, len(str(long.value))) == (True, 1 << 20)
    failed = await sandbox.python("1 / 0")
    assert (failed.truncated, failed.value, str(failed.traceback)[-16:]) == (False, None, "division by zero")
    at_once = await asyncio.gather(*(sandbox.python(f"order = [*globals().get('order', []), {n}]\norder") for n in range(5)))
    assert [result.value for result in at_once] == [str(list(range(n + 1))) for n in range(5)], "each waits for those before it"


async def test_an_endless_cell_is_interrupted_and_its_state_is_kept(sandbox: Sandbox) -> None:
    await sandbox.python("kept = 1")
    result = await sandbox.python("print('begun')\nwhile True: pass", timeout=0.2)
    assert (result.timed_out, result.state_is_lost, result.stdout) == (True, False, "begun\n")
    assert "KeyboardInterrupt" in str(result.traceback)
    assert (await sandbox.python("kept")).value == "1"


@pytest.mark.parametrize("code", ["while True:\n    try:\n        sum(range(9999))\n    except BaseException: pass", "sum(iter(int, 1))"])
async def test_a_cell_that_can_not_be_interrupted_loses_the_state(sandbox: Sandbox, code: str) -> None:
    await sandbox.python("kept = 1")
    result = await sandbox.python(code, timeout=0.2)
    assert (result.timed_out, result.state_is_lost) == (True, True)
    assert "NameError" in str((await sandbox.python("kept")).traceback)


async def test_a_cell_may_end_before_its_interpreter_has_begun(backend: str) -> None:
    async with await create(SandboxSpec(), backend) as sandbox:
        result = await sandbox.python("while True: pass", timeout=1e-6)
        assert result.timed_out
        assert (await sandbox.python("1 + 1")).value == "2"


async def test_an_interpreter_that_takes_no_cell_is_ended_at_the_time_limit(sandbox: Sandbox) -> None:
    code = "import os, signal, threading\nthreading.Timer(0.1, os.kill, (os.getpid(), signal.SIGSTOP)).start()\nos.getpid()"
    pid = (await sandbox.python(code)).value
    while "T (stopped)" not in (await sandbox.exec(f"cat /proc/{pid}/status")).stdout:
        pass
    waiting = asyncio.ensure_future(sandbox.python("1  # " + "more than its socket holds" * 100_000, timeout=0.2))
    assert (await sandbox.exec("echo others go on")).stdout == "others go on\n"
    result = await waiting
    assert (result.timed_out, result.state_is_lost) == (True, True)
    assert (await sandbox.python("1 + 1")).value == "2"


async def test_the_cpu_time_of_a_command_is_what_it_may_be_rounded_up(backend: str) -> None:
    code = "import time\nwhile time.process_time() < {}: pass"
    async with await create(SandboxSpec(cpu_seconds=0.1), backend) as sandbox:
        assert (await sandbox.exec(["python3", "-c", code.format(0.3)])).exit_code == 0
        assert (await sandbox.exec(["python3", "-c", code.format(100)])).exit_code == 137


async def test_the_cpu_time_of_a_cell_is_that_of_what_it_starts_too(backend: str) -> None:
    async with await create(SandboxSpec(cpu_seconds=0.5), backend) as sandbox:
        result = await sandbox.python("import subprocess\nsubprocess.run(['sh', '-c', 'while :; do :; done'])", timeout=100)
        assert (result.timed_out, result.state_is_lost) == (True, False)
        assert "KeyboardInterrupt" in str(result.traceback)


async def test_an_interpreter_that_ends_loses_the_state(sandbox: Sandbox) -> None:
    result = await sandbox.python("import os; print('last words'); os._exit(3)")
    assert (result.state_is_lost, result.timed_out, result.stdout) == (True, False, "last words\n")
    assert result.traceback == "The interpreter of the cells has ended: exit code 3."
    following = await sandbox.python("1 + 1")
    assert (following.value, following.count) == ("2", result.count + 1)


async def test_a_cell_that_answers_with_nonsense_loses_the_state(sandbox: Sandbox) -> None:
    for nonsense in ("b'['  * 100_000", "b'[]'", "b'{'"):
        code = f"import os\ndata = {nonsense}\nos.write(3, len(data).to_bytes(4, 'big') + data)\nwhile True: pass"
        result = await sandbox.python(code, timeout=20)
        assert (result.state_is_lost, result.timed_out) == (True, False)
    assert (await sandbox.python("1 + 1")).value == "2"


# Files


async def test_files_are_written_and_read(sandbox: Sandbox) -> None:
    await sandbox.write_file("made/parents/text.txt", "grün")
    assert await sandbox.read_file("/workspace/made/parents/text.txt") == "grün".encode()
    data = os.urandom(3_000_000)
    await sandbox.write_file("/elsewhere/data.bin", data)
    assert await sandbox.read_file("/elsewhere/data.bin") == data
    await sandbox.write_file("/elsewhere/data.bin", b"")
    assert await sandbox.read_file("/elsewhere/data.bin") == b""


async def test_a_file_that_can_not_be_read_is_the_error_that_says_so(sandbox: Sandbox, tmp_path: Path) -> None:
    await sandbox.exec("mkfifo pipe")
    for path, says in (("missing.txt", r"No such file.*missing"), (".", "Is a directory"), ("pipe", "Not a regular file")):
        with pytest.raises(OSError, match=says):
            await sandbox.read_file(path)
    with pytest.raises(FileNotFoundError):
        await sandbox.upload(tmp_path / "no" / "such", "here")
    with pytest.raises(FileNotFoundError):
        await sandbox.download("no/such/folder", tmp_path / "here")
    assert list(tmp_path.iterdir()) == []


async def test_folders_are_copied_in_both_directions_and_links_lead_nowhere(sandbox: Sandbox, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "run.sh").write_text("echo ran")
    (source / "run.sh").chmod(0o755)
    (source / "sub" / "text.txt").write_text("text")
    (source / "inner").symlink_to("sub/text.txt")
    (source / "outer").symlink_to("/etc/passwd")
    (source / "sub" / "up").symlink_to("../..")
    (source / "again").symlink_to("sub")
    assert sorted(await sandbox.upload(source, "tree")) == ["again", "outer", "sub/up"]
    assert (await sandbox.exec("./run.sh; cat inner; ls", working_dir="tree")).stdout == "ran\ntextinner\nrun.sh\nsub\n"
    await sandbox.exec(
        "ln -s /etc/passwd outer; ln -s /etc folder; ln -s ../../../../../../etc/passwd sub/outer; mkfifo p", working_dir="tree"
    )
    target = tmp_path / "target"
    assert sorted(await sandbox.download("tree", target)) == ["folder", "outer", "sub/outer"]
    found = {str(path.relative_to(target)): path.read_text() for path in target.rglob("*") if path.is_file()}
    assert found == {"run.sh": "echo ran", "inner": "text", "sub/text.txt": "text"}
    assert os.access(target / "run.sh", os.X_OK)
    await sandbox.upload(source / "run.sh", "single.sh")
    await sandbox.download("single.sh", tmp_path / "back" / "single.sh")
    assert (tmp_path / "back" / "single.sh").read_text() == "echo ran"


async def test_a_tree_is_restored_as_it_was(sandbox: Sandbox) -> None:
    """Also what can't be written to, with its modes, its links and nothing beside it."""
    await sandbox.exec("rm -rf * && mkdir -p a/b && echo 1 > a/b/file && ln -s file a/b/link && head -c 3M /dev/zero > big")
    await sandbox.exec("chmod 400 a/b/file big && chmod 500 a/b a")
    listing = "find . -printf '%p %m %l\\n' | sort; stat -c %s big; cat a/b/file"
    before, snapshot = (await sandbox.exec(listing)).stdout, await sandbox.snapshot()
    assert "./a/b 500" in before
    await sandbox.exec("chmod -R 700 a && rm -r a && touch new && mkdir -p b/c && chmod 000 b/c && chmod 600 big")
    await sandbox.restore(snapshot)
    assert (await sandbox.exec(listing)).stdout == before
    await sandbox.exec("chmod -R 700 *")  # not of the working directory, of which snapshots say that it was changed


# Ports


async def test_a_port_is_forwarded_to_a_socket_of_the_host(backend: str, tmp_path: Path, unused_tcp_port: int) -> None:
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line.upper())
        writer.write(b"x" * 1_000_000)
        writer.close()

    path = tmp_path / "socket"
    code = (
        "import socket, sys\n"
        "s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "s.sendall(b'hello\\nworld\\n'); s.shutdown(socket.SHUT_WR)\n"
        "data = b''.join(iter(lambda: s.recv(65536), b''))\n"
        "print(data[:12], len(data))\n"
    )
    spec = SandboxSpec(forwards={unused_tcp_port: path})
    async with await asyncio.start_unix_server(shout, path), await create(spec, backend) as sandbox:
        commands = [sandbox.exec(["python3", "-c", code, str(unused_tcp_port)]) for _ in range(3)]
        for result in await asyncio.gather(*commands):
            assert result.stdout == "b'HELLO\\nWORLD\\n' 1000012\n", result
    async with await create(SandboxSpec(forwards={unused_tcp_port: tmp_path / "nobody"}), backend) as sandbox:
        assert (await sandbox.exec(["python3", "-c", code, str(unused_tcp_port)])).stdout in ("", "b'' 0\n")  # it may be reset


# The end


async def test_one_that_is_cancelled_while_it_is_created_leaves_nothing(backend: str) -> None:
    """The processes that a test leaves behind are a failure of it."""
    tasks = [asyncio.ensure_future(create(SandboxSpec(), backend)) for _ in range(6)]
    for task in tasks:
        await tasks[0] if task is tasks[0] else await asyncio.sleep(0)
        task.cancel()
    for made in await asyncio.gather(*tasks, return_exceptions=True):
        if not isinstance(made, BaseException):
            await made.close()


async def test_a_closed_sandbox_refuses_everything(backend: str) -> None:
    sandbox = await create(SandboxSpec(), backend)
    running = asyncio.ensure_future(sandbox.exec("sleep 1000"))
    await sandbox.python("1")
    assert sandbox.is_alive
    await sandbox.close()
    await sandbox.close()
    assert not sandbox.is_alive
    with pytest.raises(SandboxError, match="closed"):
        await running
    for attempt in (sandbox.exec("true"), sandbox.python("1"), sandbox.read_file("x"), sandbox.write_file("x", b""), sandbox.snapshot()):
        with pytest.raises(SandboxError, match="closed"):
            await attempt


async def test_a_request_that_can_not_be_meant_is_refused(sandbox: Sandbox) -> None:
    with pytest.raises(ConfigurationError, match="timeout must be a number of seconds above 0"):
        await sandbox.exec("true", timeout=0)
    with pytest.raises(ConfigurationError, match="a command must be"):
        await sandbox.exec([])
    with pytest.raises(ConfigurationError, match="env must map"):
        await sandbox.exec("true", env={"A": 1})  # type: ignore[dict-item]
