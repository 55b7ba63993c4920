"""Commands on terminals of their own, and keys that are pressed there."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Sequence
from typing import NamedTuple

SECONDS = 240.0
"""How long a command may hang before its test fails."""

_AGAIN_AFTER = 20.0
"""Seconds without an answer after which Ctrl-C is pressed again."""

_PROMPT = re.compile(r"(?:> |leave\? |\): )$")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]")

CTRL_C, CTRL_D = "\x03", "\x04"


class Seen(NamedTuple):
    exit_code: int
    text: str
    """All that was shown, without what moves the cursor or colours text."""
    raw: str


def play_on_terminal(
    *arguments: str,
    keys: Sequence[str],
    columns: int = 80,
    term: str = "xterm-256color",
    on_open: Callable[[Callable[[str], object]], object] | None = None,
    **environment: str,
) -> Seen:
    """Run ``vfgym play`` on a terminal and press keys, one item at each prompt.

    When they are used up, the terminal hangs up at the next prompt. `on_open` is given a function that presses keys at any time.
    A Ctrl-C that nothing answers is pressed again, as a person does: Python's `readline` notices one that comes between its
    prompt and its wait for a key only with the next key.
    """
    master, slave = pty.openpty()
    if on_open is not None:
        on_open(lambda pressed: os.write(master, pressed.encode()))
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")} | {"TERM": term} | environment
    command = [sys.executable, "-c", "import vfgym.cli; vfgym.cli.main()", "play", *arguments]
    with subprocess.Popen(command, preexec_fn=functools.partial(os.login_tty, slave), env=env) as process:
        os.close(slave)
        shown, answered, waiting, key = b"", 0, list(keys), ""
        with contextlib.suppress(OSError):  # the other end is closed
            while True:
                if not select.select([master], [], [], _AGAIN_AFTER if key == CTRL_C else SECONDS)[0]:
                    if key != CTRL_C:
                        break
                    key = ""
                    os.write(master, CTRL_C.encode())
                    continue
                shown += os.read(master, 65536)
                if _PROMPT.search(_plain(shown[answered:])):
                    answered = len(shown)
                    if not waiting:
                        break
                    key = waiting.pop(0)
                    os.write(master, key.encode())
        os.close(master)  # hangs up on a command that still waits
        return Seen(process.wait(SECONDS), _plain(shown), shown.decode(errors="replace"))


def _plain(shown: bytes) -> str:
    return _ESCAPES.sub("", shown.decode(errors="replace")).replace("\r\n", "\n")
