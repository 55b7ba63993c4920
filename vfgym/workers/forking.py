"""The program behind `vfgym.workers`: it imports a module, and forks a worker for each socket that it is sent.

It is run as a script, so it imports nothing of the library. It never computes, so a worker that was killed is replaced within milliseconds.
Beside each worker a keeper waits, which says how the worker ended, and ends all that it has left. The end of the input ends them all.

What a worker says is bytes, and never unpickled by who only passes it on: a first one (see `_SPENT`), then the outcome of its call.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import operator
import os
import pickle
import resource
import select
import signal
import socket
import sys
import time
import traceback
from multiprocessing.connection import Connection

_GOES_ON, _SPENT, _ENDED = b"0", b"1", b"!"
"""What the first byte says: the worker can be used again, or it cannot, or it has ended, and how."""
_PARENT_DIES, _ADOPTS = 1, 36
"""Options of ``prctl``: a signal at the end of the parent, and that processes whose parents have ended become children."""
_ENDS_WITHIN = 10.0
_MOST_SAID = 10_000
"""Characters of each text of an error."""


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _outcome(job: bytes, cpu_seconds: float = 0, wall_seconds: float = 0, memory_mb: int = 0, *, as_json: bool = False) -> bytes:
    """Call a function, and return the pickled pair of its result and its exception; or as JSON, without the exception itself."""
    try:
        # Their signals end the process. A handler would not be called before a long operation on integers is over.
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        signal.setitimer(signal.ITIMER_REAL, wall_seconds)
        if sys.platform == "linux" and memory_mb:
            resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, resource.getrlimit(resource.RLIMIT_AS)[1]))
        module, function, arguments = pickle.loads(job)
        result = operator.attrgetter(function)(importlib.import_module(module))(*arguments)
        return json.dumps({"result": result}).encode() if as_json else pickle.dumps((result, None))
    except BaseException as error:
        if as_json:
            said = {"kind": type(error).__name__, "text": str(error), "repr": repr(error), "traceback": traceback.format_exc()}
            return json.dumps({"error": {name: text[-_MOST_SAID:] for name, text in said.items()}}).encode()
        with contextlib.suppress(Exception):  # some cannot be pickled, or not be made again from their pickle
            error.add_note(f"In a worker process: {traceback.format_exc()}")
            dumped = pickle.dumps((None, error))
            if isinstance(pickle.loads(dumped)[1], Exception):  # a SystemExit would end who asked
                return dumped
        return pickle.dumps((None, RuntimeError(f"{type(error).__module__}.{type(error).__qualname__}: {error}")))


def call_as_json(job: bytes) -> bytes:
    """Call a function, and return as JSON what came of it."""
    return _outcome(job, as_json=True)


def _work(channel: Connection) -> None:
    """Do jobs, one after the other, until one uses up its time or nobody asks any more."""
    at_first, unlimited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, resource.getrlimit(resource.RLIMIT_AS)
    while True:
        job, limits, as_json = channel.recv()
        outcome = _outcome(job, **limits, as_json=as_json)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, unlimited)
        has_doubled = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 2 * at_first  # one that has is replaced
        channel.send_bytes((_SPENT if has_doubled else _GOES_ON) + outcome)


def _keep(channel: Connection) -> None:
    """Fork a worker, wait for its end or that of who asked for it, and say how it ended. Whatever it has started ends with it."""
    os.setpgid(0, 0)
    _prctl(_ADOPTS, 1)
    if (worker := os.fork()) == 0:
        try:
            os.setpgid(0, 0)
            _prctl(_PARENT_DIES, signal.SIGKILL)
            _work(channel)
        finally:  # without what the interpreter does at its end: a thread that was left would hold it up
            os._exit(0)
    code = 0
    try:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        with contextlib.suppress(OSError):  # it has done so itself, or has ended
            os.setpgid(worker, worker)
        channel.send_bytes(str(worker).encode())
        code = _wait_for(worker, channel)
        limits = {-signal.SIGPROF: "cpu_seconds", -signal.SIGALRM: "wall_seconds"}
        channel.send_bytes(_ENDED + limits.get(code, f"its process ended with exit code {code}").encode())
    finally:
        _end_all(worker)
        os._exit(0)


def _wait_for(worker: int, channel: Connection) -> int:
    """Wait until a worker has ended, or nobody reads what it says, and return its exit code."""
    if sys.platform == "linux":
        watched = select.poll()
        watched.register(os.pidfd_open(worker), select.POLLIN)
        watched.register(channel.fileno(), 0)  # told of its end alone
        watched.poll()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])


def _end_all(worker: int) -> None:
    """Kill a worker, its group, and all that it has left: processes whose parents have ended are children of this one."""
    with contextlib.suppress(OSError):
        os.killpg(worker, signal.SIGKILL)
    deadline = time.monotonic() + _ENDS_WITHIN
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError), open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as children:
            for child in children.read().split():
                os.kill(int(child), signal.SIGKILL)
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.001)
        except ChildProcessError:
            return


def main(module: str, descriptor: str) -> None:
    """Fork workers until the socket that asks for them, given by its descriptor, is closed."""
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)  # a program may have started us with signals ignored, or blocked
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    with contextlib.suppress(BaseException):  # raised for who asks, by the worker that imports it again
        importlib.import_module(module)
    gc.freeze()  # a collection in a worker would copy the memory that it shares with the others
    keepers: set[int] = set()
    with socket.socket(fileno=int(descriptor)) as asking:
        while channels := socket.recv_fds(asking, 1, 1)[1]:
            if (keeper := os.fork()) == 0:
                asking.close()
                with contextlib.suppress(SystemExit):
                    _keep(Connection(channels[0]))
                os._exit(1)
            os.close(channels[0])
            keepers.add(keeper)
            while keepers and (ended := os.waitpid(-1, os.WNOHANG)[0]):
                keepers.remove(ended)
    for keeper in keepers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(keeper, signal.SIGTERM)
    for keeper in keepers:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(keeper, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
