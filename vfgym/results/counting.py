"""What a rollout counts with, so that no agent gains by failing or by stalling, and none is punished for an outage.

A rollout whose task came to an end (`Ending.counts_with_return`) counts with its reward. One that was cut or that failed counts with the
lowest of three numbers: its reward, the ``failure_reward`` that its environment declares, and the lowest reward of the rollouts of that
environment whose tasks came to an end. Where no ``failure_reward`` is declared it has no number, and a run with such rollouts has no mean.
A rollout that the infrastructure failed counts with nothing: it is missing. Everything that is published of a run (metadata, tables, plots,
progress) is taken from here.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from vfgym.endings import Ending, ending_of
from vfgym.envs.group import ROUTE

logger = logging.getLogger(__name__)

MeanOf: TypeAlias = Literal["counted_reward", "reward"]
"""Which number of a row the means are of."""

_Environment: TypeAlias = "str | tuple[str, ...] | None"
"""The environment of a group that played a row; None without a group."""


def is_failed(row: Mapping[str, Any]) -> bool:
    """Say whether a row is of a rollout that failed; rows of older versions tell of errors only."""
    return ending_of(row).failed


def counted_reward(ending: Ending, reward: float, failure_reward: float | None) -> float | None:
    """Return what a rollout counts with alone, without the others of its run.

    Args:
        ending: How it ended.
        reward: Its reward.
        failure_reward: What its environment declares that failing counts with.

    Returns:
        None for one that is missing, and for one that was cut or failed where nothing is declared.
    """
    if ending.counts_with_return:
        return reward
    return None if ending.is_missing or failure_reward is None else min(reward, failure_reward)


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
        self.endings: Counter[Ending] = Counter()
        """How many of them ended in which way."""
        self._total = 0.0
        self._lowest: dict[_Environment, float] = {}
        self._lowered: Counter[tuple[_Environment, float | None]] = Counter()
        for row in rows:
            self.add(row)

    @property
    def num_failed(self) -> int:
        """How many failed, for any cause."""
        return sum(count for ending, count in self.endings.items() if ending.failed)

    @property
    def num_missing(self) -> int:
        """How many the infrastructure failed."""
        return self.endings[Ending.INFRASTRUCTURE_FAILED]

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        self.num_rows += 1
        environment, reward, ending = _environment_of(row), row["reward"], ending_of(row)
        self.endings[ending] += 1
        if self._of == "counted_reward" and not ending.counts_with_return:
            if not ending.is_missing:
                self._lowered[environment, row["counted_reward"]] += 1
            return
        self._total += reward
        if reward < self._lowest.get(environment, math.inf):
            self._lowest[environment] = reward

    def counted_reward_of(self, row: Mapping[str, Any], *, missing_failed: bool = False) -> float | None:
        """Return what one of the rows counts with.

        That of one that was cut or failed may fall as further rows are added.

        Args:
            row: The row.
            missing_failed: Whether one that is missing counts as if the policy had failed.

        Returns:
            None for one that is missing, and for one that was cut or failed whose environment declares no ``failure_reward``.
        """
        ending = ending_of(row)
        if ending.counts_with_return:
            return float(row["reward"])
        alone = row["counted_reward"]
        if missing_failed and ending.is_missing:
            alone = counted_reward(Ending.POLICY_FAILED, row["reward"], row.get("failure_reward"))
        return self._settle(_environment_of(row), alone)

    @property
    def mean(self) -> float | None:
        """Mean of what the rows count with, without those that are missing.

        None where one of them has no number, or all are missing; 0.0 without rows.
        """
        total = self._total
        for (environment, alone), count in self._lowered.items():
            settled = self._settle(environment, alone)
            if settled is None:
                return None
            total += count * settled
        num_valid = self.num_rows - (self.num_missing if self._of == "counted_reward" else 0)
        return total / num_valid if num_valid else None if self.num_rows else 0.0

    def _settle(self, environment: _Environment, alone: float | None) -> float | None:
        return None if alone is None else min(alone, self._lowest.get(environment, math.inf))


def _environment_of(row: Mapping[str, Any]) -> _Environment:
    info = row.get("info")
    route = info.get(ROUTE) if isinstance(info, Mapping) else None
    return tuple(map(str, route)) if isinstance(route, Sequence) and not isinstance(route, str) else route and str(route)


def count_rewards(rows: Sequence[Mapping[str, Any]], *, missing_failed: bool = False) -> list[float | None]:
    """Return what each row counts with, given all of them. Rows that were settled keep their numbers.

    Args:
        rows: The rows.
        missing_failed: Whether those that are missing count as if the policy had failed.
    """
    tally = Tally(rows)
    return [tally.counted_reward_of(row, missing_failed=missing_failed) for row in rows]


def settle(rows: Sequence[dict[str, Any]]) -> None:
    """Write into rows of a run that has ended what those count with that were cut or failed; warn where a `failure_reward` is too high."""
    lowered: dict[float, float] = {}
    for row, counted in zip(rows, count_rewards(rows), strict=True):
        if counted is not None and not ending_of(row).counts_with_return:
            if counted < row["counted_reward"]:
                lowered[row.get("failure_reward", row["counted_reward"])] = counted
            row["counted_reward"] = counted
    for declared, counted in lowered.items():
        logger.warning(
            "a rollout whose task came to an end was rewarded with %g, which is less than the failure_reward of %g: those that were cut or"
            " failed count with %g too. Declare a failure_reward that no episode falls below",
            counted,
            declared,
            counted,
        )
