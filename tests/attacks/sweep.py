"""A reader with every text, and what takes more than linear time: steps that Python and its matcher take, and bytes that C moves.

    python -m tests.attacks.sweep       # reads names of readers, a line each; prints what is found of each as a line of JSON
    python -m tests.attacks.sweep look  # prints which of some loops are found

Steps are those of `steps`. Bytes are what functions of libc copy, move, compare and look through (`count_bytes.c`), by which copies of a
whole text inside of a loop are seen. They are counted where a C compiler and the GNU libc are, and the process was begun by `Sweep`.

Each text is read at 250 and 2,500 characters first, and only those that cost more than 11 times as much at 10,000 and 100,000, where they
may cost 40 times as much: a cost ``a n + b n**2`` that does grows more than 11 times before, whatever `a` and `b` are. What a reader costs
for hardly any text is taken off first, since it would hide the growth. A reader that takes many steps for hardly any text reads one text in
so many, by `STEPS_OF_A_TEXT`.

Each reader reads in a fork of its own, which ends with all that it keeps, and may have `MOST_MEMORY` and `MOST_SECONDS`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import json
import logging
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.attacks.readers import AWKWARD_SECRETS, Read, readers
from tests.attacks.steps import count_steps
from tests.attacks.texts import texts
from vfgym.output import redaction

ROOT = Path(__file__).parents[2]
LENGTHS = (250, 2_500, 10_000, 100_000)
MOST_GROWTH = 40
"""How many times as much the text of 100,000 may cost as that of 10,000: 10 times, or more where it is read in another way, not 100."""
_SUSPICIOUS_GROWTH = 11
STEPS_OF_A_TEXT = 1_000
"""A reader that takes ``k`` times as many steps for hardly any text reads one text in ``k``."""
MOST_MEMORY = 1 << 30
"""Bytes that a reader may have beside what all readers begin with."""
MOST_SECONDS = 600
"""Seconds of CPU that a reader may take for all its texts."""


class Work(NamedTuple):
    """What a reader did with a text."""

    steps: int
    moved: int
    """Bytes; 0 where they are not counted."""


_NO_WORK = Work(0, 0)
_LITTLE = Work(100, 100_000)
"""What is not compared, however it grows: some milliseconds, or less. The matcher's steps are counted by thousands."""


def work_of(call: Callable[[], Any]) -> Work:
    """Return the work of a call, whatever exception it raises."""
    counted = getattr(ctypes.CDLL(None), "counted_bytes", lambda: 0)
    counted.restype = ctypes.c_ulonglong
    before = counted()
    steps = count_steps(call)
    return Work(steps, counted() - before)


def growth_beyond(factor: int, few: Work, many: Work, fixed: Work = _NO_WORK) -> str | None:
    """Return what grows by more than a factor beyond what is fixed, in words; None if nothing does."""
    for name, before, after, least, floor in zip(("steps", "bytes moved"), few, many, fixed, _LITTLE, strict=True):
        if after - least > max(factor * (before - least), floor):
            return f"{before} {name}, then {after} for ten times the text"
    return None


def slow_texts(read: Read, names: Iterable[str]) -> Iterator[str]:
    """Give the texts of those named for which a reader takes more than linear time, and how it grows."""
    fixed = fixed_work(read)
    for text in names:
        try:
            if growth_beyond(_SUSPICIOUS_GROWTH, _work_at(read, text, 250), _work_at(read, text, 2_500), fixed):
                problem = growth_beyond(MOST_GROWTH, _work_at(read, text, 10_000), _work_at(read, text, 100_000))
                if problem:
                    yield f"{text}: {problem}"
        except RecursionError:
            yield f"{text}: the stack ends"
        except MemoryError:
            yield f"{text}: more than {MOST_MEMORY >> 20} MiB of memory"


def fixed_work(read: Read) -> Work:
    """Return what a reader does for hardly any text."""
    few = [work_of(functools.partial(read, text)) for text in ("a", "0", "a", "0")]  # what is made once is made by the first ones
    return Work(*map(min, zip(*few, strict=True)))


def share_of(name: str, read: Read, always: Iterable[str]) -> list[str]:
    """Return the texts that a reader reads: all, or one in so many and those that it always reads, where it takes many steps for any."""
    share, always = fixed_work(read).steps // STEPS_OF_A_TEXT, frozenset(always)
    return [text for text in texts_of(250) if share < 2 or text in always or in_share(name, text, share)]


def in_share(reader: str, text: str, share: int) -> bool:
    """Return whether a text is of the one in so many that a reader reads, which is always the same."""
    return int(hashlib.sha256(f"{reader} {text}".encode()).hexdigest(), 16) % share == 0


def _work_at(read: Read, text: str, length: int) -> Work:
    whole = texts_of(length)[text] if length in LENGTHS[:2] else dict(texts(length))[text]
    return work_of(lambda: read(whole))


@functools.cache
def texts_of(length: int) -> Mapping[str, str]:
    """Return the texts of about a length by their names."""
    return dict(texts(length))


def what_is_seen() -> dict[str, bool]:
    """Return which of some loops, three wasteful and two linear ones, are found to take more than linear time."""

    def consume(length: int) -> None:
        text = "ab" * length
        while text:
            text = text[2:]

    def pop(length: int) -> None:
        items = list(range(length))
        while items:
            items.pop(0)

    def grow(length: int) -> None:
        kept = {"text": ""}
        for _ in range(length):
            kept["text"] += "ab"

    def split(length: int) -> None:
        ("ab " * length).split(" ")

    def join(length: int) -> None:
        "".join("ab" for _ in range(length))

    loops = (consume, pop, grow, split, join)
    return {
        loop.__name__: growth_beyond(MOST_GROWTH, *(work_of(functools.partial(loop, length)) for length in (500, 5_000))) is not None
        for loop in loops
    }


class Sweep:
    """A process that gives each reader all texts, with libraries loaded once, and bytes counted where they can be."""

    def __init__(self, scratch: Path, always: Iterable[str] = ()) -> None:
        """Begin it; the library that counts bytes is made in `scratch`, and `always` are texts that every reader reads."""
        library = compiled(scratch)
        environment = dict(os.environ) if library is None else {**os.environ, "LD_PRELOAD": str(library)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", __spec__.name, *always],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def read_all(self, name: str) -> dict[str, Any]:
        """Let a reader read all texts; return the `problems`, whether the count `sees_copies`, and the `cpu` and `memory` it took."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def compiled(scratch: Path) -> Path | None:
    """Return the library that counts bytes; None where it cannot be made."""
    library = scratch / "count_bytes.so"
    source = Path(__file__).with_name("count_bytes.c")
    try:
        subprocess.run(["cc", "-O2", "-fno-builtin", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return library


def _main(always: list[str]) -> None:
    for secret in AWKWARD_SECRETS:
        redaction.Secret(secret)
    logging.disable(logging.CRITICAL)
    known, sees_copies = readers(), what_is_seen()["consume"]
    for length in LENGTHS[:2]:
        texts_of(length)
    answers, sys.stdout = sys.stdout, sys.stderr  # readers may print
    for line in sys.stdin:
        name = line.strip()
        read = known[name]
        found = _in_a_fork(lambda name=name, read=read: slow_texts(read, share_of(name, read, always)))
        print(json.dumps({"sees_copies": sees_copies, **found}), file=answers, flush=True)


def _in_a_fork(find: Callable[[], Iterator[str]]) -> dict[str, Any]:
    with tempfile.TemporaryFile("w+") as told:
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                has = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if sys.platform == "linux" else 0
                resource.setrlimit(resource.RLIMIT_AS, (has + MOST_MEMORY, has + MOST_MEMORY))
                resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
                for problem in find():
                    print(problem, file=told, flush=True)
                told.write("read all")
                told.flush()
            os._exit(0)
        _, status, used = os.wait4(child, 0)
        told.seek(0)
        *problems, last = told.read().split("\n")
    if last != "read all":
        problems.append(f"the process ended before all was read (status {status})")
    return {"problems": problems, "cpu": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss >> 10}


if __name__ == "__main__":
    if sys.argv[1:] == ["look"]:
        print(json.dumps(what_is_seen()))
    else:
        _main(sys.argv[1:])
