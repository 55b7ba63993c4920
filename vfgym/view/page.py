"""One self-contained page of HTML for one or several runs: nothing is loaded, and what models wrote is shown, never run.

Its data are a gzip file in base64 in a script element that no browser runs; its own script unpacks them, and makes the page of
text nodes. A `Content-Security-Policy` allows that script and that style by their hashes, pictures that stand in the page, and nothing
else.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from string import Template

from vfgym.errors import ConfigurationError
from vfgym.results import GenerateOutputs, ResultsError, load_results
from vfgym.results.comparison import compare_places
from vfgym.results.plain_json import json_text
from vfgym.view.page_data import PageData
from vfgym.view.public_text import public_text
from vfgym.view.run_report import RunReport, report_run


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
    if not runs:
        raise ConfigurationError("a page needs a run: give the directory of one, or what evaluate returned")
    loaded = [load_results(Path(run)) if isinstance(run, str | os.PathLike) else run for run in runs]
    reports = [report_run(outputs) for outputs in loaded]
    directories = [Path(path) for outputs in loaded if (path := outputs["metadata"].get("path_to_save"))]
    data = public_text(json_text(PageData(reports, _verdicts(loaded)).as_json()), directories)
    style, script = _asset("page.css"), _asset("page.js")
    return Template(_asset("page.html")).substitute(
        policy=_policy(style, script), title=html.escape(_title(reports)), style=style, script=script, data=_packed(data)
    )


def _verdicts(runs: Sequence[GenerateOutputs]) -> list[str]:
    """Return what each later run says beside the first (see `vfgym.results.compare`), or why nothing can be said."""
    return [pair["verdict"] for pair in compare_places(runs, [(0, place) for place in range(1, len(runs))])]


def _title(reports: Sequence[RunReport]) -> str:
    return public_text(", ".join(report.name for report in reports))


def _asset(name: str) -> str:
    return resources.files("vfgym.view").joinpath("assets", name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Return what the page may do: run this script, apply this style, and draw pictures that stand in it."""
    return f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _packed(data: str) -> str:
    return base64.b64encode(gzip.compress(data.encode(), compresslevel=9, mtime=0)).decode()
