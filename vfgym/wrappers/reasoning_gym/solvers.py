"""Right answers to puzzles for which reasoning-gym gives none, or not to all (rubiks_cube)."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

_WIDTH = 6

Positions: TypeAlias = tuple[int, ...]
"""Where each car begins on its line: its leftmost column, or its highest row."""


class Car(NamedTuple):
    """A car, which keeps to its line."""

    letter: str
    is_horizontal: bool
    line: int
    """Its row, or its column where it is vertical."""
    length: int

    def cells(self, position: int) -> list[int]:
        """Return the cells that it covers, counted from the upper left corner of the board."""
        along, across = (1, _WIDTH) if self.is_horizontal else (_WIDTH, 1)
        return [self.line * across + (position + offset) * along for offset in range(self.length)]


def solve_rush_hour(metadata: Mapping[str, Any]) -> str:
    """Return the shortest way to drive the red car to the exit: ``"C+1 A+4"``, say.

    Args:
        metadata: An item's; ``board_config`` has a letter for each cell, ``o`` where it is free, ``x`` for a wall.
    """
    board: str = metadata["board_config"]
    walls = frozenset(cell for cell, letter in enumerate(board) if letter == "x")
    cars: list[Car] = []
    start: list[int] = []
    # The question, and what checks answers, name the cars anew: A, B, ... in the order of their letters on the board.
    for number, letter in enumerate(sorted(set(board) - {"o", "x"})):
        cells = [cell for cell, there in enumerate(board) if there == letter]
        row, column = divmod(cells[0], _WIDTH)
        is_horizontal = cells[1] - cells[0] == 1
        cars.append(Car(chr(ord("A") + number), is_horizontal, row if is_horizontal else column, len(cells)))
        start.append(column if is_horizontal else row)
    goal = _WIDTH - cars[0].length
    came_from: dict[Positions, tuple[Positions, str] | None] = {tuple(start): None}
    waiting = deque(came_from)
    while waiting:
        positions = waiting.popleft()
        if positions[0] == goal:
            return " ".join(_way_to(positions, came_from))
        for move, reached in _moves(cars, positions, walls):
            if reached not in came_from:
                came_from[reached] = (positions, move)
                waiting.append(reached)
    raise ValueError(f"no way leads out of {board}")  # reasoning-gym's boards all have one


def _moves(cars: list[Car], positions: Positions, walls: frozenset[int]) -> Iterator[tuple[str, Positions]]:
    """Return each move of one car, and where all cars are after it."""
    taken = walls.union(*(car.cells(position) for car, position in zip(cars, positions, strict=True)))
    for number, (car, position) in enumerate(zip(cars, positions, strict=True)):
        others = taken.difference(car.cells(position))
        for sign in (1, -1):
            for steps in range(1, _WIDTH):
                reached = position + sign * steps
                if not 0 <= reached <= _WIDTH - car.length or not others.isdisjoint(car.cells(reached)):
                    break
                yield f"{car.letter}{sign * steps:+d}", (*positions[:number], reached, *positions[number + 1 :])


def _way_to(positions: Positions, came_from: Mapping[Positions, tuple[Positions, str] | None]) -> list[str]:
    moves = []
    while (step := came_from[positions]) is not None:
        positions, move = step
        moves.append(move)
    return moves[::-1]


def solve_boxnet(metadata: Mapping[str, Any]) -> str:
    """Return a plan that brings every box to a target of its colour, one step of one box at a time.

    Args:
        metadata: An item's; ``initial_state`` has what lies on each square, by ``"<row>_<column>"``.
    """
    squares = {tuple(map(float, square.split("_"))): things for square, things in metadata["initial_state"].items()}
    targets: dict[str, list[tuple[float, ...]]] = {}
    for square, things in squares.items():
        for thing in things:
            if thing.startswith("target_"):
                targets.setdefault(thing.removeprefix("target_"), []).append(square)
    plan: list[dict[str, str]] = []
    for square, things in squares.items():
        for box in things:
            if box.startswith("box_"):
                colour = box.removeprefix("box_")
                target = targets[colour].pop()
                here = square
                while here != target:
                    there = _one_step(here, target)
                    plan.append({_agent(here): f"move({box}, square{list(there)})"})
                    here = there
                plan.append({_agent(here): f"move({box}, target_{colour})"})
    return json.dumps(plan)


def _one_step(here: tuple[float, ...], target: tuple[float, ...]) -> tuple[float, ...]:
    """Return the next square on the way: along the column first, then along the row."""
    axis = 0 if here[0] != target[0] else 1
    step = 1.0 if target[axis] > here[axis] else -1.0
    return (here[0] + step, here[1]) if axis == 0 else (here[0], here[1] + step)


def _agent(square: tuple[float, ...]) -> str:
    return f"Agent{list(square)}"


def solve_rubiks_cube(metadata: Mapping[str, Any]) -> str:
    """Return the moves that undo the ones which scrambled a cube of any size.

    Args:
        metadata: An item's; ``scramble_moves`` has them in order.
    """
    moves = metadata["scramble_moves"].split()
    return " ".join(move.removesuffix("'") if move.endswith("'") else f"{move}'" for move in reversed(moves))


SOLVERS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "boxnet": solve_boxnet,
    "rubiks_cube": solve_rubiks_cube,
    "rush_hour": solve_rush_hour,
}
"""What finds a right answer from an item's metadata, by dataset."""
