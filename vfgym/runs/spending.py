"""What a run may spend, and what it spends: limits, prices, the cache, and how many requests are under way at once.

A `Budget` is what was asked for, checked before anything is played; `RunSpending` keeps it while the run plays.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from vfgym.clients.cache import RequestKeys, ResponseCache, opened
from vfgym.clients.pacing import Pace
from vfgym.context import given, in_force
from vfgym.errors import ConfigurationError, LimitFacts, LimitReached
from vfgym.limits import Meter, Report, RolloutLimits, RolloutMeter, Spending, SpendingLimits
from vfgym.prices import PriceTable
from vfgym.results import RolloutOutput
from vfgym.results.spending import spent_by

MeterT = TypeVar("MeterT", bound=Meter)

LimitsLike: TypeAlias = "SpendingLimits | Mapping[str, Any] | None"
"""Limits of a run: ``{"tokens": 100_000, "cost": 2.5, "time": 600, "errors": 10, "requests": 500}``, any of them."""

RolloutLimitsLike: TypeAlias = "RolloutLimits | Mapping[str, Any] | None"
"""Limits of each rollout: ``{"tokens": 2000, "turns": 8, "time": 60}``, any of them."""

PricesLike: TypeAlias = "PriceTable | Mapping[str, Any] | str | os.PathLike[str] | None"
"""What models cost: a TOML file, or a dict like one."""

CacheLike: TypeAlias = "ResponseCache | str | os.PathLike[str] | bool | None"
"""A cache, its file, or whether the one of the user is used."""


_NOTHING = contextlib.nullcontext()
"""A context in which nothing is counted."""


@dataclass(frozen=True)
class Budget:
    """What a run may spend, as it was asked for."""

    limits: SpendingLimits = field(default_factory=SpendingLimits)
    limits_each: RolloutLimits = field(default_factory=RolloutLimits)
    prices: PriceTable | None = None
    cache: ResponseCache | None = None

    @classmethod
    def of(cls, limits: LimitsLike, limits_each: RolloutLimitsLike, prices: PricesLike, cache: CacheLike, models: Sequence[str]) -> Budget:
        """Check what was asked for.

        Args:
            limits: Limits of the run.
            limits_each: Limits of each rollout.
            prices: What models cost.
            cache: Where answers are kept.
            models: The models that will be asked, as far as they are known.

        Raises:
            ConfigurationError: If a limit is not one, the prices cannot be read, or cost is limited and a price is not known.
        """
        table = None if prices is None else PriceTable.of(prices)
        checked = SpendingLimits.of(limits)
        Meter(checked, table)
        if checked.cost is not None and table is not None:
            table.check(models)
        if isinstance(cache, bool) or cache is None:
            kept = ResponseCache() if cache else None
        else:
            kept = cache if isinstance(cache, ResponseCache) else ResponseCache(Path(cache))
        return cls(checked, RolloutLimits.of(limits_each), table, kept)

    @property
    def is_measured(self) -> bool:
        """Whether rows tell what their rollouts spent."""
        return bool(self.limits.given()) or self.prices is not None or self.cache is not None


class RunSpending:
    """Keeps the budget of a run while it plays."""

    def __init__(
        self,
        budget: Budget,
        most_at_once: int,
        earlier: Iterable[RolloutOutput] = (),
        seconds: float = 0.0,
        model: str = "",
        *,
        recorded: Spending | None = None,
        report: Report | None = None,
    ) -> None:
        """Begin, or go on.

        Args:
            budget: What may be spent.
            most_at_once: Most rollouts at once.
            earlier: The rows of the run that is gone on with: what they tell counts.
            seconds: How long it has taken so far.
            model: Who was asked in those rows.
            recorded: What that run's metadata tell of what it spent: more than its rows, where rollouts were given up.
            report: Called with what each request spent, where several processes play a run.

        Raises:
            ConfigurationError: If cost is limited, and those rows do not tell what they cost.
        """
        self.budget = budget
        self.meter: Meter | None = None
        """What the run spends; None where nobody wants to know."""
        if budget.is_measured:
            spent = Spending()
            price = None if budget.prices is None else budget.prices.get(model)
            for row in earlier:
                spent.add(spent_by(row, price))
            if spent.cost is None and budget.limits.cost is not None:
                raise ConfigurationError(
                    "a limit on cost cannot hold for this run: the rows that it has already do not tell what they cost, since it was begun"
                    " without prices. Limit its tokens, or begin another run"
                )
            if recorded is not None:
                spent.abandoned = recorded.abandoned
                if spent.cost is not None and recorded.cost is not None:
                    spent.cost = max(spent.cost, recorded.cost)
            self.meter = Meter(budget.limits, budget.prices, spent=spent, seconds=seconds, counts_failed_requests=False, report=report)
        self._pace = Pace(most_at_once)
        self._limits_rollouts = bool(budget.limits_each.given())

    @property
    def spent(self) -> Spending | None:
        """What the run has spent so far, which goes on to be counted; None where nobody wants to know."""
        return None if self.meter is None else self.meter.spent

    @contextlib.contextmanager
    def in_force(self) -> Iterator[None]:
        """Let the budget hold for what is asked inside."""
        meters = in_force().meters if self.meter is None else (*in_force().meters, self.meter)
        with given(pace=self._pace, meters=meters), _NOTHING if self.budget.cache is None else opened(self.budget.cache):
            yield

    async def play(self, playing: Awaitable[None]) -> LimitFacts | None:
        """Play until all is played, or a limit ends the run.

        Returns:
            The limit that ended it; None where all was played.

        Raises:
            LimitReached: If a limit of a block around the run ended it.
        """
        seconds = self.budget.limits.time
        scope = asyncio.timeout(None if seconds is None or self.meter is None else max(0.0, seconds - self.meter.seconds))
        try:
            async with scope:
                await playing
        except TimeoutError:
            if not scope.expired() or seconds is None or self.meter is None:
                raise
            return LimitReached("time", seconds, max(seconds, self.meter.seconds)).as_dict()
        except LimitReached as error:
            if self.meter is None or error is not self.meter.reached:
                raise
            return error.as_dict()
        return None

    def check_may_begin(self) -> None:
        """Raise where a rollout is about to begin, and a limit is used up.

        Raises:
            LimitReached: If one is.
        """
        for meter in in_force().meters:
            meter.refuse_if_used_up()

    def check_goes_on(self) -> None:
        """Raise where something that was asked for was refused, whoever took it for a failure of their own.

        Raises:
            LimitReached: If a limit is used up.
            ConfigurationError: If a model without a price was to be asked, and cost is limited.
        """
        for meter in in_force().meters:
            meter.raise_if_refused()

    def of_rollout(self, number: int) -> contextlib.AbstractContextManager[RolloutMeter | None]:
        """Count what a rollout of this number spends inside; gives what counts and limits it, else None."""
        if self.meter is None and not self._limits_rollouts:
            return _NOTHING
        return self._measured(RolloutMeter(self.budget.limits_each, self.budget.prices), number)

    def of_scoring(self, number: int) -> contextlib.AbstractContextManager[Meter | None]:
        """Count what scoring a group spends inside, as asked by its first rollout; gives what counts it, else None."""
        return _NOTHING if self.meter is None else self._measured(Meter(SpendingLimits(), self.budget.prices), number)

    @contextlib.contextmanager
    def _measured(self, meter: MeterT, number: int) -> Iterator[MeterT]:
        context, cache = in_force(), self.budget.cache
        with given(meters=(*context.meters, meter), keys=context.keys if cache is None else RequestKeys(cache, number)):
            yield meter

    def note_errors(self, rows: Iterable[RolloutOutput]) -> None:
        """Count the rollouts that ended with an error."""
        if self.meter is not None:
            self.meter.spent.errors += sum(row["error"] is not None for row in rows)
