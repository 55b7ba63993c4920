"""The forecast of a large run: durations, requests and deaths that can be worked out by hand, and a real run beside it."""

from __future__ import annotations

import itertools
import json
import logging
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("simpy")

import simpy

from benchmarks import scale_simulation
from benchmarks.scale_simulation import Options, TokenBucket, check, forecast, main
from vfgym.clients import pacing
from vfgym.errors import WorkersLost

PLAIN = Options(rollouts=200, workers=1, concurrent=1, turns=1, median=0.5, sigma=0.0, cpu_rollout=0.0, cpu_row=0.0, start=0.0)
"""Nothing but the model takes time, and it always takes the same."""


@dataclass(frozen=True, kw_only=True)
class Mortal(Options):
    """A run whose first workers live as long as is said, and whose first rollouts take as long as is said."""

    lives: tuple[float, ...] = ()
    times: tuple[float, ...] = ()

    def latencies(self) -> np.ndarray:
        latencies = super().latencies()
        latencies[: len(self.times), 0] = self.times
        return latencies

    def lifetimes(self) -> Iterator[float]:
        return itertools.chain(self.lives, itertools.repeat(math.inf))


def found(options: Options, *names: str) -> list[Any]:
    told = forecast(options)
    return [pytest.approx(told[name]) for name in names]


# Duration


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        pytest.param({}, 200 * 0.5, id="one place"),
        pytest.param({"turns": 3}, 200 * 1.5, id="turns follow one another"),
        pytest.param({"concurrent": 8}, 25 * 0.5, id="eight places"),
        pytest.param({"concurrent": 8, "workers": 4}, 25 * 0.5, id="eight places of four workers"),
        pytest.param({"concurrent": 3, "workers": 2}, 67 * 0.5, id="places that workers cannot share evenly"),
        pytest.param({"concurrent": 2, "workers": 4}, 100 * 0.5, id="no more workers than places"),
        pytest.param({"concurrent": 1000, "workers": 3}, 0.5, id="more places than rollouts"),
        pytest.param({"start": 7.0}, 7 + 100, id="workers start first"),
        pytest.param({"network": 0.25}, 200 * 0.75, id="network"),
        pytest.param({"cpu_rollout": 0.1}, 200 * 0.6, id="CPU time of a worker"),
        pytest.param({"cpu_rollout": 0.1, "turns": 2}, 200 * 1.1, id="CPU time of a worker, for all turns together"),
        pytest.param({"cpu_row": 0.125}, 200 * 0.625, id="CPU time of the coordinator"),
        pytest.param({"cpu_row": 0.125, "median": 0.0, "concurrent": 50, "workers": 5}, 200 * 0.125, id="the coordinator has one core"),
        pytest.param({"cpu_rollout": 0.25, "median": 0.0, "concurrent": 50}, 200 * 0.25, id="a worker has one core"),
        pytest.param({"cpu_rollout": 0.25, "median": 0.0, "concurrent": 50, "workers": 5}, 40 * 0.25, id="five workers have five"),
        pytest.param({"cpu_rollout": 0.25, "median": 0.0, "concurrent": 999, "workers": 2, "rollouts": 4}, 0.5, id="no worker takes all"),
        pytest.param({"cpu_rollout": 0.2, "rollouts": 2, "concurrent": 2}, 0.8, id="what is ready at once waits in line"),
    ],
)
def test_duration(changes: dict[str, Any], seconds: float) -> None:
    options = replace(PLAIN, **changes)
    assert found(options, "seconds", "rollouts_per_second") == [seconds, options.rollouts / seconds]


def test_the_ideal_has_nothing_but_the_model_and_its_rate_limit() -> None:
    slow = replace(PLAIN, network=0.1, start=7.0, concurrent=4)
    assert found(slow, "ideal_seconds", "seconds", "share_of_ideal") == [25.0, 37.0, 25 / 37]
    assert found(replace(slow, requests_per_second=4.0), "ideal_seconds") == [(200 - 4) / 4]


def test_where_the_time_of_places_goes_adds_up() -> None:
    told = forecast(Options(rollouts=200, workers=3, concurrent=30, mtbf=20.0, requests_per_second=20.0, seed=4))
    assert sum(told["place_time"].values()) == pytest.approx(1.0)
    assert min(told["place_time"].values()) >= 0
    assert told["place_time"]["lost"] == pytest.approx(told["lost_place_seconds"] / (30 * told["seconds"]))


@pytest.mark.parametrize(
    ("changes", "bottleneck"),
    [
        ({"concurrent": 8}, "the model"),
        ({"cpu_rollout": 0.25, "median": 0.0, "concurrent": 50}, "the CPU time of workers"),
        ({"cpu_row": 0.125, "median": 0.1, "concurrent": 50}, "the CPU time of the coordinator"),
        ({"median": 0.0, "requests_per_second": 1.0}, "the rate limit"),
        ({"start": 1000.0}, "starts and deaths of workers"),
        ({"concurrent": 1000}, "places without a rollout"),
    ],
)
def test_the_bottleneck_is_what_is_used_most(changes: dict[str, Any], bottleneck: str) -> None:
    assert forecast(replace(PLAIN, **changes))["bottleneck"] == bottleneck


def test_how_busy_cores_are() -> None:
    options = replace(PLAIN, cpu_rollout=0.25, cpu_row=0.25, workers=2, concurrent=2, rollouts=2)
    assert found(options, "seconds", "workers_busy", "coordinator_busy") == [1.25, 0.25 / 1.25, 0.5 / 1.25]


# The rate limit


def test_a_bucket_holds_the_requests_of_one_second() -> None:
    bucket = TokenBucket(2.0)
    assert [bucket.take(now) for now in (0.0, 0.0, 0.0, 0.25, 0.5, 100.0, 100.0, 100.0)] == [
        True,
        True,
        False,
        False,
        True,
        True,
        True,
        False,
    ]
    assert [TokenBucket(0.5).take(0.0), TokenBucket(math.inf).take(0.0)] == [True, True]


def test_a_refused_request_waits_as_long_as_it_is_asked_to() -> None:
    limited = replace(PLAIN, median=0.0, requests_per_second=1.0)
    assert found(limited, "seconds", "requests", "refused", "gave_up") == [199, 399, 199, 0]
    assert found(replace(limited, requests_per_second=0.5, retry_after=2.0), "seconds", "refused") == [398, 199]
    assert found(replace(limited, retry_after=4.0, rollouts=3), "seconds", "refused") == [8, 2]
    assert found(replace(limited, network=0.25, rollouts=2), "seconds", "refused") == [1.75, 1]


def test_a_refusal_holds_the_requests_of_all_workers() -> None:
    """At 0 s one worker is answered and the other refused; the first one's next request waits until 1 s too, when one passes."""
    limited = replace(PLAIN, workers=2, concurrent=2, requests_per_second=1.0, rollouts=3)
    assert found(limited, "seconds", "requests", "refused") == [2.5, 5, 2]


def test_a_rollout_gives_up_when_its_request_is_refused_too_often() -> None:
    limited = replace(PLAIN, median=0.0, requests_per_second=0.001, rollouts=2, turns=2)
    told = forecast(limited)
    assert (told["gave_up"], told["requests"], told["refused"]) == (2, 1 + 2 * 11, 2 * 11)
    assert told["seconds"] == pytest.approx(20.0)


def test_a_simulated_worker_slows_down_as_a_real_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refusals, answers and requests in any order, in which both let begin the same."""
    for seed in range(20):
        random, env = Random(seed), simpy.Environment()
        monkeypatch.setattr(pacing, "time", SimpleNamespace(monotonic=lambda env=env: env.now))
        most = random.choice([1, 2, 3, 16])
        real, simulated, running = pacing.Pace(most), scale_simulation.Pace(env, most), 0
        for _ in range(200):
            env.run(until=env.now + random.expovariate(4.0))
            what = random.choices(["begin", "answer", "refuse"], [5, 4, 1])[0]
            if what == "begin" and running < most:
                may_begin = next(simulated.enter(), None) is None
                simulated._waiting.clear()
                begins = real.enter()
                with pytest.raises(StopIteration if may_begin else RuntimeError):  # where it has to wait, no loop is running
                    begins.send(None)
                running += may_begin
            elif what == "answer" and running:
                for pace in (real, simulated):
                    pace.note_answer()
                    pace.leave()
                running -= 1
            elif what == "refuse":
                seconds = random.choice([0.0, 0.25, 3.0])
                real._note_refusal(seconds)
                simulated.note_refusal(seconds)


@pytest.mark.parametrize("workers", [1, 4])
def test_a_run_comes_near_its_rate_limit_and_never_above(workers: int) -> None:
    told = forecast(Options(rollouts=2000, turns=2, workers=workers, concurrent=64, median=0.5, requests_per_second=50.0, start=0.0))
    assert told["bottleneck"] == "the rate limit"
    assert (4000 - 50) / 50 <= told["seconds"] <= 1.5 * 4000 / 50
    assert told["requests"] == 4000 + told["refused"]


# Deaths


DYING = Mortal(**{**vars(PLAIN), "median": 5.0, "start": 1.0, "rollouts": 1})


def test_what_a_dead_worker_played_is_played_again() -> None:
    """Two workers play from 1 s on. One dies at 3 s, and plays its rollout from 4 s on."""
    told = replace(DYING, lives=(3.0,), workers=2, concurrent=2, rollouts=2)
    assert found(told, "seconds", "deaths", "redone", "failed") == [9, 1, 1, 0]
    assert found(told, "requests", "lost_requests", "lost_place_seconds") == [3, 1, 2]


def test_it_is_played_before_what_has_not_begun() -> None:
    """The rollout of 10 s is lost at 3 s, and begins again at 3.5 s on the other worker."""
    told = replace(DYING, lives=(3.0,), times=(10.0, 2.5), median=2.0, workers=2, concurrent=2, rollouts=6)
    assert found(told, "seconds", "redone") == [13.5, 1]


def test_who_waits_plays_what_is_left_unless_the_others_are_only_about_to_connect() -> None:
    """Within the first 10 s each worker that may come keeps its share; afterwards only those that are connected do."""
    two = replace(DYING, workers=2, concurrent=4, rollouts=2)
    assert found(replace(two, lives=(math.inf, 2.0)), "seconds") == [3 + 5]
    assert found(replace(two, lives=(12.0,), times=(20.0,)), "seconds") == [12 + 20]
    assert found(replace(two, lives=(math.inf, 8.0), start=9.0), "seconds") == [10 + 5]


def test_the_third_death_is_a_failed_row() -> None:
    """A worker lives a second after it has started: deaths at 2, 4 and 6 s."""
    assert found(replace(DYING, lives=(2.0,) * 3), "seconds", "deaths", "redone", "failed") == [6, 3, 2, 1]
    assert found(replace(DYING, lives=(2.0,) * 2), "seconds", "deaths", "redone", "failed") == [10, 2, 2, 0]


def test_what_two_workers_died_of_is_played_alone() -> None:
    """Two rollouts share the worker that dies at 2 and at 4 s; the next one plays them one after the other."""
    assert found(replace(DYING, lives=(2.0, 2.0), concurrent=2, rollouts=2), "seconds", "redone", "failed") == [15, 4, 0]


def test_who_plays_something_alone_finishes_what_it_plays_first() -> None:
    """The first worker dies with two rollouts at 12 and at 24 s, and is given up. The other one plays these after 51 s, one by one."""
    lives, times = (12.0, math.inf, 12.0, 1.0, 1.0, 1.0), (5.0, 5.0, 14.0, 40.0)
    told = replace(DYING, lives=lives, times=times, start=11.0, workers=2, concurrent=4, rollouts=4)
    assert found(told, "seconds", "deaths", "redone", "failed") == [61, 5, 4, 0]


def test_where_nothing_else_is_left_each_worker_plays_something_alone() -> None:
    """Both workers die twice; from 5 s on each plays one of the two rollouts."""
    told = replace(DYING, lives=(2.0,) * 4, workers=2, concurrent=2, rollouts=2)
    assert found(told, "seconds", "deaths", "redone", "failed") == [10, 4, 4, 0]


def test_one_worker_plays_alone_while_there_is_something_else() -> None:
    """Two of four rollouts killed a worker twice: from 5 s on one worker plays these, one by one, and the other one the rest."""
    told = replace(DYING, lives=(2.0,) * 4, workers=2, concurrent=2, rollouts=4)
    assert found(told, "seconds", "redone", "failed") == [15, 4, 0]


def test_what_dead_workers_computed_counts_as_busy() -> None:
    """It computes from 1 to 2 s, dies, and computes for 2 s before and after the request that follows."""
    assert found(replace(DYING, lives=(2.0,), cpu_rollout=4.0), "seconds", "workers_busy") == [12, 5 / 12]


def test_a_worker_that_dies_before_it_has_started_three_times_is_given_up() -> None:
    with pytest.raises(WorkersLost, match="died 3 times in a row before it had started"):
        forecast(replace(DYING, lives=(0.5,) * 3))
    assert found(replace(DYING, lives=(0.5,) * 2), "seconds", "deaths", "redone") == [0.5 * 2 + 1 + 5, 2, 0]
    told = forecast(replace(DYING, lives=(0.5,) * 2))
    assert told["place_time"]["starting"] == pytest.approx(2 / 7)
    both = replace(DYING, lives=(0.5, math.inf, 0.5, 0.5), workers=2, concurrent=2, rollouts=2)
    assert found(both, "seconds", "deaths") == [11, 3]


def test_workers_live_as_long_as_is_said_on_average() -> None:
    lives = list(itertools.islice(Options(mtbf=30.0, seed=3).lifetimes(), 10_000))
    assert sum(lives) / len(lives) == pytest.approx(30.0, rel=0.05)
    assert next(Options().lifetimes()) == math.inf


def test_more_deaths_cost_more() -> None:
    often, seldom, never = (forecast(Options(rollouts=2000, workers=4, concurrent=64, mtbf=mtbf)) for mtbf in (20.0, 200.0, math.inf))
    assert often["deaths"] > seldom["deaths"] > never["deaths"] == never["redone"] == never["lost_requests"] == 0
    assert often["seconds"] > seldom["seconds"]


# Latencies and the seed


def test_latencies_are_lognormal() -> None:
    latencies = Options(rollouts=20_000, turns=2, median=3.0, sigma=0.5).latencies()
    assert latencies.shape == (20_000, 2)
    assert float((latencies < 3.0).mean()) == pytest.approx(0.5, abs=0.02)
    assert float((latencies < 3.0 * math.exp(0.5)).mean()) == pytest.approx(0.841, abs=0.02)


def test_a_seed_decides_everything() -> None:
    options = Options(rollouts=200, concurrent=32, mtbf=30.0, requests_per_second=30.0)
    assert forecast(options) == forecast(options)
    assert forecast(options)["seconds"] != forecast(replace(options, seed=1))["seconds"]


# The command


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--rollouts", "200", "--workers", "2", "--concurrent", "16", "--requests-per-second", "90", "--seed", "3", "--json"])
    told = json.loads(capsys.readouterr().out)
    expected = forecast(Options(rollouts=200, workers=2, concurrent=16, requests_per_second=90.0, seed=3))
    assert told == {"options": told["options"], **expected}
    assert told["options"]["rollouts"] == 200
    assert told["options"]["mtbf"] is None
    assert {"seconds", "share_of_ideal", "bottleneck", "workers_busy", "coordinator_busy", "redone", "requests", "refused"} < set(told)


def test_each_option_reaches_the_forecast(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    given = Options(
        **{name: 3 for name in ("rollouts", "workers", "concurrent", "turns", "seed")},
        **{name: 1.5 + number for number, name in enumerate(("median", "sigma", "mtbf", "requests_per_second", "retry_after"))},
        **{name: 0.25 + number for number, name in enumerate(("cpu_rollout", "cpu_row", "start", "network"))},
    )
    seen: list[Options] = []
    monkeypatch.setattr(scale_simulation, "forecast", lambda options: seen.append(options) or {})
    main(["--json", *itertools.chain(*((f"--{name.replace('_', '-')}", str(value)) for name, value in vars(given).items()))])
    assert seen == [given]


def test_the_forecast_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--rollouts", "200", "--workers", "1", "--concurrent", "8", "--median", "2", "--sigma", "0", "--start", "1000"])
    told = capsys.readouterr().out
    assert "bottleneck    starts and deaths of workers" in told
    assert "600, of them refused (429): 0" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rollouts", "0"], "argument --rollouts: expected a whole number of at least 1, got '0'"),
        (["--workers", "two"], "argument --workers: expected a whole number of at least 1, got 'two'"),
        (["--concurrent", "1.5"], "argument --concurrent: expected a whole number of at least 1, got '1.5'"),
        (["--median", "-1"], "argument --median: expected a number of at least 0, got '-1'"),
        (["--sigma", "nan"], "argument --sigma: expected a number of at least 0, got 'nan'"),
        (["--mtbf", "0"], "argument --mtbf: expected a number above 0, got '0'"),
        (["--requests-per-second", "inf"], "argument --requests-per-second: expected a number of at least 0, got 'inf'"),
        (["--seed", "x"], "argument --seed: invalid int value: 'x'"),
        (["--wrong"], "unrecognized arguments: --wrong"),
    ],
)
def test_options_that_cannot_be(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_a_run_that_nobody_can_play(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"no worker is left: .* within 50 s"):
        main(["--rollouts", "200", "--mtbf", "0.001", "--start", "50"])


# A real run


@pytest.mark.exhaustive
def test_a_real_run_beside_its_forecast() -> None:
    """Twenty-five rollouts above a rate limit, by one worker."""
    options = replace(PLAIN, rollouts=25, concurrent=4, turns=2, median=0.001, requests_per_second=30.0, retry_after=0.1)
    with scale_simulation.served(options) as server:
        measured = scale_simulation.play(options, server.url)
    assert [measured[name] for name in ("deaths", "redone", "failed", "gave_up")] == [0, 0, 0, 0]
    assert server.counts["refused"] > 0
    assert server.counts["requests"] == 2 * 25 + server.counts["refused"]
    assert 0 < measured["first"] <= measured["seconds"]


@pytest.mark.exhaustive
def test_a_check_with_deaths() -> None:
    options = replace(scale_simulation.CHECKED, rollouts=1500, mtbf=6.0)
    level = logging.getLogger("vfgym").level
    try:
        told = check(options)
    finally:
        logging.getLogger("vfgym").setLevel(level)
    assert set(told["figures"]) == {"seconds", "requests", "refused", "deaths", "redone", "failed", "gave_up"}
    assert told["figures"]["deaths"]["measured"] > 0
    assert told["calibrated"]["cpu_rollout"] > 0
    assert json.loads(json.dumps(told)) == told
