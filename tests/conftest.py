"""What holds for every test: what it started ends with it; Ctrl-C means the same everywhere; a run names the seed of its samples."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sampling import SEED
from tests.sandboxes.engine import Engine, container_engine
from vfgym.aio import threads
from vfgym.output import redaction
from vfgym.sandboxes.container import _engine

SHARED = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", "vfgym/workers")
"""What the command lines of processes hold that many tests share, and that end with the run."""

LEFT_OUT = "not exhaustive and not peers"
"""Which cases a run makes where it is not told otherwise (see pyproject.toml)."""

SECONDS_TO_END = 10.0
"""How long a process that is ending may take after its test."""

# Importing readline, as pytest does, exports the size of a terminal (80 columns where there is none) to the processes that tests start.
os.unsetenv("COLUMNS")
os.unsetenv("LINES")


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C interrupt what tests start, also where the shell has put the whole run in the background and had it ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # processes inherit that a signal is ignored, but no handler


def pytest_sessionstart() -> None:
    """Leave out collections of garbage while cases are collected: nothing of them is."""
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Let collections of garbage look at nothing older than the first case: the heap of seventeen thousand cases takes each a second."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> list[pytest.Item] | None:
    """Make no cases of a family that the run leaves out: there are as many as of all others. One that is asked for by name is made."""
    config = collector.config
    if config.option.markexpr != LEFT_OUT or not name.startswith("test") or any("::" in argument for argument in config.args):
        return None
    marks = [*collector.iter_markers(), *getattr(obj, "pytestmark", ())]
    return [] if any(mark.name in ("exhaustive", "peers") for mark in marks) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names of cases that differ from process to process: with ``-n``, no case would run."""
    for item in items:
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"the name of a case has an address in it (ids=str?): {item.nodeid}")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Name the seed of the random samples."""
    terminalreporter.write_line(f"random samples: VFGYM_TEST_SEED={SEED}")


@dataclasses.dataclass(frozen=True)
class Process:
    """A process that runs: its id may be used again, but not with the same start."""

    pid: int
    started: str
    command: str = dataclasses.field(compare=False)  # just after `exec` it reads empty


def children(pid: int) -> set[Process]:
    """Return the processes that a process has started and that are running."""
    found: set[Process] = set()
    if pid == os.getpid() and not has_children():
        return found
    threads_of = f"/proc/{pid}/task"
    for thread in os.listdir(threads_of) if os.path.isdir(threads_of) else ():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            with open(f"{threads_of}/{thread}/children") as file:
                ids = file.read().split()
            for child in ids:
                state, *fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                if state != "Z":
                    command = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found.add(Process(int(child), fields[18], command))
    return found


def has_children() -> bool:
    """Return whether this process has any child, running or not: most tests have none, and one call tells."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def end(process: Process) -> None:
    """Kill a process and all that it has started."""
    started = children(process.pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
    for child in started:
        end(child)


@pytest.fixture(autouse=True)
def _ends_what_it_starts(request: pytest.FixtureRequest) -> Iterator[None]:
    """A process that a test leaves behind is ended, and is a failure of the test."""
    before = children(os.getpid())
    yield
    if not (left := running_beside(before)):
        return
    deadline = time.monotonic() + SECONDS_TO_END
    while left and time.monotonic() < deadline:  # some are ending
        time.sleep(0.01)
        left = running_beside(before)
    for process in left:
        end(process)
    assert not left, f"{request.node.nodeid} leaves processes behind"


def running_beside(others: set[Process]) -> list[Process]:
    """Return the running children of this process, but for some others and for those that tests share."""
    if sys.platform != "linux":  # where nobody can say
        return []
    return [process for process in children(os.getpid()) - others if not any(name in process.command for name in SHARED)]


@pytest.fixture(autouse=True)
def nothing_is_remembered_of_other_tests() -> Iterator[None]:
    """A header of one test is no secret in the next one, whose functions are named in warnings although others of their names were."""
    yield
    redaction._forget_all()
    threads._named_as_given_up.clear()
    threads._named_as_slow.clear()


@pytest.fixture
def young_heap() -> None:
    """Let `gc.collect` look at nothing older than the test."""
    gc.freeze()


@pytest.fixture(scope="module")
def _container_service() -> Iterator[Engine]:
    with container_engine() as engine:
        yield engine


@pytest.fixture
def engine(_container_service: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """A container engine that answers; the test is skipped where there is none, saying why."""
    monkeypatch.setenv("DOCKER_HOST", _container_service.address)
    _engine.cache_clear()
    yield _container_service
    _engine().close()
    _engine.cache_clear()
