"""Searches with which games begin: the same result as TextArena has, in a moment."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from tests.wrappers.textarena.playing import begun, original
from vfgym.wrappers.textarena import searches
from vfgym.wrappers.textarena.searches import BOX_ON_TARGET, PLAYER, TARGET, play_backwards, sudoku_solutions

pytest.importorskip("textarena", reason="needs the extra textarena")


def room_of(module: Any, seed: int) -> Any:
    """Return what a module of Sokoban makes of a seed: the room, the room without boxes, and which box belongs where."""
    structure, state, boxes = module.generate_room(dim=(6, 6), num_steps=20, num_boxes=3, seed=seed)
    return structure.tolist(), state.tolist(), boxes


def test_small_rooms_of_sokoban_are_those_of_textarena() -> None:
    begun("Sokoban-v0")
    repaired = importlib.import_module("textarena.envs.Sokoban.utils")
    as_it_is = original("textarena.envs.Sokoban.utils")
    assert as_it_is.reverse_playing is not repaired.reverse_playing
    for seed in (2, 6, 7, 9):
        assert room_of(repaired, seed) == room_of(as_it_is, seed)


@pytest.mark.parametrize(("clues", "most", "number"), [(0, 2, 2), (0, 5, 5), (1, 3, 3)])
def test_a_grid_that_has_many_solutions(clues: int, most: int, number: int) -> None:
    grid = [[0] * 9 for _ in range(9)]
    for place in range(clues):
        grid[place][place] = place + 1
    found = sudoku_solutions(grid, most)
    assert len(found) == number
    assert all(sorted(row) == [*range(1, 10)] for solution in found for row in (*solution, *map(list, zip(*solution, strict=True))))
    assert len({repr(solution) for solution in found}) == number


def test_a_puzzle_has_the_one_solution_that_its_numbers_leave() -> None:
    solved = [[(3 * row + row // 3 + column) % 9 + 1 for column in range(9)] for row in range(9)]
    puzzle = [[0 if (row + column) % 2 else number for column, number in enumerate(numbers)] for row, numbers in enumerate(solved)]
    found = sudoku_solutions(puzzle, 1000)
    assert solved in found
    boxes = [[grid[row + r][column + c] for r in range(3) for c in range(3)] for grid in found for row in (0, 3, 6) for column in (0, 3, 6)]
    assert all(sorted(box) == [*range(1, 10)] for box in boxes)
    assert sudoku_solutions(solved, 2) == [solved]
    assert sudoku_solutions(puzzle, 0) == []
    assert [row.count(0) for row in puzzle] == [4, 5] * 4 + [4], "what is given is left as it is"
    stuck = [[1, 2, 3, 4, 5, 6, 7, 8, 0], [0] * 8 + [9], *[[0] * 9 for _ in range(7)]]
    assert sudoku_solutions(stuck, 1) == []


def solved_room() -> tuple[Any, Any]:
    """Return a room of one box, and the room without it: the box on its target in a corridor, the player beside it."""
    structure = np.array([[0, 0, 0, 0, 0, 0], [0, 2, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0]])
    state = structure.copy()
    state[1, 1], state[1, 2] = BOX_ON_TARGET, PLAYER
    return state, structure


def test_a_box_is_pulled_off_its_target_as_far_as_can_be() -> None:
    state, structure = solved_room()
    before = state.copy()
    room, score, boxes = play_backwards(state, structure)
    assert room.tolist()[1] == [0, TARGET, 1, BOX_ON_TARGET, PLAYER, 0]
    assert (score, boxes) == (2 * 2, {(1, 1): (1, 3)})
    assert (state == before).all()
    assert room.dtype == state.dtype


@pytest.mark.parametrize(("limit", "least"), [("MOST_POSITIONS", 1), ("MOST_MOVES", 1)])
def test_a_search_ends_with_what_it_has_found(limit: str, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searches, limit, least)
    state, structure = solved_room()
    assert play_backwards(state, structure)[0].tolist() == state.tolist()
