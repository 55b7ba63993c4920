"""`describe`: what environments say about themselves is readable, and true of their spaces."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from hypothesis import given
from hypothesis import strategies as st

from vfgym.wrappers.gymnasium.descriptions import MOST_CHARACTERS, Description, describe


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
