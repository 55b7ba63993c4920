"""``vfgym view``: runs as a page of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vfgym.cli.conventions import print_json
from vfgym.output.terminal import echo


def write_html(runs: Sequence[Path], file: Path, *, as_json: bool = False) -> None:
    """Write the page of some runs, and say how large it is.

    Raises:
        vfgym.results.ResultsError: If a run cannot be read, or the file cannot be written. Nothing was written then.
    """
    from vfgym.view import write_page

    written = write_page(file, *runs)
    size = written.stat().st_size
    if as_json:
        print_json({"path": str(written), "bytes": size, "runs": [str(run) for run in runs]})
    else:
        echo(f"{written}: {size / 1e6:.2f} MB, open it in a browser", to_stderr=True)
