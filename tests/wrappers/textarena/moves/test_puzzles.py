"""Moves of the games for one player."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wrappers.textarena.moves.checking import listed, moves_of_games
from tests.wrappers.textarena.playing import begun
from vfgym.wrappers.textarena.match import TextArenaGame
from vfgym.wrappers.textarena.moves import legal_moves, puzzles, sample_move

pytest.importorskip("textarena", reason="needs the extra textarena")

test_the_game_takes_what_is_listed_and_drawn, test_random_games_end = moves_of_games(puzzles.LEGAL, puzzles.SAMPLED, number={"Set": 5})


@given(st.lists(st.lists(st.sampled_from([0, 2, 2, 4, 8]), min_size=3, max_size=3), min_size=3, max_size=3))
def test_directions_of_2048_are_those_that_move_tiles(board: list[list[int]]) -> None:
    raw = TextArenaGame("2048-v0-3x3").raw
    raw.reset(num_players=1)
    raw.state.game_state["board"] = board
    moving = []
    for index, name in enumerate(("[Up]", "[Down]", "[Left]", "[Right]")):
        raw.state.game_state["board"] = copy.deepcopy(board)
        moved, _ = raw._apply_move(index)
        moving += [name] * moved
    raw.state.game_state["board"] = board
    assert legal_moves(raw, 0) == moving


@pytest.mark.parametrize(
    ("env_id", "hidden"),
    [
        ("GuessTheNumber-v0", {"game_number": 3}),
        ("Minesweeper-v0-small", {"grid": [[-1] * 5 for _ in range(5)]}),
        ("Sudoku-v0-very-easy", {"full_grid": [[1] * 9 for _ in range(9)]}),
        ("ThreeCardMonte-v0", {"ball_pos": 2}),
    ],
)
def test_the_solution_does_not_matter(env_id: str, hidden: dict[str, Any]) -> None:
    raw = begun(env_id).raw
    moves = [sample_move(raw, 0, np.random.default_rng(seed)) for seed in range(20)]
    vars(raw).update(hidden)
    assert [sample_move(raw, 0, np.random.default_rng(seed)) for seed in range(20)] == moves


@pytest.mark.parametrize(
    ("env_id", "moves"),
    [
        ("FrozenLake-v0", {"[down]", "[right]"}),
        ("PegJump-v0", {"[12 5]", "[14 5]"}),
        ("TowerOfHanoi-v0", {"[A B]", "[A C]"}),
        ("FifteenPuzzle-v0", {"[down]", "[left]", "[right]"}),
        ("GuessTheNumber-v0", {f"[{number}]" for number in range(1, 21)}),
        ("Bandit-v0", {"[red]", "[blue]", "[green]", "[yellow]", "[purple]"}),
        ("Secretary-v0", {"[accept]", "[continue]"}),
        ("ThreeCardMonte-v0", {"[0]", "[1]", "[2]"}),
        ("LightsOut-v0", {f"[{row} {col}]" for row in range(5) for col in range(5)}),
        ("Set-v0", {f"[{a}, {b}, {c}]" for c in range(1, 13) for b in range(1, c) for a in range(1, b)}),
        (
            "Slitherlink-v0",
            {f"[h {row} {col}]" for row in range(5) for col in range(4)} | {f"[v {row} {col}]" for row in range(4) for col in range(5)},
        ),
        ("RushHour-v0", {"[X-]", "[A+]", "[B+]", "[C-]", "[F+]", "[F-]", "[G-]", "[H-]"}),
    ],
)
def test_what_is_legal_at_the_beginning(env_id: str, moves: set[str]) -> None:
    assert listed(env_id) == moves


def test_what_was_guessed_or_found_is_not_tried_again() -> None:
    table = begun("GuessTheNumber-v0")
    table.raw.guessed_numbers = {1, 20}
    assert legal_moves(table.raw, 0) == [f"[{number}]" for number in range(2, 20)]
    table = begun("MemoryGame-v0")
    assert len(legal_moves(table.raw, 0) or []) == 16 * 15 / 2
    table.raw.state.game_state["matched_positions"] = {(row, col) for row in range(4) for col in range(4)} - {(0, 0), (3, 3)}
    assert legal_moves(table.raw, 0) == ["[0 0 3 3]"]
    table = begun("Cryptarithm-v0")
    first, other = sorted(table.raw.first_letters)[0], sorted(set(table.raw.letters) - set(table.raw.first_letters))[0]
    moves = legal_moves(table.raw, 0) or []
    assert (f"[{first} 0]" in moves, f"[{other} 0]" in moves, f"[{first} 9]" in moves) == (False, True, True)


def test_guesses_at_what_is_hidden_are_possible_ones() -> None:
    sudoku, mines, cross, code = (begun(name).raw for name in ("Sudoku-v0", "Minesweeper-v0", "Crosswords-v0", "Mastermind-v0"))
    mines.revealed[0][0] = True
    for seed in range(30):
        row, col, number = map(int, sample_move(sudoku, 0, np.random.default_rng(seed)).strip("[]").split())
        board = sudoku.state.game_state["board"]
        assert board[row - 1][col - 1] == 0
        assert sudoku.is_safe(board, row - 1, col - 1, number)
        assert sample_move(mines, 0, np.random.default_rng(seed)) != "[0 0]"
        row, col = map(int, sample_move(cross, 0, np.random.default_rng(seed)).strip("[]").split()[:2])
        assert cross.state.game_state["board"][row][col] == "_"
        pegs = sample_move(code, 0, np.random.default_rng(seed)).strip("[]").split()
        assert len(pegs) == len(set(pegs)) == code.state.game_state["code_length"]


def changed(env_id: str, state: dict[str, Any] | None = None, **attributes: Any) -> Any:
    """Return a game of which something is otherwise: in its state, or of its own."""
    raw = begun(env_id).raw
    raw.state.game_state.update(state or {})
    vars(raw).update(attributes)
    return raw


ROOM = np.array([[0, 0, 0, 0], [1, 1, 4, 0], [1, 4, 5, 0], [0, 0, 1, 0]])
"""Who stands at (2, 2) has a box before a wall above, one with room behind it to the left, a free floor below, and a wall to the right."""
HANOI = {"A": [3], "B": [2], "C": [1]}


@pytest.mark.parametrize(
    ("make", "moves"),
    [
        (lambda: changed("FrozenLake-v0", {"player_pos": (3, 3)}), "up left"),
        (lambda: changed("FrozenLake-v0", {"player_pos": (1, 2)}), "up down left right"),
        (lambda: changed("FifteenPuzzle-v0", board=[[None, 1, 2, 3], *[[4] * 4] * 3]), "up left"),
        (lambda: changed("FifteenPuzzle-v0", board=[[1] * 4, [1, 2, None, 3], *[[4] * 4] * 2]), "up down left right"),
        (lambda: changed("Sokoban-v0", room_state=ROOM, player_position=np.array([2, 2])), "down left"),
        (lambda: changed("TowerOfHanoi-v0", {"towers": HANOI}), "B_A C_A C_B"),
        (lambda: changed("Slitherlink-v0", R=1, C=2), "h_0_0 h_0_1 h_1_0 h_1_1 v_0_0 v_0_1 v_0_2"),
        (lambda: changed("LightsOut-v0", size=2), "0_0 0_1 1_0 1_1"),
        (lambda: changed("Set-v0", {"board": [0] * 4}), "1,_2,_3 1,_2,_4 1,_3,_4 2,_3,_4"),
        (lambda: changed("ThreeCardMonte-v0", num_cups=2), "0 1"),
        (
            lambda: changed("Countdown-v0", numbers=[6, 4, 0]),
            "0_1_+ 0_1_- 0_1_* 0_2_+ 0_2_- 0_2_* 1_0_+ 1_0_- 1_0_* 1_2_+ 1_2_- 1_2_* 2_0_+ 2_0_- 2_0_* 2_0_/ 2_1_+ 2_1_- 2_1_* 2_1_/",
        ),
        (
            lambda: changed("LogicPuzzle-v0", game_board={"one": {"a": {"b": "X", "c": None, "7": None}, "d e": {"b": None}}}),
            "a_b_O a_c_X a_c_O",
        ),
        (
            lambda: changed("Cryptarithm-v0", letters={"B", "A"}, first_letters={"A"}, digit_used={1, 3, 4, 5, 6, 7, 8, 9}),
            "A_2 B_0 B_2",
        ),
        (lambda: changed("GuessTheNumber-v0", min_number=4, max_number=6, guessed_numbers={5}), "4 6"),
    ],
)
def test_what_is_legal_in_a_position(make: Any, moves: str) -> None:
    assert legal_moves(make(), 0) == [f"[{move.replace('_', ' ')}]" for move in moves.split()]


@pytest.mark.parametrize(
    ("make", "moves"),
    [
        (lambda: changed("Mastermind-v0", {"num_numbers": 3, "code_length": 1, "history": [{"guess": [1]}]}), {"[2]", "[3]"}),
        (
            lambda: changed("Mastermind-v0", {"num_numbers": 2, "code_length": 2, "duplicate_numbers": True}),
            {"[1 1]", "[1 2]", "[2 1]", "[2 2]"},
        ),
        (lambda: changed("Minesweeper-v0", revealed=[[True, False], [True, True], [False, True]]), {"[0 1]", "[2 0]"}),
        (lambda: changed("Sudoku-v0", {"board": [[0, 0, *[7] * 7], *[[7] * 9] * 8]}, is_safe=lambda board, r, c, n: n in (1, 9)),
         {"[1 1 1]", "[1 1 9]", "[1 2 1]", "[1 2 9]"}),
        (
            lambda: changed("Crosswords-v0", {"board": [["A", "."], ["_", "B"]]}),
            {f"[1 0 {letter}]" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"},
        ),
    ],
)  # fmt: skip
def test_all_guesses_that_are_possible_are_drawn_and_no_others(make: Any, moves: set[str]) -> None:
    raw, rng = make(), np.random.default_rng(0)
    assert {sample_move(raw, 0, rng) for _ in range(10 * len(moves))} == moves
