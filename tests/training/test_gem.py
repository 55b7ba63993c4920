"""`GemEnv`, with the published interface of GEM stood in for (`pytest -m peers` plays it in GEM's own vector)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training.trainers import environments
from tests.training.trainers.stand_ins import install
from vfgym.errors import ConfigurationError, ResetNeeded
from vfgym.training.counting import RolloutMissing

ACROSS = [f"<action>{move}</action>" for move in environments.ACROSS]


@pytest.fixture
def gem(monkeypatch: pytest.MonkeyPatch) -> Any:
    return install(monkeypatch, "gem", gem={"Env": type("Env", (), {})})


def test_observations_are_what_is_new_as_text(gem: Any) -> None:
    env = gem.GemEnv(environments.make_lake())
    observation, info = env.reset(seed=0)
    assert "[S]FFF" in observation
    assert info["legal_actions"]
    outcomes = [env.step(answer) for answer in ACROSS]
    assert "[F]HFH" in outcomes[0][0]
    assert "You are playing" not in outcomes[0][0]
    assert ACROSS[0] not in outcomes[0][0]
    assert [outcome[1] for outcome in outcomes] == [0.0] * 5 + [1.0]
    assert [outcome[2:4] for outcome in outcomes] == [(False, False)] * 5 + [(True, False)]


def test_calls_are_read_where_there_are_tools(gem: Any) -> None:
    env = gem.GemEnv(environments.make_sums())
    asked, _ = env.reset(seed=0)
    assert env.step(environments.call("add", a=int(asked[0]), b=2))[0] == str(int(asked[0]) + 2)
    assert env.sample_random_action()


@pytest.mark.parametrize("seed", [0, 3])
def test_the_first_seed_may_be_given_to_the_constructor(gem: Any, seed: int) -> None:
    slippery = environments.make_lake(is_slippery=True)
    by_argument, by_reset = gem.GemEnv(slippery, seed=seed), gem.GemEnv(slippery)
    assert by_argument.reset() == by_reset.reset(seed=seed)
    played = [[env.step(answer)[0] for answer in ACROSS[:2]] for env in (by_argument, by_reset)]
    assert played[0] == played[1]
    assert by_argument._next_seed is None, "the next episode goes on with the random numbers"
    with pytest.raises(ConfigurationError, match="an environment and a seed, got depth too"):
        gem.GemEnv(slippery, depth=2)


def test_a_spawned_environment_goes_on_or_begins(gem: Any) -> None:
    env = gem.GemEnv(environments.make_lake(is_slippery=True))
    with pytest.raises(ResetNeeded):
        env.spawn(same_state=True)
    env.reset(seed=3)
    env.step(ACROSS[0])
    same, other = env.spawn(same_state=True), env.spawn(seed=3)
    assert [same.step(answer)[0] for answer in ACROSS[:2]] == [env.step(answer)[0] for answer in ACROSS[:2]]
    assert "[S]FFF" in other.reset()[0]


def test_a_conversation_that_was_rewritten_is_all_of_the_observation(gem: Any) -> None:
    env = gem.GemEnv(environments.make_lake(history=0))
    env.reset(seed=0)
    assert all("You are playing" in env.step(answer)[0] for answer in ACROSS[:2])


def test_random_answers_follow_from_the_seed_of_their_episode(gem: Any) -> None:
    env = gem.GemEnv(environments.make_guess())
    drawn = []
    for seed in (3, 3, 4):
        env.reset(seed=seed)
        drawn.append([env.sample_random_action() for _ in range(3)])
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) > 1


def test_what_a_spawned_environment_does_leaves_the_first_alone(gem: Any) -> None:
    env = gem.GemEnv(environments.make_lake())
    env.reset(seed=0)
    spawned = env.spawn(same_state=True, seed=5)
    rewards = [spawned.step(answer)[1] for answer in ACROSS]
    assert [env.step(answer)[1] for answer in ACROSS] == rewards == [0.0] * 5 + [1.0]
    with pytest.raises(ConfigurationError, match="got depth, width too"):
        env.spawn(depth=1, width=2)


def test_what_says_nothing_of_the_policy_is_raised(gem: Any) -> None:
    env = gem.GemEnv(environments.make_unreachable())
    env.reset(seed=0)
    with pytest.raises(RolloutMissing):
        env.step("hello")
