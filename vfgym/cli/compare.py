"""``vfgym compare``: which of several runs is better, and whether their numbers can tell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vfgym.cli.conventions import Exit, print_json
from vfgym.cli.table import print_table, wrap_text
from vfgym.endings import Ending
from vfgym.output.terminal import echo
from vfgym.results import compare
from vfgym.results.comparison import ComparedPair, ComparedRun, Comparison
from vfgym.results.intervals import format_estimate


def print_comparison(runs: Sequence[Path], *, as_json: bool) -> Exit:
    """Print what runs say of each other, and return whether each of them could be compared with the first.

    Raises:
        ConfigurationError: If there are fewer than two runs, or they share no task.
        vfgym.results.ResultsError: If results cannot be read.
    """
    comparison = compare(*runs)
    if as_json:
        print_json(comparison)
    else:
        shown = [ending for ending in _SHOWN_ENDINGS if any(ending in run["endings"] for run in comparison["runs"])]
        print_table(
            ["run", "who", "mean (95 %)", "tasks", "rollouts", "errors", *(_SHOWN_ENDINGS[ending] for ending in shown)],
            [_run_cells(place, run, shown) for place, run in enumerate(comparison["runs"], start=1)],
        )
        echo("")
        pairs = [_pair_cells(comparison, pair) for pair in comparison["pairs"]]
        print_table(["runs", "difference (95 %)", "better/worse/equal", "not paired"], pairs)
        echo("")
        for pair in comparison["pairs"]:
            echo(wrap_text(f"{pair['b'] + 1} - {pair['a'] + 1}: {pair['verdict']}"))
    return Exit.GOOD if all(pair["difference"] is not None for pair in comparison["pairs"]) else Exit.NOT_GOOD


_SHOWN_ENDINGS = {Ending.CUT: "cut", Ending.INFRASTRUCTURE_FAILED: "missing"}
"""Endings that have a column where any rollout ended so, and its title."""


def _run_cells(place: int, run: ComparedRun, endings: Sequence[Ending]) -> list[str]:
    planned, played = run["planned"], run["rollouts"]
    rollouts = f"{played} of {planned}" if planned is not None and played < planned else str(played)
    counts = (run["errors"], *(run["endings"].get(ending, 0) for ending in endings))
    mean = format_estimate(run["mean"], run["interval"])
    return [str(place), run["model"], mean, str(run["examples"]), rollouts, *map(str, counts)]


def _pair_cells(comparison: Comparison, pair: ComparedPair) -> list[str]:
    return [
        f"{pair['b'] + 1} - {pair['a'] + 1}",
        format_estimate(pair["difference"], pair["interval"], sign="+"),
        f"{pair['better']}/{pair['worse']}/{pair['equal']}",
        "/".join(str(comparison["runs"][place]["rollouts"] - pair["rollouts"]) for place in (pair["a"], pair["b"])),
    ]
