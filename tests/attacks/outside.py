"""Attacks on what is outside of programs: the agent of their sandbox, other sandboxes and the host, and what copies their files.

See `tests.attacks.sandboxes`, which runs them.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from tests.attacks.attack import MOST_FILES, attack, harm_of_program
from vfgym.errors import SandboxError
from vfgym.sandboxes import Sandbox, SandboxSpec, create

# The agent


@attack("the agent's limits stay, and the sandbox goes on", quick=True, backends=("bwrap",))
async def lower_the_limits_of_the_agent(sandbox: Sandbox) -> str | None:
    """Fell: the agent ran out of memory, which read as a failure of the host."""
    harm = await harm_of_program(
        sandbox,
        """
import resource
for name in ('NOFILE', 'CPU', 'FSIZE', 'DATA', 'STACK', 'NPROC'):
    try: resource.prlimit(1, getattr(resource, 'RLIMIT_' + name), (1, 1)); print('HARM', name)
    except PermissionError: pass
""",
    )
    return harm or (None if (await sandbox.exec("echo fine")).stdout == "fine\n" else "the agent does not answer")


@attack("the agent is not slowed down", quick=True, backends=("bwrap",))
async def have_the_agent_wait_for_a_processor(sandbox: Sandbox) -> str | None:
    """Fell: at the lowest priority beside busy programs the agent does not answer in time, which read as a failure of the host."""
    return await harm_of_program(
        sandbox,
        """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
param = os.sched_param(0)
calls = [lambda kind=kind, who=who: os.setpriority(kind, who, 19) for kind, who in ((0, 1), (1, 1), (2, 0))]
calls += [lambda: os.sched_setscheduler(1, os.SCHED_IDLE, param), lambda: os.sched_setparam(1, param)]
for number, call in enumerate(calls):
    try: call(); print('HARM', number)
    except PermissionError: pass
os.nice(1)  # its own
os.sched_setaffinity(0, os.sched_getaffinity(0))
""",
    )


@attack("whoever asks the agent does not wait for a program")
async def hold_up_whoever_reads_its_files(sandbox: Sandbox) -> str | None:
    """By a lease, for which opening a file waits 45 seconds, and by files that block whoever opens them."""
    holds = """
import fcntl, os, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
held = os.open('held', os.O_RDWR | os.O_CREAT)
os.mkfifo('fifo')
fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
os.close(os.open('ready', os.O_CREAT))
time.sleep(60)
"""
    holder = asyncio.create_task(sandbox.exec(["python3", "-c", holds]))
    while (await sandbox.exec("test -e ready")).exit_code:
        pass
    try:
        for name in ("held", "fifo", "/dev/zero", "/dev/ptmx", "/dev/full"):
            try:
                await asyncio.wait_for(sandbox.read_file(name), 20)
            except TimeoutError:
                return f"{name} held the agent up"
            except OSError:
                pass
    finally:
        holder.cancel()
    return None


@attack("a command ends with its program, whatever it does with descriptors")
async def close_and_pass_on_descriptors(sandbox: Sandbox) -> str | None:
    closes = "import os, time\nfor number in range(256):\n    try: os.close(number)\n    except OSError: pass\ntime.sleep(0.2)"
    done = await sandbox.exec(["python3", "-c", closes], timeout=20)
    if done.exit_code or done.timed_out:
        return f"closing all: {done}"
    left = await sandbox.exec("(sleep 300 &) ; exec 1>&- 2>&-; sleep 0.1", timeout=20)
    if left.timed_out:
        return "what holds a stream keeps its command going"
    return await harm_of_program(
        sandbox,
        "import os\nfor number in os.listdir('/proc/self/fd'):\n    try: target = os.readlink('/proc/self/fd/' + number)\n"
        "    except OSError: continue\n    if int(number) > 2 and '/proc/' not in target: print('HARM', number, target)",
    )


@attack("a cell that stops or ruins its interpreter loses its state only")
async def ruin_the_interpreter_of_the_cells(sandbox: Sandbox) -> str | None:
    for code in (
        "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
        "import os; [os.close(number) for number in range(10)]",
        "import builtins; builtins.__dict__.clear()",
        "import gc; [each.clear() for each in gc.get_objects() if isinstance(each, dict)]",
        "import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
        "e = None\nfor i in range(100000):\n    n = ValueError(i); n.__cause__ = e; e = n\nraise e",
        "raise ValueError('x' * 10**7)",
        "class A:\n    def __repr__(self): raise SystemExit\nA()",
        "'\\ud800'",
        "\ud800",
        "print('\\ud800')",
        "(" * 10000,
    ):
        told = await sandbox.python(code, timeout=3)
        if len(told.traceback or "") + len(told.stdout) + len(told.stderr) > 4 << 20:
            return f"{code[:40]}: an answer without end"
        if (await sandbox.python("6 * 7", timeout=20)).value != "42":
            return f"{code[:40]}: the next cell has no interpreter"
    return None


# Other sandboxes and the host


async def harm_to_a_neighbour(sandbox: Sandbox, hold: str, need: str) -> str | None:
    """Let a program hold something; return why another sandbox, and this process, can't have it."""
    holder = asyncio.create_task(sandbox.exec(["python3", "-c", hold + "\nopen('ready', 'w')\nimport time\ntime.sleep(60)"]))
    try:
        while (await sandbox.exec("test -e ready")).exit_code and not holder.done():
            pass
        async with await create(SandboxSpec(image=sandbox.spec.image), sandbox.backend) as neighbour:
            return await harm_of_program(neighbour, need)
    finally:
        holder.cancel()


@attack("what is watched by programs is not taken from others, nor what others do seen", quick=True, backends=("bwrap",))
async def watch_files_of_the_host(sandbox: Sandbox) -> str | None:
    """Fell: a plain user's sandbox took all 128 instances that its user may have; any saw which programs the host runs."""
    return await harm_of_program(
        sandbox,
        """
import ctypes
libc = ctypes.CDLL(None)
instances = [libc.inotify_init() for _ in range(200)]
if max(instances) >= 0: print('HARM', len([each for each in instances if each >= 0]))
""",
    )


@attack("another sandbox has terminals")
async def take_all_terminals(sandbox: Sandbox) -> str | None:
    """Fell: they are counted for all sandboxes together."""
    return await harm_to_a_neighbour(
        sandbox,
        "import os\nfor _ in range(5): os.fork()\nkept = []\ntry:\n    while True: kept.append(os.openpty())\nexcept OSError: pass",
        "import os, time\ntime.sleep(1)\ntry: os.openpty()\nexcept OSError as error: print('HARM', error)",
    )


@attack("nobody's terminal is there")
async def type_into_the_terminal_of_whoever_started_it(sandbox: Sandbox) -> str | None:
    return await harm_of_program(
        sandbox,
        "import fcntl, termios\nfor name in ('/dev/tty', '/dev/console', '/proc/1/fd/0'):\n    try:\n"
        "        with open(name, 'rb+', buffering=0) as file: fcntl.ioctl(file, termios.TIOCSTI, b'x'); print('HARM', name)\n"
        "    except OSError: pass",
    )


@attack("what waits for datagrams is bounded", quick=True, backends=("bwrap",))
async def fill_sockets_with_datagrams(sandbox: Sandbox) -> str | None:
    """Fell: 200 sockets held 550 MB in root's sandbox of 256 MB, whose control group does not count them."""
    result = await sandbox.exec(
        [
            "python3",
            "-c",
            """
import os, socket, time
kept, held = [], 0
try:
    for number in range(200):
        kept.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        kept[-1].bind(('127.0.0.1', 0))
        kept[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        for _ in range(800): kept[-1].sendto(b'x' * 20000, kept[-1].getsockname())
except OSError: pass
with open('/proc/net/udp') as file: held = sum(int(line.split()[4].split(':')[1], 16) for line in file.readlines()[1:])
if held > 300 << 20: print('HARM', held >> 20, 'MB')
""",
        ],
        timeout=60,
    )
    return result.stdout if "HARM" in result.stdout else None


# Copies of what it made


@attack("a copy has no more than the sandbox may have")
async def copy_more_than_there_is(sandbox: Sandbox) -> str | None:
    """By names for one file, by files with holes, and by folders that have themselves in them."""
    await sandbox.exec(
        "mkdir -p d/many d/laughs/l0; head -c 3000000 /dev/urandom > d/many/a;"
        " for i in $(seq 60); do ln d/many/a d/many/h$i; ln -s a d/many/s$i; done; cd d/laughs; echo lol > l0/x;"
        " for i in $(seq 1 24); do mkdir l$i; for j in a b; do ln -s ../l$((i-1)) l$i/$j; done; done;"
        " ln -s . self; truncate -s 60M hole; truncate -s 60M hole2"
    )
    with tempfile.TemporaryDirectory() as folder:
        try:
            await sandbox.download("d", f"{folder}/d")
        except SandboxError as error:
            if error.failure_cause != "policy":
                return f"it reads as {error.failure_cause}: {error}"
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
    return f"{len(files)} files of {size} bytes" if size > 128 << 20 or len(files) > MOST_FILES else None


@attack("names and modes of any kind are copied or told, and harm nobody")
async def have_files_copied_that_nobody_expects(sandbox: Sandbox) -> str | None:
    await sandbox.exec(
        [
            "python3",
            "-c",
            r"""
import os, socket
os.makedirs('d'); os.chdir('d')
for name in (b'new\nline', b'\xff\xfe', b'..x', b'\\', b'-rf', b'*'): open(name, 'w').write('1')
for name, mode in (('suid', 0o6777), ('closed', 0)): open(name, 'w').write('1'); os.chmod(name, mode)
os.mkdir('folder'); open('folder/x', 'w').write('1'); os.chmod('folder', 0o3000)
for name, time in (('old', -10**18), ('late', 2**62)): open(name, 'w').write('1'); os.utime(name, ns=(time, time))
os.mkfifo('fifo'); socket.socket(socket.AF_UNIX).bind('socket')
os.symlink('loop', 'loop'); os.symlink('/etc/passwd', 'out'); os.symlink('../../../etc', 'up'); os.symlink('.', 'dot')
""",
        ]
    )
    with tempfile.TemporaryDirectory() as folder:
        left = await asyncio.wait_for(sandbox.download("d", f"{folder}/d"), 60)
        there = set(os.listdir(f"{folder}/d"))
        special = [name for name in there if os.lstat(f"{folder}/d/{name}").st_mode & 0o7000]
        links = [name for name in there if os.path.islink(f"{folder}/d/{name}")]
    missing = {"new\nline", "..x", "\\", "-rf", "*", "old", "late"} - there - set(left)
    return f"{special} {links} {missing}" if special or links or missing else None


@attack("a file that can't be copied is the program's doing", quick=True)
async def make_what_can_t_be_copied(sandbox: Sandbox) -> str | None:
    await sandbox.exec(
        ["python3", "-c", "import os\nos.mkdir('d'); os.chdir('d')\nfor _ in range(100): os.mkdir('n' * 100); os.chdir('n' * 100)"]
    )
    copies = [("a snapshot", sandbox.snapshot())]
    async with await create(sandbox.spec, sandbox.backend) as other:
        with tempfile.TemporaryDirectory() as folder:
            copies += [("a copy", sandbox.copy_to(other, "d")), ("a download", sandbox.download("d", f"{folder}/d"))]
            for what, copy in copies:
                try:
                    await copy
                except SandboxError as error:
                    if error.failure_cause != "policy":
                        return f"{what} reads as {error.failure_cause}"
                except OSError as error:
                    return f"{what} raised {type(error).__name__}"
    return None
