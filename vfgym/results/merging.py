"""`merge`: one run of the parts that were played apart."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from vfgym.errors import ConfigurationError
from vfgym.output.redaction import redact_data
from vfgym.results.counting import settle
from vfgym.results.metadata import GenerateOutputs
from vfgym.results.outputs import RunOutputs
from vfgym.results.reading import read_metadata, read_rows, report_cut
from vfgym.results.resume import find_differing_setting
from vfgym.results.rows import RolloutOutput, row_order
from vfgym.results.statistics import planned_rollouts, statistics_of

logger = logging.getLogger(__name__)

_OF_ONE_PART = frozenset({"shard", "num_rollouts"})
_ADDED_UP = ("time", "time_ms", "cost", "abandoned_requests", "redone")
_ANYWHERE = frozenset({"shard", "executor", "workers"})
"""What specs of one run may say otherwise: rows are the same wherever they are played."""


class Merged(NamedTuple):
    """What came of a merge."""

    results: GenerateOutputs
    missing: int
    """How many rollouts of the run are in none of the parts."""
    missing_shards: list[str]
    """The parts that were not given, as ``"i/n"``."""


def merge(runs: Sequence[str | Path]) -> Merged:
    """Put the parts of a run together. What is missing can be played by resuming what comes of it.

    Args:
        runs: The directories of the parts, played with ``shard=(i, n)``.

    Raises:
        ConfigurationError: If they are parts of different runs, or two have the same rollout.
        vfgym.results.ResultsError: If one cannot be read.
    """
    if not runs:
        raise ConfigurationError("there is nothing to merge: name the directories of the parts")
    paths = [Path(run) for run in runs]
    parts = [_read(path) for path in paths]
    first = parts[0][0]
    for path, (metadata, _) in zip(paths[1:], parts[1:], strict=True):
        _check_same_run(paths[0], first, path, metadata)
    rows: dict[tuple[Any, Any], RolloutOutput] = {}
    owners: dict[tuple[Any, Any], Path] = {}
    for path, (_, part) in zip(paths, parts, strict=True):
        for row in part:
            place = (row["example_id"], row.get("rollout", 0))
            if place in owners:
                raise ConfigurationError(
                    f"{owners[place]} and {path} both have rollout {place[1]} of example {place[0]}: leave one of the two out"
                )
            rows[place], owners[place] = row, path
    whole = sorted(rows.values(), key=row_order)
    if all("counted_reward" in row for row in whole):
        settle(cast(list[dict[str, Any]], whole))
    all_metadata = [metadata for metadata, _ in parts]
    metadata = _metadata_of(all_metadata, whole)
    missing = (planned_rollouts(metadata) or len(whole)) - len(whole)
    return Merged(cast(GenerateOutputs, RunOutputs(outputs=whole, metadata=metadata)), missing, _missing_shards(all_metadata))


def _read(path: Path) -> tuple[dict[str, Any], list[RolloutOutput]]:
    metadata = read_metadata(path)
    file = read_rows(path, metadata)
    report_cut(path, file)
    return metadata, [line.row for line in file.lines]


def _check_same_run(one: Path, known: Mapping[str, Any], other: Path, metadata: Mapping[str, Any]) -> None:
    counts = [_count_of_parts(each) for each in (known, metadata)]
    if counts[0] != counts[1]:
        said = ["a whole run" if count is None else f"one of {count} parts" for count in counts]
        raise ConfigurationError(f"{one} is {said[0]}, and {other} is {said[1]}: they are not of one run")
    name = find_differing_setting(_whole(known), _whole(metadata))
    for each in ("num_examples", "pass_threshold"):
        if name is None and known.get(each) != metadata.get(each):
            name = each
    specs = [{name: value for name, value in (each.get("spec") or {}).items() if name not in _ANYWHERE} for each in (known, metadata)]
    if name is None and specs[0] != specs[1]:
        name = next(each for each in {**specs[0], **specs[1]} if specs[0].get(each) != specs[1].get(each))
        known, metadata = specs
    if name is not None:
        values = redact_data([known.get(name), metadata.get(name)])
        raise ConfigurationError(f"{one} and {other} are of different runs: their {name} is {values[0]!r} and {values[1]!r}")


def _whole(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if name not in _OF_ONE_PART}


def _metadata_of(parts: Sequence[dict[str, Any]], rows: list[RolloutOutput]) -> dict[str, Any]:
    """Return the metadata of the whole run: those of the first part, and what the parts and their rows say together."""
    metadata = _whole(parts[0])
    if isinstance(metadata.get("spec"), dict):
        metadata["spec"] = {**metadata["spec"], "shard": None}
    for name in _ADDED_UP:
        values = [part[name] for part in parts if name in part]
        if values:
            metadata[name] = None if None in values else sum(values)
    metadata["stopped_by"] = next((part["stopped_by"] for part in parts if part.get("stopped_by")), None)
    if all("date" in part for part in parts):
        metadata["date"] = min((part["date"] for part in parts), key=datetime.datetime.fromisoformat)
    return metadata | statistics_of(
        rows,
        metadata["rollouts_per_example"],
        metadata["pass_threshold"],
        of=metadata.get("mean_of", "counted_reward"),
        num_planned=planned_rollouts(metadata),
        reward_range=metadata.get("reward_range"),
    )


def _count_of_parts(metadata: Mapping[str, Any]) -> int | None:
    """Return how many parts the run has that metadata tell of; None where it has none."""
    shard = metadata.get("shard")
    return shard[1] if isinstance(shard, list) and len(shard) == 2 else None


def _missing_shards(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    count = _count_of_parts(parts[0])
    given = {part["shard"][0] for part in parts if count is not None}
    return [f"{number}/{count}" for number in range(count or 0) if number not in given]
