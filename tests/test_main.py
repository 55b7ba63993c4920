"""``python -m vfgym`` is the command."""

from __future__ import annotations

import subprocess
import sys

from vfgym import __version__


def test_python_runs_it_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "vfgym", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"vfgym {__version__}\n"
