"""What all benchmarks share: a figure with its limit, and how time is measured on a machine that may be shared.

A measurement is a function that takes a `Bench` and yields `Figure`s. Each runs in a process of its own (`run.py`), some of them in
another library's interpreter as well. So this module, and what such a measurement imports, needs nothing but Python.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar


@dataclass(frozen=True)
class Figure:
    """One number."""

    name: str
    """The same in every run."""
    value: float
    unit: str
    limit: float | None = None
    """What the project set itself; None where it set itself nothing."""
    peer: float | None = None
    """What the same costs by other means, where this process measured it too."""
    peer_name: str | None = None
    more_is_better: bool = False


@dataclass(frozen=True)
class Bench:
    """What is measured, and how much of it."""

    package: str = "verifiers_compat"
    """The package that is measured."""
    small: bool = False
    """Whether little is done, once, so that it is quick: the numbers mean nothing then."""

    ours: str = sys.executable
    """The interpreter of this library, where servers run."""

    @cached_property
    def vf(self) -> Any:
        """The package, imported."""
        return import_module(self.package)

    def count(self, full: int, small: int) -> int:
        """Return how many to measure."""
        return small if self.small else full

    def best(self, *measures: Callable[[], float], rounds: int = 3) -> list[float]:
        """Return the smallest of several measurements of each, taken by turns, with the garbage of the others out of the way."""
        values: list[list[float]] = []
        for _ in range(self.count(rounds, 1)):
            values.append([])
            for measure in measures:
                gc.collect()
                values[-1].append(measure())
        return [min(each) for each in zip(*values, strict=True)]


class Skipped(Exception):
    """Raised by a measurement that cannot be made on this machine; the message says why."""


Measurement = Callable[[Bench], Iterator[Figure]]
AnyMeasurement = TypeVar("AnyMeasurement", bound=Measurement)

PEER_PACKAGES = {"verifiers": "verifiers", "gem": "gem"}
"""What is imported of each environment of `scripts/peers.py` that is measured here."""


def beside(peer: str) -> Callable[[AnyMeasurement], AnyMeasurement]:
    """Mark a measurement that is run in a peer's interpreter too, where `Bench.package` is the peer's package."""

    def mark(measurement: AnyMeasurement) -> AnyMeasurement:
        measurement.peer = peer  # type: ignore[attr-defined]
        return measurement

    return mark


def cpu(call: Callable[[], object]) -> float:
    """Return the CPU seconds of this process that a call takes."""
    started = time.process_time()
    call()
    return time.process_time() - started


def passed(call: Callable[[], object]) -> float:
    """Return the seconds that pass during a call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


MICROSECONDS = 1e6
MILLISECONDS = 1e3
"""In a second."""
