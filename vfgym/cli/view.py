"""``vfgym view``: runs as a page of HTML, as a file or served, or in the terminal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from vfgym.cli.conventions import print_json
from vfgym.errors import ConfigurationError
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


def serve_page(runs: Sequence[Path], port: int) -> None:
    """Serve the page of some runs to browsers of this machine until Ctrl-C.

    Raises:
        ConfigurationError: If the port cannot be listened on.
        vfgym.results.ResultsError: If a run cannot be read.
    """
    from vfgym.view.serving import PageServer

    async def serve() -> None:
        async with PageServer(runs, port) as server:
            echo(f"{server.url} shows the runs and follows them; Ctrl-C stops it.", flush=True)
            await asyncio.Event().wait()

    try:
        asyncio.run(serve())
    except KeyboardInterrupt:
        echo("\nstopped")


def open_viewer(runs: Sequence[Path]) -> None:
    """Show some runs in the terminal until the user leaves.

    Raises:
        ConfigurationError: If there is no terminal.
        vfgym.results.ResultsError: If a run cannot be read.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigurationError("vfgym view needs a terminal: write a page with --html FILE, or serve it with --serve")
    from vfgym.view.terminal import RunViewer

    RunViewer(runs).run()
