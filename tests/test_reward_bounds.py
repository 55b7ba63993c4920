"""What `vfgym.data` says of the lowest rewards of known games holds in play, and names games that there are."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest

import vfgym
from vfgym.data import _reward_bounds, gymnasium_environments, pettingzoo_environments, reward_bounds, textarena_environments

GAMES_OF_TEXTARENA = [
    "TicTacToe-v0",
    "KuhnPoker-v0",
    "LightsOut-v0",
    "Sudoku-v0",
    "GuessTheNumber-v0",
    "Bandit-v0",
    "Snake-v0",
    "LiarsDice-v0",
]


def test_the_games_are_known_by_these_names() -> None:
    known = _reward_bounds()
    assert known["gymnasium"].keys() <= gymnasium_environments().keys()
    assert known["pettingzoo"].keys() == pettingzoo_environments().keys()
    assert known["textarena"].keys() <= {game["game"] for game in textarena_environments().values()}
    assert all(entry is None or entry["why"] for entries in known.values() for entry in entries.values())


@pytest.mark.parametrize("env_id", sorted(_reward_bounds()["gymnasium"]))
def test_no_play_of_gymnasium_falls_below(env_id: str) -> None:
    """Random play, and the action that is sampled first, over and over."""
    known = reward_bounds("gymnasium", env_id)
    assert known is not None
    try:
        env = gymnasium.make(env_id)
    except (ImportError, gymnasium.error.DependencyNotInstalled) as error:
        pytest.skip(str(error))
    for seed in range(4):
        env.reset(seed=seed)
        env.action_space.seed(seed)
        always: Any = env.action_space.sample()
        total, moves, is_over = 0.0, 0, False
        while not is_over and moves < 300:
            _, reward, terminated, truncated, _ = env.step(always if seed % 2 else env.action_space.sample())
            total, moves, is_over = total + float(reward), moves + 1, terminated or truncated
        assert total >= known.get("episode", 0.0) + known.get("move", 0.0) * moves - 1e-6
    env.close()


@pytest.mark.parametrize("game", sorted(_reward_bounds()["pettingzoo"]))
def test_no_play_of_pettingzoo_falls_below(game: str) -> None:
    env = vfgym.PettingZooEnv(game, max_moves=300)
    assert env.failure_reward is not None
    rows = vfgym.evaluate(env, "random", num_examples=5, progress=False)["outputs"]
    assert min(row["reward"] for row in rows) >= env.failure_reward
    env.close()


@pytest.mark.parametrize("game", GAMES_OF_TEXTARENA)
@pytest.mark.parametrize("agent", ["random", lambda observation, info: "[1]", lambda observation, info: "hmm"])
def test_no_play_of_textarena_falls_below(game: str, agent: Any) -> None:
    """An answer that is not a move is a move that loses here: TextArena has the say."""
    env = vfgym.TextArenaEnv(game)
    assert env.failure_reward is not None
    rows = vfgym.evaluate(env, agent, num_examples=3, progress=False)["outputs"]
    assert min(row["reward"] for row in rows) >= env.failure_reward
    env.close()
