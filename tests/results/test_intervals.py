"""Intervals: Student's t, and means of clusters."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfgym.results.intervals import clusters_needed, draws_needed, estimate_mean, student_t_quantile

OF_SCIPY = [
    # probability, degrees of freedom, scipy.stats.t.ppf (scipy 1.17)
    (0.6, 1, 0.32491969623290634),
    (0.975, 1, 12.706204736174694),
    (0.975, 1.5, 6.016663104427929),
    (0.8, 4.7, 0.9249371272931716),
    (0.975, 7, 2.364624251592784),
    (0.95, 30, 1.697260886593957),
    (0.975, 59, 2.000995378088267),
    (0.9999, 199, 3.789478993814937),
    (0.975, 999.9, 1.9623393186426081),
    (0.975, 1000, 1.9623390808264083),
    (0.995, 1e6, 2.5758342201053344),
]

CLUSTERS = st.lists(st.lists(st.integers(-8, 8).map(lambda n: n / 8), min_size=1, max_size=4), min_size=2, max_size=9)


@pytest.mark.parametrize(("probability", "degrees_of_freedom", "quantile"), OF_SCIPY)
def test_quantiles_are_those_of_scipy(probability: float, degrees_of_freedom: float, quantile: float) -> None:
    assert student_t_quantile(probability, degrees_of_freedom) == pytest.approx(quantile, rel=1e-11)


def test_with_clusters_of_one_size_it_is_the_interval_of_their_means() -> None:
    """Means 1, 2 and 6: mean 3, standard deviation √7, two degrees of freedom."""
    estimate = estimate_mean({"a": [0.0, 2.0], "b": [2.0, 2.0], "c": [7.0, 5.0]})
    assert estimate.mean == 3.0
    assert estimate.standard_error == pytest.approx(math.sqrt(7 / 3))
    assert estimate.degrees_of_freedom == pytest.approx(2.0)
    assert estimate.interval == pytest.approx((3 - 4.302652729911275 * math.sqrt(7 / 3), 3 + 4.302652729911275 * math.sqrt(7 / 3)))


def test_one_large_cluster_leaves_fewer_degrees_of_freedom() -> None:
    sizes = [30, 1, 1, 1, 1]
    estimate = estimate_mean({place: [float(place + number) for number in range(size)] for place, size in enumerate(sizes)})
    assert 1.0 < estimate.degrees_of_freedom < 2.0


def test_one_cluster_has_a_mean_and_no_interval() -> None:
    estimate = estimate_mean({"only": [1.0, 2.0]})
    assert (estimate.mean, estimate.standard_error, estimate.interval) == (1.5, None, None)


@given(CLUSTERS, st.randoms(use_true_random=False))
def test_no_order_changes_a_bit(clusters: list[list[float]], rng: random.Random) -> None:
    named = list(enumerate(clusters))
    shuffled = [(name, rng.sample(values, len(values))) for name, values in rng.sample(named, len(named))]
    assert estimate_mean(dict(shuffled)) == estimate_mean(dict(named))


@given(CLUSTERS)
def test_as_many_clusters_as_are_needed_would_tell(clusters: list[list[float]]) -> None:
    """Taken so many times that there are as many as needed, the same clusters give an interval without zero."""
    estimate = estimate_mean(dict(enumerate(clusters)))
    needed = clusters_needed(estimate)
    if needed is None or needed > 2000:
        return
    assert needed >= len(clusters)
    times = -(-needed // len(clusters))
    low, high = estimate_mean(dict(enumerate(itertools.chain.from_iterable([clusters] * times)))).interval or (0.0, 0.0)
    assert not low <= 0.0 <= high


def test_no_number_of_clusters_tells_nothing_from_nothing() -> None:
    assert clusters_needed(estimate_mean({"a": [1.0], "b": [-1.0]})) is None
    assert clusters_needed(estimate_mean({"a": [1.0], "b": [1.0]})) is None
    assert clusters_needed(estimate_mean({"a": [1.0], "b": [-1.0 + 1e-9]})) is None


def test_clusters_of_several_sizes_need_more_than_there_are() -> None:
    """One cluster has most of the values, so five are worth less than three; an interval with zero asks for more of them, never fewer."""
    estimate = estimate_mean({"a": [1.0] * 30, "b": [0.0], "c": [0.0], "d": [0.5], "e": [0.25]})
    low, high = estimate.interval or (0.0, 0.0)
    assert low < 0.0 < high
    assert (clusters_needed(estimate) or 0) > 5


@pytest.mark.parametrize(("count", "share", "draws"), [(6, 0.25, 31), (6, 0.9, 7), (3, 0.01, 427), (1, 0.5, 3)])
def test_draws_that_are_needed_are_those_of_the_binomial_distribution(count: int, share: float, draws: int) -> None:
    """The first number for which scipy.stats.binom.sf(count - 1, draws, share) is 0.8 or more (scipy 1.17)."""
    assert draws_needed(count, share) == draws


def test_what_is_never_found_needs_more_draws_than_anybody_plays() -> None:
    assert draws_needed(6, 1e-9) is None
