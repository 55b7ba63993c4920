"""``vfgym export``: the rollouts of a run in forms that other programs read."""

from __future__ import annotations

from pathlib import Path

from vfgym.cli.conventions import Exit, print_json
from vfgym.output.terminal import echo
from vfgym.results.export import ExportForm, check_form, default_export_path, export


def export_run(run: Path, to: ExportForm, path: Path | None, min_reward: float | None, *, as_json: bool) -> Exit:
    """Write a run in another form, and print where.

    Raises:
        ConfigurationError: If it cannot be written in that form.
        vfgym.results.ResultsError: If results cannot be read or written.
    """
    check_form(to, min_reward)
    written = export(run, to, default_export_path(run, to) if path is None else path, min_reward=min_reward)
    if as_json:
        print_json(written)
    else:
        what = "examples" if to in ("sft", "preference") else "rows"
        rest = f", {written['skipped']} rollouts are in none of them" if written["skipped"] else ""
        echo(f"{written['rows']} {what} in {written['path']}{rest}")
    return Exit.GOOD
