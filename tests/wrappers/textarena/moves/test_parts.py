"""What moves are built from."""

from __future__ import annotations

import re

import numpy as np

from vfgym.wrappers.textarena.moves.parts import REMARKS, numbers, pick, remark


def test_numbers_are_moves() -> None:
    assert numbers(0, 3) == ("[0]", "[1]", "[2]")
    assert numbers(7, 9) == ("[7]", "[8]")
    assert numbers(3, 3) == ()


def test_each_option_is_as_likely_and_follows_from_the_generator() -> None:
    drawn = [pick(np.random.default_rng(seed), "abc") for seed in range(600)]
    assert all(150 <= drawn.count(option) <= 250 for option in "abc")
    assert drawn == [pick(np.random.default_rng(seed), "abc") for seed in range(600)]


def test_no_game_takes_a_remark_for_a_move() -> None:
    assert {remark(None, 0, np.random.default_rng(seed)) for seed in range(100)} == {*REMARKS}
    assert not [text for text in REMARKS if re.search(r"[\d\[\]{}<>$]", text)]
