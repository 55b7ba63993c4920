"""Searches with which games begin, in place of textarena 0.7.4's own, which take minutes for some seeds.

Sokoban looks for a room by playing backwards from its solution: TextArena goes through up to 300,000 positions for each room that it
tries, a minute's work, tries up to 17 rooms for a seed, and keeps what it has found in globals of its module, which two tables that
begin at once would share. Sudoku makes sure that its puzzle has one solution after each number that it takes away, and TextArena fills
the squares one after another for that, however many numbers fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

MOST_POSITIONS = 5_000
"""Positions that one search goes through: a twentieth of a second. In a small room (6 by 6, three boxes) the search ends by itself long
before, and each seed gives the room that TextArena gives; in larger ones many searches end here, with the hardest room so far."""

MOST_MOVES = 300
"""Moves from the solution, the first position included, as in TextArena."""

EMPTY, TARGET, BOX_ON_TARGET, BOX, PLAYER = 1, 2, 3, 4, 5

Place: TypeAlias = tuple[int, int]


def play_backwards(room_state: Any, room_structure: Any) -> tuple[Any, int, dict[Place, Place]]:
    """Pull the boxes of a solved room off their targets, as far as can be.

    The positions are gone through in the order of TextArena's own search, depth first, so that the result is the same.

    Args:
        room_state: The solved room: a box on each target, and the player. An array of integers, walls around it.
        room_structure: The room without boxes and player.

    Returns:
        The hardest room found, the product of its pulls and the distances of its boxes from their targets (0 where a target is
        covered), and to each target the place of its box.
    """
    width = room_state.shape[1]
    structure = bytes(room_structure.astype(np.uint8).ravel())
    start = bytes(room_state.astype(np.uint8).ravel())
    targets = [place for place, what in enumerate(structure) if what == TARGET]
    steps = (-width, width, -1, 1)
    best, best_score, best_boxes = start, -1, tuple(targets)
    seen: set[bytes] = set()
    waiting = [(start, start.index(PLAYER), best_boxes, 0, 1)]
    while waiting:
        room, player, boxes, pulls, moves = waiting.pop()
        if moves >= MOST_MOVES or len(seen) >= MOST_POSITIONS or room in seen:
            continue
        seen.add(room)
        score = pulls * _distances(targets, boxes, width) if room.count(TARGET) == len(targets) else 0
        if score > best_score:
            best, best_score, best_boxes = room, score, boxes
        for step in reversed(steps):
            if room[player + step] not in (EMPTY, TARGET):
                continue
            after = bytearray(room)
            after[player + step] = PLAYER
            behind = player - step
            if room[behind] in (BOX_ON_TARGET, BOX):
                after[player], after[behind] = BOX_ON_TARGET, structure[behind]
                moved = tuple(player if box == behind else box for box in boxes)
                waiting.append((bytes(after), player + step, moved, pulls + 1, moves + 1))
            else:
                after[player] = structure[player]
                waiting.append((bytes(after), player + step, boxes, pulls, moves + 1))
    found = np.frombuffer(best, dtype=np.uint8).reshape(room_state.shape).astype(room_state.dtype)
    return found, best_score, {divmod(target, width): divmod(box, width) for target, box in zip(targets, best_boxes, strict=True)}


def _distances(targets: list[int], boxes: tuple[int, ...], width: int) -> int:
    return sum(abs(box // width - target // width) + abs(box % width - target % width) for target, box in zip(targets, boxes, strict=True))


def sudoku_solutions(grid: Sequence[Sequence[int]], most: int) -> list[list[list[int]]]:
    """Return solutions of a Sudoku, up to a number of them.

    Args:
        grid: Nine rows of nine numbers, 0 where a square is empty. None of them contradicts another.
        most: How many solutions are enough.
    """
    squares = [list(row) for row in grid]
    rows, columns, boxes = [0] * 9, [0] * 9, [0] * 9  # the numbers that each has, as bits
    empty = []
    for row in range(9):
        for column in range(9):
            if squares[row][column]:
                bit = 1 << squares[row][column]
                rows[row] |= bit
                columns[column] |= bit
                boxes[row // 3 * 3 + column // 3] |= bit
            else:
                empty.append((row, column, row // 3 * 3 + column // 3))
    found: list[list[list[int]]] = []

    def free(square: tuple[int, int, int]) -> int:
        row, column, box = square
        return 0b1111111110 & ~(rows[row] | columns[column] | boxes[box])

    def fill() -> None:
        if not empty:
            found.append([row.copy() for row in squares])
            return
        square = min(empty, key=lambda square: free(square).bit_count())  # where least can be
        row, column, box = square
        empty.remove(square)
        numbers = free(square)
        while numbers and len(found) < most:
            bit = numbers & -numbers
            numbers ^= bit
            for taken, place in ((rows, row), (columns, column), (boxes, box)):
                taken[place] |= bit
            squares[row][column] = bit.bit_length() - 1
            fill()
            for taken, place in ((rows, row), (columns, column), (boxes, box)):
                taken[place] ^= bit
        squares[row][column] = 0
        empty.append(square)

    fill()
    return found
