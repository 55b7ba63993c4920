"""Right answers that reasoning-gym does not give: its own scorers take them."""

from __future__ import annotations

import json

import pytest

from tests.wrappers.reasoning_gym.making import items_of, original_score, score
from vfgym.wrappers.reasoning_gym.solvers import solve_boxnet, solve_rubiks_cube, solve_rush_hour

pytest.importorskip("reasoning_gym", reason="needs the extra reasoning-gym")


def test_rush_hour_is_solved_in_the_fewest_moves() -> None:
    """The dataset knows how many they are, but not which."""
    items = items_of("rush_hour", 4)
    for index in range(4):
        metadata = items.entry(index)["metadata"]
        moves = solve_rush_hour(metadata)
        assert len(moves.split()) == metadata["min_moves"]
        assert original_score(items, moves, index) == 1.0


def test_cars_are_named_in_the_order_of_their_letters_and_stop_at_walls() -> None:
    """The red car is A, whatever the letter of the one that stands in its way; where a wall is below that, it goes up."""
    board = "ooooooooooooAAoXoooooXoooooooooooooo"
    assert solve_rush_hour({"board_config": board}) == "B+1 A+4"
    assert solve_rush_hour({"board_config": f"{board[:27]}x{board[28:]}"}) == "B-2 A+4"
    with pytest.raises(ValueError, match="no way leads out"):
        solve_rush_hour({"board_config": f"{board[:15]}x{board[16:21]}o{board[22:]}"})


@pytest.mark.parametrize("config", [{}, {"min_box_num": 2, "max_box_num": 4}])
def test_boxnet_is_solved(config: dict[str, int]) -> None:
    """Several boxes of a colour, too."""
    items = items_of("boxnet", 30, **config)
    for index in range(30):
        assert original_score(items, solve_boxnet(items.entry(index)["metadata"]), index) == 1.0


@pytest.mark.parametrize("size", [2, 3, 6])
def test_cubes_of_every_size_are_solved(size: int) -> None:
    """With moves of inner layers, which the dataset's own scorer would leave out."""
    items = items_of("rubiks_cube", cube_size=size)
    for index in range(4):
        moves = solve_rubiks_cube(items.entry(index)["metadata"])
        assert score(items, moves, index) == 1.0
        assert score(items, f"{moves} R2 R R", index) == 1.0
        assert score(items, f"{moves} 1R", index) < 1.0
        assert score(items, f"{moves} {size + 1}R", index) < 0.1


def test_a_scramble_is_undone_from_its_end() -> None:
    assert solve_rubiks_cube({"scramble_moves": "R 2U' F"}) == "F' 2U R'"
    assert solve_rubiks_cube({"scramble_moves": ""}) == ""


def test_each_box_goes_along_its_column_first_and_takes_a_target_of_its_own() -> None:
    state = {
        "0.5_0.5": ["box_red"],
        "0.5_1.5": ["target_blue", "box_blue"],
        "1.5_0.5": ["target_red"],
        "2.5_1.5": ["box_red", "target_red"],
    }
    assert json.loads(solve_boxnet({"initial_state": state})) == [
        {"Agent[0.5, 0.5]": "move(box_red, square[1.5, 0.5])"},
        {"Agent[1.5, 0.5]": "move(box_red, square[2.5, 0.5])"},
        {"Agent[2.5, 0.5]": "move(box_red, square[2.5, 1.5])"},
        {"Agent[2.5, 1.5]": "move(box_red, target_red)"},
        {"Agent[0.5, 1.5]": "move(box_blue, target_blue)"},
        {"Agent[2.5, 1.5]": "move(box_red, square[1.5, 1.5])"},
        {"Agent[1.5, 1.5]": "move(box_red, square[1.5, 0.5])"},
        {"Agent[1.5, 0.5]": "move(box_red, target_red)"},
    ]
    assert solve_boxnet({"initial_state": {"0.5_0.5": ["target_red"]}}) == "[]"
