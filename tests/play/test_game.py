"""A game that a person plays: what is not a move costs nothing, moves can be taken back, and the saved row replays to the same reward."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

import vfgym
from tests.models import InOrder
from tests.play.playing import RULES, Uncopied, make, play, typed
from vfgym.errors import ModelError
from vfgym.play import Game


def test_a_table_says_what_is_not_a_move() -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")
    for env_id, wrong in (("textarena/ConnectFour-v0", "help me"), ("textarena/ConnectFour-v0-raw", "[col 9]")):
        game = Game(make(env_id), 3)
        before = game.observation
        for _ in range(3):  # the second would lose the game
            assert game.answer(wrong) is not None
        assert (game.observation, game.is_over, game.num_undoable) == (before, False, 0)
        assert game.answer("[col 1]") is None
        assert not game.state["trajectory"][0]["extras"].get("invalid_answer")


def test_where_nobody_can_go_back_the_legal_moves_say_what_is_one_and_undo_says_why() -> None:
    game, text = play(Uncopied(), "x", "a", "/undo", "B")
    assert typed(game) == ["a", "B"]
    assert '"x" is not a move. Type a or b' in text
    assert "cannot go back: this environment cannot go back in an episode" in text
    assert "B" in play(Uncopied(), "/say x", "a", "B")[0].state["trajectory"][-1]["completion"][-1]["content"]


def test_undo_goes_back_before_the_last_move_with_rewards_and_wrappers() -> None:
    env = gym.wrappers.TimeLimit(make(**RULES), 3)
    game, text = play(env, "/undo", "right", "right", "/undo", "/undo", "down", "/undo", "right", "left", "left")
    assert typed(game) == ["right", "left", "left"], "the limit counts moves that were not taken back"
    assert "there is no move of yours to take back" in text
    assert text.count("(your last move is taken back)") == 3


class OneModel(InOrder):
    """The same model for every copy of a game, as behind a server."""

    def __deepcopy__(self, memo: Any) -> OneModel:
        return self


def test_a_move_that_an_opponent_could_not_answer_can_be_tried_again() -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")
    client = OneModel("[1]", ModelError("busy"), "[2]")
    game = Game(make("textarena/TicTacToe-v0", opponents=vfgym.ModelAgent(client, "m")), 0)
    assert game.answer("[0]") is None
    before = game.observation
    refusal = game.answer("[4]")
    assert refusal is not None
    assert "busy" in refusal.messages[0]["content"]
    assert (game.observation, game.is_over) == (before, False)
    assert game.help["refused"] == 0, "it was a move"
    assert game.answer("[4]") is None
    assert "[Player 1] [2]" in game.observation[-1]["content"]
