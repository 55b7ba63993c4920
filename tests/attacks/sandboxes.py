"""Attacks on sandboxes, each in one of its own: a program, `python -m tests.attacks.sandboxes BACKEND [user=UID] [image=IMAGE] [NAME ...]`.

They are written from the sentences of docs/sandboxes.md. An attack prints HARM where it succeeds. The program can become a plain user, and
prints a JSON object: for each attack, None or what harm it did.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import sys
from pathlib import Path

from tests.attacks import outside  # noqa: F401 # which registers its attacks
from tests.attacks.attack import ATTACKS, LIMITS, MOST_FILES, Attack, attack, harm_of_command, harm_of_program
from vfgym.envs.sandboxed import fresh_sandbox
from vfgym.errors import SandboxError
from vfgym.sandboxes import Sandbox, SandboxPool, SandboxSpec, create

# What belongs to the system


@attack("files of the system belong to nobody inside", quick=True, backends=("bwrap",))
async def write_to_the_folders_of_the_system(sandbox: Sandbox) -> str | None:
    return await harm_of_command(
        sandbox,
        "for f in /etc/ld.so.preload /etc/passwd /etc/hosts /etc/new /etc/profile.d/x.sh /usr/lib/new /bin/new /lib/new /lib64/new"
        " /sbin/new"
        " /dev/new /proc/sys/kernel/core_pattern; do (echo x > $f) 2>/dev/null && echo HARM $f; done;"
        " chmod 777 /etc 2>/dev/null && echo HARM chmod; chown $(id -u) /etc/passwd 2>/dev/null && echo HARM chown",
    )


@attack("a folder of the system stays where it is", quick=True, backends=("bwrap",))
async def put_another_folder_in_the_place_of_one_of_the_system(sandbox: Sandbox) -> str | None:
    return await harm_of_command(
        sandbox,
        "for d in /etc /usr /bin /sbin /lib /lib64 /dev /proc; do [ -e $d ] || continue;"
        " mv $d $d.old 2>/dev/null && echo HARM moved $d; rm -f $d 2>/dev/null && echo HARM removed $d;"
        " ln -sfn /tmp $d 2>/dev/null && [ -L $d ] && echo HARM linked $d; done; true",
    )


@attack("the interpreter stays where it is, and what lies above it", backends=("bwrap",))
async def put_another_interpreter_in_the_place_of_the_first(sandbox: Sandbox) -> str | None:
    await sandbox.exec(
        "p=$(dirname $(dirname $(command -v python3))); d=$p; while [ $d != / ]; do mv $d $d.old && mkdir -p $p/bin &&"
        " { printf '#!/bin/sh\\necho forged\\n' > $p/bin/python3; chmod +x $p/bin/python3; }; d=$(dirname $d); done"
    )
    said = await sandbox.exec("python3 -c 'print(6 * 7)'")
    return None if said.stdout == "42\n" else f"it says {said}"


@attack("what can be read stays where it is, and what lies above it", backends=("bwrap",))
async def put_another_file_in_the_place_of_one_that_can_be_read(sandbox: Sandbox) -> str | None:
    own = Path(__file__)
    spec = dataclasses.replace(sandbox.spec, readable_paths=(own.parent,))
    async with await create(spec, sandbox.backend) as other:
        await other.exec(
            f"d={own.parent}; while [ $d != / ]; do mv $d $d.old; rm -rf $d; mkdir -p {own.parent}; echo forged > {own};"
            " d=$(dirname $d); done"
        )
        said = await other.read_file(str(own))
    return None if said == own.read_bytes() else f"it says {said[:100]!r}"


@attack("the agent can't be reached", quick=True)
async def write_into_the_agent(sandbox: Sandbox) -> str | None:
    return await harm_of_command(
        sandbox,
        "for f in /proc/1/mem /proc/1/fd/0 /proc/1/fd/1 /proc/1/fd/2 /proc/1/oom_score_adj; do (echo x > $f) 2>/dev/null && echo HARM $f;"
        " done; cat /proc/1/environ 2>/dev/null | grep -q . && echo HARM environ;"
        " readlink /proc/1/fd/* 2>/dev/null | grep -q . && echo HARM fd; true",
    )


@attack("it is what the kernel kills first", backends=("bwrap",))
async def be_spared_where_memory_is_used_up(sandbox: Sandbox) -> str | None:
    return await harm_of_command(sandbox, "(echo -1000 > /proc/self/oom_score_adj) 2>/dev/null && echo HARM; true")


@attack("nobody becomes another user", backends=("bwrap",))
async def become_root_by_a_program_with_its_owner_s_rights(sandbox: Sandbox) -> str | None:
    return await harm_of_command(
        sandbox,
        "cp /bin/sh own; chmod 6755 own; [ $(./own -p -c 'id -u') = 0 ] && [ $(id -u) != 0 ] && echo HARM;"
        " for p in su mount passwd newgrp; do f=$(command -v $p) &&"
        " [ $(echo | $f -c 'id -u' 2>/dev/null)x = 0x ] && echo HARM $p; done; true",
    )


@attack("no group of the host is there", backends=("bwrap",))
async def leave_the_control_group(sandbox: Sandbox) -> str | None:
    return await harm_of_command(
        sandbox, "for f in $(find /sys /proc/self/cgroup* -name cgroup.procs 2>/dev/null); do echo $$ > $f && echo HARM $f; done; true"
    )


# System calls


@attack("only AF_UNIX, AF_INET and AF_INET6 are there", quick=True)
async def open_a_socket_of_another_family(sandbox: Sandbox) -> str | None:
    return await harm_of_program(
        sandbox,
        """
import socket
for family in range(64):
    for kind in (1, 2, 3, 5):
        for call in (socket.socket, socket.socketpair):
            try:
                call(family, kind)
            except OSError:
                continue
            if family not in (1, 2, 10): print('HARM', call.__name__, family, kind)
for family in (socket.AF_UNIX, socket.AF_INET):  # those that are named work
    socket.socket(family, socket.SOCK_STREAM).close()
socket.getaddrinfo('localhost', 80)
socket.socketpair()[0].close()
print('done')
""",
    )


# What it costs the host

PAGES = """
import mmap, sys
kept = []
for _ in range(%(count)d):
    try:
        piece = mmap.mmap(-1, %(size)d)
    except OSError:
        break
    for at in range(0, %(size)d, 4096): piece[at] = 1
    %(hide)s
    kept.append(piece)
if len(kept) * %(size)d > 768 << 20: print('HARM', len(kept) * %(size)d >> 20, 'MB')
"""


@attack("memory of all processes, shared pages too, is bounded", quick=True)
async def hold_shared_pages_that_it_has_let_go(sandbox: Sandbox) -> str | None:
    return await harm_of_program(sandbox, PAGES % {"count": 120, "size": 8 << 20, "hide": "piece.madvise(mmap.MADV_DONTNEED)"})


@attack("memory of all processes, shared pages too, is bounded")
async def hold_shared_pages_of_which_it_has_one(sandbox: Sandbox) -> str | None:
    return await harm_of_program(sandbox, PAGES % {"count": 120, "size": 8 << 20, "hide": "piece.resize(4096)"})


@attack("memory of all processes, shared pages too, is bounded")
async def share_memory_of_the_device_zero(sandbox: Sandbox) -> str | None:
    program = PAGES.replace("mmap.mmap(-1, %(size)d)", "mmap.mmap(open('/dev/zero', 'r+b').fileno(), %(size)d)")
    return await harm_of_program(sandbox, program % {"count": 4, "size": 256 << 20, "hide": "piece.madvise(mmap.MADV_DONTNEED)"})


@attack("what waits in sockets is bounded", quick=True)
async def fill_sockets_that_nobody_reads(sandbox: Sandbox) -> str | None:
    return await harm_of_program(
        sandbox,
        """
import os, socket, sys, time
reading, writing = os.pipe()
for _ in range(8):
    if os.fork() == 0:
        kept, held = [], 0
        for _ in range(200):
            one, other = socket.socketpair()
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF): one.setsockopt(socket.SOL_SOCKET, option, 1 << 22)
            one.setblocking(False)
            try:
                while True: held += one.send(bytes(1 << 16))
            except OSError: pass
            one.close()
            kept.append(other)
        os.write(writing, b'%d\\n' % held)
        time.sleep(20)
        os._exit(0)
os.close(writing)
held = 0
while held < 1 << 30:
    text = os.read(reading, 1 << 16)
    if not text: break
    held += sum(map(int, text.split()))
time.sleep(0.5)
if held >= 1 << 30: print('HARM', held >> 20, 'MB')
""",
    )


@attack("the number of files is bounded", quick=True)
async def make_files_without_content(sandbox: Sandbox) -> str | None:
    return await harm_of_program(
        sandbox,
        f"""
import os, time
made = 0
try:
    for folder in range(100):
        os.mkdir(str(folder))
        for name in range(1000):
            os.close(os.open(f'{{folder}}/{{name}}', os.O_CREAT))
            made += 1
        time.sleep(0.01)
except OSError: pass
if made > 3 * {MOST_FILES}: print('HARM', made)
""",
    )


@attack("attributes count as files do")
async def keep_data_in_attributes(sandbox: Sandbox) -> str | None:
    return await harm_of_program(
        sandbox,
        """
import os, time
kept = 0
try:
    for name in range(8000):
        os.close(os.open(str(name), os.O_CREAT))
        os.setxattr(str(name), 'user.data', bytes(60000))
        kept += 60000
        if name % 100 == 0: time.sleep(0.01)
except OSError: pass
if kept > 200 << 20: print('HARM', kept >> 20)
""",
    )


@attack("page tables count", backends=("bwrap",))
async def fill_page_tables(sandbox: Sandbox) -> str | None:
    return await harm_of_program(
        sandbox,
        """
import ctypes, mmap, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
size, tables = 1 << 40, 0
for _ in range(8):
    start = libc.mmap(None, ctypes.c_size_t(size), 1, 0x4022, -1, ctypes.c_size_t(0))
    if start in (None, 2 ** 64 - 1): break
    libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), 15)
    for at in range(start, start + size, 2 << 20):
        ctypes.c_char.from_address(at).value
        tables += 4096
        if tables > 768 << 20: break
if tables > 768 << 20:
    time.sleep(0.3)
    print('HARM', tables >> 20)
""",
    )


@attack("a bomb of processes is its own doing, and the sandbox stays or says so", quick=True)
async def bomb_with_processes(sandbox: Sandbox) -> str | None:
    for _ in range(2):
        await sandbox.exec("b() { b | b & }; b; sleep 100", timeout=0.3)
    result = await sandbox.exec("echo fine")
    return None if result.stdout == "fine\n" else f"the sandbox does not work any more, and does not say so: {result}"


@attack("a bomb of memory is its own doing, and the sandbox stays or says so")
async def bomb_with_memory_of_many_processes(sandbox: Sandbox) -> str | None:
    await sandbox.exec(
        [
            "python3",
            "-c",
            "import os\nfor _ in range(30): os.fork() or [bytearray(50 << 20) for _ in range(4)] and __import__('time').sleep(60)",
        ],
        timeout=3,
    )
    result = await sandbox.exec("echo fine")
    return None if result.stdout == "fine\n" else f"the sandbox does not work any more, and does not say so: {result}"


# What one program leaves to another

MARK = """
import os, struct
acl = struct.pack('<I', 2) + b''.join(struct.pack('<HHI', tag, perm, who) for tag, perm, who in
    ((1, 7, 2**32 - 1), (2, 0, 12345), (4, 0, 2**32 - 1), (16, 0, 2**32 - 1), (32, 0, 2**32 - 1)))
for folder in ('.', os.path.expanduser('~'), '/tmp', '/var/tmp', '/dev/shm'):
    for name, value in (('system.posix_acl_default', acl), ('user.left', b'x')):
        try: os.setxattr(folder, name, value)
        except OSError: pass
os.umask(0o777)
"""
FIND = """
import os
for folder in ('.', os.path.expanduser('~'), '/tmp', '/var/tmp', '/dev/shm', '/'):
    if os.listxattr(folder): print('HARM', folder, os.listxattr(folder))
open('given.py').read()
"""


@attack("the next lease has nothing of the one before", quick=True)
async def leave_attributes_and_rules_of_access_for_the_next_lease(sandbox: Sandbox) -> str | None:
    pool = SandboxPool(sandbox.spec, sandbox.backend, most_idle=1)
    try:
        async with pool.lease() as first:
            await first.exec(["python3", "-c", MARK])
            await first.exec("echo left > left; chmod 000 .; (sleep 1000 &)")
        async with pool.lease() as second:
            await second.write_file("given.py", "x = 1\n")
            found = await second.exec(["python3", "-c", FIND])
            left = await second.exec("ls -A; ls -A ~ /tmp /var/tmp /dev/shm | grep -v :")
        if found.exit_code or found.stdout or "left" in left.stdout:
            return f"{found} {left}"
        return None
    finally:
        await pool.close()


FORGE = """
import json, os, threading, time
def frame(value):
    said = json.dumps({"value": value, "traceback": None, "is_cut": False, "token": "0" * 32}).encode()
    return len(said).to_bytes(4, "big") + said
"""


@attack("an answer that was written before nobody asked is none", quick=True)
async def answer_later_cells_from_an_earlier_one(sandbox: Sandbox) -> str | None:
    forged = (
        'for n in range(3, 20):\n    try: os.write(n, frame("forged"))\n    except OSError: pass',
        'threading.Thread(target=lambda: [time.sleep(0.2), os.write(3, frame("forged"))]).start()',
        "if os.fork() == 0:\n    time.sleep(0.2)\n    for n in range(3, 20):\n"
        '        try: os.write(n, frame("forged"))\n        except OSError: pass\n'
        "    os._exit(0)",
    )
    for how in forged:
        await sandbox.python(FORGE + how, timeout=10)
        for _ in range(3):
            if (await sandbox.python("time = __import__('time'); time.sleep(0.15); 6 * 7", timeout=10)).value not in ("42", None):
                return "a later cell was answered by an earlier one"
    return None


@attack("a new interpreter answers the environment's own cells", quick=True)
async def answer_the_environment_from_the_model_s_interpreter(sandbox: Sandbox) -> str | None:
    await sandbox.python(
        FORGE
        + """
import builtins, subprocess, sys
builtins.repr = lambda value: "forged"
open("results.py", "w").write("ANSWER = 41")
for name in ("socket", "json", "ast", "types", "linecache", "traceback", "sitecustomize", "usercustomize", "encodings"):
    open(f"{name}.py", "w").write("import os; os.write(3, b'forged'); os._exit(0)")
site = subprocess.check_output([sys.executable, "-c", "import site; print(site.getusersitepackages())"], text=True).strip()
os.makedirs(site, exist_ok=True)
for name in ("usercustomize.py", "sitecustomize.py"):
    open(os.path.join(site, name), "w").write("import os; os._exit(0)")
open(os.path.join(site, "evil.pth"), "w").write("import os; os._exit(0)")
""",
        timeout=20,
    )
    await sandbox.end_interpreter()
    cell = await sandbox.python("import json, ast, results\njson.dumps(results.ANSWER + 1)", timeout=20)
    return None if cell.value == "'42'" else f"it says {cell}"


@attack("of what a program made only the results come into a new sandbox", quick=True)
async def leave_something_for_what_grades_it(sandbox: Sandbox) -> str | None:
    await sandbox.exec(
        "mkdir -p results ~/.local; echo fine > results/file; ln -s / results/top; ln -s /etc results/etc; echo x > /pytest.ini;"
        " echo x > /conftest.py; echo x > ~/.bashrc; echo x > /tmp/left; echo x > beside; (setsid sleep 54321 &)"
    )
    async with fresh_sandbox(sandbox, ["results"]) as fresh:
        seen = await fresh.exec(
            "cat results/file; readlink results/top; ls -A . ~ /tmp; cat /proc/*/cmdline | tr '\\0' ' ' | grep -c 'slee[p] 54321';"
            " cat /pytest.ini /conftest.py 2>/dev/null"
        )
    return (
        None
        if seen.stdout.startswith("fine\n/\n")
        and "left" not in seen.stdout
        and "beside" not in seen.stdout
        and (seen.stdout.endswith("\n0\n"))
        else str(seen)
    )


@attack("a result that leads out is copied as the link that it is")
async def have_a_copy_written_through_a_link(sandbox: Sandbox) -> str | None:
    await sandbox.exec("mkdir -p made/x; echo x > made/x/pytest.ini")
    async with fresh_sandbox(sandbox, []) as other:
        await other.exec("mkdir made; ln -s / made/x; ln -s /tmp/target other")
        await sandbox.copy_to(other, "made")
        found = await other.exec("cat /pytest.ini; cat made/x/pytest.ini")
    return None if found.stdout == "x\n" and "/pytest.ini: No such file" in found.stderr else str(found)


@attack("results without end are the program's doing")
async def leave_more_results_than_can_be_copied(sandbox: Sandbox) -> str | None:
    await sandbox.exec("rm -rf made; ln -s /proc made; mkdir many; cd many; seq 1 8000 | xargs touch")
    try:
        async with fresh_sandbox(sandbox, ["made"]):
            pass
    except SandboxError as error:
        return None if error.failure_cause == "policy" else f"it reads as {error.failure_cause}: {error}"
    return None


# The program


async def _try(tried: Attack, backend: str, spec: SandboxSpec) -> str | None:
    async with await create(spec, backend) as sandbox:
        try:
            return await tried.run(sandbox)
        except SandboxError as error:  # it may end its own, and then it is its doing
            return None if error.failure_cause == "policy" else f"it reads as {error.failure_cause}: {error}"


async def main(backend: str, image: str | None, names: list[str]) -> dict[str, str | None]:
    """Try attacks beside another sandbox; return the harm that each did."""
    spec = SandboxSpec(image=image, **LIMITS)
    harm: dict[str, str | None] = {}
    async with await create(spec, backend) as neighbour:
        await neighbour.python("kept = 1")
        for tried in ATTACKS:
            if backend in tried.backends and (not names or tried.what in names):
                harm[tried.what] = await _try(tried, backend, spec)
        if (await neighbour.python("kept")).value != "1":
            harm["of another sandbox"] = "its state is lost"
    return harm


if __name__ == "__main__":
    named = dict(argument.split("=", 1) for argument in sys.argv[2:] if "=" in argument)
    if "user" in named:
        os.setgroups([])
        os.setgid(int(named["user"]))
        os.setuid(int(named["user"]))
    chosen = [argument for argument in sys.argv[2:] if "=" not in argument]
    print(json.dumps(asyncio.run(main(sys.argv[1], named.get("image"), chosen))))
