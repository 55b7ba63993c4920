"""What PettingZoo's environments show is shown as what it is, and prompts that nobody could play by are warned of."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

import vfgym
from tests.wrappers.pettingzoo.tables import Elimination
from vfgym.codecs import codec_for
from vfgym.errors import ConfigurationError
from vfgym.wrappers.games.images import frame_of
from vfgym.wrappers.pettingzoo import PettingZooGame
from vfgym.wrappers.pettingzoo.rendering import find_problems, make_renderer
from vfgym.wrappers.pettingzoo.rules import Rules

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


SMALL, NINE = Discrete(3), Box(0, 1, (9,))
NAMELESS = "the 500 actions have numbers and no names: give action_names"
UNLABELLED = "9 numbers of an observation have no labels: give obs_to_text"
RULELESS = "nothing is known of its rules: give rules"
KNOWN = {"text": "A duel.", "actions": "", "observations": ""}


@pytest.mark.parametrize(
    ("rules", "seen", "actions", "infos", "problems"),
    [
        ({}, SMALL, SMALL, {}, ()),
        ({"text": ""}, SMALL, SMALL, {}, (RULELESS,)),
        ({}, NINE, Discrete(500), {}, (NAMELESS, UNLABELLED)),
        ({"text": ""}, NINE, Discrete(500), None, (RULELESS, NAMELESS, UNLABELLED)),
        ({"actions": "500 places."}, NINE, Discrete(500), {}, (UNLABELLED,)),
        ({"observations": "Nine places."}, NINE, Discrete(500), {}, (NAMELESS,)),
        ({"text": "Observations are nine places."}, NINE, SMALL, {}, ()),
        ({"text": "Each observation is nine places."}, NINE, SMALL, {}, ()),
        ({}, SMALL, Discrete(500), {"blue": {"action_mask": [1] * 500}}, ()),
        ({}, SMALL, Discrete(500), {"red": {"action_mask": [1] * 500}}, (NAMELESS,)),
        ({}, Dict(action_mask=Box(0, 1, (500,)), places=NINE), Discrete(500), {}, (UNLABELLED,)),
        ({}, Dict(action_mask=Box(0, 1, (500,)), place=SMALL), Discrete(500), {}, ()),
    ],
    ids=range(12),
)
def test_what_any_player_cannot_know_is_a_problem(
    rules: dict[str, str], seen: Any, actions: Any, infos: Any, problems: tuple[str, ...]
) -> None:
    """Of two players the second is as they say; each problem is told once, and only that of the rules to who sees no numbers."""
    known = Rules(**{**KNOWN, **rules})
    for first in ((SMALL, SMALL), (seen, actions)) if infos is None or not infos else ((SMALL, SMALL),):
        of = {"red": first, "blue": (seen, actions)}
        env = SimpleNamespace(
            observation_space=lambda player, of=of: of[player][0], action_space=lambda player, of=of: of[player][1], infos=infos
        )
        codecs = {player: codec_for(space) for player, (_, space) in of.items()}
        assert find_problems(env, codecs, known, is_rendered_as_observed=True) == problems
        assert find_problems(env, codecs, known, is_rendered_as_observed=False) == ((RULELESS,) if rules.get("text") == "" else ())


def test_of_several_images_each_is_shown_and_the_rest_is_text_without_them() -> None:
    space = Dict(a=IMAGE, b=SMALL, c=IMAGE)
    space.seed(0)
    observation = space.sample()
    *text, one, other = make_renderer(SimpleNamespace(), space, "A duel")(observation)
    assert [part["text"] for part in text] == [f"b: {observation['b']}"]
    assert [np.array_equal(frame_of(part), observation[key]) for part, key in ((one, "a"), (other, "c"))] == [True, True]
    [alone] = make_renderer(SimpleNamespace(), Dict(a=IMAGE), "A duel")(observation)
    assert np.array_equal(frame_of(alone), observation["a"])


def test_channels_with_names_are_a_map_and_many_numbers_an_error_with_the_title() -> None:
    board = np.zeros((2, 1, 3), np.int8)
    board[1, 0, 2] = 1
    shown = make_renderer(SimpleNamespace(channels={"wall": 0, "exit": 1}), gym.spaces.MultiBinary((2, 1, 3)), "A duel")(board)
    assert shown == ". . e"
    with pytest.raises(ConfigurationError, match=r"^A duel .*or make the environment with render_mode='ansi' if it draws itself as text"):
        make_renderer(SimpleNamespace(), Box(0, 1, (1000,)), "A duel")
