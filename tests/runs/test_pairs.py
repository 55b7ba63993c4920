"""Games for two are played from either seat, and the two rollouts are one observation (`evaluate(..., both_seats=True)`)."""

from __future__ import annotations

import statistics
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from tests.wrappers.games.nim import NimEnv
from vfgym import Rubric, SingleTurnEnv, State, evaluate
from vfgym.errors import ConfigurationError
from vfgym.results import GenerateOutputs, compare
from vfgym.runs.inputs import Example
from vfgym.runs.pairs import SeatPairs, find_pairs


def played(env: Any, **kwargs: Any) -> GenerateOutputs:
    return evaluate(env, "random", **{"progress": False, "num_examples": 6, "both_seats": True, **kwargs})


def test_two_rollouts_are_a_pair_of_the_games_players_with_one_seed_and_a_number_of_its_own() -> None:
    pairs = SeatPairs(("white", "black"), pairs_per_example=2)
    examples = [Example(70 + place, place, 4, place) for place in (0, 1, 2)]
    rows = [pairs.of(example, number) for example in examples for number in range(4)]
    assert [row["player"] for row in rows] == ["white", "black"] * 6
    assert [row["pair"] for row in rows] == [pair for pair in range(6) for _ in range(2)]
    seed_of = pairs.seed_of(lambda example, number: 100 * example.example_id + number)
    assert [seed_of(examples[1], number) for number in range(4)] == [7100, 7100, 7101, 7101]
    assert find_pairs(NimEnv(), 3) == SeatPairs((0, 1), 3)


def test_every_seed_is_played_once_from_each_seat() -> None:
    results = played(NimEnv(), rollouts_per_example=2)
    rows = results["outputs"]
    assert [(row["example_id"], row["rollout"], row["player"], row["pair"]) for row in rows[:5]] == [
        (0, 0, 0, 0),
        (0, 1, 1, 0),
        (0, 2, 0, 1),
        (0, 3, 1, 1),
        (1, 0, 0, 2),
    ]
    assert results["metadata"]["rollouts_per_example"] == 4
    assert results["metadata"]["both_seats"] is True
    for _, pair in groupby(rows, key=lambda row: row["pair"]):
        first, second = pair
        assert (first["seed"], first["example_id"]) == (second["seed"], second["example_id"])
        assert first["prompt"][0]["content"].startswith("You are player 0.")
        assert second["prompt"][0]["content"].startswith("You are player 1.")


def test_a_pair_is_one_observation() -> None:
    """Six tasks with a pair each: the standard error and the intervals are those of six numbers."""
    results = played(NimEnv())
    pairs = [[row["reward"] for row in rows] for _, rows in groupby(results["outputs"], key=lambda row: row["pair"])]
    means = [statistics.fmean(pair) for pair in pairs]
    assert results["metadata"]["std_error"] == pytest.approx(statistics.stdev(means) / 6**0.5)
    (pair,) = compare(results, played(NimEnv(), seed=1))["pairs"]
    assert (pair["examples"], pair["rollouts"], pair["unpaired"]) == (6, 12, [0, 0])


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    whole = played(NimEnv())
    played(NimEnv(), results_path=tmp_path, num_examples=4)
    resumed = played(NimEnv(), results_path=tmp_path, resume=True)
    assert [(row["player"], row["pair"], row["reward"]) for row in resumed["outputs"]] == [
        (row["player"], row["pair"], row["reward"]) for row in whole["outputs"]
    ]
    with pytest.raises(ConfigurationError, match="both_seats"):
        evaluate(NimEnv(), "random", num_examples=6, rollouts_per_example=2, results_path=tmp_path, resume=True, progress=False)


@pytest.mark.parametrize(
    ("env", "text"),
    [
        (SingleTurnEnv([{"question": "?"}]), "SingleTurnEnv is not a game for several"),
        (NimEnv(num_players=3), "games for two players, and this one has 3: 0, 1, 2"),
        (NimEnv(opponents="self"), "in self-play the policy has both"),
        (NimEnv(opponents={1: "random"}), "opponents names no agent for 0"),
    ],
)
def test_other_environments_are_refused(env: Any, text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        played(env, num_examples=1)


def test_whom_the_policy_plays_can_be_chosen_at_reset() -> None:
    env = NimEnv()
    assert env.reset(seed=0, options={"player": 1})[1]["player"] == 1
    with pytest.raises(ConfigurationError, match=r"must be one of the players \(0, 1\) or a number, got 2"):
        env.reset(seed=0, options={"player": 2})
    with pytest.raises(ConfigurationError, match="not a game for several players"):
        SingleTurnEnv([{"question": "?"}]).reset(options={"player": 0})


def by_the_seat(state: State) -> float:
    """Let the first player win four times out of five, whatever is played."""
    return 1.0 if (state.rng.random() < 0.8) == (state["player"] == 0) else -1.0


@pytest.mark.exhaustive
def test_the_variance_of_a_difference_is_at_most_half() -> None:
    def differences(**kwargs: Any) -> list[float]:
        env = NimEnv(rubric=Rubric(by_the_seat), seat=kwargs.pop("seat", 0))
        found = []
        for seed in range(0, 120, 2):
            runs = [played(env, num_examples=20, seed=seed + number, **kwargs) for number in (0, 1)]
            found.append(compare(*runs)["pairs"][0]["difference"] or 0.0)
        return found

    of_both = statistics.pvariance(differences())
    assert of_both <= statistics.pvariance(differences(both_seats=False)) / 2
    assert of_both <= statistics.pvariance(differences(both_seats=False, seat="random")) / 2
