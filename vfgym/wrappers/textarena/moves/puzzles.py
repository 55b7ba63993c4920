"""Moves of the games for one player, and of the memory game."""

from __future__ import annotations

import functools
import itertools
import math
import string
from collections.abc import Sequence

import numpy as np

from vfgym.wrappers.textarena.moves.parts import Legal, Raw, Sampler, numbers, pick

DIRECTIONS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


# Directions


@functools.lru_cache(maxsize=512)
def _directions(row: int, col: int, size: int) -> tuple[str, ...]:
    """Return the directions that lead from a cell to another one of a board."""
    return tuple(f"[{name}]" for name, (down, right) in DIRECTIONS.items() if 0 <= row + down < size and 0 <= col + right < size)


def fifteen_puzzle(raw: Raw, player: int) -> list[str]:
    """The directions in which a tile can move into the gap."""
    row, col = raw._get_empty_position()
    return [*_directions(3 - row, 3 - col, 4)]  # the tile moves, so the gap goes the other way


def frozen_lake(raw: Raw, player: int) -> list[str]:
    """The directions that do not lead off the lake."""
    row, col = raw.state.game_state["player_pos"]
    return [*_directions(row, col, raw.size)]


def game_2048(raw: Raw, player: int) -> list[str]:
    """The directions in which some tile has room or an equal neighbour."""
    rows = raw.state.game_state["board"]
    columns = [*zip(*rows, strict=True)]
    moves = []
    if _can_slide(columns):
        moves.append("[Up]")
    if _can_slide([column[::-1] for column in columns]):
        moves.append("[Down]")
    if _can_slide(rows):
        moves.append("[Left]")
    if _can_slide([row[::-1] for row in rows]):
        moves.append("[Right]")
    return moves


def _can_slide(lines: Sequence[Sequence[int]]) -> bool:
    """Say whether some tile can move towards the start of its line."""
    for line in lines:
        before = line[0]
        for tile in line[1:]:
            if tile and (not before or tile == before):
                return True
            before = tile
    return False


def sokoban(raw: Raw, player: int) -> list[str]:
    """The directions that are free, or hold a box that can be pushed."""
    return [f"[{direction}]" for direction in raw.action_space if not raw._would_collide_with_wall(direction)]


# Moves of pieces and switches


@functools.cache
def _lights(size: int) -> tuple[str, ...]:
    return tuple(f"[{row} {col}]" for row, col in itertools.product(range(size), repeat=2))


def lights_out(raw: Raw, player: int) -> list[str]:
    """Any light."""
    return [*_lights(raw.size)]


@functools.cache
def _edges(rows: int, cols: int) -> tuple[str, ...]:
    horizontal = (f"[h {row} {col}]" for row in range(rows + 1) for col in range(cols))
    vertical = (f"[v {row} {col}]" for row in range(rows) for col in range(cols + 1))
    return (*horizontal, *vertical)


def slitherlink(raw: Raw, player: int) -> list[str]:
    """Any edge: drawn ones are wiped out."""
    return [*_edges(raw.R, raw.C)]


def peg_jump(raw: Raw, player: int) -> list[str]:
    """A jump of a peg over another into a free hole."""
    board = raw.state.game_state["board"]
    return [f"[{start} {end}]" for start, over, end in raw.ALLOWED_MOVES if board[start] and board[over] and not board[end]]


def rush_hour(raw: Raw, player: int) -> list[str]:
    """A car, one cell ahead or back."""
    cars = raw.state.game_state["vehicles"]
    return [f"[{name}{sign}]" for name, car in cars.items() for sign in "+-" if raw._can_move(cars, car, sign == "+")]


_BETWEEN_TOWERS = [(source, target, f"[{source} {target}]") for source, target in itertools.permutations("ABC", 2)]


def tower_of_hanoi(raw: Raw, player: int) -> list[str]:
    """A disk onto an empty tower or a larger disk."""
    towers = raw.state.game_state["towers"]
    tops = {name: disks[-1] if disks else math.inf for name, disks in towers.items()}
    return [move for source, target, move in _BETWEEN_TOWERS if tops[source] < tops[target]]


# Numbers and letters that are entered


def countdown(raw: Raw, player: int) -> list[str]:
    """Two of the numbers, by their positions, and an operation that gives an integer."""
    return [
        f"[{first} {second} {sign}]"
        for first, second in itertools.permutations(range(len(raw.numbers)), 2)
        for sign in "+-*/"
        if raw._execute_operation(first, second, sign) is not None
    ]


def cryptarithm(raw: Raw, player: int) -> list[str]:
    """A letter and a digit that no other letter has; no word begins with 0."""
    free = [digit for digit in range(10) if digit not in raw.digit_used]
    return [f"[{letter} {digit}]" for letter in sorted(raw.letters) for digit in free if digit or letter not in raw.first_letters]


def logic_puzzle(raw: Raw, player: int) -> list[str]:
    """A mark other than the one that a cell has; the game reads names of letters only."""
    names = {(row, col) for grid in raw.game_board.values() for row, cells in grid.items() for col in cells}
    return [
        f"[{row} {col} {mark}]"
        for row, col in sorted(names)
        if row.isascii() and row.isalpha() and col.isascii() and col.isalpha()
        for mark in "XO"
        if not raw._is_repeated_mark(row, col, mark)
    ]


def guess_the_number(raw: Raw, player: int) -> list[str]:
    """A number that was not guessed; the hints are not used."""
    least, guessed = raw.min_number, raw.guessed_numbers
    return [move for number, move in enumerate(numbers(least, raw.max_number + 1), least) if number not in guessed]


def mastermind(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """A code that was not tried."""
    state = raw.state.game_state
    tried = [entry["guess"] for entry in state["history"]]
    while True:
        code = (rng.choice(state["num_numbers"], state["code_length"], replace=state["duplicate_numbers"]) + 1).tolist()
        if code not in tried:
            return f"[{' '.join(map(str, code))}]"


def crosswords(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """A letter in an empty cell. The game refuses wrong letters, which a player can only guess."""
    empty = [(r, c) for r, row in enumerate(raw.state.game_state["board"]) for c, held in enumerate(row) if held == "_"]
    row, col = pick(rng, empty)
    return f"[{row} {col} {pick(rng, string.ascii_uppercase)}]"


def sudoku(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """A digit that stands in neither the row, the column nor the box. The game refuses all but the solution's."""
    board = raw.state.game_state["board"]
    cells = itertools.product(range(9), repeat=2)
    fitting = [(r, c, n) for r, c in cells if not board[r][c] for n in range(1, 10) if raw.is_safe(board, r, c, n)]
    row, col, number = pick(rng, fitting)
    return f"[{row + 1} {col + 1} {number}]"


def minesweeper(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """A cell that is not revealed. The game counts a mine as an invalid move."""
    hidden = [(r, c) for r, row in enumerate(raw.revealed) for c, is_revealed in enumerate(row) if not is_revealed]
    row, col = pick(rng, hidden)
    return f"[{row} {col}]"


# Choices from what is shown


def bandit(raw: Raw, player: int) -> list[str]:
    """A button."""
    return [f"[{button}]" for button in raw.buttons]


def secretary(raw: Raw, player: int) -> list[str]:
    """Take this one, or look at the next."""
    return ["[accept]", "[continue]"]


def three_card_monte(raw: Raw, player: int) -> list[str]:
    """A cup."""
    return [f"[{cup}]" for cup in range(raw.num_cups)]


def set_of_cards(raw: Raw, player: int) -> list[str]:
    """Three different cards, set or not."""
    return [*_triples(len(raw.state.game_state["board"]))]


@functools.cache
def _triples(number: int) -> tuple[str, ...]:
    return tuple(f"[{first}, {second}, {third}]" for first, second, third in itertools.combinations(range(1, number + 1), 3))


def memory_game(raw: Raw, player: int) -> list[str]:
    """Two different cards that still lie face down; the order does not matter."""
    matched = raw.state.game_state["matched_positions"]
    hidden = [f"{row} {col}" for row, col in itertools.product(range(raw.grid_size), repeat=2) if (row, col) not in matched]
    return [f"[{first} {second}]" for first, second in itertools.combinations(hidden, 2)]


LEGAL: dict[str, Legal] = {
    "Bandit": bandit,
    "Countdown": countdown,
    "Cryptarithm": cryptarithm,
    "FifteenPuzzle": fifteen_puzzle,
    "FrozenLake": frozen_lake,
    "Game2048": game_2048,
    "GuessTheNumber": guess_the_number,
    "LightsOut": lights_out,
    "LogicPuzzle": logic_puzzle,
    "MemoryGame": memory_game,
    "PegJump": peg_jump,
    "RushHour": rush_hour,
    "Secretary": secretary,
    "Set": set_of_cards,
    "Slitherlink": slitherlink,
    "Sokoban": sokoban,
    "ThreeCardMonte": three_card_monte,
    "TowerOfHanoi": tower_of_hanoi,
}

SAMPLED: dict[str, Sampler] = {
    "Crosswords": crosswords,
    "Mastermind": mastermind,
    "Minesweeper": minesweeper,
    "Sudoku": sudoku,
}
