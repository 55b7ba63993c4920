"""``vfgym merge``: one run of the parts that were played apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vfgym.cli.conventions import Exit, print_json
from vfgym.errors import ConfigurationError
from vfgym.output.terminal import echo
from vfgym.results.files import write_results
from vfgym.results.merging import merge


def merge_runs(runs: Sequence[Path], target: Path, *, as_json: bool) -> Exit:
    """Write the run that parts are of to a directory, and print what it has and what it lacks. Return whether it lacks nothing.

    Raises:
        ConfigurationError: If the parts are not of one run.
        vfgym.results.ResultsError: If results cannot be read or written.
    """
    if target in runs:
        raise ConfigurationError(f"{target} is one of the parts: the whole run goes into a directory of its own")
    merged = merge(runs)
    write_results(target, merged.results)
    rows, metadata = merged.results["outputs"], merged.results["metadata"]
    if as_json:
        print_json(
            {
                "path": str(target),
                "rollouts": len(rows),
                "missing": merged.missing,
                "missing_shards": merged.missing_shards,
                "avg_reward": metadata["avg_reward"],
            }
        )
        return Exit.NOT_GOOD if merged.missing else Exit.GOOD
    mean = metadata["avg_reward"]
    echo(f"{len(rows)} rollouts of {len(runs)} runs: " + ("no mean" if mean is None else f"mean reward {mean:.3f}"))
    if merged.missing:
        shards = ", ".join(merged.missing_shards)
        echo(f"{merged.missing} rollouts are missing" + (f" (shards that were not given: {shards})" if shards else ""))
        echo(f"vfgym eval {target} --resume plays them" if metadata.get("spec") else "resume the run in that directory to play them")
    echo(f"results in {target}")
    return Exit.NOT_GOOD if merged.missing else Exit.GOOD
