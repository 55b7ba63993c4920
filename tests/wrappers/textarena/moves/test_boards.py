"""Moves of the games on a board."""

from __future__ import annotations

from typing import Any

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
        *((f"{game}-v0", [], {"[up]", "[down]", "[left]", "[right]"}) for game in ("Snake", "Surround")),
        ("Breakthrough-v0", ["[a2a3]"], {f"[{col}7{col}6]" for col in "abcdefgh"}),
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


def placed(env_id: str, size: int, empty: Any, **pieces: str) -> Any:
    """Return a game on whose board stands only what is given: by row and column, such as ``r2c4``."""
    raw = begun(env_id).raw
    raw.board = raw.state.game_state["board"] = [[pieces.get(f"r{row}c{col}", empty) for col in range(size)] for row in range(size)]
    return raw


LINES = {"r0c0": "O", "r0c2": "X", "r0c4": "O", "r4c0": "X"}
CAPTURES = {"r4c4": "O", "r6c4": "O", "r4c6": "X"}
BREAKTHROUGH = {"r2c2": "W", "r3c1": "B", "r3c2": "B", "r3c3": "B", "r3c7": "W", "r0c0": "B"}
ALQUERQUE = {"r2c2": "R", "r2c1": "R", "r1c1": "B", "r3c3": "B", "r2c3": "B"}


@pytest.mark.parametrize(
    ("env_id", "size", "pieces", "player", "moves"),
    [
        ("Breakthrough-v0", 8, BREAKTHROUGH, 0, "c3b4 c3d4 h4h5"),
        ("Breakthrough-v0", 8, BREAKTHROUGH, 1, "b4b3 b4c3 d4c3 d4d3"),
        ("Alquerque-v0", 5, ALQUERQUE, 0, "b3_a4 b3_b5 b3_c4 c3_a5 c3_c4 c3_d4 c3_e1 c3_e3"),
        ("Alquerque-v0", 5, ALQUERQUE, 1, "b4_a3 b4_b2 d2_c1 d2_d1 d2_e1 d3_c2 d3_e2"),
        ("LinesOfAction-v0", 8, LINES, 0, "a8a6 a8b7 e8c6 e8e7 e8f7 e8h8"),
        ("LinesOfAction-v0", 8, LINES, 1, "a4a2 a4a6 a4b3 a4b4 a4c6 c8b7 c8c7 c8d7"),
        ("LinesOfAction-v0", 8, CAPTURES, 0, "e2d2 e2d3 e2f1 e2f2 e2g4 e4c4 e4d3 e4d5 e4e6 e4f3 e4f5 e4g4"),
        ("Othello-v0", 8, {}, 0, "skip"),
        ("Othello-v0", 8, {"r0c0": "B", "r0c1": "W", "r1c0": "W"}, 0, "0,_2 2,_0"),
        ("Othello-v0", 8, {"r0c0": "W", "r0c1": "B", "r1c0": "W"}, 1, "0,_2"),
        ("QuantumTicTacToe-v0", 3, {f"r{cell // 3}c{cell % 3}": "X" for cell in (0, 1, 2, 3, 4, 6, 7)}, 0, "5,8 8,5"),
        ("QuantumTicTacToe-v0", 3, {f"r{cell // 3}c{cell % 3}": "X" for cell in range(8)}, 0, ""),
        ("WildTicTacToe-v0", 3, {f"r{cell // 3}c{cell % 3}": "O" for cell in (0, 2, 3, 4, 5, 6, 7)}, 1, "O_1 O_8 X_1 X_8"),
    ],
)
def test_what_is_legal_in_a_position(env_id: str, size: int, pieces: dict[str, str], player: int, moves: str) -> None:
    listed_now = boards.LEGAL[env_id.partition("-")[0]](placed(env_id, size, "", **pieces), player)
    assert sorted(listed_now or []) == [f"[{move.replace('_', ' ')}]" for move in moves.split()]


def test_boards_that_are_won_and_hands_and_piles_that_are_empty_allow_nothing() -> None:
    raw = begun("UltimateTicTacToe-v0").raw
    state = raw.state.game_state
    state["macro_board"][0][0], state["macro_board"][2][1] = "X", "O"
    state["board"][1][2][0] = "O"
    free = {f"[{board} {cell}]" for board in range(9) for cell in range(9)} - {"[1 6]"}
    assert set(legal_moves(raw, 0) or []) == {move for move in free if move[1] not in "07"}
    state["next_micro_board"] = 1
    assert set(legal_moves(raw, 0) or []) == {move for move in free if move[1] == "1"}
    raw = begun("Chopsticks-v0").raw
    raw.state.game_state["hands"] = {0: [0, 3], 1: [2, 0]}
    assert legal_moves(raw, 0) == ["[attack 1 0]", "[split 1 2]", "[split 2 1]", "[split 3 0]"]
    assert legal_moves(raw, 1) == ["[attack 0 1]", "[split 0 2]", "[split 1 1]"]
    raw = begun("Nim-v0").raw
    raw.state.game_state["piles"] = [0, 2, 0]
    assert legal_moves(raw, 0) == ["[1 1]", "[1 2]"]
    raw = begun("SantoriniBaseFixed-v0").raw
    raw._get_valid_moves = lambda player: ""
    assert legal_moves(raw, 0) == []


def test_soldiers_of_stratego_move_up_to_what_stands_in_their_way() -> None:
    raw = begun("Stratego-v0").raw
    raw.board = [[None] * 10 for _ in range(10)]
    for row, col, player, rank in (
        *((5, 2, 0, "Scout"), (5, 0, 0, "Bomb"), (3, 2, 0, "Major"), (9, 9, 0, "Flag"), (0, 0, 0, "Spy")),
        *((5, 5, 1, "Miner"), (9, 8, 1, "Scout")),
    ):
        raw.board[row][col] = {"player": player, "rank": rank}
    raw.board[7][2] = "~"
    moves = "A0_A1 A0_B0 D2_C2 D2_D1 D2_D3 D2_E2 F2_E2 F2_F1 F2_F3 F2_F4 F2_F5 F2_G2"
    assert sorted(legal_moves(raw, 0) or []) == [f"[{move.replace('_', ' ')}]" for move in moves.split()]
    up, left = [f"[J8 {row}8]" for row in "ABCDEFGHI"], [f"[J8 J{col}]" for col in range(8)]
    assert set(legal_moves(raw, 1) or []) == {"[F5 E5]", "[F5 F4]", "[F5 F6]", "[F5 G5]", "[J8 J9]", *up, *left}


def test_stones_of_tak_are_placed_from_what_is_left_and_stacks_belong_to_who_is_on_top() -> None:
    raw = begun("Tak-v0").raw
    raw.board[3][3] = ["F0", "F0", "F0", "F0", "F1"]
    raw.players[1], raw.state.current_player_id = {"stones": 0, "capstones": 1}, 1
    moves = legal_moves(raw, 1) or []
    free = [(row, col) for row, col in sorted(SQUARES) if (row, col) != (3, 3)]
    assert [move for move in moves if "place" in move] == [f"[place () {{({row},{col}): [C1]}}]" for row, col in free]
    moved = [move for move in moves if "move" in move]
    assert len(set(moved)) == len(moved) == 2 * (1 + 2 + 4 + 7), "one to four pieces, left on one to three squares of two lines"
    assert "[move (3,3) {(3,2): [F0], (3,1): [F0, F0], (3,0): [F1]}]" in moved
    raw.players[0] = {"stones": 3, "capstones": 0}
    assert [move[-5:] for move in legal_moves(raw, 0) or []] == ["F0]}]", "W0]}]"] * 15
