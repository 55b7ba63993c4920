"""Moves of the games on a board."""

from __future__ import annotations

import pytest

from tests.wrappers.textarena.moves.checking import listed, moves_of_games
from tests.wrappers.textarena.playing import begun
from vfgym.wrappers.textarena.moves import boards, legal_moves

pytest.importorskip("textarena", reason="needs the extra textarena")

test_the_game_takes_what_is_listed_and_drawn, test_random_games_end = moves_of_games(boards.LEGAL)


def test_a_stack_of_tak_leaves_pieces_along_a_line() -> None:
    raw = begun("Tak-v0").raw
    raw.board[0][0] = ["F1", "F0"]
    moves = set(legal_moves(raw, 0) or [])
    assert {move for move in moves if move.startswith("[move")} == {
        "[move (0,0) {(1,0): [F0]}]",
        "[move (0,0) {(0,1): [F0]}]",
        "[move (0,0) {(1,0): [F1, F0]}]",
        "[move (0,0) {(0,1): [F1, F0]}]",
        "[move (0,0) {(1,0): [F1], (2,0): [F0]}]",
        "[move (0,0) {(0,1): [F1], (0,2): [F0]}]",
    }
    assert {"[place () {(1,0): [W0]}]", "[place () {(1,0): [F0]}]"} <= moves
    assert not any("(0,0): " in move for move in moves if move.startswith("[place"))


def test_what_is_hidden_does_not_matter() -> None:
    """Ranks of the other army, and ships."""
    raw = begun("Stratego-v0", 1).raw
    moves = legal_moves(raw, 0)
    for row, col in raw.player_pieces[1]:
        raw.board[row][col]["rank"] = "Flag"
    assert legal_moves(raw, 0) == moves
    raw = begun("Battleship-v0").raw
    moves = legal_moves(raw, 0)
    raw.state.game_state["board"][1] = [["~"] * raw.grid_size for _ in range(raw.grid_size)]
    assert legal_moves(raw, 0) == moves


ATTACKS = {"[attack 0 0]", "[attack 0 1]", "[attack 1 0]", "[attack 1 1]"}
SQUARES = {(row, col) for row in range(4) for col in range(4)}


@pytest.mark.parametrize(
    ("env_id", "made", "moves"),
    [
        ("TicTacToe-v0", [], {f"[{cell}]" for cell in range(9)}),
        ("SimpleTak-v0", [], {f"[{cell}]" for cell in range(16)}),
        ("ThreePlayerTicTacToe-v0", [], {f"[{cell}]" for cell in range(25)}),
        ("WildTicTacToe-v0", [], {f"[{mark} {cell}]" for mark in "XO" for cell in range(9)}),
        ("QuantumTicTacToe-v0", [], {f"[{one},{other}]" for one in range(9) for other in range(9) if one != other}),
        ("UltimateTicTacToe-v0", [], {f"[{board} {cell}]" for board in range(9) for cell in range(9)}),
        ("ConnectFour-v0", [], {f"[col {col}]" for col in range(7)}),
        ("Othello-v0", [], {"[2, 3]", "[3, 2]", "[4, 5]", "[5, 4]"}),
        ("Nim-v0", [], {f"[{pile} {number}]" for pile, size in enumerate((3, 4, 5)) for number in range(1, size + 1)}),
        ("Chopsticks-v0", [], {*ATTACKS, "[split 0 2]", "[split 2 0]"}),
        ("Battleship-v0", [], {f"[{row}{col}]" for row in "ABCDE" for col in range(5)}),
        ("Snake-v0", [], {"[up]", "[down]", "[left]", "[right]"}),
        ("Stratego-v0", [], {"[D0 E0]", "[D1 E1]", "[D4 E4]", "[D5 E5]", "[D5 F5]", "[D5 G5]", "[D8 E8]", "[D9 E9]"}),
        ("Tak-v0", [], {f"[place () {{({row},{col}): [{kind}0]}}]" for row, col in SQUARES for kind in "FWC"}),
        ("Breakthrough-v0", [], {f"[{col}2{col}3]" for col in "abcdefgh"}),
        (
            "Alquerque-v0",
            [],
            {"[a2 a3]", "[a2 b3]", "[b2 a3]", "[b2 b3]", "[b2 c3]", "[c2 b3]", "[c2 c3]", "[c2 d3]", "[d2 c3]", "[d2 d3]", "[d2 e3]"}
            | {"[e2 d3]", "[e2 e3]"},
        ),
        ("TicTacToe-v0", ["[0]", "[8]"], {f"[{cell}]" for cell in range(1, 8)}),
        ("UltimateTicTacToe-v0", ["[4 0]"], {f"[0 {cell}]" for cell in range(9)}),
        ("ConnectFour-v0", ["[col 2]"] * 6, {f"[col {col}]" for col in (0, 1, 3, 4, 5, 6)}),
        ("Nim-v0", ["[1 4]", "[2 3]"], {"[0 1]", "[0 2]", "[0 3]", "[2 1]", "[2 2]"}),
        ("Chopsticks-v0", ["[attack 0 0]", "[attack 1 1]"], {*ATTACKS, "[split 0 3]", "[split 2 1]", "[split 3 0]"}),
        ("Battleship-v0", ["[A0]", "[A0]", "[B1]"], {f"[{row}{col}]" for row in "ABCDE" for col in range(5)} - {"[A0]"}),
    ],
)
def test_what_is_legal_at_the_beginning_and_after_some_moves(env_id: str, made: list[str], moves: set[str]) -> None:
    assert listed(env_id, *made) == moves


@pytest.mark.parametrize(("env_id", "number"), [("Crusade-v0", 40), ("LinesOfAction-v0", 36), ("SantoriniBaseFixed-v0", 68)])
def test_how_many_moves_are_legal_at_the_beginning(env_id: str, number: int) -> None:
    assert len(listed(env_id)) == number
