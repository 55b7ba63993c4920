"""`describe`: what environments say about themselves is readable, and true of their spaces."""

from __future__ import annotations

import dataclasses
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Sequence, Tuple
from gymnasium.wrappers import TransformAction, TransformObservation
from hypothesis import given
from hypothesis import strategies as st

from vfgym.errors import ConfigurationError
from vfgym.wrappers.gymnasium.descriptions import MOST_CHARACTERS, Description, describe
from vfgym.wrappers.gymnasium.registered import register_description


class Game(gym.Env[Any, Any]):
    action_space: gym.Space[Any] = Discrete(2)
    observation_space: gym.Space[Any] = Discrete(3)


class Guess(Game):
    """Guess a number.

    You win if you *hit* it.

    Args:
        secret: The number.
    """


class Documented(Game):
    """Weather to be guessed.

    ## Action Space
    - 0: wait
    - 1: go out

    ## Observation Space
    What the sky is like:

    - 0: dry
    - 1: wet
    - 2: unknown

    ## Reward
    You get 1 for each dry day.
    """


def test_a_docstring_without_headings_is_the_rules_up_to_its_arguments() -> None:
    rules = "Guess a number.\n\nYou win if you hit it."
    assert describe(Game()) == Description()
    secretive = Guess()
    arguments = {"kwargs": {"number": 1234567}, "max_episode_steps": 12}  # arguments may be what the player has to find out
    secretive.spec = gym.envs.registration.EnvSpec("Guess-v0", entry_point=Guess, **arguments)
    assert describe(secretive).rules == f"{rules}\n\nAn episode is cut off after 12 steps."
    assert describe(Guess()) == describe(type("StillGuessing", (Guess,), {})()) == Description(rules=rules)


class Digging(Game):
    """Dig for treasure, whatever its shape.

    ## Rules
    You may dig three times (the map is an ndarray).

    ## The *Goal*
    Find the treasure.

    ## Actions
    0: dig
    1: leave

    ## Observations
    - 0: nothing
    - 1: a hole
    - 2: treasure

    ## Starting State
    You stand at the border.

    ## Reward
    10 points for the treasure.

    ## Arguments
    The secret place.

    ## Version History
    - v0: first
    """


def test_whatever_a_docstring_of_somebody_elses_says_is_told_but_what_is_for_programmers() -> None:
    assert describe(Digging()) == Description(
        rules="Dig for treasure, whatever its shape."
        "\n\nRules:\nYou may dig three times (the map is an ndarray)."
        "\n\nThe Goal:\nFind the treasure."
        "\n\nStarting State:\nYou stand at the border."
        "\n\nReward:\n10 points for the treasure.",
        action_names=("dig", "leave"),
        observation_labels=("nothing", "a hole", "treasure"),
    )


LINES = [
    *("Text.", "", "## Action Space", "## Observation Space", "## Starting State", "| Num | Action | Name |", "| Observation | Values |"),
    *("|---|---|---|", "| 0 | left | a |", "| 1 | left | b |", "| 1 |", "| excluded | x-coordinate | c |"),
    *("- 0: stay", "- 1: go", "- *parts (2 elements):* two"),
]


@given(st.lists(st.sampled_from(LINES), max_size=12), st.sampled_from([Discrete(2), Box(-1, 1, (2,)), Box(-1, 1, (3,))]))
def test_no_docstring_breaks_a_description_or_names_more_or_less_than_there_is(lines: list[str], space: gym.Space[Any]) -> None:
    class Careless(Game):
        action_space = observation_space = space

    Careless.__doc__ = "\n".join(lines)
    found = describe(Careless())
    size = 2 if isinstance(space, Discrete) else space.shape[0]
    for names in (found.action_names, found.action_labels, found.observation_labels):
        assert len(set(names)) == len(names)
        assert len(names) in (0, size)
    assert not (found.action_labels if isinstance(space, Discrete) else found.action_names)


def test_names_of_observations_and_actions_of_an_environment_documented_like_gymnasiums() -> None:
    assert describe(Documented()) == Description(
        rules="Weather to be guessed.\n\nReward:\nYou get 1 for each dry day.",
        about_observations="What the sky is like:",
        action_names=("wait", "go out"),
        observation_labels=("dry", "wet", "unknown"),
    )
    for space in (Discrete(3), Box(-1, 1, (2,)), MultiDiscrete([2, 2])):
        env = Documented()
        env.action_space = space
        assert describe(env).action_names == ()


def test_the_action_that_does_nothing_is_an_action_and_no_place_in_a_list() -> None:
    env = Game()
    env.__class__ = type(
        "Offset", (Game,), {"__doc__": "## Action Space\n- 0: jump\n- 1: do nothing", "action_space": Discrete(2, start=5)}
    )
    assert describe(env).noop == 6


def test_long_rules_are_cut_at_a_paragraph() -> None:
    class Long(Game):
        pass

    Long.__doc__ = "\n\n".join(f"Rule {number}. {'x' * 90}" for number in range(100))
    rules = describe(Long()).rules
    assert MOST_CHARACTERS - 200 < len(rules) <= MOST_CHARACTERS
    assert rules.endswith("x" * 90)


def test_meanings_of_actions_go_before_all_else_that_names_them() -> None:
    class Meant(Documented):
        """A game.

        ## Actions
        - 0: wait
        - 1: go out
        """

        actions = {0: "LEFT", 1: "RIGHT"}

    assert describe(Meant()).action_names == ("LEFT", "RIGHT")
    Meant.get_action_meanings = lambda self: ["NOOP", "FIRE"]
    found = describe(Meant())
    assert (found.action_names, found.noop) == (("NOOP", "FIRE"), 0)


class Wrapped:
    """A game of the abandoned gym.

    :param depth: How deep it is.
    """

    action_space = Discrete(2)
    observation_space = Discrete(3)
    actions = {0: "dig", 1: "leave"}

    @property
    def unwrapped(self) -> Wrapped:
        return self

    def step(self, action: int) -> None: ...


def test_the_docstring_of_a_compatibility_wrapper_is_not_the_games() -> None:
    """Shimmy's keep the game in `gym_env`."""

    class GymV21CompatibilityV0(Game):
        """This wrapper converts a Gym v21 environment to a Gymnasium environment."""

    GymV21CompatibilityV0.__module__ = "shimmy.openai_gym_compatibility"
    wrapper = GymV21CompatibilityV0()
    assert describe(wrapper) == Description()
    wrapper.gym_env = Wrapped()
    assert describe(wrapper) == Description(rules="A game of the abandoned gym.", action_names=("dig", "leave"))


def test_a_subclass_of_a_curated_game_is_that_game_unless_it_says_something_itself() -> None:
    class Quiet(CartPoleEnv):
        pass

    class Loud(CartPoleEnv):
        """A pole on the moon."""

    assert describe(Quiet()).rules == describe(CartPoleEnv()).rules != ""
    assert describe(Loud()).rules == "A pole on the moon."


FOR_AUTHORS = (
    *(
        "gymnasium.core",
        "gymnasium.envs.mujoco.mujoco_env",
        "ale_py.env",
        "minigrid.minigrid_env",
        "minigrid.core.grid",
        "browsergym.core.env",
    ),
    *("minigrid.envs.babyai.core.verifier", "jericho.jericho", "scienceworld.scienceworld", "shimmy.dm_control", "textworld.gym.envs"),
    *("textworld_express.textworld_express", "gym.core", "builtins"),
)


@pytest.mark.parametrize(
    ("module", "is_told"),
    [
        *((module, False) for module in FOR_AUTHORS),
        *((name, True) for name in ("gymnasium.core_war", "minigrid.envs.empty", "gym.envs", "mine")),
    ],
)
def test_docstrings_of_what_games_are_made_with_are_not_told(module: str, is_told: bool) -> None:
    """A game that refines such a class, without a docstring of its own, has none."""
    base = type("Base", (Game,), {"__doc__": "Subclass this.", "__module__": module})
    for kind in (base, type("Refined", (base,), {})):
        assert describe(kind()).rules == ("Subclass this." if is_told else "")


@pytest.mark.parametrize("heading", ["Action Space", "Actions", "ACTIONS"])
@pytest.mark.parametrize("about", ["Observation Space", "Observations"])
def test_what_is_said_about_actions_and_observations_is_not_among_the_rules(heading: str, about: str) -> None:
    game = type("Headed", (Game,), {"__doc__": f"Play.\n\n## {heading}\nMove well.\n\n## {about}\nLook well."})
    assert describe(game()) == Description(rules="Play.", about_actions="Move well.", about_observations="Look well.")


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        (lambda env: TransformAction(env, lambda action: action, Discrete(3)), {"about_observations": "Look well."}),
        (lambda env: TransformObservation(env, lambda seen: seen, Discrete(4)), {"about_actions": "Move well."}),
        (
            lambda env: TransformAction(env, lambda action: action, env.action_space),
            {"about_actions": "Move well.", "about_observations": "Look well."},
        ),
    ],
)
def test_of_a_space_that_a_wrapper_changed_nothing_is_said(change: Any, kept: dict[str, str]) -> None:
    game = type("Headed", (Game,), {"__doc__": "Play.\n\n## Actions\nMove well.\n\n## Observations\nLook well."})
    assert describe(change(game())) == Description(rules="Play.", **kept)


@pytest.mark.parametrize(
    ("names", "noop"),
    [
        *(
            ([name, "go"], 5)
            for name in ("noop", "no-op", "No op", "NO_OP", "no action", "no_action", "Idle", "do nothing", "does nothing")
        ),
        *(([name, "go"], 5) for name in ("do_nothing", "do not move", "don't move")),
        (["go", "noop"], 6),
        *((names, None) for names in (["noop", "idle"], ["go", "stop"], ["idle engine", "go"], ["go", "no operation"])),
    ],
)
def test_the_one_action_that_does_nothing_is_found_by_its_name(names: list[str], noop: int | None) -> None:
    game = type("Named", (Game,), {"action_space": Discrete(2, start=5), "get_action_meanings": lambda self: names})
    assert (describe(game()).action_names, describe(game()).noop) == (tuple(names), noop)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a" * MOST_CHARACTERS, "a" * MOST_CHARACTERS),
        ("a" * (MOST_CHARACTERS + 1), "a" * MOST_CHARACTERS),
        ("word " * 1000, ("word " * 600).strip()),
        ("First.\n\n" + "b" * MOST_CHARACTERS, "First."),
    ],
)
def test_a_long_text_is_cut_at_a_paragraph_a_word_or_a_letter(text: str, kept: str) -> None:
    assert describe(type("Long", (Game,), {"__doc__": text.strip()})()).rules == kept


class Ruled(gym.Wrapper[Any, Any, Any, Any]):
    """Knows the rules."""

    def __init__(self, env: gym.Env[Any, Any], rules: str) -> None:
        super().__init__(env)
        self.rules_for_players = rules


@pytest.mark.parametrize("rules", [["inner"], ["inner", "outer"], ["inner", ""], []])
def test_the_outermost_wrapper_that_knows_the_rules_says_them(rules: list[str]) -> None:
    env: gym.Env[Any, Any] = CartPoleEnv()
    for each in rules:
        env = Ruled(env, each)
    bare, found = describe(CartPoleEnv()), describe(env)
    assert found == (dataclasses.replace(bare, rules=rules[-1], prompts_version=None) if rules else bare)
    assert bare.prompts_version is not None


def test_labels_are_as_many_as_there_are_numbers_and_different() -> None:
    def labels(names: str, space: gym.Space[Any]) -> tuple[str, ...]:
        lines = "\n".join(f"- {number}: {name}" for number, name in enumerate(names))
        game = type("Labelled", (Game,), {"__doc__": f"Play.\n\n## Observations\n{lines}", "observation_space": space})
        return describe(game()).observation_labels

    pair = Tuple([Discrete(9), Discrete(9)])
    for space in (pair, Discrete(2), Box(0, 1, (2,)), MultiDiscrete([9, 9]), MultiBinary(2)):
        assert labels("ab", space) == ("a", "b")
        assert labels("aa", space) == labels("abc", space) == labels("a", space) == ()
    for other in (Box(0, 1, (2, 2)), Box(0, 1, ()), Sequence(Discrete(2))):
        assert labels("ab", other) == ()


def test_registered_descriptions_that_do_not_fit_the_observations_are_refused() -> None:
    for space, size in ((Box(0, 1, (3,)), "3"), (Box(0, 1, (2, 2)), "no numbers to label"), (Discrete(1), "1")):
        game = type("Sized", (Game,), {"observation_space": space})
        register_description(game, labels=("a", "b"))
        with pytest.raises(ConfigurationError, match=rf"^2 labels are registered for Sized, whose observations \(.*\) have {size}$"):
            describe(game())
