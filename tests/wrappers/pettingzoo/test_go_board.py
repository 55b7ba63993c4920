"""`keep_board_size`: games of go keep to their boards, whatever else is played in the process."""

from __future__ import annotations

import pickle

import numpy as np

from tests.wrappers.pettingzoo.tables import factory, natively, said
from vfgym.wrappers.games.turn_based import Played
from vfgym.wrappers.pettingzoo import PettingZooGame


def test_go_boards_of_several_sizes_do_not_disturb_each_other() -> None:
    """Games that take turns, and a copy made in the middle of one, are what each is alone."""
    alone = {}
    for size in (19, 5, 9):
        game = natively(factory("go_v5", board_size=size), seed=0, most=80)
        alone[size] = [(np.flatnonzero(env.last()[0]["action_mask"]).tolist(), dict(env.rewards), action) for env, action in game]
    tables = {size: PettingZooGame(factory("go_v5", board_size=size)) for size in alone}
    for table in tables.values():
        table.reset(0, None)
    for turn in range(79):
        for size, steps in alone.items():
            table = tables[size]
            if table.turn is None:
                continue
            (legal, _, action), (_, rewards, _) = steps[turn : turn + 2]
            codec = table.codecs[table.turn]
            assert [codec.decode(text) for text in table.legal_moves(table.turn) or ()] == legal
            assert table.move(said(table, action)) == Played(rewards)
            if turn == 10:
                tables[size] = pickle.loads(pickle.dumps(table))
    assert any(table.turn is None for table in tables.values())
    assert any(table.turn is not None for table in tables.values())
