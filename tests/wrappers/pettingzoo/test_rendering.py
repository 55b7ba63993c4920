"""What PettingZoo's environments show is shown as what it is, and prompts that nobody could play by are warned of."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

import vfgym
from vfgym.checks.environment import check_environment
from vfgym.wrappers.games.images import frame_of
from vfgym.wrappers.pettingzoo import PettingZooGame

pettingzoo = pytest.importorskip("pettingzoo")


class Duel(pettingzoo.AECEnv):  # type: ignore[misc]
    """Two players look at the same thing, three times each."""

    metadata = {"name": "duel_v0", "render_modes": []}
    render_mode = None

    def __init__(self, space: gym.Space[Any], actions: gym.Space[Any] = Discrete(2)) -> None:  # noqa: B008 -- shared, and not changed
        self.possible_agents = ["left", "right"]
        self._space, self._actions = space, actions

    def observation_space(self, agent: str) -> gym.Space[Any]:
        return self._space

    def action_space(self, agent: str) -> gym.Space[Any]:
        return self._actions

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        self.agents = [*self.possible_agents]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self.agent_selection = "left"
        self._space.seed(0)
        self.seen, self.moves = self._space.sample(), 0

    def observe(self, agent: str) -> Any:
        return self.seen

    def step(self, action: Any) -> None:
        if self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        self.moves += 1
        if self.moves == 6:
            self.terminations = dict.fromkeys(self.agents, True)
        self.agent_selection = self.possible_agents[self.moves % 2]


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
    observation, *_ = env.step("0")
    assert observation[-1].content[-1]["type"] == "image_url"


def test_images_in_a_dict_stand_beside_the_rest_as_text() -> None:
    env = vfgym.to_chat(lambda: Duel(Dict({"view": IMAGE, "ammunition": Discrete(3)})))
    content = env.reset(seed=0)[0][-1].content
    assert [part["type"] for part in content].count("image_url") == 1
    assert "ammunition: " in "\n".join(part.get("text", "") for part in content)


def test_a_game_with_images_is_played_in_self_play_and_from_both_sides() -> None:
    for opponents in ("random", "self"):
        env = vfgym.to_chat(lambda: Duel(IMAGE), opponents=opponents)
        results = vfgym.evaluate(env, "random", num_examples=2, progress=False)
        assert results["metadata"]["num_failed"] == 0


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


def test_such_a_prompt_is_a_finding_of_the_check() -> None:
    with pytest.warns(UserWarning, match="told too little"):
        found = {check.promise: check for check in check_environment(lambda: vfgym.to_chat(lambda: Undocumented(Discrete(3))))}
    assert "rules" in found["tells what its actions and observations are"].detail


def test_names_and_what_is_said_of_observations_are_taken_from_the_documentation() -> None:
    table = PettingZooGame(lambda: Numbered(Box(0, 1, (9,))))
    told = table.rules("left")
    assert "Actions: 0 (wait), 1 (shoot)." in told
    assert "Observations:\nWhere the other one stands, and the wind in nine places." in told


def test_a_module_with_a_title_documents_a_class_that_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """As MPE2's modules do, which are written like PettingZoo's own."""
    text = """
# Duel in the Fog

| Import | `from duels import duel_v0` |
|--------|-----------------------------|
| Agents | `[left, right]`             |

Nobody sees anything. Agent and adversary action space: `[no_action, shoot]`
"""
    monkeypatch.setattr(sys.modules[__name__], "__doc__", text)
    told = PettingZooGame(lambda: Undocumented(Discrete(3))).rules("left")
    assert told.startswith("You are playing Duel in the Fog.\n\nNobody sees anything.")
    assert "Actions: 0 (no_action), 1 (shoot)." in told
    assert PettingZooGame(lambda: Duel(Discrete(3))).rules("left").startswith("You are playing duel_v0.\n\nTwo players look")
