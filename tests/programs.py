"""Programs that tests run in a Python of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path
from typing import Any

SECONDS = 120.0
"""How long a command may hang before its test fails."""


def run_python(program: str, *flags: str, check: bool = False, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program, which may be indented, with flags of Python and options of `subprocess.run`; return what it wrote, as text."""
    command = [sys.executable, *flags, "-c", textwrap.dedent(program)]
    return subprocess.run(command, capture_output=True, text=True, check=check, **options)


def run_module(module: str, *arguments: str, python: str = sys.executable, exit_code: int = 0, **environment: str) -> Any:
    """Run a module as a command, and return what it wrote, as text."""
    done = subprocess.run(
        [python, "-m", module, *arguments], capture_output=True, text=True, timeout=SECONDS, env={**os.environ, **environment}, check=False
    )
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done


def make_environment(folder: Path) -> str:
    """Make a virtual environment that sees what is installed here, and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    Path(site, "seen.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    return str(python)
