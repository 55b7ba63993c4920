"""Moves of the games on a board between players: marks on free cells, pieces that move, and shots at hidden squares."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from vfgym.wrappers.textarena.moves.parts import Legal, Raw, numbers

Cell = tuple[int, int]

ORTHOGONAL: tuple[Cell, ...] = ((-1, 0), (1, 0), (0, -1), (0, 1))
ALL_DIRECTIONS: tuple[Cell, ...] = (*ORTHOGONAL, (-1, -1), (-1, 1), (1, -1), (1, 1))
FILES = "abcdefghijklmnopqrstuvwxyz"


def _cells(board: Sequence[Sequence[Any]], content: Any) -> list[Cell]:
    """Return the cells with this content, row by row."""
    return [(r, c) for r, row in enumerate(board) for c, held in enumerate(row) if held == content]


def _inside(row: int, col: int, size: int) -> bool:
    return 0 <= row < size and 0 <= col < size


def _square(row: int, col: int, size: int) -> str:
    """Return the name of a square of a board whose row 0 is the highest rank: ``a1`` is bottom left."""
    return f"{FILES[col]}{size - row}"


# Marks on free cells


def _free_numbers(raw: Raw) -> list[int]:
    return [number for number, held in enumerate(chain.from_iterable(raw.state.game_state["board"])) if not held]


def numbered_cells(raw: Raw, player: int) -> list[str]:
    """A mark on one of the free cells, which are numbered row by row (TicTacToe and others)."""
    board = raw.state.game_state["board"]
    return [move for move, held in zip(numbers(0, len(board) ** 2), chain.from_iterable(board), strict=True) if not held]


_WILD = [[f"[{mark} {number}]" for mark in "XO"] for number in range(9)]
_QUANTUM = {(first, second): f"[{first},{second}]" for first, second in itertools.permutations(range(9), 2)}
_ULTIMATE = [[f"[{board} {number}]" for number in range(9)] for board in range(9)]


def wild_tic_tac_toe(raw: Raw, player: int) -> list[str]:
    """Either mark on a free cell."""
    return [move for number in _free_numbers(raw) for move in _WILD[number]]


def quantum_tic_tac_toe(raw: Raw, player: int) -> list[str]:
    """A mark in two free cells at once; their order decides where it collapses to. With one free cell left nobody can move."""
    return [_QUANTUM[cells] for cells in itertools.permutations(_free_numbers(raw), 2)]


def ultimate_tic_tac_toe(raw: Raw, player: int) -> list[str]:
    """A free cell of the small board that the last move points to, or of any that is not won."""
    state = raw.state.game_state
    pointed_to = state["next_micro_board"]
    boards = range(9) if pointed_to is None else [pointed_to]
    return [
        move
        for board in boards
        if state["macro_board"][board // 3][board % 3] == " "
        for move, held in zip(_ULTIMATE[board], chain.from_iterable(state["board"][board]), strict=True)
        if held == " "
    ]


@functools.cache
def _columns(number: int) -> tuple[str, ...]:
    return tuple(f"[col {col}]" for col in range(number))


def connect_four(raw: Raw, player: int) -> list[str]:
    """A column that is not full."""
    tops = raw.state.game_state["board"][0]
    return [column for column, top in zip(_columns(len(tops)), tops, strict=True) if top == "."]


def othello(raw: Raw, player: int) -> list[str]:
    """A cell that turns pieces; without any, whatever is said skips the turn."""
    return [f"[{row}, {col}]" for row, col in raw._valid_moves("BW"[player])] or ["[skip]"]


# Pieces that move


def breakthrough(raw: Raw, player: int) -> list[str]:
    """One step straight or diagonally ahead; captures are diagonal."""
    ahead = 1 if player == 0 else -1
    return [
        f"[{FILES[col]}{row + 1}{FILES[to]}{row + ahead + 1}]"
        for row, col in _cells(raw.state.game_state["board"], "WB"[player])
        for to in (col - 1, col, col + 1)
        if _inside(row + ahead, to, raw.board_size) and raw._is_valid_move(player, row, col, row + ahead, to)
    ]


def checkers(raw: Raw, player: int) -> list[str]:
    """A diagonal step or jump. The game goes on when the player to move is blocked, who then has no move."""
    board = raw.state.game_state["board"]
    return [
        f"[{row} {col} {row + down} {col + right}]"
        for row, col in _cells(board, "rb"[player]) + _cells(board, "RB"[player])
        for down, right in itertools.product((-2, -1, 1, 2), repeat=2)
        if abs(down) == abs(right) and raw._is_valid_move(player, row, col, row + down, col + right)
    ]


def chess(raw: Raw, player: int) -> list[str]:
    """All legal moves, in the notation of UCI."""
    return [f"[{move.uci()}]" for move in raw.state.game_state["board"].legal_moves]


def alquerque(raw: Raw, player: int) -> list[str]:
    """A step ahead onto a free point, or a jump over a neighbour of the other colour."""
    board, size = raw.state.game_state["board"], raw.BOARD_N
    own, other = "RB"[player], "BR"[player]
    moves = []
    for row, col in _cells(board, own):
        steps = [(row + down, col + right) for down, right in raw.forward_dirs[player]]
        jumps = [
            (row + 2 * down, col + 2 * right)
            for down, right in ALL_DIRECTIONS
            if _inside(row + down, col + right, size) and board[row + down][col + right] == other
        ]
        moves += [
            f"[{_square(row, col, size)} {_square(*to, size)}]" for to in steps + jumps if _inside(*to, size) and board[to[0]][to[1]] == ""
        ]
    return moves


def crusade(raw: Raw, player: int) -> list[str]:
    """A knight's move onto a square that the player does not hold."""
    return list(raw._legal_moves_for_player(player))


def lines_of_action(raw: Raw, player: int) -> list[str]:
    """Along a line, exactly as far as there are pieces on it, over one's own pieces only."""
    board, size = raw.state.game_state["board"], raw.BOARD_N
    own, other = "OX"[player], "XO"[player]
    moves = []
    for row, col in _cells(board, own):
        for down, right in ALL_DIRECTIONS:
            distance = raw._count_pieces_on_line(row, col, down, right)
            path = [(row + down * step, col + right * step) for step in range(1, distance + 1)]
            if not _inside(*path[-1], size):
                continue
            *crossed, landing = (board[r][c] for r, c in path)
            if other not in crossed and landing != own:
                moves.append(f"[{_square(row, col, size)}{_square(*path[-1], size)}]")
    return moves


def santorini(raw: Raw, player: int) -> list[str]:
    """A worker's step and what it builds, as the game lists them."""
    listed = raw._get_valid_moves(player)
    return [str(move) for move in listed.split(", ")] if listed else []


def stratego(raw: Raw, player: int) -> list[str]:
    """One square in a straight line, a scout any number; whose piece stands there is known, its rank does not matter."""
    moves = []
    for row, col in itertools.product(range(10), repeat=2):
        piece = raw.board[row][col]
        if not isinstance(piece, dict) or piece["player"] != player or piece["rank"] in ("Bomb", "Flag"):
            continue
        reach = 9 if piece["rank"] == "Scout" else 1
        for down, right in ORTHOGONAL:
            for step in range(1, reach + 1):
                to_row, to_col = row + down * step, col + right * step
                if not _inside(to_row, to_col, 10):
                    break
                held = raw.board[to_row][to_col]
                if held is None or (isinstance(held, dict) and held["player"] != player):
                    moves.append(f"[{chr(65 + row)}{col} {chr(65 + to_row)}{to_col}]")
                if held is not None:
                    break
    return moves


# Tak


def tak(raw: Raw, player: int) -> list[str]:
    """A stone on a free square, or a stack that is moved in a straight line and leaves pieces on its way."""
    reserve, size = raw.players[player], raw.board_size
    kinds = ("FW" if reserve["stones"] else "") + ("C" if reserve["capstones"] else "")
    moves = [f"[place () {{({row},{col}): [{kind}{player}]}}]" for row, col in _cells(raw.board, []) for kind in kinds]
    for row, col in itertools.product(range(size), repeat=2):
        stack = raw.board[row][col]
        if not stack or stack[-1][-1] != str(player):
            continue
        for direction in ORTHOGONAL:
            for dropped in _drops(raw, (row, col), direction):
                if raw._is_valid_movement((row, col), dropped):
                    squares = ", ".join(f"({r},{c}): [{', '.join(pieces)}]" for (r, c), pieces in dropped.items())
                    moves.append(f"[move ({row},{col}) {{{squares}}}]")
    return moves


def _drops(raw: Raw, source: Cell, direction: Cell) -> Iterator[dict[Cell, list[str]]]:
    """Yield what a stack may leave on each square of a line: at least one piece a square, at most as many as the board is wide."""
    size, stack = raw.board_size, raw.board[source[0]][source[1]]
    for carried in range(1, min(len(stack), size) + 1):
        pieces = stack[-carried:]
        for last_square in range(1, carried + 1):
            squares = [(source[0] + direction[0] * step, source[1] + direction[1] * step) for step in range(1, last_square + 1)]
            if not _inside(*squares[-1], size):
                break
            for cuts in itertools.combinations(range(1, carried), last_square - 1):
                bounds = [0, *cuts, carried]
                yield {square: pieces[start:end] for square, start, end in zip(squares, bounds[:-1], bounds[1:], strict=True)}


# Hands, piles, hidden squares, simultaneous steps


@functools.lru_cache(maxsize=256)
def _take_from(pile: int, objects: int) -> tuple[str, ...]:
    return tuple(f"[{pile} {quantity}]" for quantity in range(1, objects + 1))


def nim(raw: Raw, player: int) -> list[str]:
    """Any number of objects from one pile."""
    return [move for pile, objects in enumerate(raw.state.game_state["piles"]) for move in _take_from(pile, objects)]


@functools.cache
def _targets(size: int) -> tuple[str, ...]:
    return tuple(f"[{chr(65 + row)}{col}]" for row in range(size) for col in range(size))


def battleship(raw: Raw, player: int) -> list[str]:
    """A square that was not fired at."""
    board = raw.state.game_state["tracking_board"][player]
    return [target for target, held in zip(_targets(len(board)), chain.from_iterable(board), strict=True) if held == "~"]


def four_directions(raw: Raw, player: int) -> list[str]:
    """Any direction, also one that ends the player's game (Snake, Surround)."""
    return ["[up]", "[down]", "[left]", "[right]"]


def chopsticks(raw: Raw, player: int) -> list[str]:
    """An attack with a living hand on a living one, or the same fingers split differently."""
    mine, theirs = (raw.state.game_state["hands"][seat] for seat in (player, 1 - player))
    total = sum(mine)
    attacks = [f"[attack {own} {other}]" for own in (0, 1) for other in (0, 1) if mine[own] and theirs[other]]
    return attacks + [f"[split {left} {total - left}]" for left in range(total + 1) if left != mine[0]]


LEGAL: dict[str, Legal] = {
    "Alquerque": alquerque,
    "Battleship": battleship,
    "Breakthrough": breakthrough,
    "Checkers": checkers,
    "Chess": chess,
    "Chopsticks": chopsticks,
    "ConnectFour": connect_four,
    "Crusade": crusade,
    "LinesOfAction": lines_of_action,
    "Nim": nim,
    "Othello": othello,
    "QuantumTicTacToe": quantum_tic_tac_toe,
    "ReverseTicTacToe": numbered_cells,
    "Santorini": santorini,
    "SimpleTak": numbered_cells,
    "Snake": four_directions,
    "Stratego": stratego,
    "Surround": four_directions,
    "Tak": tak,
    "ThreePlayerTicTacToe": numbered_cells,
    "TicTacToe": numbered_cells,
    "UltimateTicTacToe": ultimate_tic_tac_toe,
    "WildTicTacToe": wild_tic_tac_toe,
}
