"""`OpeningMoves`: samples of an action space are moves that may begin a game."""

from __future__ import annotations

import copy

from tests.wrappers.games.nim import NimEnv


def test_samples_of_the_action_space_are_moves_of_the_game() -> None:
    env = NimEnv(sticks=9)
    assert {env.action_space.sample().content for _ in range(40)} == {"1", "2", "3"}
    env.action_space.seed(1)
    drawn = [env.action_space.sample() for _ in range(5)]
    env.reset(seed=0)
    env.action_space.seed(1)
    assert [env.action_space.sample() for _ in range(5)] == drawn
    assert env.fork().action_space == env.action_space == copy.deepcopy(env).action_space
    env.close()
