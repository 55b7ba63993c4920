"""Instructions of the processor that readers take, counted by valgrind's callgrind in a process of its own.

Callgrind writes what it counted, and begins anew, whenever a function of the C API is called that nothing else calls: the process calls it
before and after each text.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_MARK = "Py_GetCopyright"
_TOTAL = re.compile(r"^(?:totals|summary): (\d+)", re.MULTILINE)


def count_instructions(names: Mapping[str, Sequence[str]], short: int, long: int) -> dict[str, tuple[int, int]]:
    """Return how many instructions readers take with a short and with a long text.

    Args:
        names: The names of texts for the name of each reader.
        short: Characters of the short text.
        long: Characters of the long one.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "counted"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", f"--dump-before={_MARK}", "--quiet"]
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
        work = json.dumps({"names": names, "lengths": [short, long]})
        subprocess.run([*command, sys.executable, "-m", "tests.attacks.instructions"], input=work, text=True, check=True, env=environment)
        dumps = sorted(Path(folder).glob("counted.*"), key=lambda path: int(path.suffix.removeprefix(".")))
        counts = [_total(path) for path in dumps]
    # One before each call and one after it: every second one is what a call took.
    calls = iter(counts[1::2])
    return {f"{name}, {text}": (next(calls), next(calls)) for name, texts in names.items() for text in texts}


def _total(path: Path) -> int:
    found = _TOTAL.search(path.read_text())
    assert found, f"{path} has no total"
    return int(found[1])


def _main() -> None:
    from tests.attacks.readers import readers
    from tests.attacks.texts import texts

    logging.disable(logging.CRITICAL)
    work = json.load(sys.stdin)
    by_length = [dict(texts(length)) for length in work["lengths"]]
    known = readers()
    mark = ctypes.PyDLL(None)[_MARK]
    for name, chosen in work["names"].items():
        for text in chosen:
            for each in by_length:
                with contextlib.suppress(Exception):  # what is made once is made
                    known[name](by_length[0][text])
                mark()
                with contextlib.suppress(Exception):
                    known[name](each[text])
                mark()


if __name__ == "__main__":
    _main()
