"""Rewards are numbers, within bounds where these are known and nothing may have changed them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces, wrappers
from gymnasium.envs.registration import EnvSpec

from tests.wrappers.gymnasium.toys import Toy
from vfgym.errors import ConfigurationError
from vfgym.wrappers.gymnasium.rewards import check_rewards, keeps_rewards, kinds_of, known_bounds, no_outcome


def bounds_of(game_id: str, **options: Any) -> Any:
    game = gym.make(game_id, **options)
    return known_bounds(game, game.spec)  # type: ignore[arg-type]


def test_bounds_are_known_of_gymnasiums_own_games_as_they_are_registered() -> None:
    assert bounds_of("CartPole-v1")
    assert bounds_of("FrozenLake8x8-v1") == bounds_of("FrozenLake8x8-v1", map_name="8x8") is not None
    assert bounds_of("FrozenLake-v1", render_mode="ansi") == bounds_of("FrozenLake-v1") is not None
    assert bounds_of("FrozenLake-v1", reward_schedule=(9, 0, 0)) is None


def test_bounds_are_unknown_where_wrappers_or_other_packages_may_change_rewards() -> None:
    game = gym.make("CartPole-v1")
    spec = game.spec
    assert spec is not None
    assert known_bounds(wrappers.TransformReward(game, lambda reward: 2 * reward), spec) is None
    assert known_bounds(game, EnvSpec("CartPole-v1", entry_point="elsewhere:Game")) is None
    assert known_bounds(game, EnvSpec("CartPole-v1", entry_point=lambda: game)) is None
    assert known_bounds(game, EnvSpec("Gone-v0", entry_point=str(spec.entry_point))) is None


@pytest.mark.parametrize(
    ("wrap", "keeps"),
    [
        (lambda game: game, True),
        (lambda game: wrappers.TimeLimit(game, 3), True),
        (lambda game: wrappers.FlattenObservation(game), True),
        (lambda game: wrappers.FlattenObservation(wrappers.ClipReward(game, 0, 1)), False),
        (lambda game: wrappers.RepeatAction(game, 2), False),
    ],
)
def test_wrappers_keep_rewards_if_they_only_look_or_limit(wrap: Any, keeps: bool) -> None:
    assert keeps_rewards(wrap(gym.make("CartPole-v1"))) is keeps


def paying(reward: Any, **attributes: Any) -> Toy:
    return Toy(reward=reward, **attributes)


PAIR = spaces.Tuple([spaces.Discrete(2)] * 2)


@pytest.mark.parametrize(
    ("game", "problem"),
    [
        (paying(1.0), None),
        (paying([1.0, 2.0]), None),  # nothing says that there are several: the first move will
        (paying(1.0, n_agents=2), None),
        (paying(np.float32(1), action_space=PAIR), None),
        (paying(1.0, reward_space=spaces.Box(0, 1, ())), None),
        (paying(1.0, n_agents=2, step=lambda action: [][0]), None),
        *((paying([1.0], n_agents=count), None) for count in (lambda: 2, SimpleNamespace())),  # no numbers
        (paying([1.0, 2.0], n_agents=1), None),
        (paying([1.0, 2.0], reward_space=spaces.Box(0, 1, (2,))), "with a vector"),
        (wrappers.TransformReward(paying([1.0, 2.0], reward_space=spaces.Box(0, 1, (2,))), sum), None),
        *((paying([1.0, 2.0], **{name: 2}), "one for each agent") for name in ("n_agents", "num_agents", "n_players", "num_players")),
        (paying((1.0,), action_space=PAIR), "one for each agent"),
        (paying({"a": 1.0}, n_agents=np.int64(3)), "one for each agent"),
        (paying(np.zeros(2), action_space=PAIR), "one for each agent"),
    ],
)
def test_several_rewards_of_a_move_are_refused_with_what_to_do(game: Any, problem: str | None) -> None:
    if problem is None:
        check_rewards(game, "Duel")
        return
    with pytest.raises(ConfigurationError, match=f"^Duel rewards .*{problem}.*LinearReward"):
        check_rewards(game, "Duel")


@pytest.mark.parametrize(
    ("played", "kinds", "names_wrapper"),
    [
        (None, "NoneType", False),
        ((0, 1.0), "(int, float)", False),
        ((0, np.zeros(2), False, False, {}), "(int, ndarray, bool, bool, dict)", True),
        ((0, "1", False, False, {}), "(int, str, bool, bool, dict)", False),
        ([0, [1], False, False, {}], "list", False),
    ],
)
def test_what_is_no_outcome_is_named_by_its_kinds(played: Any, kinds: str, names_wrapper: bool) -> None:
    assert kinds_of(played) == kinds
    error = no_outcome(played)
    assert isinstance(error, TypeError)
    assert f"got {kinds}" in str(error)
    assert ("TransformReward" in str(error)) is names_wrapper
