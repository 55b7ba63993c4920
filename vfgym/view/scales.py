"""Scales of pictures: ticks at round numbers, and what falls between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

_INTERVALS = 5
"""About how many intervals a scale has."""
_BINS_PER_INTERVAL = 4


def scale_of(values: Iterable[float]) -> list[float] | None:
    """Return ticks at round numbers, in order, between which all the values lie.

    None where there is no finite one, and where they are further apart than any number.

    >>> scale_of([0.03, 0.91]), scale_of([-3.0, 12.0]), scale_of([7.0])
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [-5.0, 0.0, 5.0, 10.0, 15.0], [6.6, 6.8, 7.0, 7.2, 7.4])
    """
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return None
    low, high = min(finite), max(finite)
    if high - low <= max(1e-9 * max(abs(low), abs(high)), 1e-300):
        margin = abs(low) / 20 or 0.5
        low, high = low - margin, high + margin
    if not math.isfinite(high - low):
        return None
    step = _round_step((high - low) / _INTERVALS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = max(0, 2 - math.floor(math.log10(step)))
    ticks = [round(place * step, digits) + 0.0 for place in range(first, last + 1)]
    return ticks if math.isfinite(ticks[-1] - ticks[0]) else None


def _round_step(width: float) -> float:
    power: float = 10.0 ** math.floor(math.log10(width))
    return next(factor * power for factor in (1, 2, 5, 10) if width <= factor * power * (1 + 1e-9))


def histogram_of(values: Iterable[float], scale: Sequence[float]) -> list[int]:
    """Return how many of the values lie in each bin of a scale; the bins between two ticks are equally many.

    >>> histogram_of([0.0, 0.0, 1.0], [0.0, 0.5, 1.0])
    [2, 0, 0, 0, 0, 0, 0, 1]
    """
    low, high = scale[0], scale[-1]
    bins = [0] * (_BINS_PER_INTERVAL * (len(scale) - 1))
    for value in values:
        if math.isfinite(value):
            bins[min(int(len(bins) * ((value - low) / (high - low))), len(bins) - 1)] += 1
    return bins
