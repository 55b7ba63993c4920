"""The backend ``bwrap``: bubblewrap's namespaces around an agent. No daemon and no image: the host's programs, read-only.

What is in ``/usr`` can be read, and little of ``/etc``; all that can be written lies in a ``tmpfs`` of a limited size. The folders of the
system are mounts of their own: nobody inside can write to them, or put another in their place. The agent is the first process of its
namespace: with it, all others end. Started by root, a sandbox has a user id of its own, whose processes are counted; started by a plain
user, it has a user namespace of its own. System calls that go around limits are refused (`seccomp`); where this process may make control
groups, the kernel bounds what all inside cost together (`cgroups`), elsewhere the agent does.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from vfgym.aio.threads import on_thread
from vfgym.errors import ConfigurationError
from vfgym.sandboxes import cgroups, seccomp
from vfgym.sandboxes.base import Backend, Probe, close_quietly
from vfgym.sandboxes.inside.agent import MOST_COMMANDS
from vfgym.sandboxes.local import (
    MOST_TERMINALS,
    ProcessSandbox,
    agent_command,
    agent_settings,
    find_interpreter,
    is_in_usr,
    parts_of_environment,
    search_path,
)
from vfgym.sandboxes.registry import Record, remove_local
from vfgym.sandboxes.spec import DEFAULT_DISK_MB, DEFAULT_PROCESSES, SandboxSpec, most_files

_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_CONFIGURATION = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "nsswitch.conf")
_CERTIFICATES = ("pki/ca-trust/extracted", "ssl/certs", "ssl/openssl.cnf")
_NETWORK_CONFIGURATION = ("resolv.conf", "services")
_HOME = "/home/sandbox"
_WRITTEN = (_HOME, "/tmp", "/var/tmp")
"""Folders that programs write to, beside the working directory."""
_CONFIGURATION_SIZE = 1 << 20
_OWN_MEMORY_MB = 64
"""For the agent, and for what the kernel keeps of a few programs."""
_OWN_PROCESSES = 4 + 2 * MOST_COMMANDS
"""Those that are there before any program runs, and beside each command its keeper. What a program may start counts for its user."""
_SHARED_MEMORY = 64 << 20
"""Bytes of ``/dev/shm``, which has a ``tmpfs`` of its own."""
_INSTALL = "apt-get install bubblewrap (or your system's package bubblewrap), version 0.5 or newer"

_PROTECTS = {
    "files": "the host's programs read-only, nothing else",
    "network": "none, not even the host's loopback",
    "processes": "a namespace of their own, and a limit of their number",
    "memory": "each process limited; all together by the kernel where control groups can be made, else watched",
    "disk": "one tmpfs of a limited size and number of files",
    "kernel": "a filter of system calls and of families of sockets; the kernel is the host's",
}


class BwrapBackend(Backend):
    """Makes sandboxes of bubblewrap."""

    name = "bwrap"
    snapshots_have_all_files = True

    def probe(self) -> Probe:
        """Say whether bubblewrap works here: it is tried once."""
        problem = _find_problem()
        return Probe(works=problem is None, protects=_PROTECTS, problem=problem, install=None if problem is None else _INSTALL)

    def check(self, spec: SandboxSpec) -> None:
        """Refuse images, which there are none of, and what only an engine does.

        Raises:
            ConfigurationError: If the spec asks for one.
        """
        asked = [name for name in ("image", "dockerfile") if getattr(spec, name) is not None]
        if asked:
            raise ConfigurationError(f"the backend bwrap has no images, so it can't keep {asked[0]}: use the backend container")
        kept = [name for name in ("cpus", "start_command") if getattr(spec, name) is not None]
        if kept:
            raise ConfigurationError(f"the backend bwrap can't keep {', '.join(kept)}: use the backend container")
        top = spec.working_dir.split("/")[1]
        if top in ("usr", "proc", "dev", *(path[1:] for path in _SYSTEM)):
            raise ConfigurationError(f"working_dir can't be below /{top}, which is the host's; use a folder such as /workspace or /app")
        for path in (*spec.readable_paths, *([] if spec.python is None else [spec.python])):
            about = os.stat(path)
            if os.geteuid() == 0 and about.st_mode & (0o005 if os.path.isdir(path) else 0o004) == 0:
                raise ConfigurationError(
                    f"{path} can be read by its owner only, and a sandbox that root starts has a user id of its own: chmod -R o+rX {path}"
                )

    def remove(self, record: Record) -> None:
        """Kill what may still run, and remove its folder."""
        remove_local(record)

    async def create(self, spec: SandboxSpec) -> ProcessSandbox:
        """Start a sandbox."""
        disk_mb, processes = spec.disk_mb or DEFAULT_DISK_MB, spec.processes or DEFAULT_PROCESSES
        memory = (spec.memory_mb + disk_mb + _OWN_MEMORY_MB << 20) + min(disk_mb << 20, _SHARED_MEMORY)
        group = await on_thread(cgroups.make, memory, processes + _OWN_PROCESSES)
        sandbox = ProcessSandbox(spec, self, group=group)
        interpreter = find_interpreter()
        uid = pick_user_id() if os.geteuid() == 0 else None
        env = {
            "PATH": search_path(spec, interpreter, "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"),
            "HOME": _HOME,
            "LANG": "C.UTF-8",
        }
        written = ["/", "/dev/shm", *_mounts_above(spec, _readable_paths(spec, interpreter))[0]]
        settings = agent_settings(
            spec,
            processes=processes,
            disk_mb=disk_mb,
            folders=[_HOME],
            writable=written,
            most_files=most_files(disk_mb),
            counted=written,
            most_shared=0 if group is not None else seccomp.MOST_SHARED,
            counts_sockets=not spec.network,
            most_terminals=MOST_TERMINALS,
            uid=uid,
        )
        try:
            with _opened(os.geteuid() if uid is None else uid, group is not None) as given:
                arguments = _arguments(spec, interpreter, given, group is not None)
                command = [shutil.which("bwrap") or "bwrap", *arguments, *agent_command(interpreter)]
                await sandbox.start(command, env, settings, pass_fds=list(given.values()), cwd="/")
        except BaseException:
            await close_quietly(sandbox)
            raise
        return sandbox


@contextlib.contextmanager
def _opened(uid: int, kernel_bounds_memory: bool) -> Iterator[dict[str, int]]:
    """Open pipes with what bubblewrap is given: the filter of system calls, and files of a system with one user."""
    contents = {
        "filter": seccomp.write_filter(platform.machine(), kernel_bounds_memory=kernel_bounds_memory),
        "/etc/passwd": f"root:x:0:0:root:/root:/bin/sh\nsandbox:x:{uid}:{uid}:sandbox:{_HOME}:/bin/sh\n".encode(),
        "/etc/group": f"root:x:0:\nsandbox:x:{uid}:\n".encode(),
        "/etc/hosts": b"127.0.0.1 localhost sandbox\n::1 localhost\n",
    }
    given: dict[str, int] = {}
    try:
        for name, content in contents.items():
            given[name], writing = os.pipe()
            with open(writing, "wb") as file:
                file.write(content)  # less than a pipe takes
        yield given
    finally:
        for descriptor in given.values():
            os.close(descriptor)


def _arguments(spec: SandboxSpec, interpreter: str, given: dict[str, int], kernel_bounds_memory: bool) -> list[str]:
    size = (spec.disk_mb or DEFAULT_DISK_MB) << 20
    arguments = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--as-pid-1", "--die-with-parent"]
    arguments += ["--hostname", "sandbox", "--seccomp", str(given["filter"])]
    if os.geteuid() == 0:  # so much as the agent needs to become another user
        arguments += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        arguments += ["--unshare-user"]
    if not spec.network:
        arguments += ["--unshare-net"]
    arguments += ["--perms", "1777", "--size", str(size), "--tmpfs", "/"]
    readable = _readable_paths(spec, interpreter)
    kept, closed = _mounts_above(spec, readable)
    closed = ["/etc", *closed]
    for folder in sorted([*kept, *closed]):
        folder_size = _CONFIGURATION_SIZE if folder in closed else size
        arguments += ["--perms", _mode_of(folder), "--size", str(folder_size), "--tmpfs", folder]
    for folder in _parents(["/etc/pki/ca-trust", "/etc/ssl", "/tmp", "/var/tmp", *map(os.path.dirname, readable)]):
        if folder not in kept and folder not in closed:
            arguments += ["--perms", _mode_of(folder), "--dir", folder]
    arguments += ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
    if not kernel_bounds_memory:  # reads the same, and nobody can have memory of it
        arguments += ["--dev-bind", "/dev/full", "/dev/zero"]
    # In it only /dev/shm can be written.
    arguments += ["--perms", "1777", "--size", str(min(size, _SHARED_MEMORY)), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    for path in _SYSTEM:
        if os.path.isdir(path):
            arguments += ["--ro-bind", path, path]
    for path in ("/etc/passwd", "/etc/group", "/etc/hosts"):
        arguments += ["--perms", "0644", "--ro-bind-data", str(given[path]), path]
    for name in (*_CONFIGURATION, *_CERTIFICATES, *(_NETWORK_CONFIGURATION if spec.network else ())):
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for path in readable:
        arguments += ["--ro-bind", path, path]
    for folder in closed:
        arguments += ["--remount-ro", folder]
    return arguments


def _readable_paths(spec: SandboxSpec, interpreter: str) -> list[str]:
    """Return what of the host can be read beside its system."""
    readable = [str(path) for path in spec.readable_paths]
    if spec.python is not None:
        readable += parts_of_environment(str(spec.python))
    base = str(Path(interpreter).parents[1])
    return readable if is_in_usr(base) else [*readable, base]


def _mode_of(folder: str) -> str:
    return "1777" if folder.endswith("/tmp") else "0755"


def _mounts_above(spec: SandboxSpec, readable: list[str]) -> tuple[list[str], list[str]]:
    """Return the folders above readable paths that are mounts of their own, since those can't be renamed, and nothing come in their place.

    Where root starts sandboxes, these folders are root's, and none needs to be.

    Returns:
        Those that programs write to, and those that can be made read-only.
    """
    if os.geteuid() == 0:
        return [], []
    places = [*_WRITTEN, spec.working_dir]
    written = {*places, *_parents([os.path.dirname(place) for place in places])}
    kept, closed = set(), set()
    for path in readable:
        for folder in _parents([os.path.dirname(path)]):
            if folder not in written:
                closed.add(folder)
                break
            kept.add(folder)
    return sorted(kept), sorted(closed)


def _parents(paths: list[str]) -> Iterator[str]:
    """Return folders with those above them, from the top."""
    found = set()
    for path in paths:
        while path != "/":
            found.add(path)
            path = os.path.dirname(path)
    return iter(sorted(each for each in found if not is_in_usr(each)))


def pick_user_id() -> int:
    """Return a user id that nobody else has, in the upper half of those that this system (or the container that we are in) knows."""
    ranges = [tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    first, _, count = max(ranges, key=lambda each: each[2])
    count = min(count, (1 << 31) - first)
    return random.SystemRandom().randrange(first + count // 2, first + count - 2)


@functools.cache
def _find_problem() -> str | None:
    """Return why bubblewrap can't be used here; None if it can."""
    if platform.system() != "Linux":
        return f"bubblewrap needs Linux, this is {platform.system()}"
    if not seccomp.is_known(platform.machine()):
        return f"its filter of system calls is not written for {platform.machine()}"
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap (bwrap) is not installed"
    try:
        with _opened(os.geteuid(), False) as given:
            command = [program, *_arguments(SandboxSpec(), find_interpreter(), given, False), "/bin/sh", "-c", "exit 0"]
            tried = subprocess.run(command, capture_output=True, text=True, pass_fds=given.values(), env={}, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work here: {error}"
    return None if tried.returncode == 0 else f"bubblewrap does not work here: {tried.stderr.strip() or tried.returncode}"
