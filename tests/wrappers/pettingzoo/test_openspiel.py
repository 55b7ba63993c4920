"""Games of OpenSpiel through shimmy: positions and moves are written as OpenSpiel writes them."""

from __future__ import annotations

import functools
import pickle

import pytest

import vfgym
from vfgym.messages import AssistantMessage
from vfgym.wrappers.pettingzoo import PettingZooGame

pytest.importorskip("pyspiel")
shimmy = pytest.importorskip("shimmy.openspiel_compatibility")


def table_of(game: str) -> PettingZooGame:
    table = PettingZooGame(functools.partial(shimmy.OpenSpielCompatibilityV0, game_name=game))
    table.reset(seed=0, options=None)
    return table


def play(table: PettingZooGame, move: str) -> bool:
    return table.move(AssistantMessage(f"<action>{move}</action>")).is_valid


def test_a_game_is_told_by_its_name_and_shown_by_its_position() -> None:
    table = table_of("tic_tac_toe")
    told = table.observe("player_0")
    assert told.startswith(
        "You are playing Tic Tac Toe.\n\nRewards: from -1 to 1 in all.\n\nPlayers: player_0, player_1. You are player_0."
    )
    assert "like this: <action>x(0,0)</action>" in told
    assert "\n\n...\n...\n...\n\nLegal actions: x(0,0), x(0,1)," in told
    assert "compatibility" not in told.lower()


def test_moves_have_the_names_of_the_position_and_of_the_player() -> None:
    table = table_of("tic_tac_toe")
    assert play(table, "x(1,1)")
    assert "...\n.x.\n..." in table.observe("player_1")
    assert not play(table, "x(0,0)")  # a move of the other player's
    assert not play(table, "o(1,1)")  # a square that is taken
    assert table.turn == "player_1"
    assert play(table, "O(0,0)")
    assert "o..\n.x.\n..." in table.observe("player_0")


def test_a_game_is_played_to_its_end() -> None:
    table = table_of("tic_tac_toe")
    for move in ("x(0,0)", "o(1,0)", "x(0,1)", "o(1,1)", "x(0,2)"):
        assert play(table, move)
    assert table.turn is None
    assert "Your total reward is 1." in table.observe("player_0")
    assert "xxx\noo.\n..." in table.observe("player_1")


def test_moves_that_are_numbered_alike_in_all_positions_have_the_names_of_theirs() -> None:
    table = table_of("breakthrough")
    assert "a7a6" in (table.legal_moves("player_0") or ())
    assert play(table, "a7b6")
    assert "8bbbbbbbb\n7.bbbbbbb\n6.b......" in table.observe("player_1")


def test_cards_of_others_are_not_shown() -> None:
    """In Kuhn poker each player is dealt one of three cards."""
    table = table_of("kuhn_poker")
    assert table.legal_moves("player_0") == ["Pass", "Bet"]
    state = table.env.unwrapped.game_state
    assert table.observe("player_0").split("\n\n")[-2] == state.observation_string(0)
    assert play(table, "bet")
    assert table.observe("player_1").split("\n\n")[-2] == state.observation_string(1) != state.observation_string(0)


def test_a_table_is_copied_in_the_middle_of_a_game() -> None:
    table = table_of("backgammon")
    for _ in range(3):
        assert table.turn is not None
        table.move(AssistantMessage(f"<action>{(table.legal_moves(table.turn) or [''])[0]}</action>"))
    copy = pickle.loads(pickle.dumps(table))
    assert copy.turn == table.turn is not None
    assert copy.legal_moves(copy.turn) == table.legal_moves(table.turn)


def test_random_players_finish_a_game() -> None:
    env = vfgym.to_chat(functools.partial(shimmy.OpenSpielCompatibilityV0, game_name="connect_four"), opponents="random")
    results = vfgym.evaluate(env, "random", num_examples=3, progress=False)
    assert results["metadata"]["num_failed"] == 0
    assert {row["reward"] for row in results["outputs"]} <= {-1.0, 0.0, 1.0}
