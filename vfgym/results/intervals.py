"""95 % intervals of means whose values come in clusters: the rollouts of one task are more alike than those of different tasks.

Student's t with the degrees of freedom that the clusters leave, so that an interval covers with 8 tasks as with 200. The variance is
the bias-reduced one for clustered errors (CR2), and the degrees of freedom are Bell and McCaffrey's ("Bias reduction in standard errors
for linear regression with multi-stage samples", Survey Methodology 28, 2002), for a mean in closed form. Where all clusters have the same
number of values, both are the textbook's: the variance of the clusters' means, and the number of clusters minus 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

COVERAGE = 0.95
"""How often an interval holds what it estimates."""
_POWER = 0.8
"""How often a difference of the size that was seen is to be told from zero, where it is asked how many clusters that needs."""
_MOST_CLUSTERS = 10**6
"""More than anybody plays: what needs more cannot be told."""


class MeanEstimate(NamedTuple):
    """A mean, and how well it is known."""

    mean: float
    standard_error: float | None
    """None with fewer than two clusters."""
    degrees_of_freedom: float
    num_clusters: int

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval; None with fewer than two clusters."""
        if self.standard_error is None:
            return None
        half = student_t_quantile((1 + COVERAGE) / 2, self.degrees_of_freedom) * self.standard_error
        return self.mean - half, self.mean + half


def estimate_mean(clusters: Mapping[Hashable, Sequence[float]]) -> MeanEstimate:
    """Return the mean of all values, and its standard error where values of one cluster go together.

    The order of clusters and of values changes no bit of it.

    Args:
        clusters: The finite values of each cluster: at least one value.
    """
    values = [value for cluster in clusters.values() for value in cluster]
    count = len(values)
    mean = math.fsum(values) / count
    if len(clusters) < 2:
        return MeanEstimate(mean, None, 0.0, len(clusters))
    shares = [len(cluster) / count for cluster in clusters.values()]
    residuals = [math.fsum(value - mean for value in cluster) / count for cluster in clusters.values()]
    variance = math.fsum(residual * residual / (1 - share) for residual, share in zip(residuals, shares, strict=True))
    return MeanEstimate(mean, math.sqrt(variance), _degrees_of_freedom(shares), len(clusters))


def _degrees_of_freedom(shares: Sequence[float]) -> float:
    """Return the degrees of freedom of a variance of clusters, each with its share of the values, as if the values were independent."""
    weights = [share * share / (1 - share) for share in shares]
    together = math.fsum(weights)
    between = together * together - math.fsum(weight * weight for weight in weights)
    return 1.0 / (math.fsum(share * share for share in shares) + between)


def clusters_needed(estimate: MeanEstimate) -> int | None:
    """Return with how many clusters like these a mean of this size would be told from zero, four times out of five: these or more.

    None where no such number can be given: the mean is zero, nothing varies, or it would take more than anybody plays.
    """
    if not estimate.mean or not estimate.standard_error:
        return None
    ratio = estimate.standard_error * math.sqrt(estimate.num_clusters) / abs(estimate.mean)
    # Clusters of several sizes leave fewer degrees of freedom than there are clusters, and more of their kind leave the same share.
    freedom_of_each = estimate.degrees_of_freedom / (estimate.num_clusters - 1)

    def are_enough(count: int) -> bool:
        freedom = (count - 1) * freedom_of_each
        needed = student_t_quantile((1 + COVERAGE) / 2, freedom) + student_t_quantile(_POWER, freedom)
        return ratio * needed <= math.sqrt(count)

    return _first(are_enough, estimate.num_clusters, _MOST_CLUSTERS)


def draws_needed(count: int, share: float) -> int | None:
    """Return in how many draws something is found so many times, four times out of five; None where that is more than anybody plays.

    Args:
        count: How many times.
        share: In which share of all draws it is found.

    >>> draws_needed(6, 1.0), draws_needed(6, 0.5)
    (6, 15)
    """

    def are_enough(draws: int) -> bool:
        fewer = math.fsum(math.comb(draws, times) * share**times * (1 - share) ** (draws - times) for times in range(count))
        return fewer <= 1 - _POWER

    return _first(are_enough, count, _MOST_CLUSTERS)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """Return the first number from `low` to `high` for which something holds that holds for all larger ones; None if it does for none."""
    if not holds(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


_MANY = 1000
"""Degrees of freedom from which the expansion around the normal distribution is exact to 12 digits."""


def student_t_quantile(probability: float, degrees_of_freedom: float) -> float:
    """Return below which number a variable with Student's t distribution falls with some probability, from 0.5 up.

    >>> round(student_t_quantile(0.975, 7), 6), round(student_t_quantile(0.975, 59), 6)
    (2.364624, 2.000995)
    """
    if degrees_of_freedom >= _MANY:
        return _expanded_quantile(NormalDist().inv_cdf(probability), degrees_of_freedom)
    low, high = 0.0, 1.0
    while _student_t_tail(high, degrees_of_freedom) > 1 - probability:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _student_t_tail(middle, degrees_of_freedom) > 1 - probability else (low, middle)
    return high


def _expanded_quantile(z: float, df: float) -> float:
    """Return a quantile by the expansion of Cornish and Fisher (Abramowitz and Stegun, 26.7.5)."""
    square = z * z
    terms = (
        (square + 1) / 4,
        ((5 * square + 16) * square + 3) / 96,
        (((3 * square + 19) * square + 17) * square - 15) / 384,
        ((((79 * square + 776) * square + 1482) * square - 1920) * square - 945) / 92160,
    )
    return z * (1 + math.fsum(term / df**power for power, term in enumerate(terms, start=1)))


def _student_t_tail(t: float, df: float) -> float:
    """Return the probability that Student's t is above a number from 0 up."""
    x = df / (df + t * t)
    return 0.5 * _regularised_beta(x, df / 2, 0.5)


def _regularised_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction where that converges quickly."""
    if x >= 1.0:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _regularised_beta(1 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) * _beta_fraction(x, a, b) / a


def _beta_fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of the incomplete beta function (NIST's Handbook, 8.17.22), by Lentz's method."""
    numerator, denominator = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1))
    value = denominator
    for m in range(1, 10_000):
        for coefficient in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            denominator = 1.0 / (1.0 + coefficient * denominator)
            numerator = 1.0 + coefficient / numerator
            factor = numerator * denominator
            value *= factor
        if abs(factor - 1.0) < 1e-15:
            break
    return value
