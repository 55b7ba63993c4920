"""Programs that the agent starts: each below a keeper, with limits, and ended together with whatever it started.

A keeper is a fork of the agent that adopts what a program leaves (a daemon by a double fork), so that a process always belongs to one
program. Once the keeper has ended, the system gives those to the agent, which kills whatever is below no keeper.
"""

from __future__ import annotations

import binascii
import ctypes
import errno
import itertools
import os
import resource
import sys
import time
from _signal import SIG_DFL, SIGINT, SIGKILL, SIGPIPE, SIGSTOP, SIGXFSZ  # type: ignore[import-not-found] # `signal` takes 5 ms more
from _signal import signal as handle
from collections.abc import Iterable

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _FILTER = 22, 38, 2
_KILLED = 128 + SIGKILL
_MOST_LOOKS = 10
"""How often processes are looked at because some have ended, which may be anybody's."""


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def protect_this_process() -> None:
    """Adopt what keepers leave, and let no process of the same user trace this one or read its memory."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_DUMPABLE, 0)


def filter_calls(program: str | None) -> None:
    """Let this process, and all that it starts, make no system call that a filter refuses.

    Raises:
        OSError: If the system does not take it.
    """
    if program is None:
        raise OSError(errno.ENOSYS, f"there is no filter of system calls for {os.uname().machine}")
    import struct

    data = binascii.a2b_base64(program)
    kept = ctypes.create_string_buffer(data, len(data))
    described = struct.pack("HP", len(data) // 8, ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.c_char_p(described), 0, 0):
        raise OSError(ctypes.get_errno(), "the filter of system calls is not taken")


class Process:
    """A running program: the ends of its pipes that are ours, and how it ended."""

    def __init__(
        self,
        argv: list[str],
        env: dict[str, str],
        folder: str,
        limits: list[tuple[str, int]],
        channel: int | None = None,
        stdin: bool = False,
    ) -> None:
        """Start a program.

        Args:
            argv: The program and its arguments.
            env: Its environment.
            folder: Its working directory.
            limits: What it may use, and each process that it starts: names of `resource` without ``RLIMIT_``.
            channel: A descriptor that it gets as number 3.
            stdin: Whether it is sent input; else it reads ``/dev/null``.

        Raises:
            OSError: If there can be no more processes.
        """
        theirs_in, self.stdin = os.pipe() if stdin else (os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), -1)
        self.stdout, theirs_out = os.pipe()
        self.stderr, theirs_err = os.pipe()
        self.status, theirs_status = os.pipe()
        self.main = 0
        """Its process id, which is the one of its process group and session too; 0 before `read_status` had it."""
        self.exit_code = _KILLED
        """As shells have it: 128 and the number of the signal that ended it."""
        self._said = b""
        try:
            self.keeper = os.fork()
        except OSError:
            for descriptor in (theirs_in, theirs_out, theirs_err, theirs_status):
                os.close(descriptor)
            self.close()
            raise
        if self.keeper == 0:
            try:
                _keep(argv, env, folder, limits, (theirs_in, theirs_out, theirs_err), channel, theirs_status)
            finally:
                os._exit(1)
        for descriptor in (theirs_in, theirs_out, theirs_err, theirs_status):
            os.close(descriptor)
        for descriptor in (self.stdout, self.stderr, self.status):
            os.set_blocking(descriptor, False)
        if stdin:
            os.set_blocking(self.stdin, False)

    def read_status(self) -> bool:
        """Read what the keeper says; return whether the program, or its keeper, has ended."""
        said = os.read(self.status, 64)
        self._said += said
        numbers = self._said.split(b"\n")[:-1]
        if numbers:
            self.main = int(numbers[0])
        if said:
            return False
        if len(numbers) > 1:
            self.exit_code = int(numbers[1])
        _reap()
        return True

    def kill(self) -> None:
        """Kill the keeper and the program's process group. What else the program started is then below no keeper."""
        for kill, pid in ((os.kill, self.keeper), (os.killpg, self.main)):
            try:
                if pid:
                    kill(pid, SIGKILL)
            except OSError:  # it has just ended
                pass

    def interrupt(self) -> None:
        """Send the program's process group what Ctrl-C sends, if it is known to have begun."""
        try:
            if self.main:  # group 0 is the agent's own
                os.killpg(self.main, SIGINT)
        except OSError:
            pass

    def close(self) -> None:
        """Close the pipes of a program that has ended."""
        for descriptor in (self.stdout, self.stderr, self.status):
            os.close(descriptor)
        self.close_stdin()

    def close_stdin(self) -> None:
        """Let the program read the end of its input."""
        if self.stdin >= 0:
            os.close(self.stdin)
            self.stdin = -1


def _keep(
    argv: list[str],
    env: dict[str, str],
    folder: str,
    limits: list[tuple[str, int]],
    streams: tuple[int, int, int],
    channel: int | None,
    status: int,
) -> None:
    """Start the program, adopt what it leaves, and write its process id and its exit code: what a keeper does."""
    _prctl(_PR_SET_PDEATHSIG, SIGKILL)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        main = os.fork()
    except OSError as error:  # there was room for one more process, and not for two
        os.write(streams[2], f"{argv[0]}: {error.strerror}\n".encode("utf-8", "replace"))
        os.write(status, b"0\n126\n")
        os._exit(0)
    if main == 0:
        try:
            _execute(argv, env, folder, limits, streams, channel)
        finally:
            os._exit(126)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.closerange(3, status)
    os.closerange(status + 1, 4096)
    os.write(status, b"%d\n" % main)
    while True:
        pid, how = os.wait()
        if pid == main:
            break
    os.write(status, b"%d\n" % (128 + os.WTERMSIG(how) if os.WIFSIGNALED(how) else os.WEXITSTATUS(how)))
    os._exit(0)


def _execute(
    argv: list[str], env: dict[str, str], folder: str, limits: list[tuple[str, int]], streams: tuple[int, int, int], channel: int | None
) -> None:
    try:
        os.setsid()
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        if channel is not None:
            os.dup2(channel, 3)
            os.set_inheritable(3, True)
        for signal_number in (SIGPIPE, SIGXFSZ):  # which Python ignores
            handle(signal_number, SIG_DFL)
        os.umask(0o022)
        os.chdir(folder)
        _offer_to_be_killed()
        for name, most in limits:
            _limit(getattr(resource, "RLIMIT_" + name, None), most)
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        os.write(2, f"{error.filename if error.filename == folder else argv[0]}: {error.strerror}\n".encode("utf-8", "replace"))
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)
    except ValueError as error:  # a text that the system can't be given
        os.write(2, f"{argv[0]}: {error}\n".encode("utf-8", "replace"))
        os._exit(126)


def _offer_to_be_killed() -> None:
    """Let the kernel, where memory is used up, kill what runs here before it kills the agent."""
    try:
        descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        os.write(descriptor, b"1000")
        os.close(descriptor)
    except OSError:  # which does not belong to it, since it was not yet executed: then it weighs as much as it has
        pass


def _limit(kind: int | None, most: int) -> None:
    if kind is None:  # not on this system
        return
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


# All processes


def _look() -> tuple[dict[int, tuple[int, bool]], set[int]]:
    """Look at all processes; there are none where there is no ``/proc``.

    Returns:
        Of those that have not ended, the parent and whether it is stopped; and those that have ended since they were listed, or before.
    """
    found: dict[int, tuple[int, bool]] = {}
    ended = set()
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except OSError:
                state = b"X"
            if state in b"XZ":
                ended.add(int(name))
            else:
                found[int(name)] = int(parent), state in b"TtD"  # D: it waits where no signal reaches it, and starts nothing
    return found, ended


def _parents() -> dict[int, int]:
    """Return the parent of every process that has not ended."""
    return {pid: parent for pid, (parent, _) in _look()[0].items()}


def _below(pids: Iterable[int], parents: dict[int, int]) -> set[int]:
    """Return all processes below some."""
    found: set[int] = set()
    below = set(pids)
    while below:
        below = {child for child, parent in parents.items() if parent in below} - found
        found |= below
    return found


def kill_strays(keepers: Iterable[int]) -> None:
    """Kill all processes below this one that are below none of the keepers, however quickly they start others.

    They are stopped first: those that are stopped count to the limit of processes, so no more can start. All are found when each is seen
    stopped, which it is not yet when the signal was sent, and when none has ended since the look before, which may have started another
    one. On a machine where processes always end somewhere, that is looked at a few times.
    """
    keepers = set(keepers)
    stopped: set[int] = set()
    ended: set[int] = set()
    until = time.monotonic() + 1
    for number in itertools.count():
        found, ended_now = _look()
        parents = {pid: parent for pid, (parent, _) in found.items()}
        strays = _below([os.getpid()], parents) - _below(keepers, parents) - keepers
        _signal(strays - stopped, SIGSTOP)
        stopped |= strays
        is_over = all(found[pid][1] for pid in strays) and (ended_now <= ended or number >= _MOST_LOOKS)
        if is_over or time.monotonic() > until:
            break
        ended |= ended_now
        time.sleep(0.0002)
    _signal(stopped, SIGKILL)
    until = time.monotonic() + 1
    while any(os.path.exists(f"/proc/{pid}") for pid in stopped) and time.monotonic() < until:  # each when its parent has ended
        _reap()
        time.sleep(0.0005)


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:  # it has just ended
            pass


def _reap() -> None:
    """Take note of adopted processes that have ended: until then they count to the limit of processes."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except OSError:  # there are none
        pass


def find_processes(keepers: Iterable[int]) -> set[int]:
    """Return the processes that programs below keepers are running."""
    return _below(keepers, _parents())


def cpu_seconds(keeper: int) -> float:
    """Return the CPU time of all that runs below a keeper, and of what has ended there; 0.0 where this is not to be known."""
    ticks = 0
    for pid in (keeper, *find_processes([keeper])):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                ticks += sum(map(int, file.read().rpartition(b")")[2].split()[11:15]))
        except OSError:
            continue  # it has just ended
    return ticks / os.sysconf("SC_CLK_TCK")
