"""A prompt that nobody could play from is warned of and reported, and no registered game has one."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

import vfgym
from tests.environments import Talk
from tests.wrappers.gymnasium.toys import Toy
from vfgym.checks.environment import check_environment
from vfgym.codecs import codec_for
from vfgym.wrappers.gymnasium.playability import action_problem, observation_problem


class Game(Toy):
    __doc__ = None

    def __init__(self, actions: Any, observations: Any, **attributes: Any) -> None:
        super().__init__(action_space=actions, observation_space=observations, length=1, **attributes)

    def seen(self) -> Any:
        self.observation_space.seed(0)
        return self.observation_space.sample()


class Explained(Game):
    """A game.

    ## Actions
    An action is row * 25 + column.

    ## Observations
    The cells of the board, row by row.
    """


SMALL = Discrete(2)
ACTIONS = "the 500 actions have numbers and no names: give action_names"
IMAGE = Box(0, 255, (20, 20, 3), np.uint8)
NUMBERS = "9 numbers of an observation have no labels: give obs_to_text"


@pytest.mark.parametrize(
    ("actions", "observations", "problem"),
    [
        (Discrete(500), SMALL, ACTIONS),
        (SMALL, Box(0, 1, (9,)), NUMBERS),
        (SMALL, Box(0, 1, (3, 3)), NUMBERS),
        (SMALL, MultiBinary(9), NUMBERS),
        (SMALL, Dict({"mine": Box(0, 1, (9,)), "yours": Box(0, 1, (2,))}), NUMBERS),
        (Box(-1, 1, (9,)), SMALL, "the 9 numbers of an action have no labels: give action_names"),
        (MultiDiscrete([2] * 9), SMALL, "the 9 numbers of an action have no labels"),
        (Discrete(20), Box(0, 1, (4,)), None),
        (Discrete(20), Dict({str(key): Discrete(9) for key in range(9)}), None),
    ],
)
def test_numbers_that_nobody_explains_are_warned_of(actions: gym.Space[Any], observations: gym.Space[Any], problem: str | None) -> None:
    if problem is None:
        assert vfgym.to_chat(lambda: Game(actions, observations)).prompt_problems == ()
        return
    with pytest.warns(UserWarning, match=problem) as caught:
        env = vfgym.to_chat(lambda: Game(actions, observations))
    assert caught[0].filename == __file__
    assert "vfgym.register_description" in str(caught[0].message)
    assert problem in env.prompt_problems[0]


def test_what_somebody_says_is_enough() -> None:
    actions, numbers = Discrete(500), Box(0, 1, (9,))
    names = [f"move {number}" for number in range(500)]
    for env in (
        vfgym.to_chat(lambda: Game(actions, SMALL), action_names=names),
        vfgym.to_chat(lambda: Game(SMALL, numbers), obs_to_text=str),
        vfgym.to_chat(lambda: Game(actions, numbers), rules="Actions are cells, numbers are heights."),
        vfgym.to_chat(lambda: Game(actions, numbers), prompt="Play."),
        vfgym.to_chat(lambda: Game(actions, SMALL, info={"action_mask": np.ones(500, np.int8)})),
        vfgym.to_chat(lambda: Game(actions, Dict({"action_mask": MultiBinary(500), "place": Discrete(3)}))),
        vfgym.to_chat(lambda: Explained(actions, numbers)),
    ):
        assert env.prompt_problems == ()


def test_an_unplayable_prompt_is_a_finding_of_the_check() -> None:
    """By a game's id it is checked as the chat environment that is made of it, without warnings."""
    promise = "tells what its actions and observations are"
    gym.register("Unexplained-v0", lambda: Game(SMALL, Box(0, 1, (9,))))
    try:
        failed = {check.promise: check.detail for check in check_environment("Unexplained-v0") if not check.passed}
    finally:
        del gym.registry["Unexplained-v0"]
    assert failed.keys() == {promise}
    assert NUMBERS in failed[promise]
    assert promise not in {check.promise for check in check_environment(lambda: Talk(max_turns=2))}


@pytest.mark.parametrize(
    ("space", "count"),
    [
        (Discrete(20), 0),
        (Discrete(21), 21),
        (Box(0, 1, (4,)), 0),
        (Box(0, 1, (5,)), 5),
        (Box(0, 1, ()), 0),
        (MultiDiscrete([2] * 5), 5),
        (Dict(a=Box(0, 1, (2, 3)), b=Discrete(99)), 6),
        (Dict(action_mask=MultiBinary(9), b=Discrete(99)), 0),
        (Tuple([Discrete(2)] * 5), 5),
        (Tuple([Discrete(2), MultiBinary(6)]), 6),
        (gym.spaces.Text(99), 0),
        (Dict(view=IMAGE, speed=Discrete(3)), 0),
        (Dict(view=IMAGE, lidar=Box(0, 1, (5,))), 5),
    ],
    ids=str,
)
def test_twenty_actions_and_four_numbers_can_be_found_out(space: gym.Space[Any], count: int) -> None:
    if "view" not in str(space):  # images explain themselves
        problem = action_problem(space, codec_for(space))
        assert problem.startswith(f"the {count} ") if count else problem == ""
    if not isinstance(space, Discrete):
        problem = observation_problem(space)
        assert problem == (f"{count} numbers of an observation have no labels: give obs_to_text" if count else "")
    if isinstance(space, Discrete | Box) and count:
        assert action_problem(space, codec_for(space, [f"n{number}" for number in range(count)])) == ""


SAY_ACTIONS = f"{ACTIONS} to to_chat, or to vfgym.register_description, or say in rules what they do"
SAY_NUMBERS = f"{NUMBERS} to to_chat, or labels or obs_to_text to vfgym.register_description, or say in rules what they are"
WRITING = Box(65, 65, (4,), np.uint8)


@pytest.mark.filterwarnings("ignore:a model that plays this game:UserWarning")
@pytest.mark.parametrize(
    ("actions", "observations", "info", "problems"),
    [
        (Discrete(500), Box(0, 1, (9,)), {}, (SAY_ACTIONS, SAY_NUMBERS)),
        (Discrete(500), Box(0, 1, (9,)), {"action_mask": np.ones(500, np.int8)}, (SAY_NUMBERS,)),
        (SMALL, Dict(message=WRITING, values=Box(0, 1, (9,))), {}, (SAY_NUMBERS,)),
        (SMALL, Dict(message=WRITING, values=Box(0, 1, (4,))), {}, ()),
        (SMALL, Dict(message=WRITING), {}, ()),
    ],
    ids=range(5),
)
def test_each_problem_says_what_to_give(actions: Any, observations: Any, info: Any, problems: tuple[str, ...]) -> None:
    assert vfgym.to_chat(lambda: Game(actions, observations, info=info)).prompt_problems == problems
