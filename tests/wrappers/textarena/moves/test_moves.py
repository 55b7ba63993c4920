"""Random and legal moves of TextArena's games: the games take them, random games end, and looking changes nothing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tests.wrappers.textarena.playing import begun
from vfgym.wrappers.textarena.catalogue import textarena_games, why_not
from vfgym.wrappers.textarena.moves import LEGAL, NO_MOVE, SAMPLED, legal_moves, sample_move

pytest.importorskip("textarena", reason="needs the extra textarena")


def test_every_game_that_can_be_played_is_known() -> None:
    games = {described["game"] for env_id, described in textarena_games().items() if why_not(env_id) is None}
    assert games <= LEGAL.keys() | SAMPLED.keys()


def test_each_legal_move_is_as_likely() -> None:
    raw, rng = begun("TicTacToe-v0").raw, np.random.default_rng(0)
    drawn = [sample_move(raw, 0, rng) for _ in range(900)]
    assert all(70 <= drawn.count(f"[{cell}]") <= 130 for cell in range(9))


def test_where_no_move_is_possible_there_is_one_that_says_so() -> None:
    raw = begun("TowerOfHanoi-v0").raw
    raw.state.game_state["towers"] = {"A": [], "B": [], "C": []}
    assert legal_moves(raw, 0) == []
    assert sample_move(raw, 0, np.random.default_rng(0)) == NO_MOVE


class Later:
    """A game of a later version of textarena; its state has what a player has yet to be told."""

    __module__ = "textarena.envs.Later.env"
    state = SimpleNamespace(observations={0: [(-1, "Say [left] or [right].", None)], 1: []})


def test_in_a_game_that_is_not_known_something_shown_is_said() -> None:
    rng = np.random.default_rng(0)
    assert legal_moves(Later(), 0) is None
    assert {sample_move(Later(), 0, rng) for _ in range(20)} == {"[left]", "[right]"}
    assert sample_move(Later(), 1, rng) == "[0]"
    assert sample_move(Later(), 1, rng, seen="Now [jump]!") == "[jump]"
    longest = f"[{'x' * 40}]"
    for seen, move in ((longest, longest), (f"[{'x' * 41}]", "[0]"), ("[]", "[0]"), ("[a\nb]", "[0]"), ("[[in]", "[in]")):
        assert sample_move(Later(), 1, rng, seen=seen) == move


@pytest.mark.parametrize("module", ["mine.envs.TicTacToe.env", "textarena.games.TicTacToe.env", "textarena.envs"])
def test_a_game_from_elsewhere_is_not_taken_for_the_one_of_its_name(module: str) -> None:
    game = type("TicTacToe", (Later,), {"__module__": module})()
    assert legal_moves(game, 0) is None
    assert sample_move(game, 1, np.random.default_rng(0)) == "[0]"


@pytest.mark.parametrize("env_id", ["Crosswords-v0", "Minesweeper-v0", "Sudoku-v0-very-easy", "Mastermind-v0", "Poker-v0", "DontSayIt-v0"])
def test_moves_that_cannot_be_listed_are_not(env_id: str) -> None:
    assert legal_moves(begun(env_id).raw, 0) is None
