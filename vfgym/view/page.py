"""One self-contained page of HTML for one or several runs: nothing is loaded, and what models wrote is shown, never run.

Its data are a gzip file in base64 in a script element that no browser runs; its own script unpacks them, and makes the page of
text nodes. A `Content-Security-Policy` allows that script and that style by their hashes, pictures that stand in the page, and nothing
else. A page that is served (`vfgym.view.serving`) may also ask its own server for what is new.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template

from vfgym.errors import ConfigurationError
from vfgym.results import GenerateOutputs, ResultsError, load_results
from vfgym.results.plain_json import json_text
from vfgym.view.page_data import PageData
from vfgym.view.public_text import public_text
from vfgym.view.run_report import report_run

_STYLES = ("base", "overview", "rollout", "print")
_SCRIPTS = ("elements", "charts", "overview", "rollouts", "messages", "rollout", "page")
"""The files of the page's style and of its script, in the order in which they are put together."""


@dataclass(frozen=True)
class PageContent:
    """What a page holds, without keys and without folders of this machine."""

    title: str
    data: str
    """JSON text."""

    def packed(self) -> bytes:
        """Return the data as a gzip file."""
        return gzip.compress(self.data.encode(), compresslevel=9, mtime=0)


def write_page(path: str | os.PathLike[str], *runs: str | os.PathLike[str] | GenerateOutputs) -> Path:
    """Write the page of one or several runs.

    Args:
        path: The file; it is replaced as a whole.
        runs: Directories of runs, or what `vfgym.evaluate` or `vfgym.results.load_results` returned.

    Returns:
        The file.

    Raises:
        ConfigurationError: If no run is given.
        ResultsError: If a run cannot be read, or the file cannot be written. Nothing was written then.
    """
    file = Path(path)
    text = build_page(*runs)
    temporary = file.with_name(f"{file.name}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, file)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise ResultsError(f"cannot write {file}: {error.strerror or error}. Give a file in a directory that can be written") from error
    return file


def build_page(*runs: str | os.PathLike[str] | GenerateOutputs) -> str:
    """Return the page of one or several runs as HTML (see `write_page`)."""
    return render_page(read_content(runs))


def read_content(runs: Sequence[str | os.PathLike[str] | GenerateOutputs]) -> PageContent:
    """Return what the page of some runs holds.

    Raises:
        ConfigurationError: If no run is given.
        ResultsError: If a run cannot be read.
    """
    if not runs:
        raise ConfigurationError("a page needs a run: give the directory of one, or what evaluate returned")
    loaded = [load_results(Path(run)) if isinstance(run, str | os.PathLike) else run for run in runs]
    reports = [report_run(outputs) for outputs in loaded]
    directories = [Path(path) for outputs in loaded if (path := outputs["metadata"].get("path_to_save"))]
    title = public_text(", ".join(report.name for report in reports))
    return PageContent(title, public_text(json_text(PageData(reports).as_json()), directories))


def render_page(content: PageContent, *, follows: str | None = None) -> str:
    """Return a page as HTML.

    Args:
        content: What it holds.
        follows: The tag of the content, for a page that asks the server that it came from for what is new.
    """
    style = "".join(_asset(f"{name}.css") for name in _STYLES)
    script = f'"use strict";\n(() => {{\n{"".join(_asset(f"{name}.js") for name in _SCRIPTS)}}})();\n'
    return Template(_asset("page.html")).substitute(
        policy=_policy(style, script, follows=follows is not None),
        title=html.escape(content.title),
        style=style,
        script=script,
        follows="" if follows is None else f' data-follows="{html.escape(follows)}"',
        data=base64.b64encode(content.packed()).decode(),
    )


def _asset(name: str) -> str:
    return resources.files("vfgym.view").joinpath("assets", name).read_text(encoding="utf-8")


def _policy(style: str, script: str, *, follows: bool) -> str:
    """Return what the page may do: run this script, apply this style, and draw pictures that stand in it."""
    own = f"script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
    server = "connect-src 'self'; " if follows else ""
    return f"default-src 'none'; {own}{server}base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
