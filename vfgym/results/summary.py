"""`summarize`: what the rows of a run say together, from its files or from the rows themselves."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vfgym.errors import ConfigurationError
from vfgym.results.reading import load_results
from vfgym.results.statistics import Summary, planned_rollouts, statistics_of


def summarize(
    results: str | os.PathLike[str] | Sequence[Mapping[str, Any]],
    rollouts_per_example: int | None = None,
    pass_threshold: float | None = None,
) -> Summary:
    """Return the statistics of a run, computed from its rows: what ``metadata.json`` holds under the same keys.

    Args:
        results: The directory of a run, or its rows.
        rollouts_per_example: How many rows a complete example has; pass@k counts complete examples only. That of the run by default.
        pass_threshold: Reward from which a rollout passes, in pass@k. That of the run by default.

    Raises:
        ConfigurationError: If rows are given without the other two.
        vfgym.results.ResultsError: If the files cannot be read.
    """
    rows: Sequence[Mapping[str, Any]]
    known: Mapping[str, Any] = {}
    if isinstance(results, str | os.PathLike):
        loaded = load_results(Path(results))
        rows, known = loaded["outputs"], loaded["metadata"]
    else:
        rows = results
    rollouts = known.get("rollouts_per_example") if rollouts_per_example is None else rollouts_per_example
    threshold = known.get("pass_threshold") if pass_threshold is None else pass_threshold
    if rollouts is None or threshold is None:
        raise ConfigurationError(
            "summarize needs rollouts_per_example and pass_threshold: rows do not say them, nor does the metadata of every writer"
        )
    return statistics_of(
        rows,
        rollouts,
        threshold,
        of=known.get("mean_of", "counted_reward"),
        num_planned=planned_rollouts(known),
        reward_range=known.get("reward_range"),
    )
