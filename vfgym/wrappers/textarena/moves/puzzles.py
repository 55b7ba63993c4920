"""Moves of the games for one player, and of the memory game."""

from __future__ import annotations

import itertools
import string

import numpy as np

from vfgym.wrappers.textarena.moves.parts import Legal, Raw, Sampler, pick

DIRECTIONS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


# Directions


def fifteen_puzzle(raw: Raw, player: int) -> list[str]:
    """The directions in which a tile can move into the gap."""
    row, col = raw._get_empty_position()
    # The tile moves, so the gap goes the other way.
    return [f"[{name}]" for name, (down, right) in DIRECTIONS.items() if 0 <= row - down < 4 and 0 <= col - right < 4]


def frozen_lake(raw: Raw, player: int) -> list[str]:
    """The directions that do not lead off the lake."""
    row, col = raw.state.game_state["player_pos"]
    return [f"[{name}]" for name, (down, right) in raw.actions.items() if 0 <= row + down < raw.size and 0 <= col + right < raw.size]


def game_2048(raw: Raw, player: int) -> list[str]:
    """The directions in which some tile has room or an equal neighbour."""
    board = raw.state.game_state["board"]
    inside = range(raw.board_size)

    def moves(down: int, right: int) -> bool:
        return any(
            board[row][col] and board[row + down][col + right] in (0, board[row][col])
            for row in inside
            for col in inside
            if row + down in inside and col + right in inside
        )

    return [f"[{name.title()}]" for name, direction in DIRECTIONS.items() if moves(*direction)]


def sokoban(raw: Raw, player: int) -> list[str]:
    """The directions that are free, or hold a box that can be pushed."""
    return [f"[{direction}]" for direction in raw.action_space if not raw._would_collide_with_wall(direction)]


# Moves of pieces and switches


def lights_out(raw: Raw, player: int) -> list[str]:
    """Any light."""
    return [f"[{row} {col}]" for row, col in itertools.product(range(raw.size), repeat=2)]


def slitherlink(raw: Raw, player: int) -> list[str]:
    """Any edge: drawn ones are wiped out."""
    horizontal = [f"[h {row} {col}]" for row in range(raw.R + 1) for col in range(raw.C)]
    return horizontal + [f"[v {row} {col}]" for row in range(raw.R) for col in range(raw.C + 1)]


def peg_jump(raw: Raw, player: int) -> list[str]:
    """A jump of a peg over another into a free hole."""
    board = raw.state.game_state["board"]
    return [f"[{start} {end}]" for start, over, end in raw.ALLOWED_MOVES if board[start] and board[over] and not board[end]]


def rush_hour(raw: Raw, player: int) -> list[str]:
    """A car, one cell ahead or back."""
    cars = raw.state.game_state["vehicles"]
    return [f"[{name}{sign}]" for name, car in cars.items() for sign in "+-" if raw._can_move(cars, car, sign == "+")]


def tower_of_hanoi(raw: Raw, player: int) -> list[str]:
    """A disk onto an empty tower or a larger disk."""
    towers = raw.state.game_state["towers"]
    return [
        f"[{source} {target}]"
        for source, target in itertools.permutations(towers, 2)
        if towers[source] and (not towers[target] or towers[target][-1] > towers[source][-1])
    ]


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
    return [f"[{number}]" for number in range(raw.min_number, raw.max_number + 1) if number not in raw.guessed_numbers]


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
    positions = range(1, len(raw.state.game_state["board"]) + 1)
    return [f"[{first}, {second}, {third}]" for first, second, third in itertools.combinations(positions, 3)]


def memory_game(raw: Raw, player: int) -> list[str]:
    """Two different cards that still lie face down; the order does not matter."""
    matched = raw.state.game_state["matched_positions"]
    hidden = [cell for cell in itertools.product(range(raw.grid_size), repeat=2) if cell not in matched]
    return [f"[{r1} {c1} {r2} {c2}]" for (r1, c1), (r2, c2) in itertools.combinations(hidden, 2)]


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
