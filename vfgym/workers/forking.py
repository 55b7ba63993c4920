"""The program behind `vfgym.workers`: it imports a module, and forks a worker for each socket that it is sent.

It is run as a script, so it imports nothing of the library. It never computes, so a worker that was killed is replaced within milliseconds.
Beside each worker a keeper waits, which says how the worker ended. The end of the input ends them all.
"""

import contextlib
import gc
import importlib
import operator
import os
import pickle
import resource
import signal
import socket
import sys
import traceback
from multiprocessing.connection import Connection


def _outcome(job: bytes, cpu_seconds: float = 0, wall_seconds: float = 0, memory_mb: int = 0) -> bytes:
    """Call a function, and return the pickled pair of its result and its exception."""
    try:
        # Their signals end the process. A handler would not be called before a long operation on integers is over.
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
        signal.setitimer(signal.ITIMER_REAL, wall_seconds)
        if sys.platform == "linux" and memory_mb:
            resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, resource.getrlimit(resource.RLIMIT_AS)[1]))
        module, function, arguments = pickle.loads(job)
        return pickle.dumps((operator.attrgetter(function)(importlib.import_module(module))(*arguments), None))
    except BaseException as error:
        with contextlib.suppress(Exception):  # some cannot be pickled, or not be made again from their pickle
            error.add_note(f"In a worker process: {traceback.format_exc()}")
            dumped = pickle.dumps((None, error))
            if isinstance(pickle.loads(dumped)[1], Exception):  # a SystemExit would end who asked
                return dumped
        return pickle.dumps((None, RuntimeError(f"{type(error).__module__}.{type(error).__qualname__}: {error}")))


def _work(channel: Connection) -> None:
    """Do jobs, one after the other, until one uses up its time or nobody asks any more."""
    at_first, unlimited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, resource.getrlimit(resource.RLIMIT_AS)
    while True:
        job, limits = channel.recv()
        outcome = _outcome(job, **limits)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, unlimited)
        channel.send((outcome, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 2 * at_first))  # one that has doubled is replaced


def _keep(channel: Connection) -> None:
    """Fork a worker, wait for its end, and say how it ended. Whatever it has started ends with it."""
    try:
        os.setpgid(0, 0)
        channel.send(os.getpid())
        if (worker := os.fork()) == 0:
            _work(channel)
        code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
        limits = {-signal.SIGPROF: "cpu_seconds", -signal.SIGALRM: "wall_seconds"}
        channel.send((limits.get(code, f"its process ended with exit code {code}"), True))
    finally:
        os.killpg(0, signal.SIGKILL)


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
                _keep(Connection(channels[0]))
            os.close(channels[0])
            keepers.add(keeper)
            while keepers and (ended := os.waitpid(-1, os.WNOHANG)[0]):
                keepers.remove(ended)
    for keeper in keepers:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(keeper, signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
