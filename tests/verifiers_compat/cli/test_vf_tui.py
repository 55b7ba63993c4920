"""``vf-tui`` finds the runs that the viewer opens."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.commands import run_module
from tests.view.runs import row, write_run
from verifiers_compat.cli.commands.tui import find_runs
from vfgym.errors import ConfigurationError


def test_runs_are_found_the_newest_first(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "evals" / f"game--{name}" / "0a1b", [row()]) for name in ("old", "new")]
    for age, run in zip((20, 10), runs, strict=True):
        os.utime(run / "metadata.json", (1e9 - age, 1e9 - age))
    assert find_runs([tmp_path]) == runs[::-1]
    assert find_runs([runs[0]]) == runs[:1]
    with pytest.raises(ConfigurationError, match="no results below"):
        find_runs([tmp_path / "nothing"])


def test_it_needs_a_terminal(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [row()])
    done = run_module("verifiers_compat.cli.commands.tui", str(run), exit_code=2)
    assert "needs a terminal" in done.stderr
