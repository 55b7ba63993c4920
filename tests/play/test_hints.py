"""Hints: right answers or legal moves, which change nothing."""

from __future__ import annotations

import numpy as np

import vfgym
from tests.play.playing import make
from vfgym.play import Game
from vfgym.play.hints import hint_for


def test_hints_are_right_answers_or_legal_moves_and_change_nothing() -> None:
    rng = np.random.default_rng(0)
    legs = Game(make("reasoning-gym/leg_counting-v0"), 3)
    assert f"{legs.state['answer']}" in str(hint_for(legs, rng))
    lake = Game(make(), 3)
    before = lake.seat.snapshot()
    assert str(hint_for(lake, rng)).rpartition(" ")[2] in ("left", "down", "right", "up")
    assert lake.answer("down") is None
    after = lake.observation
    lake.seat.restore(before)
    assert lake.seat.step("down")[0] == after
    assert hint_for(Game(vfgym.SingleTurnEnv([{"question": "?"}]), 0), rng) is None
