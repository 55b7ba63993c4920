"""What a hostile model may try, each in a sandbox of its own, and what came of it: a program, `python -m tests.sandboxes.hostile BACKEND`.

An attempt prints HARM where it succeeds. Beside it run a victim on the host, servers on its loopback, and another sandbox. The program can
become a plain user first, and prints a JSON object: for each attempt, None or what harm it did.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vfgym.errors import SandboxError
from vfgym.sandboxes import Sandbox, SandboxSpec, create

SECRET = "the-secret-of-the-host"
LIMITS: dict[str, Any] = {"memory_mb": 256, "processes": 64, "disk_mb": 64}
SECONDS = 0.3
"""The time limit of attempts that never end."""


@dataclass(frozen=True)
class Attempt:
    """A command, or a cell, and what it would do."""

    what: str
    command: str | None = None
    cell: str | None = None
    timeout: float = 60.0
    also: Callable[[Sandbox, Path], Awaitable[str | None]] | None = None
    """What is looked at afterwards: the harm that it did, or None."""


def _connect(family: str, address: str, kind: str = "SOCK_STREAM") -> str:
    return (
        f"import socket\ns = socket.socket(socket.{family}, socket.{kind})\ns.settimeout(2)\n"
        f"s.connect({address})\ns.send(b'x')\nprint('HARM')"
    )


def _call(number: str, *arguments: str) -> str:
    return f"import ctypes\nlibc = ctypes.CDLL(None)\nif libc.{number}({', '.join(arguments)}) == 0: print('HARM')"


async def _download(sandbox: Sandbox, folder: Path) -> str | None:
    await sandbox.exec(
        f"mkdir tree; ln -s {folder}/secret.txt tree/a; ln -s {folder} tree/b; ln -s / tree/c; ln -s /proc/self/environ tree/d"
    )
    target = folder / f"copy-{sandbox.id}"
    await sandbox.download("tree", target)
    return f"copied {sorted(target.rglob('*'))}" if list(target.rglob("*")) else None


async def _download_over_a_link(sandbox: Sandbox, folder: Path) -> str | None:
    target = folder / f"copy-{sandbox.id}"
    target.mkdir()
    (target / "notes.txt").symlink_to(folder / "secret.txt")
    await sandbox.write_file("tree/notes.txt", "overwritten")
    try:
        await sandbox.download("tree", target)
    except OSError:
        pass
    return None if (folder / "secret.txt").read_text() == SECRET else "wrote through a link"


async def _upload(sandbox: Sandbox, folder: Path) -> str | None:
    source = folder / f"source-{sandbox.id}"
    source.mkdir()
    (source / "link").symlink_to(folder / "secret.txt")
    (source / "folder").symlink_to(folder)
    await sandbox.upload(source, "copy")
    found = await sandbox.exec("cat copy/* copy/folder/*; ls -R copy")
    return "the secret was copied" if SECRET in found.stdout or "secret" in found.stdout else None


async def _nothing_runs(sandbox: Sandbox, folder: Path) -> str | None:
    found = (await sandbox.exec("cat /proc/*/cmdline | tr '\\0' ' '")).stdout
    return None if "sleep 1234" not in found else f"still runs: {found}"


_MANY_PROCESSES = """
import os, time
reading, writing = os.pipe()
children = []
for _ in range(10):
    children.append(os.fork())
    if children[-1] == 0:
        os.close(reading)
        kept = bytearray(200 << 20)
        os.write(writing, b'x')
        os.close(writing)
        time.sleep(1000)
os.close(writing)
while os.read(reading, 1): pass  # until each has its memory, or was killed
time.sleep(1)
if sum(os.waitpid(child, os.WNOHANG)[0] == 0 for child in children) > 1: print('HARM')
"""


def attempts(folder: Path, port: int, victim: int) -> list[Attempt]:
    """Return what is attempted, given a folder of the host with a secret, a port of its loopback and a process that runs on it."""
    secret = folder / "secret.txt"
    return [
        Attempt("read a file of the host", f"cat {secret} && echo HARM"),
        Attempt("find a file of the host", f"find / -path /usr -prune -o -name {secret.name} -print 2>/dev/null | grep -q . && echo HARM"),
        Attempt("read the host's passwords and keys", "cat /etc/shadow /root/.ssh/* /home/*/.ssh/* && echo HARM"),
        Attempt("write to the host's programs", "(echo x > /usr/bin/vfgym-was-here || echo x >> /usr/bin/env) && echo HARM"),
        Attempt("read the environment of other processes", "cat /proc/*/environ /proc/*/task/*/environ"),
        Attempt("read the environment of the first process", "tr '\\0' '\\n' < /proc/1/environ"),
        Attempt("read the memory of the first process", cell="open('/proc/1/mem', 'rb').read(1)\nprint('HARM')"),
        Attempt("connect to the host's loopback", cell=_connect("AF_INET", f"('127.0.0.1', {port})")),
        Attempt("connect to the outside", cell=_connect("AF_INET", "('192.0.2.1', 53)")),
        Attempt("send a datagram outside", cell=_connect("AF_INET", "('192.0.2.1', 53)", "SOCK_DGRAM")),
        Attempt("connect to an abstract socket of the host", cell=_connect("AF_UNIX", f"'\\0vfgym-{port}'")),
        Attempt("connect to a socket in the host's files", cell=_connect("AF_UNIX", f"'{folder}/socket'")),
        Attempt("kill a process of the host", f"kill -9 {victim} && echo HARM"),
        Attempt("kill all processes", "kill -9 -1"),
        Attempt("kill all processes from a cell", cell="import os\nos.kill(-1, 9)"),
        Attempt("stop the first process", "kill -STOP 1; kill -KILL 1; kill -SEGV 1"),
        Attempt("trace the first process", cell=_call("ptrace", "16", "1", "0", "0")),
        Attempt("bomb with forks from a shell", "b() { b | b & }; b; sleep 100", timeout=SECONDS),
        Attempt(
            "bomb with forks from a cell", cell="import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", timeout=SECONDS
        ),
        Attempt("take 4 GB of memory", cell="data = bytearray(4 << 30)\nprint('HARM')"),
        Attempt(
            "take 4 GB of shared memory",
            cell="import mmap\nm = mmap.mmap(-1, 4 << 30)\nfor i in range(0, 4 << 30, 4096): m[i] = 1\nprint('HARM')",
        ),
        Attempt("take 2 GB with several processes", cell=_MANY_PROCESSES),
        Attempt(
            "take memory that belongs to no process",
            cell="import os\nf = os.memfd_create('x')\nfor _ in range(1024): os.write(f, bytes(1 << 20))\nprint('HARM')",
        ),
        Attempt(
            "fill the disk",
            "for d in . /tmp /dev/shm ~ /; do head -c 1G /dev/zero > $d/big && echo HARM; done; head -c 1G /dev/zero > /proc/self/fd/3",
        ),
        Attempt("make a file without end", "truncate -s 1T sparse && echo HARM"),
        Attempt(
            "leave a daemon behind",
            "(setsid sleep 12345 > /dev/null 2>&1 &); (setsid setsid nohup sleep 12345 > /dev/null 2>&1 &) ",
            also=_nothing_runs,
        ),
        Attempt("mount", "mkdir m; mount -t tmpfs none m && echo HARM; mount --bind / m && echo HARM; umount /usr && echo HARM"),
        Attempt(
            "mount in a namespace of its own", "unshare -Urm sh -c 'mount -t tmpfs none /mnt && echo HARM'; unshare -r true && echo HARM"
        ),
        Attempt(
            "make a device",
            "mknod disk b 8 0 && head -c 1 disk && echo HARM; head -c 1 /dev/mem && echo HARM; head -c 1 /dev/sda && echo HARM",
        ),
        Attempt(
            "change the kernel's settings",
            "echo 1 > /proc/sys/vm/overcommit_memory && echo HARM; echo x > /proc/sys/kernel/core_pattern && echo HARM",
        ),
        Attempt("become root", cell="import os\nbefore = os.getuid()\nos.setuid(0)\nif before: print('HARM')"),
        Attempt("change how the machine reboots", cell=_call("reboot", "0")),
        Attempt(
            "raise its own limits", cell="import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (1 << 16, 1 << 16))\nprint('HARM')"
        ),
        Attempt("open files without end", cell="files = [open('/dev/null') for _ in range(5000)]\nprint('HARM')"),
        Attempt("copy through links to the host", "true", also=_download),
        Attempt("write through a link of the host", "true", also=_download_over_a_link),
        Attempt("copy through links from the host", "true", also=_upload),
        Attempt("print a line of 300 MB", "head -c 300M /dev/zero"),
        Attempt("print without end", "yes >&2", timeout=SECONDS),
        Attempt("ignore all signals", "trap '' INT TERM HUP QUIT; while :; do :; done", timeout=SECONDS),
        Attempt(
            "ignore the interrupt of a cell",
            cell="import signal\nsignal.signal(2, signal.SIG_IGN)\nwhile True:\n    try: sum(range(9999))\n    except BaseException: pass",
            timeout=SECONDS,
        ),
        Attempt("loop in C", cell="sum(iter(int, 1))", timeout=SECONDS),
        Attempt("compute a number without end", cell="10 ** 10 ** 8", timeout=SECONDS),
        Attempt(
            "answer in the interpreter's place",
            cell="import os\nfor n in range(3, 10):\n    try: os.write(n, b'\\xff' * 4096)\n    except OSError: pass",
        ),
    ]


async def _try(attempt: Attempt, folder: Path, backend: str, spec: SandboxSpec) -> str | None:
    """Make an attempt in a sandbox of its own; return the harm that it did."""
    async with await create(spec, backend) as sandbox:
        printed = ""
        try:
            if attempt.cell is not None:
                cell = await sandbox.python(attempt.cell, timeout=attempt.timeout)
                printed = f"{cell.stdout}{cell.stderr}{cell.value}{cell.traceback}"
            else:
                result = await sandbox.exec(str(attempt.command), timeout=attempt.timeout)
                printed = result.stdout + result.stderr
            harm = None if attempt.also is None else await attempt.also(sandbox, folder)
            after = await sandbox.exec("echo fine")
            if after.stdout != "fine\n" and after.exit_code != 126:  # the processes of a cell may leave no room for another
                harm = harm or f"the sandbox does not work any more, and does not say so: {after}"
        except SandboxError:  # it may end its own
            harm = None
        if len(printed) > 5 << 20:
            return f"{len(printed)} characters of output"
        if "HARM" in printed.replace("print('HARM')", "") or SECRET in printed:
            return f"it worked: {printed[:500]}"
        return harm


async def _try_all(all_of_them: list[Attempt], folder: Path, backend: str, spec: SandboxSpec) -> dict[str, str | None]:
    """Make attempts, some at once, beside another sandbox."""
    at_once = asyncio.Semaphore(4)
    harm: dict[str, str | None] = {}

    async def run(attempt: Attempt) -> None:
        async with at_once:
            harm[attempt.what] = await _try(attempt, folder, backend, spec)

    async with await create(spec, backend) as neighbour, await asyncio.start_unix_server(lambda *_: None, folder / "socket"):
        await neighbour.python("kept = 1")
        await asyncio.gather(*map(run, all_of_them))
        if (await neighbour.python("kept")).value != "1":
            harm["of another sandbox"] = "its state is lost"
    return harm


async def main(backend: str, image: str | None) -> dict[str, str | None]:
    """Make all attempts, some at once; return the harm that each did."""
    spec = SandboxSpec(image=image, **LIMITS)
    with tempfile.TemporaryDirectory() as name, socket.socket() as loopback, socket.socket(socket.AF_UNIX) as abstract:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "secret.txt").write_text(SECRET)
        loopback.bind(("127.0.0.1", 0))
        port = loopback.getsockname()[1]
        abstract.bind(f"\0vfgym-{port}")
        for listening in (loopback, abstract):
            listening.listen()
        with subprocess.Popen(["sleep", "1000"]) as victim:
            try:
                harm = await _try_all(attempts(folder, port, victim.pid), folder, backend, spec)
                if victim.poll() is not None:
                    harm["of the host"] = "a process was killed"
            finally:
                victim.kill()
        if (folder / "secret.txt").read_text() != SECRET:
            harm["of the host"] = "a file was changed"
        return harm


if __name__ == "__main__":
    os.environ["SECRET"] = SECRET
    arguments = dict(argument.split("=", 1) for argument in sys.argv[2:])
    if "user" in arguments:
        os.setgroups([])
        os.setgid(int(arguments["user"]))
        os.setuid(int(arguments["user"]))
    print(json.dumps(asyncio.run(main(sys.argv[1], arguments.get("image")))))
