"""Programs that tests run in a Python of their own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any


def run_python(program: str, *flags: str, check: bool = False, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program, which may be indented, with flags of Python and options of `subprocess.run`; return what it wrote, as text."""
    command = [sys.executable, *flags, "-c", textwrap.dedent(program)]
    return subprocess.run(command, capture_output=True, text=True, check=check, **options)
