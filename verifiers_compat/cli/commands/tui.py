"""``vf-tui``: the viewer of runs in the terminal."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Annotated

import typer

from verifiers_compat.cli.program import Debug, create_app, run
from vfgym.cli.view import open_viewer
from vfgym.errors import ConfigurationError
from vfgym.results.files import METADATA, ROWS

app = create_app("vf-tui", "Look at the results of evaluations in the terminal.")


@app.command()
def view(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN...]", help="Directories of runs, or of many runs; outputs/ and environments/ by default."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Look at runs in the terminal: those that are given, or all below outputs/ and environments/, the newest one first."""
    open_viewer(find_runs(runs or [Path("outputs"), Path("environments")]))


def find_runs(folders: list[Path]) -> list[Path]:
    """Return the directories with results at or below some folders, the newest first.

    Raises:
        ConfigurationError: If there are none.
    """
    found = {file.parent for folder in folders for file in folder.rglob(METADATA) if (file.parent / ROWS).exists()}
    if not found:
        raise ConfigurationError(f"there are no results below {' and '.join(map(str, folders))}: give the directory of a run")
    return sorted(found, key=lambda run: ((run / METADATA).stat().st_mtime, str(run)), reverse=True)


main = functools.partial(run, app)


if __name__ == "__main__":
    main()
