"""What PettingZoo's environments show is shown as what it is, and prompts that nobody could play by are warned of."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

import vfgym
from tests.wrappers.pettingzoo.tables import Elimination
from vfgym.wrappers.games.images import frame_of
from vfgym.wrappers.pettingzoo import PettingZooGame

pettingzoo = pytest.importorskip("pettingzoo")


class Duel(Elimination):
    """Two players look at the same thing, three times each."""

    metadata = {"name": "duel_v0", "render_modes": []}

    def __init__(self, space: gym.Space[Any], actions: gym.Space[Any] = Discrete(2)) -> None:  # noqa: B008 -- shared, and not changed
        super().__init__(longest=6)
        self.possible_agents = ["left", "right"]
        self._actions, self._observations = dict.fromkeys(self.possible_agents, actions), dict.fromkeys(self.possible_agents, space)

    def observe(self, agent: str) -> Any:
        space = self._observations[agent]
        space.seed(0)
        return space.sample()


class Undocumented(Duel):
    __doc__ = None


class Numbered(Duel):
    """A duel.

    ## Actions
    * 0 - wait
    * 1 - shoot

    ## Observation Space
    Where the other one stands, and the wind in nine places.
    """


IMAGE = Box(0, 255, (20, 24, 3), np.uint8)


def test_images_are_shown_as_images() -> None:
    env = vfgym.to_chat(lambda: Duel(IMAGE))
    observation, _ = env.reset(seed=0)
    *texts, picture = [part for part in observation[-1].content if part["type"] == "image_url"]
    assert not texts
    expected = Box(0, 255, (20, 24, 3), np.uint8)
    expected.seed(0)
    assert np.array_equal(frame_of(picture), expected.sample())
    for opponents in ("random", "self"):
        results = vfgym.evaluate(vfgym.to_chat(lambda: Duel(IMAGE), opponents=opponents), "random", num_examples=2, progress=False)
        assert results["metadata"]["num_failed"] == 0


def test_images_in_a_dict_stand_beside_the_rest_as_text() -> None:
    env = vfgym.to_chat(lambda: Duel(Dict({"view": IMAGE, "ammunition": Discrete(3)})))
    content = env.reset(seed=0)[0][-1].content
    assert [part["type"] for part in content].count("image_url") == 1
    assert "ammunition: " in "\n".join(part.get("text", "") for part in content)


def test_bytes_of_text_are_text_at_a_table_too() -> None:
    table = PettingZooGame(lambda: Duel(Dict({"message": Box(65, 65, (4,), np.uint8)})))
    table.reset(seed=0, options=None)
    assert "\n\nAAAA" in table.observe("left")


@pytest.mark.parametrize(
    ("game", "space", "actions", "problem"),
    [
        (Duel, Discrete(3), Discrete(500), "the 500 actions have numbers and no names: give action_names"),
        (Duel, Box(0, 1, (9,)), Discrete(2), "9 numbers of an observation have no labels: give obs_to_text"),
        (Undocumented, Discrete(3), Discrete(2), "nothing is known of its rules: give rules"),
        (Duel, Discrete(3), Discrete(2), None),
        (Numbered, Box(0, 1, (9,)), Discrete(2), None),
        (Duel, Dict({"observation": Box(0, 1, (4,)), "action_mask": Box(0, 1, (500,), np.int8)}), Discrete(500), None),
    ],
)
def test_a_prompt_that_nobody_could_play_by_is_warned_of(
    game: type[Duel], space: gym.Space[Any], actions: gym.Space[Any], problem: str | None
) -> None:
    if problem is None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert vfgym.to_chat(lambda: game(space, actions)).prompt_problems == ()
        return
    with pytest.warns(UserWarning, match=f"is told too little: {problem}") as caught:
        env = vfgym.to_chat(lambda: game(space, actions))
    assert caught[0].filename == __file__
    assert problem in env.prompt_problems[0]
    assert vfgym.to_chat(lambda: game(space, actions), rules="It is said here.").prompt_problems == ()


def test_names_and_what_is_said_of_observations_are_taken_from_the_documentation() -> None:
    table = PettingZooGame(lambda: Numbered(Box(0, 1, (9,))))
    told = table.rules("left")
    assert "Actions: 0 (wait), 1 (shoot)." in told
    assert "Observations:\nWhere the other one stands, and the wind in nine places." in told
