"""``vf-tui`` finds the runs that the viewer opens."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.verifiers_compat.cli.options import declared_options
from tests.view.runs import row, write_run
from verifiers_compat.cli.commands import tui
from vfgym.errors import ConfigurationError


def test_runs_are_found_the_newest_first(tmp_path: Path) -> None:
    """At and below the directories that are given, and only where there are rows."""
    runs = [write_run(tmp_path / "evals" / f"game--{name}" / "0a1b", [row()]) for name in ("old", "new", "without")]
    for age, run in zip((20, 10, 0), runs, strict=True):
        os.utime(run / "metadata.json", (1e9 - age, 1e9 - age))
    (runs.pop() / "results.jsonl").unlink()
    assert tui.find_runs([tmp_path]) == tui.find_runs([tmp_path, runs[0]]) == runs[::-1]
    assert tui.find_runs([runs[0]]) == runs[:1]
    with pytest.raises(ConfigurationError, match=r"no results below .*nothing and .*more"):
        tui.find_runs([tmp_path / "nothing", tmp_path / "more"])


def test_the_viewer_opens_what_is_given_or_all(workspace: Path, run_command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[list[Path]] = []
    monkeypatch.setattr(tui, "open_viewer", opened.append)
    given = write_run(workspace / "there", [row()])
    own = [write_run(workspace / folder / "run", [row()]) for folder in ("outputs", "environments")]
    assert run_command(tui.main, "there").code == 0
    assert run_command(tui.main).code == 0
    assert [{path.resolve() for path in each} for each in opened] == [{given}, set(own)]
    assert declared_options(tui.app).keys() == {"debug"}


def test_it_needs_a_terminal(workspace: Path, run_command: Callable[..., Any]) -> None:
    write_run(workspace / "outputs" / "run", [row()])
    done = run_command(tui.main)
    assert (done.code, "needs a terminal" in done.err) == (2, True)
