"""95 % intervals of means whose values come in clusters: the rollouts of one task are more alike than those of different tasks.

A task is one observation. Which method an interval follows is decided here, by what is known of the values:

- **Values with a known range** (0 and 1, the scores of a rubric, the returns of a game): an exact binomial interval (Clopper and Pearson,
  Biometrika 26, 1934) of the mean on the scale from 0 to 1, for an effective number of observations. With one value of 0 or 1 a task this
  is the exact interval itself. Values that vary less than zeros and ones do are worth more observations. How much less they vary can be
  told as far as the mean is away from the ends, so the ratio of the variances is drawn towards 1 by `_PRIOR_TASKS` tasks. Values that are
  all alike therefore have an interval too: 20 right answers of 20 one from 0.83 to 1.
- **Other values**: Student's t with the degrees of freedom that the clusters leave, and, where they are skewed, as far beyond that as a
  transformed t goes (Hall, "On the removal of skewness by transformation", Journal of the Royal Statistical Society B 54, 1992). The
  variance is the bias-reduced one for clustered errors (CR2), and the degrees of freedom are Bell and McCaffrey's ("Bias reduction in
  standard errors for linear regression with multi-stage samples", Survey Methodology 28, 2002), for a mean in closed form. Where values are
  all alike, nothing is known of what else there may be: no interval.

A test of whether a mean has some value is the same method read backwards: its p-value is below 0.05 where the interval is without that.
"""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple, TypeAlias

logger = logging.getLogger(__name__)

Range: TypeAlias = "tuple[float, float]"
"""The lowest and the highest value that there can be."""

COVERAGE = 0.95
"""How often an interval holds what it estimates."""
_POWER = 0.8
"""How often a difference of the size that was seen is to be told from zero, where it is asked how many clusters that needs."""
_MOST_CLUSTERS = 10**6
"""More than anybody plays: what needs more cannot be told."""
_PRIOR_TASKS = NormalDist().inv_cdf((1 + COVERAGE) / 2) ** 2
"""How many tasks with the largest variance are thought of beside those that were seen, as in the interval of Agresti and Coull (1998)."""
_SKEWNESS_FACTOR = 1.5
"""By how much the skewness of a sample is raised, which is lower than that of what it was drawn from (measured with exponential and
log-normal values, 8 to 200 tasks)."""

_ROUNDING = 1e-12
"""What clusters move a mean by, relative to the largest value, where they do so by rounding only."""


class MeanEstimate(NamedTuple):
    """A mean, and how well it is known."""

    mean: float
    standard_error: float | None
    """None with fewer than two clusters."""
    degrees_of_freedom: float
    num_clusters: int
    effective_clusters: float = 0.0
    """How many clusters of one size would be worth as much (Kish's effective number)."""
    num_values: int = 0
    residual_variance: float = 0.0
    """Sum of the squares of what each cluster moves the mean by."""
    skewness: float = 0.0
    """Skewness of the mean."""
    range: Range | None = None
    """Of the values, where it is known."""
    is_two_valued: bool = False
    """Whether all values are an end of the range."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval; None with fewer than two clusters, and where all values are alike and their range is not known."""
        if self.standard_error is None or not (self.range or self.standard_error):
            return None
        if self.range is None:
            return self._skewed_t_interval()
        low, high = self.range
        place, number = self._on_unit_scale()
        return tuple(low + end * (high - low) for end in _binomial_interval(place * number, number))  # type: ignore[return-value]

    def p_value(self, of: float = 0.0) -> float | None:
        """Return the two-sided p-value of the mean being `of`: below 0.05 where that is not in the interval.

        None with fewer than two clusters. Where all values are alike and their range is not known, it is that of a toss of a coin for each
        cluster (the sign test).
        """
        if self.standard_error is None:
            return None
        if self.range is None and not self.standard_error:
            return 1.0 if self.mean == of else sign_p_value(self.num_clusters, 0)
        if self.range is None:
            t = (self.mean - of) / self.standard_error
            return 2 * _student_t_tail(min(abs(t), abs(_unskewed(t, self.skewness))), self.degrees_of_freedom)
        low, high = self.range
        place, number = self._on_unit_scale()
        return _binomial_p_value(place * number, number, (of - low) / (high - low))

    def _skewed_t_interval(self) -> tuple[float, float]:
        error, quantile = self.standard_error or 0.0, student_t_quantile((1 + COVERAGE) / 2, self.degrees_of_freedom)
        above, below = max(quantile, _skewed(quantile, self.skewness)), min(-quantile, _skewed(-quantile, self.skewness))
        return self.mean - above * error, self.mean - below * error

    def _on_unit_scale(self) -> tuple[float, float]:
        """Return the mean on the scale of its range from 0 to 1, and the effective number of observations."""
        low, high = self.range or (0.0, 1.0)
        place = min(max((self.mean - low) / (high - low), 0.0), 1.0)
        largest = place * (1 - place)
        ratio = self.residual_variance * self.effective_clusters / (largest * (high - low) ** 2) if largest else 1.0
        known = 4 * largest * self.effective_clusters
        drawn = (known * ratio + _PRIOR_TASKS) / (known + _PRIOR_TASKS)
        number = self.effective_clusters / drawn
        return place, min(number, self.num_values) if self.is_two_valued else number

    def with_clusters(self, count: int) -> MeanEstimate:
        """Return the estimate that so many clusters like these would give, with a mean nearer to zero than four of five draws."""
        if self.standard_error is None:
            return self
        times = count / self.num_clusters
        error = self.standard_error / math.sqrt(times)
        # Clusters of several sizes leave fewer degrees of freedom than there are clusters, and more of their kind leave the same share.
        freedom = (count - 1) * self.degrees_of_freedom / (self.num_clusters - 1)
        nearer = max(abs(self.mean) - student_t_quantile(_POWER, freedom) * error, 0.0)
        return self._replace(
            mean=math.copysign(nearer, self.mean),
            standard_error=error,
            degrees_of_freedom=freedom,
            num_clusters=count,
            effective_clusters=self.effective_clusters * times,
            num_values=round(self.num_values * times),
            residual_variance=self.residual_variance / times,
            skewness=self.skewness / math.sqrt(times),
        )


def estimate_mean(clusters: Mapping[Hashable, Sequence[float]], value_range: Range | None = None) -> MeanEstimate:
    """Return the mean of all values, and how well it is known where values of one cluster go together.

    The order of clusters and of values changes no bit of it.

    Args:
        clusters: The finite values of each cluster: at least one value.
        value_range: The lowest and the highest value that there can be; None where that is not known (see `range_of`).
    """
    values = [value for cluster in clusters.values() for value in cluster]
    count = len(values)
    mean = math.fsum(values) / count
    if len(clusters) < 2:
        return MeanEstimate(mean, None, 0.0, len(clusters))
    shares = [len(cluster) / count for cluster in clusters.values()]
    residuals = [math.fsum(value - mean for value in cluster) / count for cluster in clusters.values()]
    if max(map(abs, residuals)) <= _ROUNDING * max(map(abs, values)):
        residuals = [0.0] * len(residuals)
    variance = math.fsum(residual * residual / (1 - share) for residual, share in zip(residuals, shares, strict=True))
    return MeanEstimate(
        mean,
        math.sqrt(variance),
        _degrees_of_freedom(shares),
        len(clusters),
        1 / math.fsum(share * share for share in shares),
        count,
        math.fsum(residual * residual for residual in residuals),
        _skewness(residuals),
        value_range,
        value_range is not None and all(value in value_range for value in values),
    )


def interval_of(clusters: Mapping[Hashable, Sequence[float]], value_range: Sequence[float] | None = None) -> list[float] | None:
    """Return the 95 % interval of the mean of all values, for figures and metadata.

    None with fewer than two clusters, with a value that is not a finite number, and where all values are alike and nothing says what else
    they could be.

    Args:
        clusters: The values of each cluster: the numbers that the rollouts of each task count with.
        value_range: What is known of their range (see `range_of`).
    """
    values = [value for cluster in clusters.values() for value in cluster]
    if not values or not all(map(math.isfinite, values)):
        return None
    try:
        interval = estimate_mean(clusters, range_of(values, value_range)).interval
    except OverflowError:  # numbers of which the square, or the sum, is none
        return None
    return None if interval is None or not all(map(math.isfinite, interval)) else list(interval)


def format_estimate(mean: float | None, interval: Sequence[float] | None, sign: str = "") -> str:
    """Return a mean with its interval, as tables and pages show it.

    >>> format_estimate(0.45, (0.2756, 0.6018), sign="+"), format_estimate(1.0, None), format_estimate(None, None)
    ('+0.450 (+0.276 to +0.602)', '1.000', '-')
    """
    if mean is None:
        return "-"
    return f"{mean:{sign}.3f}" + ("" if interval is None else f" ({interval[0]:{sign}.3f} to {interval[1]:{sign}.3f})")


def range_of(values: Iterable[float], declared: Sequence[float] | None) -> Range | None:
    """Return the range that holds for values: the one that is declared; 0 to 1 where none is and all of them are 0 or 1; else None.

    A value outside of what is declared shows that the declaration is wrong: the log says so once, and no range is known.
    """
    if declared is None:
        return (0.0, 1.0) if all(value in (0.0, 1.0) for value in values) else None
    low, high = declared
    outside = next((value for value in values if not low <= value <= high), None)
    if outside is not None:
        _warn_of_range(low, high, outside)
        return None
    return (low, high) if low < high else None


@functools.lru_cache(maxsize=128)
def _warn_of_range(low: float, high: float, outside: float) -> None:
    logger.warning(
        "a rollout counts with %g, which is outside of the declared range of rewards (%g to %g): intervals do without the range."
        " Correct the declaration",
        outside,
        low,
        high,
    )


def _degrees_of_freedom(shares: Sequence[float]) -> float:
    """Return the degrees of freedom of a variance of clusters, each with its share of the values, as if the values were independent."""
    weights = [share * share / (1 - share) for share in shares]
    together = math.fsum(weights)
    between = together * together - math.fsum(weight * weight for weight in weights)
    return 1.0 / (math.fsum(share * share for share in shares) + between)


def _skewness(residuals: Sequence[float]) -> float:
    """Return the skewness of a mean, given what each cluster moves it by."""
    count, largest = len(residuals), max(map(abs, residuals))
    if count < 3 or not largest:
        return 0.0
    parts = [residual / largest for residual in residuals]  # whose powers neither overflow nor vanish
    skewness = math.fsum(part**3 for part in parts) / math.pow(math.fsum(part * part for part in parts), 1.5)
    return _SKEWNESS_FACTOR * skewness * math.sqrt(count * (count - 1)) / (count - 2)


def _unskewed(t: float, skewness: float) -> float:
    """Return Hall's transform of a studentised mean, whose distribution is nearer to Student's."""
    return t + skewness * (t * t / 3 + 1 / 6) + skewness * skewness * t**3 / 27


def _skewed(quantile: float, skewness: float) -> float:
    """Return which studentised mean `_unskewed` takes to a quantile."""
    if abs(skewness) < 1e-9:
        return quantile
    return 3 / skewness * (math.cbrt(1 + skewness * (quantile - skewness / 6)) - 1)


def clusters_needed(estimate: MeanEstimate, level: float = 1 - COVERAGE) -> int | None:
    """Return with how many clusters like these a mean of this size would be told from zero, four times out of five: these or more.

    None where no such number can be given: the mean is zero, there are fewer than two clusters, or it would take more than anybody plays.

    Args:
        estimate: The mean, by the method of which it is told from zero.
        level: Below which p-value it is told.
    """
    if not estimate.mean or estimate.p_value() is None:
        return None

    def are_enough(count: int) -> bool:
        p_value = estimate.with_clusters(count).p_value()
        return p_value is not None and p_value <= level

    return _first(are_enough, estimate.num_clusters, _MOST_CLUSTERS)


def sign_p_value(above: int, below: int) -> float:
    """Return the two-sided p-value of a sign test: how often as many of so many tosses of a coin fall on one side.

    >>> [round(sign_p_value(*counts), 6) for counts in ((6, 0), (4, 2), (3, 3), (0, 0))]
    [0.03125, 0.6875, 1.0, 1.0]
    """
    return min(1.0, 2 * regularised_beta(0.5, max(above, below), min(above, below) + 1)) if above or below else 1.0


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
    return 0.5 * regularised_beta(x, df / 2, 0.5)


def _binomial_interval(successes: float, number: float) -> Range:
    """Return the exact 95 % interval of a share, of numbers that need not be whole."""
    tail = (1 - COVERAGE) / 2
    low = beta_quantile(tail, successes, number - successes + 1) if successes > 0 else 0.0
    high = beta_quantile(1 - tail, successes + 1, number - successes) if successes < number else 1.0
    return low, high


def _binomial_p_value(successes: float, number: float, share: float) -> float:
    """Return the exact two-sided p-value of a share, which `_binomial_interval` is made of."""
    share = min(max(share, 0.0), 1.0)
    as_many = regularised_beta(share, successes, number - successes + 1) if successes > 0 else 1.0
    as_few = 1 - regularised_beta(share, successes + 1, number - successes) if successes < number else 1.0
    return min(1.0, 2 * min(as_many, as_few))


def beta_quantile(probability: float, a: float, b: float) -> float:
    """Return below which number a variable with a beta distribution falls with some probability.

    >>> round(beta_quantile(0.025, 20, 1), 6), round(beta_quantile(0.975, 8, 14), 6)
    (0.831567, 0.569675)
    """
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high and high - low > 1e-16:
        low, high = (middle, high) if regularised_beta(middle, a, b) < probability else (low, middle)
    return high


def regularised_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction where that converges quickly."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - regularised_beta(1 - x, b, a)
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
