"""Limits on what is spent: tokens, money, time, errors and requests, of a block of code, of a run and of each of its rollouts.

A `Meter` counts what is asked of models where it is in force: inside a ``with vfgym.limit(...)``, and in everything that is awaited or
called there. Meters nest, and each counts for itself. Whoever asks a model goes through a `vfgym.Client`, whose requests call `begin`
and `count` here: no request begins where a limit is used up, so what is spent beyond one is spent by requests that were under way.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, NoReturn, Self, TypeAlias, cast

from vfgym.context import given, in_force
from vfgym.errors import ConfigurationError, LimitReached, did_you_mean
from vfgym.messages.responses import is_token_count
from vfgym.prices import PriceTable


@dataclass(frozen=True, kw_only=True)
class _Amounts:
    """Limits by their names; None for one that is not set."""

    COUNTS: ClassVar[frozenset[str]] = frozenset()
    """Limits that are whole numbers."""

    def __post_init__(self) -> None:
        for name, value in self.given().items():
            is_count = name in self.COUNTS
            kinds = int if is_count else (int, float)
            if not isinstance(value, kinds) or isinstance(value, bool) or not (0 < value < math.inf):
                raise ConfigurationError(f"the limit {name} must be a positive {'integer' if is_count else 'number'}, got {value!r}")

    @classmethod
    def of(cls, given: Self | Mapping[str, Any] | None) -> Self:
        """Return limits: those that were given, or those of a mapping, such as ``{"tokens": 100_000}``.

        Raises:
            ConfigurationError: If there is no such limit, or it is not a positive number.
        """
        if given is None:
            return cls()
        if isinstance(given, cls):
            return given
        names = cls.names()
        if not isinstance(given, Mapping):
            raise ConfigurationError(f"limits must be a dict, such as {{'tokens': 100_000}}, got {type(given).__name__}")
        unknown = next((name for name in given if name not in names), None)
        if unknown is not None:
            raise ConfigurationError(f"there is no limit {unknown!r}, there are {', '.join(names)}.{did_you_mean(str(unknown), names)}")
        return cls(**given)

    @classmethod
    def parse(cls, texts: Iterable[str], option: str) -> Self:
        """Return limits that were written as text.

        Args:
            texts: Texts such as ``tokens=100_000,cost=2.5``; later ones add to earlier ones.
            option: What the errors name as the place.

        Raises:
            ConfigurationError: If one is not written so, is there twice, or is not a limit.

        >>> RolloutLimits.parse(["tokens=2_000,turns=8"], "--limit-each")
        RolloutLimits(tokens=2000, turns=8, time=None)
        """
        found: dict[str, Any] = {}
        for part in (part.strip() for text in texts for part in text.split(",")):
            name, equals, written = (each.strip() for each in part.partition("="))
            number = _read_number(written)
            if not equals or number is None:
                raise ConfigurationError(f"{option} is written NAME=NUMBER, with commas between several, such as tokens=2000; got {part!r}")
            if name in found:
                raise ConfigurationError(f"{option} says {name} twice: give it once")
            found[name] = number
        try:
            return cls.of(found)
        except ConfigurationError as error:
            raise ConfigurationError(f"{option}: {error}") from None

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the limits that there are."""
        return [each.name for each in dataclasses.fields(cls)]

    def given(self) -> dict[str, Any]:
        """Return the limits that are set."""
        return {name: value for name in self.names() if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, kw_only=True)
class SpendingLimits(_Amounts):
    """What a block of code or a run may spend."""

    COUNTS = frozenset({"tokens", "errors", "requests"})

    tokens: int | None = None
    """Tokens, of prompts and answers together, those of judges too."""
    cost: float | None = None
    """Money, in the currency of the price table."""
    time: float | None = None
    """Seconds."""
    errors: int | None = None
    """In a run, rollouts that ended with an error; elsewhere, requests that failed."""
    requests: int | None = None
    """Requests. One that is sent again over HTTP, since the server was busy, is one more."""


@dataclass(frozen=True, kw_only=True)
class RolloutLimits(_Amounts):
    """What each rollout of a run may spend."""

    COUNTS = frozenset({"tokens", "turns"})

    tokens: int | None = None
    """Tokens, of prompts and answers together, until the episode is over: a judge that scores it afterwards does not count."""
    turns: int | None = None
    """Answers of the model."""
    time: float | None = None
    """Seconds from its beginning, until the episode is over."""


@dataclass(slots=True)
class Spending:
    """What was spent."""

    requests: int = 0
    input_tokens: float = 0
    output_tokens: float = 0
    cost: float | None = 0.0
    """Money; None where the price of any of it is not known."""
    errors: int = 0
    abandoned: int = 0
    """Requests that were given up while they were under way: nobody tells what they cost."""

    @property
    def tokens(self) -> float:
        """Tokens of prompts and answers."""
        return self.input_tokens + self.output_tokens

    def add(self, other: Spending, share: float = 1, requests: int | None = None) -> None:
        """Add what was spent elsewhere.

        Args:
            other: What was spent.
            share: The share of it that is added.
            requests: How many requests are added; all by default.
        """
        self.requests += other.requests if requests is None else requests
        self.input_tokens += other.input_tokens * share
        self.output_tokens += other.output_tokens * share
        self.cost = None if self.cost is None or other.cost is None else self.cost + other.cost * share
        self.errors += other.errors
        self.abandoned += other.abandoned


Report: TypeAlias = Callable[[Spending], None]
"""Is told what was spent."""


class Meter:
    """Counts what is spent where it is in force, and says when a limit is used up."""

    def __init__(
        self,
        limits: SpendingLimits,
        prices: PriceTable | None = None,
        *,
        spent: Spending | None = None,
        seconds: float = 0.0,
        counts_failed_requests: bool = True,
        report: Report | None = None,
    ) -> None:
        """Begin to count.

        Args:
            limits: What may be spent.
            prices: What models cost.
            spent: What was spent before.
            seconds: The time that passed before.
            counts_failed_requests: Whether a request that failed is an error; else errors are counted by somebody else.
            report: Called with what each request spent, as it is counted: whoever counts for several processes is told so.

        Raises:
            ConfigurationError: If cost is limited, and there are no prices.
        """
        if limits.cost is not None and prices is None:
            raise ConfigurationError("a limit on cost needs the prices of models: give a price table (prices=FILE, or --prices FILE)")
        self.limits = limits
        self.prices = prices
        self.spent = Spending() if spent is None else spent
        self.reached: LimitReached | None = None
        """Why something was refused; None where nothing was."""
        self.is_over = False
        """Whether it refuses nothing any more."""
        self._failure: ConfigurationError | None = None
        self._counts_failed_requests = counts_failed_requests
        self._report = report
        self._began = time.monotonic() - seconds
        self._under_way = 0
        self._lock = threading.Lock()

    @property
    def seconds(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    @property
    def deadline(self) -> float | None:
        """When its time is over, as a time of `time.monotonic`; None for never."""
        return None if self.limits.time is None else self._began + self.limits.time

    @property
    def tokens(self) -> float:
        """Tokens that count against the limit."""
        return self.spent.tokens

    def find_used_up(self) -> LimitReached | None:
        """Return the first limit that is used up, as the error that says so; None where none is."""
        limits, spent = self.limits, self.spent
        if limits.tokens is not None and self.tokens >= limits.tokens:
            return LimitReached("tokens", limits.tokens, _plain(self.tokens))
        if limits.cost is not None and spent.cost is not None and spent.cost >= limits.cost:
            return LimitReached("cost", limits.cost, spent.cost)
        if limits.errors is not None and spent.errors >= limits.errors:
            return LimitReached("errors", limits.errors, spent.errors)
        if limits.requests is not None and spent.requests >= limits.requests:
            return LimitReached("requests", limits.requests, spent.requests)
        if limits.time is not None and (seconds := self.seconds) >= limits.time:
            return LimitReached("time", limits.time, seconds)
        return None

    def refuse_if_used_up(self) -> None:
        """Raise where something is about to begin, and a limit is used up.

        Raises:
            LimitReached: If one is.
        """
        found = self.find_used_up()
        if found is not None:
            self.refuse(found)

    def refuse(self, error: LimitReached) -> NoReturn:
        """Raise that a limit is used up: always what was raised first, by which it is known whose limit it is."""
        self.reached = self.reached or error
        raise self.reached

    def raise_if_refused(self) -> None:
        """Raise again what was raised where something was refused, whoever took it for an error of their own.

        Raises:
            LimitReached: If a limit is used up.
            ConfigurationError: If a model that has no price was to be asked, and cost is limited.
        """
        error = self.reached or self._failure
        if error is not None:
            raise error

    def begin(self, model: str) -> None:
        """Take note of a request that is about to begin.

        Raises:
            LimitReached: If a limit is used up.
            ConfigurationError: If cost is limited, and the model has no price.
        """
        if not self.is_over and self.limits.cost is not None and self.prices is not None:
            try:
                self.prices.check([model])
            except ConfigurationError as error:
                self._failure = self._failure or error
                raise
        self.hold_place()

    def hold_place(self) -> None:
        """Count a request as under way.

        Raises:
            LimitReached: If a limit is used up.
        """
        with self._lock:
            if not self.is_over:
                self.refuse_if_used_up()
                if self.limits.requests is not None and self.spent.requests + self._under_way >= self.limits.requests:
                    self.refuse(LimitReached("requests", self.limits.requests, self.spent.requests + self._under_way))
            self._under_way += 1

    def begin_again(self) -> None:
        """Take note that a request that is under way is about to be sent again: what was sent before counts by itself.

        Raises:
            LimitReached: If a limit is used up.
        """
        with self._lock:
            self._add(Spending(1))
            if not self.is_over:
                self.refuse_if_used_up()
                if self.limits.requests is not None and self.spent.requests + self._under_way > self.limits.requests:
                    self.refuse(LimitReached("requests", self.limits.requests, self.spent.requests))

    def end(self, requests: int = 1) -> None:
        """Take note that requests are over, or that one turned out to be others' requests."""
        with self._lock:
            self._under_way -= requests

    def count_failure(self) -> None:
        """Count a request that failed; nobody says what it cost."""
        with self._lock:
            self._add(Spending(1, errors=int(self._counts_failed_requests)))

    def count_given_up(self) -> None:
        """Count a request that was cancelled while it was under way; nobody says what it cost."""
        with self._lock:
            self._add(Spending(1, abandoned=1))

    def count_cached(self, usage: Any) -> None:
        """Take note of an answer that came out of a cache, and so cost nothing."""

    def count(self, model: str, usage: Any) -> None:
        """Count one answer, before it is used.

        Args:
            model: Who was asked.
            usage: Its tokens (`vfgym.Usage`); None where the provider told none. What a client of somebody else's puts here counts as
                none, too, where it has no numbers of tokens.

        Raises:
            ConfigurationError: If there are none, and tokens or cost are limited.
        """
        price = None if self.prices is None else self.prices.get(model)
        tokens = _tokens_of(usage)
        with self._lock:
            self._add(Spending(1, *(tokens or (0, 0)), None if price is None or tokens is None else price.cost(*tokens)))
            if tokens is None:
                limited = next((name for name in ("tokens", "cost") if getattr(self.limits, name) is not None), None)
                if limited is not None and not self.is_over:
                    self._failure = ConfigurationError(
                        f"{model} does not tell how many tokens its answers have, so a limit on {limited} cannot hold: leave it out, or"
                        " limit requests or time"
                    )
                    raise self._failure

    def _add(self, spent: Spending) -> None:
        self.spent.add(spent)
        if self._report is not None:
            self._report(spent)


class RolloutMeter(Meter):
    """Counts what one rollout spends, and says when its episode has to end."""

    def __init__(self, limits: RolloutLimits, prices: PriceTable | None = None) -> None:
        """Begin with a rollout."""
        super().__init__(SpendingLimits(tokens=limits.tokens, time=limits.time), prices)
        self.turns = limits.turns
        self.requests_are_turns = False
        """Whether each request is a turn: in a rollout that its author wrote, where nobody else sees the turns."""
        self._cached_tokens = 0.0
        self._answers = 0
        """Of requests, each once however often it was sent; cached and failed ones too."""

    @property
    def tokens(self) -> float:
        """Tokens that count against the limit: those of cached answers too, so that a run is the same with a cache as without."""
        return self.spent.tokens + self._cached_tokens

    def count_failure(self) -> None:
        """Count a request that failed (see `Meter.count_failure`)."""
        self._answers += 1
        super().count_failure()

    def count(self, model: str, usage: Any) -> None:
        """Count one answer, before it is used (see `Meter.count`)."""
        self._answers += 1
        super().count(model, usage)

    def count_cached(self, usage: Any) -> None:
        """Count the tokens of an answer that came out of a cache."""
        self._answers += 1
        self._cached_tokens += sum(_tokens_of(usage) or ())

    def find_used_up(self) -> LimitReached | None:
        """Return the first limit that is used up, as the error that says so; None where none is."""
        if self.requests_are_turns and self.turns is not None and self._answers >= self.turns:
            return LimitReached("turns", self.turns, self._answers)
        return super().find_used_up()

    def find_used_up_after(self, num_turns: int) -> LimitReached | None:
        """Return the first limit that is used up after so many turns, as the error that says so; None where none is."""
        if self.turns is not None and num_turns >= self.turns:
            return LimitReached("turns", self.turns, num_turns)
        return self.find_used_up()

    def earlier_deadline(self, deadline: float | None) -> float | None:
        """Return the earlier one of its own deadline and another; None where neither is."""
        own = self.deadline
        return own if deadline is None else deadline if own is None else min(own, deadline)

    @property
    def is_out_of_time(self) -> bool:
        """Whether its time is over."""
        return self.limits.time is not None and self.seconds >= self.limits.time


class limit:  # noqa: N801 (a context manager, which reads as a function: `with vfgym.limit(tokens=1000):`)
    """Limit what models are asked for inside a ``with`` or an ``async with``.

    A request that would begin where a limit is used up raises `vfgym.errors.LimitReached` instead; one that is under way when the time
    is over is given up. Limits nest: each holds for what is asked inside it. Two blocks of one object at once are not possible.

    >>> with limit(tokens=1000) as spending:
    ...     pass
    >>> spending.spent.tokens
    0
    """

    def __init__(
        self,
        *,
        tokens: int | None = None,
        cost: float | None = None,
        time: float | None = None,
        errors: int | None = None,
        requests: int | None = None,
        prices: Any = None,
    ) -> None:
        """Say what may be spent.

        Args:
            tokens: Most tokens, of prompts and answers together.
            cost: Most money; it needs `prices`.
            time: Most seconds.
            errors: Requests that may fail.
            requests: Most requests.
            prices: What models cost: a TOML file, a dict, or a `vfgym.prices.PriceTable`; those of the block around this one by default.

        Raises:
            ConfigurationError: If a limit is not a positive number, or prices are missing or malformed.
        """
        self._limits = SpendingLimits(tokens=tokens, cost=cost, time=time, errors=errors, requests=requests)
        self._prices = None if prices is None else PriceTable.of(prices)
        self._block: given | None = None

    def __enter__(self) -> Meter:
        if self._block is not None:
            raise ConfigurationError("this limit is in force already: make another one for another block")
        meter = Meter(self._limits, self._prices or prices_in_force())
        self._block = given(meters=(*in_force().meters, meter))
        self._block.__enter__()
        return meter

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        block, self._block = self._block, None
        if block is not None:
            block.__exit__(None, None, None)

    async def __aenter__(self) -> Meter:
        return self.__enter__()

    async def __aexit__(self, *exc: Any) -> None:
        self.__exit__(*exc)


def prices_in_force() -> PriceTable | None:
    """Return the prices of the innermost block that has any."""
    return next((meter.prices for meter in reversed(in_force().meters) if meter.prices is not None), None)


def _tokens_of(usage: Any) -> tuple[int, int] | None:
    """Return the tokens of a prompt and its answer; None where a usage does not tell them."""
    tokens = getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None)
    return cast("tuple[int, int]", tokens) if all(map(is_token_count, tokens)) else None


def _read_number(text: str) -> float | None:
    """Return a number that was written; None where it is not one."""
    try:
        number = float(text)
    except ValueError:
        return None
    return _plain(number) if math.isfinite(number) else number


def _plain(number: float) -> float:
    return int(number) if number == int(number) else number
