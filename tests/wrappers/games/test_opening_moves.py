"""`OpeningMoves`: samples of an action space are moves that may begin a game."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from tests.wrappers.games.nim import InBrackets, Nim, NimEnv
from vfgym.wrappers.games.opening_moves import OpeningMoves


def test_one_table_is_opened_for_all_samples_and_closed_once() -> None:
    env = NimEnv(sticks=9)
    opened: list[Nim] = []
    env.open_table = lambda: opened.append(Nim(2, 9)) or opened[-1]  # type: ignore[func-returns-value, method-assign]
    moves = OpeningMoves(env)
    moves.close()
    for _ in range(3):
        moves.sample(np.random.default_rng(0))
    assert [table.closed for table in opened] == [0]
    assert OpeningMoves.__getstate__(moves) == {"_env": env, "_table": None}
    moves.close()
    moves.close()
    assert [table.closed for table in opened] == [1]
    moves.sample(np.random.default_rng(0))
    assert len(opened) == 2
    moves.close()


def test_samples_are_moves_in_the_form_of_answers() -> None:
    class Over(Nim):
        """Over at once, for an environment that nobody plays."""

        def reset(self, *args: Any) -> None:
            super().reset(*args)
            self.turn = None

    over = NimEnv()
    over.open_table = Over  # type: ignore[method-assign]
    drawn = [{OpeningMoves(env).sample(np.random.default_rng(n)).content for n in range(20)} for env in (NimEnv(), InBrackets(), over)]
    assert drawn == [{"1", "2", "3"}, {"[1]", "[2]", "[3]"}, {""}]
    env = NimEnv(sticks=9)
    env.action_space.seed(1)
    first = [env.action_space.sample() for _ in range(5)]
    env.reset(seed=0)
    env.action_space.seed(1)
    assert [env.action_space.sample() for _ in range(5)] == first
    assert env.fork().action_space == env.action_space == copy.deepcopy(env).action_space
    env.close()


def test_moves_of_one_game_are_equal() -> None:
    one, other = OpeningMoves(NimEnv(env_id="nim/a")), OpeningMoves(NimEnv(env_id="nim/b"))
    assert one == OpeningMoves(NimEnv(env_id="nim/a")) != other
    assert OpeningMoves(NimEnv()) != OpeningMoves(InBrackets())
    assert (repr(one), repr(OpeningMoves(NimEnv()))) == ("OpeningMoves(nim/a)", "OpeningMoves(NimEnv)")
