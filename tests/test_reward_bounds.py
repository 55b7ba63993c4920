"""What `vfgym.data` says of the lowest and highest rewards of known games holds in play, and what environments make of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import pytest

import vfgym
from vfgym.data import _reward_bounds, gymnasium_environments, pettingzoo_environments, reward_bounds, textarena_environments
from vfgym.errors import ConfigurationError

GAMES_OF_TEXTARENA = [
    *["TicTacToe-v0", "KuhnPoker-v0", "LightsOut-v0", "Sudoku-v0", "GuessTheNumber-v0", "Bandit-v0", "Snake-v0", "LiarsDice-v0"]
]


def test_the_games_are_known_by_these_names() -> None:
    known = _reward_bounds()
    assert known["gymnasium"].keys() <= gymnasium_environments().keys()
    assert known["pettingzoo"].keys() == pettingzoo_environments().keys()
    assert known["textarena"].keys() <= {game["game"] for game in textarena_environments().values()}
    assert all(entry is None or entry["why"] for entries in known.values() for entry in entries.values())


@pytest.mark.parametrize("env_id", sorted(_reward_bounds()["gymnasium"]))
def test_no_play_of_gymnasium_falls_below(env_id: str) -> None:
    known = reward_bounds("gymnasium", env_id)
    assert known is not None
    try:
        env = gymnasium.make(env_id)
    except (ImportError, gymnasium.error.DependencyNotInstalled) as error:
        pytest.skip(str(error))
    most = 30 if env_id.startswith("CarRacing") else 200  # who draws each frame
    for seed in range(2 if most == 30 else 4):
        env.reset(seed=seed)
        env.action_space.seed(seed)
        always: Any = env.action_space.sample()
        total, moves, is_over = 0.0, 0, False
        while not is_over and moves < most:
            _, reward, terminated, truncated, _ = env.step(always if seed % 2 else env.action_space.sample())
            total, moves, is_over = total + float(reward), moves + 1, terminated or truncated
        assert total >= known.get("episode", 0.0) + known.get("move", 0.0) * moves - 1e-6
        assert total <= known.get("highest", 0.0) + known.get("highest_move", 0.0) * moves + 1e-6
    env.close()


@pytest.mark.parametrize("game", GAMES_OF_TEXTARENA)
@pytest.mark.parametrize("agent", ["random", lambda observation, info: "[1]", lambda observation, info: "hmm"])
def test_no_play_of_textarena_falls_below(game: str, agent: Any) -> None:
    """An answer that is not a move is a move that loses here: TextArena has the say."""
    env = vfgym.TextArenaEnv(game)
    assert env.reward_range is not None
    low, high = env.reward_range
    rows = vfgym.evaluate(env, agent, num_examples=3, progress=False)["outputs"]
    assert all(low <= row["reward"] <= high for row in rows)
    assert env.failure_reward == low
    env.close()


# What environments know


def share(completion: Any) -> float:
    return 0.25


@vfgym.reward(range=(0, 2))
def points(completion: Any) -> float:
    return 2.0


def chat(*rubrics: vfgym.Rubric, **kwargs: Any) -> vfgym.SingleTurnEnv:
    env = vfgym.SingleTurnEnv([{"question": "?"}], rubric=rubrics[0] if rubrics else None, **kwargs)
    for rubric in rubrics[1:]:
        env.add_rubric(rubric)
    return env


def declared(weight: float = 1.0, low: float = 0.0, high: float = 1.0) -> vfgym.Rubric:
    rubric = vfgym.Rubric()
    rubric.add_reward_func(share, weight, range=(low, high))
    return rubric


class Marked(vfgym.Rubric):
    @vfgym.reward(weight=3.0, range=(0.0, 1.0))
    def marked(self, completion: Any) -> float:
        return 0.5


@pytest.mark.parametrize(
    ("make", "known"),
    [
        *[(chat, None), (lambda: chat(vfgym.Rubric(share)), None), (lambda: chat(declared()), (0.0, 1.0))],
        (lambda: chat(declared(-0.5)), (-0.5, 0.0)),
        (lambda: chat(vfgym.Rubric([points, share], weights=[1.0, 0.0])), (0.0, 2.0)),
        (lambda: chat(vfgym.Rubric(points), Marked(), declared(-1.0, -1.0, 4.0)), (-4.0, 6.0)),
        (lambda: chat(vfgym.Rubric(points), vfgym.Rubric(share)), None),
        (lambda: chat(vfgym.Rubric(points), vfgym.Rubric(share, weights=[0.0])), (0.0, 2.0)),
        (lambda: vfgym.to_chat("FrozenLake-v1"), (0.0, 1.0)),
        (lambda: vfgym.to_chat("Blackjack-v1"), (-1.0, 1.0)),
        (lambda: vfgym.to_chat("Blackjack-v1", natural=True), (-1.0, 1.5)),
        (lambda: vfgym.to_chat("CartPole-v1"), None),  # each move earns something
        (lambda: vfgym.to_chat("MountainCar-v0"), None),
        (lambda: vfgym.to_chat("CliffWalking-v1"), None),
        (lambda: vfgym.to_chat("FrozenLake-v1", rubric=vfgym.Rubric(points)), None),
        (lambda: vfgym.ReasoningGymEnv("leg_counting"), (0.0, 1.0)),
        (lambda: vfgym.EnvGroup([chat(declared()), chat(vfgym.Rubric(points))]), (0.0, 2.0)),
        (lambda: vfgym.EnvGroup([chat(declared()), chat(vfgym.Rubric(share))]), None),
    ],
)
def test_the_range_of_rewards_follows_from_rubric_and_rules(make: Callable[[], Any], known: tuple[float, float] | None) -> None:
    env = make()
    assert env.reward_range == known
    assert known is None or env.failure_reward == known[0] or isinstance(env, vfgym.EnvGroup)


@pytest.mark.parametrize("wrong", [(1, 0), (0,), 1.0, "01", (0, math.inf), (0, "1")])
def test_a_range_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="the range of share must"):
        vfgym.Rubric().add_reward_func(share, range=wrong)


def test_a_failure_reward_above_what_can_be_earned_is_refused_as_soon_as_it_is_known() -> None:
    text = "failure_reward is 2, and no episode can earn more than 1: failing would pay"
    for make in (
        lambda: chat(declared(), failure_reward=2.0),
        lambda: vfgym.to_chat("FrozenLake-v1", failure_reward=2),
        lambda: vfgym.ReasoningGymEnv("leg_counting", failure_reward=2),
        lambda: vfgym.EnvGroup([chat(declared())], failure_reward=2.0),
    ):
        with pytest.raises(ConfigurationError, match=text):
            make()
    env = chat(declared())
    with pytest.raises(ConfigurationError, match=text):
        env.failure_reward = 2.0
    env.failure_reward = 1.0
    late = chat(vfgym.Rubric(share), failure_reward=2.0)
    late.rubric = declared()
    with pytest.raises(ConfigurationError, match=text):
        vfgym.evaluate(late, lambda observation, info: "x", progress=False)
    with pytest.raises(ConfigurationError, match=text):
        vfgym.evaluate(vfgym.EnvGroup([late]), lambda observation, info: "x", progress=False)


def test_the_metadata_of_a_run_tell_the_range_of_what_counts_and_the_interval() -> None:
    results = vfgym.evaluate(chat(declared(), failure_reward=-1.0), lambda observation, info: "x", progress=False)
    assert results["metadata"]["reward_range"] == [-1.0, 1.0]
    lake = vfgym.evaluate("gymnasium/FrozenLake-v1", "random", num_examples=4, progress=False)["metadata"]
    assert lake["reward_range"] == [0.0, 1.0]
    assert lake["interval"] is not None
    again = vfgym.score(results, vfgym.Rubric(points))["metadata"]
    assert again["reward_range"] == [0.0, 2.0]
