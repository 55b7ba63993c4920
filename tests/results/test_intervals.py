"""Intervals: that they hold what they estimate, how wide they are, and the distributions that they are made of."""

from __future__ import annotations

import itertools
import logging
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfgym.results.intervals import (
    MeanEstimate,
    beta_quantile,
    clusters_needed,
    draws_needed,
    estimate_mean,
    interval_of,
    range_of,
    regularised_beta,
    student_t_quantile,
)

UNIT = (0.0, 1.0)
BOTH_SIGNS = (-1.0, 1.0)

CLUSTERS = st.lists(st.lists(st.integers(-8, 8).map(lambda n: n / 8), min_size=1, max_size=4), min_size=2, max_size=9)
RANGES = st.sampled_from([None, BOTH_SIGNS, (-3.0, 1.5)])


def estimate(clusters: Sequence[Sequence[float]], value_range: tuple[float, float] | None = None) -> MeanEstimate:
    return estimate_mean(dict(enumerate(clusters)), value_range)


# What is known without drawing


def test_zeros_and_ones_of_one_rollout_a_task_have_the_exact_interval() -> None:
    """Those of scipy.stats.binomtest(...).proportion_ci(method="exact") (scipy 1.17)."""
    for right, tasks, exact in [
        (0, 8, (0.0, 0.3694166475528192)),
        (7, 20, (0.1539092047845412, 0.5921885345328283)),
        (20, 20, (0.8315665290169147, 1.0)),
        (199, 200, (0.9724581015424416, 0.9998734189719902)),
    ]:
        assert interval_of({task: [float(task < right)] for task in range(tasks)}) == pytest.approx(exact, abs=1e-12)


def test_values_that_do_not_vary_leave_room_for_others_where_a_range_is_known() -> None:
    for rollouts in (1, 4):
        assert interval_of({task: [1.0] * rollouts for task in range(20)}) == pytest.approx([0.8315665290169147, 1.0])
        assert interval_of({task: [0.0] * rollouts for task in range(20)}) == pytest.approx([0.0, 1 - 0.8315665290169147])
        assert interval_of({task: [-200.0] * rollouts for task in range(20)}, (-200.0, 0.0)) == pytest.approx(
            [-200.0, -200 * 0.8315665290169147]
        )
    low, high = interval_of({task: [0.5] for task in range(20)}, UNIT) or (0.5, 0.5)
    assert low < 0.45
    assert high > 0.55
    assert interval_of({task: [7.3] for task in range(20)}) is None
    assert estimate([[0.1 + 0.2], [0.3], [0.3]]).standard_error == 0.0


def test_rollouts_that_agree_within_their_tasks_are_worth_one_and_others_more() -> None:
    agreeing = interval_of({task: [float(task < 10)] * 4 for task in range(20)}) or [0.0, 1.0]
    mixed = interval_of({task: [0.0, 1.0, 0.0, 1.0] for task in range(20)}) or [0.0, 1.0]
    exact = interval_of({task: [float(task < 10)] for task in range(20)})
    assert agreeing == pytest.approx(exact)
    assert mixed[1] - mixed[0] < 0.6 * (agreeing[1] - agreeing[0])
    eighty = interval_of({task: [float(task < 40)] for task in range(80)}) or [0.0, 1.0]
    assert mixed[1] - mixed[0] >= eighty[1] - eighty[0], "no more than eighty answers can be worth"


@given(CLUSTERS, st.sampled_from([2.0, 10.0, 500.0]), st.sampled_from([0.0, -3.0, 100.0]))
def test_the_scale_changes_nothing(clusters: list[list[float]], factor: float, shift: float) -> None:
    low, high = estimate(clusters, BOTH_SIGNS).interval or UNIT
    scaled = [[factor * value + shift for value in cluster] for cluster in clusters]
    there = estimate(scaled, (shift - factor, shift + factor)).interval
    assert there == pytest.approx((factor * low + shift, factor * high + shift), rel=1e-9, abs=1e-9 * factor)


@given(CLUSTERS, RANGES)
def test_an_interval_is_in_the_range_and_has_the_mean_in_it(clusters: list[list[float]], value_range: tuple[float, float] | None) -> None:
    found = estimate(clusters, value_range)
    if found.interval is None:
        assert value_range is None
        return
    low, high = found.interval
    assert low <= found.mean + 1e-12
    assert high >= found.mean - 1e-12
    if value_range is not None:
        assert low < high
        assert value_range[0] - 1e-12 <= low
        assert high <= value_range[1] + 1e-12


@given(CLUSTERS, RANGES)
def test_the_p_value_is_the_interval_read_backwards(clusters: list[list[float]], value_range: tuple[float, float] | None) -> None:
    found = estimate(clusters, value_range)
    if found.interval is None:
        return
    low, high = found.interval
    ends = [end for end, limit in zip((low, high), value_range or (None, None), strict=True) if end != limit]
    for end in ends:
        assert found.p_value(end) == pytest.approx(0.05, abs=1e-6)
    beyond = 1e-3 * (high - low)
    assert (found.p_value(low + beyond) or 0.0) > 0.05
    for outside in (low - beyond, high + beyond):
        assert (found.p_value(outside) or 0.0) < 0.05


def test_where_all_values_are_alike_the_p_value_is_that_of_tosses_of_a_coin() -> None:
    assert estimate([[0.5]] * 6).p_value() == pytest.approx(2 * 0.5**6)
    assert estimate([[0.0]] * 6).p_value() == 1.0
    assert estimate([[0.5]]).p_value() is None


def test_values_of_unknown_range_have_the_interval_of_their_means_longer_on_the_side_of_a_tail() -> None:
    found = estimate([[0.0, 2.0], [3.0, 3.0], [4.0, 6.0]])
    assert found.mean == 3.0
    assert found.standard_error == pytest.approx(math.sqrt(4 / 3))
    assert found.degrees_of_freedom == pytest.approx(2.0)
    assert found.interval == pytest.approx((3 - 4.302652729911275 * math.sqrt(4 / 3), 3 + 4.302652729911275 * math.sqrt(4 / 3)))
    low, high = estimate([[1.0], [2.0], [1.5], [2.5], [30.0]]).interval or UNIT
    mean = 7.4
    assert high - mean > 1.5 * (mean - low)
    mirrored = estimate([[-1.0], [-2.0], [-1.5], [-2.5], [-30.0]]).interval
    assert mirrored == pytest.approx((-high, -low))


@pytest.mark.parametrize("value_range", [None, (0.0, 2.0)])
def test_one_cluster_has_a_mean_and_no_interval(value_range: tuple[float, float] | None) -> None:
    found = estimate([[1.0, 2.0]], value_range)
    assert (found.mean, found.standard_error, found.interval, found.p_value()) == (1.5, None, None, None)
    assert found.with_clusters(9) is found, "of one cluster nothing is known that more would tell"


@pytest.mark.parametrize("clusters", [[[0.0], [1.0], [5.0]], [[0.0, 2.0, 4.0], [1.0], [5.0]]])
def test_more_clusters_leave_the_same_share_of_degrees_of_freedom(clusters: list[list[float]]) -> None:
    found = estimate(clusters)
    assert found.with_clusters(9).degrees_of_freedom == pytest.approx(4 * found.degrees_of_freedom)


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [1.0, math.inf], [1e308, -1e308, 1e308]])
def test_numbers_without_a_mean_have_no_interval(values: list[float]) -> None:
    assert interval_of(dict(enumerate([value] for value in values))) is None


@given(CLUSTERS, RANGES, st.randoms(use_true_random=False))
def test_no_order_changes_a_bit(clusters: list[list[float]], value_range: tuple[float, float] | None, rng: random.Random) -> None:
    named = list(enumerate(clusters))
    shuffled = [(name, rng.sample(values, len(values))) for name, values in rng.sample(named, len(named))]
    assert estimate_mean(dict(shuffled), value_range) == estimate_mean(dict(named), value_range)


# Which range holds


def test_values_of_zero_and_one_have_a_range_where_none_is_declared() -> None:
    assert range_of([0.0, 1.0, 1.0], None) == UNIT
    assert range_of([0.0, 0.5], None) is None
    assert range_of([0.0, 1.0], (-1.0, 1.0)) == (-1.0, 1.0)
    assert range_of([-1.0], [-1.0, 1.0]) == (-1.0, 1.0), "the lower end is in it, too"
    assert range_of([0.0], (0.0, 0.0)) is None


def test_a_value_outside_of_the_declared_range_is_reported_once_and_the_range_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "vfgym.results.intervals"):
        for _ in range(2):
            assert range_of([0.0, 1.25], (0.0, 1.0625)) is None
    (record,) = caplog.records
    assert "counts with 1.25, which is outside of the declared range of rewards (0 to 1.0625)" in record.getMessage()


# How many are needed


@given(CLUSTERS, RANGES)
def test_as_many_clusters_as_are_needed_would_tell(clusters: list[list[float]], value_range: tuple[float, float] | None) -> None:
    """Taken so many times that there are as many as needed, the same clusters give an interval without zero."""
    needed = clusters_needed(estimate(clusters, value_range))
    if needed is None or needed > 2000:
        return
    assert needed >= len(clusters)
    times = -(-needed // len(clusters))
    assert (estimate(list(itertools.chain.from_iterable([clusters] * times)), value_range).p_value() or 0.0) < 0.05


def test_more_clusters_like_these_are_nearly_these_taken_several_times() -> None:
    clusters = [[0.0], [0.0, 1.0], [5.0], [0.5]] * 10
    found, more = estimate(clusters).with_clusters(160), estimate(clusters * 4)
    for name in ("standard_error", "skewness", "residual_variance", "effective_clusters", "num_values", "num_clusters"):
        assert getattr(found, name) == pytest.approx(getattr(more, name), rel=0.05), name


def test_a_stricter_level_needs_more_clusters_and_no_number_tells_nothing_from_nothing() -> None:
    found = estimate([[1.0]] * 6 + [[-1.0]] * 4 + [[0.0]] * 10, BOTH_SIGNS)
    assert (clusters_needed(found) or 0) < (clusters_needed(found, 0.01) or 0)
    assert clusters_needed(estimate([[1.0], [-1.0]])) is None
    assert clusters_needed(estimate([[1.0], [-1.0]], BOTH_SIGNS)) is None
    assert clusters_needed(estimate([[1.0], [-1.0 + 1e-9]])) is None
    assert clusters_needed(estimate([[1.0]])) is None
    assert clusters_needed(estimate([[1.0], [1.0]])) == 6, "six of six on one side"


@pytest.mark.parametrize(("count", "share", "draws"), [(6, 0.25, 31), (6, 0.9, 7), (3, 0.01, 427), (1, 0.5, 3)])
def test_draws_that_are_needed_are_those_of_the_binomial_distribution(count: int, share: float, draws: int) -> None:
    """The first number for which scipy.stats.binom.sf(count - 1, draws, share) is 0.8 or more (scipy 1.17)."""
    assert draws_needed(count, share) == draws


# Distributions

T_OF_SCIPY = [
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
BETA_OF_SCIPY = [
    # probability, a, b, scipy.stats.beta.ppf (scipy 1.17)
    (0.025, 20, 1, 0.8315665290169146),
    (0.975, 1, 20, 0.1684334709830853),
    (0.975, 8, 14, 0.5696754829041243),
    (0.5, 0.3, 0.3, 0.5),
    (0.025, 0.2, 8.3, 8.061351993947966e-10),
    (0.975, 123.4, 1.7, 0.9987387506105277),
    (0.025, 2000.5, 1999.5, 0.4846328172322696),
    (0.001, 60000.0, 41.25, 0.9989347189054699),
]


@pytest.mark.parametrize(("probability", "degrees_of_freedom", "quantile"), T_OF_SCIPY)
def test_quantiles_of_student_are_those_of_scipy(probability: float, degrees_of_freedom: float, quantile: float) -> None:
    assert student_t_quantile(probability, degrees_of_freedom) == pytest.approx(quantile, rel=1e-11)


@pytest.mark.parametrize(("probability", "a", "b", "quantile"), BETA_OF_SCIPY)
def test_quantiles_of_beta_are_those_of_scipy(probability: float, a: float, b: float, quantile: float) -> None:
    assert beta_quantile(probability, a, b) == pytest.approx(quantile, rel=1e-10)
    assert regularised_beta(quantile, a, b) == pytest.approx(probability, rel=1e-9)


def test_the_ends_of_beta_are_certain() -> None:
    assert (regularised_beta(0.0, 2.0, 3.0), regularised_beta(1.0, 2.0, 3.0)) == (0.0, 1.0)


# How often they hold what they estimate

Draw = Callable[[np.random.Generator, np.ndarray, int], np.ndarray]
"""Draws values from 0 to 1 with the means of some tasks, so many for each."""


def _binary(rng: np.random.Generator, means: np.ndarray, rollouts: int) -> np.ndarray:
    return (rng.random((len(means), rollouts)) < means[:, None]).astype(float)


def _fifths(rng: np.random.Generator, means: np.ndarray, rollouts: int) -> np.ndarray:
    """Draw shares of five tests that pass."""
    return rng.binomial(5, means[:, None], (len(means), rollouts)) / 5


def _beta(rng: np.random.Generator, means: np.ndarray, rollouts: int) -> np.ndarray:
    """Draw scores, of which few are near the middle."""
    means = np.clip(means, 1e-6, 1 - 1e-6)[:, None]
    return rng.beta(2 * means, 2 * (1 - means), (len(means), rollouts))


def _sometimes_nothing(rng: np.random.Generator, means: np.ndarray, rollouts: int) -> np.ndarray:
    """Draw scores that are near each other, but for one in twenty, which is 0."""
    scores = np.clip(means[:, None] / 0.95 + rng.uniform(-0.02, 0.02, (len(means), rollouts)), 0.0, 1.0)
    return scores * (rng.random((len(means), rollouts)) < 0.95)


MEANS = (0.02, 0.1, 0.5, 0.9, 0.98)
SIZES = [(tasks, rollouts) for tasks in (8, 20, 200) for rollouts in (1, 4)]
DIFFICULTIES = (None, 4.0, 0.5)
"""How alike tasks are: the sum of the parameters of the beta distribution of their means; None where all have one mean."""


def task_means(rng: np.random.Generator, mean: float, alike: float | None, tasks: int) -> np.ndarray:
    return np.full(tasks, mean) if alike is None else rng.beta(alike * mean, alike * (1 - mean), tasks)


def coverage(draw: Callable[[], tuple[np.ndarray, float]], declared: tuple[float, float] | None, draws: int) -> float:
    """Return in which share of draws of values, a row for each task, the interval of their mean has the true one in it."""
    held = 0
    for _ in range(draws):
        values, truth = draw()
        clusters: dict[Any, list[float]] = dict(enumerate(values.tolist()))
        found = estimate_mean(clusters, declared)
        held += (found.p_value(truth) or 0.0) >= 0.05  # the interval read backwards, which is several times as fast
    return held / draws


def coverage_of_means(rng: np.random.Generator, draw: Draw, mean: float, alike: float | None, size: tuple[int, int], draws: int) -> float:
    return coverage(lambda: (draw(rng, task_means(rng, mean, alike, size[0]), size[1]), mean), UNIT, draws)


def coverage_of_differences(
    rng: np.random.Generator, draw: Draw, means: tuple[float, float], alike: float | None, size: tuple[int, int], draws: int
) -> float:
    def both() -> tuple[np.ndarray, float]:
        state = rng.bit_generator.state
        first = task_means(rng, means[0], alike, size[0])
        rng.bit_generator.state = state  # a task that is hard for one is hard for the other
        second = task_means(rng, means[1], alike, size[0])
        return draw(rng, second, size[1]) - draw(rng, first, size[1]), means[1] - means[0]

    return coverage(both, BOTH_SIGNS, draws)


@pytest.mark.parametrize(
    ("draw", "mean", "alike", "size"),
    [
        (_binary, 0.98, None, (8, 1)),
        (_binary, 0.98, 0.5, (8, 4)),
        (_binary, 0.1, 4.0, (20, 4)),
        (_beta, 0.02, 0.5, (8, 4)),
        (_beta, 0.9, 4.0, (20, 1)),
        (_sometimes_nothing, 0.9, None, (20, 1)),
    ],
)
def test_intervals_hold_means_near_the_ends(draw: Draw, mean: float, alike: float | None, size: tuple[int, int]) -> None:
    assert coverage_of_means(np.random.default_rng(25), draw, mean, alike, size, 400) >= 0.93


@pytest.mark.exhaustive
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("draw", [_binary, _fifths, _beta])
def test_intervals_hold_means_in_2000_draws(draw: Draw, size: tuple[int, int]) -> None:
    rng = np.random.default_rng([25, *size])
    found = {(mean, alike): coverage_of_means(rng, draw, mean, alike, size, 2000) for mean in MEANS for alike in DIFFICULTIES}
    assert min(found.values()) >= 0.93, found


@pytest.mark.exhaustive
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("draw", [_binary, _fifths, _beta])
def test_intervals_hold_differences_in_2000_draws(draw: Draw, size: tuple[int, int]) -> None:
    rng = np.random.default_rng([26, *size])
    pairs = [(0.02, 0.02), (0.02, 0.1), (0.1, 0.9), (0.5, 0.5), (0.5, 0.9), (0.9, 0.98), (0.98, 0.02)]
    found = {(pair, alike): coverage_of_differences(rng, draw, pair, alike, size, 2000) for pair in pairs for alike in DIFFICULTIES}
    assert min(found.values()) >= 0.93, found


@pytest.mark.exhaustive
@pytest.mark.parametrize("size", SIZES)
def test_intervals_hold_skewed_values_without_a_range_in_2000_draws(size: tuple[int, int]) -> None:
    rng, tasks = np.random.default_rng([27, *size]), (size[0], 1)
    draws = {
        "log-normal": lambda: (rng.lognormal(0.0, 1.0, size), math.exp(0.5)),
        "log-normal, by task": lambda: (rng.lognormal(0.0, 0.7, tasks) * rng.lognormal(0.0, 0.7, size), math.exp(0.49)),
        "exponential": lambda: (-rng.exponential(1.0, size), -1.0),
    }
    found = {name: coverage(draw, None, 2000) for name, draw in draws.items()}
    assert min(found.values()) >= 0.90, found


@pytest.mark.parametrize("tasks", [8, 20, 200])
def test_no_interval_is_much_wider_than_the_exact_one(tasks: int) -> None:
    for right in range(0, tasks + 1, max(1, tasks // 20)):
        low, high = interval_of({task: [float(task < right)] for task in range(tasks)}) or UNIT
        exact_low = beta_quantile(0.025, right, tasks - right + 1) if right else 0.0
        exact_high = beta_quantile(0.975, right + 1, tasks - right) if right < tasks else 1.0
        assert high - low <= 1.3 * (exact_high - exact_low)
