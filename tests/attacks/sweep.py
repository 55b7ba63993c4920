"""Every reader with every text, and what takes more than linear time: steps that Python and its matcher take, and bytes that C moves.

    python -m tests.attacks.sweep PART PARTS  # prints problems as JSON, for every so many-th reader
    python -m tests.attacks.sweep look        # prints which of some loops are found

Steps are those of `steps`. Bytes are what functions of libc copy, move, compare and look through (`count_bytes.c`), by which copies of a
whole text inside of a loop are seen. They are counted where a C compiler and the GNU libc are, and the process was begun by `run`.

A cost ``a n + b n**2`` that grows more than 40 times from 10,000 to 100,000 characters grows more than 11 times from 250 to 2,500, whatever
`a` and `b` are. So each text is read at these two lengths, and only those that grow faster than 11 times at 10,000 and 100,000.
"""

from __future__ import annotations

import ctypes
import functools
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.attacks.readers import AWKWARD_SECRETS, Read, readers
from tests.attacks.steps import count_steps
from tests.attacks.texts import texts
from vfgym.output import redaction

ROOT = Path(__file__).parents[2]
MOST_GROWTH = 40
"""How many times as much the text of 100,000 may cost as that of 10,000: 10 times, or more where it is read in another way, not 100."""
_SUSPICIOUS_GROWTH = 11


class Work(NamedTuple):
    """What a reader did with a text."""

    steps: int
    moved: int
    """Bytes; 0 where they are not counted."""


_NOTHING = Work(10, 100_000)
"""What is not compared, however it grows: a millisecond, or less."""


def work_of(call: Callable[[], Any]) -> Work:
    """Return the work of a call, whatever exception it raises."""
    counted = getattr(ctypes.CDLL(None), "counted_bytes", lambda: 0)
    counted.restype = ctypes.c_ulonglong
    before = counted()
    steps = count_steps(call)
    return Work(steps, counted() - before)


def growth_beyond(factor: int, few: Work, many: Work) -> str | None:
    """Return what grows by more than a factor, in words; None if nothing does."""
    for name, before, after, floor in zip(("steps", "bytes moved"), few, many, _NOTHING, strict=True):
        if after > max(factor * before, floor):
            return f"{before} {name}, then {after} for ten times the text"
    return None


def slow_texts(read: Read, names: Iterable[str]) -> Iterator[str]:
    """Give the texts for which a reader takes more than linear time, and how it grows."""
    for text in names:
        of_length = functools.partial(_work_at, read, text)
        try:
            of_length(250)  # what is made once is made
            if growth_beyond(_SUSPICIOUS_GROWTH, of_length(250), of_length(2_500)):
                problem = growth_beyond(MOST_GROWTH, of_length(10_000), of_length(100_000))
                if problem:
                    yield f"{text}: {problem}"
        except RecursionError:
            yield f"{text}: the stack ends"


def _work_at(read: Read, text: str, length: int) -> Work:
    whole = texts_of(length)[text]
    return work_of(lambda: read(whole))


@functools.cache
def texts_of(length: int) -> dict[str, str]:
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


def compiled(scratch: Path) -> Path | None:
    """Return the library that counts bytes; None where it cannot be made."""
    library = scratch / "count_bytes.so"
    source = Path(__file__).with_name("count_bytes.c")
    try:
        subprocess.run(["cc", "-O2", "-fno-builtin", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return library


def run(parts: int, scratch: Path) -> tuple[bool, list[str]]:
    """Let so many processes read all texts.

    Returns:
        Whether bytes were counted, and all problems.
    """
    library = compiled(scratch)
    environment = dict(os.environ) if library is None else {**os.environ, "LD_PRELOAD": str(library)}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", __spec__.name, str(part), str(parts)], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
        )
        for part in range(parts)
    ]
    said = [json.loads(process.communicate()[0]) for process in started]
    return all(each["sees_copies"] for each in said), [problem for each in said for problem in each["problems"]]


def _main(part: int, parts: int) -> None:
    for secret in AWKWARD_SECRETS:
        redaction.Secret(secret)
    logging.disable(logging.CRITICAL)
    names = list(texts_of(250))
    problems = []
    for name, read in [*readers().items()][part::parts]:
        print(name, file=sys.stderr, flush=True)
        problems += [f"{name}, {problem}" for problem in slow_texts(read, names)]
    print(json.dumps({"sees_copies": what_is_seen()["consume"], "problems": problems}))


if __name__ == "__main__":
    if sys.argv[1] == "look":
        print(json.dumps(what_is_seen()))
    else:
        _main(*map(int, sys.argv[1:]))
