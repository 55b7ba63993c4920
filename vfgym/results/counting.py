"""What a rollout counts with: which rollouts failed, and what these count with, so that no agent gains by failing.

A rollout that did not fail counts with its reward. A failed one counts with the lower of two numbers: the ``failure_reward`` that its
environment declares, and the lowest reward of the rollouts of that environment that did not fail. Where none is declared it has no number,
and a run with such rollouts has no mean. Everything that is published of a run (metadata, tables, plots, progress) is taken from here.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from vfgym.envs.group import ROUTE

logger = logging.getLogger(__name__)

MeanOf: TypeAlias = Literal["counted_reward", "reward"]
"""Which number of a row the means are of."""

_Environment: TypeAlias = "str | tuple[str, ...] | None"
"""The environment of a group that played a row; None without a group."""


def is_failed(row: Mapping[str, Any]) -> bool:
    """Say whether a row is of a rollout that failed; rows of older versions tell of errors only."""
    return bool(row["failed"]) if "failed" in row else row["error"] is not None


def mean_of(rows: Iterable[Mapping[str, Any]]) -> MeanOf:
    """Return which number of some rows their means are of.

    It is ``"counted_reward"``, which all rows of this library have, or ``"reward"`` where any row is without that: rows of older versions
    and those of `verifiers_compat`, whose documented means are of the rewards, failed rollouts included.
    """
    return "counted_reward" if all("counted_reward" in row for row in rows) else "reward"


class Tally:
    """What rows count with as far as they are known. They are added as they come."""

    def __init__(self, rows: Iterable[Mapping[str, Any]] = (), *, of: MeanOf = "counted_reward") -> None:
        """Begin with some rows.

        Args:
            rows: The rows.
            of: Which number of them their mean is of.
        """
        self._of = of
        self.num_rows = 0
        self.num_failed = 0
        self._total = 0.0
        self._lowest: dict[_Environment, float] = {}
        self._failed: Counter[tuple[_Environment, float | None]] = Counter()
        for row in rows:
            self.add(row)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        self.num_rows += 1
        environment, reward = _environment_of(row), row["reward"]
        self.num_failed += row["failed"]
        if row["failed"] and self._of == "counted_reward":
            self._failed[environment, row["counted_reward"]] += 1
            return
        self._total += reward
        if reward < self._lowest.get(environment, math.inf):
            self._lowest[environment] = reward

    def counted_reward_of(self, row: Mapping[str, Any]) -> float | None:
        """Return what one of the rows counts with; None for a failed one whose environment declares no ``failure_reward``.

        That of a failed row may fall as further rows are added.
        """
        if not row["failed"]:
            return float(row["reward"])
        return self._settle(_environment_of(row), row["counted_reward"])

    @property
    def mean(self) -> float | None:
        """Mean of what the rows count with; None where one of them has no number, 0.0 without rows."""
        total = self._total
        for (environment, declared), count in self._failed.items():
            settled = self._settle(environment, declared)
            if settled is None:
                return None
            total += count * settled
        return total / self.num_rows if self.num_rows else 0.0

    def _settle(self, environment: _Environment, declared: float | None) -> float | None:
        return None if declared is None else min(declared, self._lowest.get(environment, math.inf))


def _environment_of(row: Mapping[str, Any]) -> _Environment:
    info = row.get("info")
    route = info.get(ROUTE) if isinstance(info, Mapping) else None
    return tuple(map(str, route)) if isinstance(route, Sequence) and not isinstance(route, str) else route and str(route)


def count_rewards(rows: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """Return what each row counts with, given all of them. Rows that were settled keep their numbers."""
    tally = Tally(rows)
    return [tally.counted_reward_of(row) for row in rows]


def settle(rows: Sequence[dict[str, Any]]) -> None:
    """Write into the failed rows of a run that has ended what they count with, and warn where that is less than what was declared."""
    lowered: dict[float, float] = {}
    for row, counted in zip(rows, count_rewards(rows), strict=True):
        if row["failed"] and counted is not None:
            if counted < row["counted_reward"]:
                lowered[row["counted_reward"]] = counted
            row["counted_reward"] = counted
    for declared, counted in lowered.items():
        logger.warning(
            "a rollout that did not fail was rewarded with %g, which is less than the failure_reward of %g: failed rollouts count with"
            " %g too. Declare a failure_reward that no episode falls below",
            counted,
            declared,
            counted,
        )
