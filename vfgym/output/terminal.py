"""What is printed: without secrets, and with control characters escaped, so that no answer of a model works the terminal.

Commands print with `echo`, and put what they draw in other ways through `shown` or `one_line`.
"""

from __future__ import annotations

import re
import sys
import traceback

from vfgym.output.redaction import redact

_CONTROLS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # C0 without tab, newline and return; DEL; C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what changes the direction of text
    "\u2028\u2029"  # ends of lines and paragraphs
    "\ud800-\udfff]"  # halves of surrogate pairs, which no stream encodes
    "|\r(?!\n)"  # a return overwrites its line
)
_LINE_ENDS = re.compile(r"[\t\r\n]")


def escape(text: str) -> str:
    r"""Return a text with its control characters as Python writes them. Tabs and ends of lines stay.

    >>> escape("\x1b[2Jgone\nnext line")
    '\\x1b[2Jgone\nnext line'
    """
    return _CONTROLS.sub(_as_python_writes_it, text)


def display_text(text: object) -> str:
    """Return a value as text that can be shown: redacted and escaped."""
    return escape(redact(str(text)))


def one_line(text: object) -> str:
    r"""Return a value as one line that can be shown: redacted and escaped, tabs and ends of lines too.

    >>> one_line("yes\nno")
    'yes\\nno'
    """
    return _LINE_ENDS.sub(_as_python_writes_it, display_text(text))


def echo(*values: object, end: str = "\n", to_stderr: bool = False, flush: bool = False) -> None:
    """Print values, a space between them.

    Args:
        values: What is printed.
        end: What is printed after them.
        to_stderr: Whether it goes to the standard error stream.
        flush: Whether it has to be seen at once.
    """
    print(*map(display_text, values), end=end, file=sys.stderr if to_stderr else sys.stdout, flush=flush)


def echo_traceback(error: BaseException) -> None:
    """Print the traceback of an error on the standard error stream."""
    echo("".join(traceback.format_exception(error)).rstrip("\n"), to_stderr=True)


def _as_python_writes_it(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
