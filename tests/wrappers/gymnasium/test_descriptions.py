"""`describe`: what environments say about themselves is readable, and true of their spaces."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from hypothesis import given
from hypothesis import strategies as st

from vfgym.codecs import without_colours
from vfgym.wrappers.gymnasium.descriptions import MOST_CHARACTERS, Description, describe

OWN_IDS = [
    spec.id
    for spec in gym.registry.values()
    if spec.namespace is None and isinstance(spec.entry_point, str) and re.match(r"gymnasium\.envs\.\w+[.:]\w", spec.entry_point)
]
"""Gymnasium's own environments, without those that only tell that they are gone, and without those that need JAX."""

MARKUP = re.compile(r"\$|\\|```|`|http|\[\^|\||\]\(|</?\w+>|\*\*|\n{4}|  +\Z| \.(?:\s|\Z)|:\Z")


def made(game_id: str, **options: Any) -> gym.Env[Any, Any]:
    """Make a game, whatever warnings Gymnasium has about its age."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return gym.make(game_id, disable_env_checker=True, **options)
        except (gym.error.DependencyNotInstalled, ImportError) as error:
            pytest.skip(str(error))


def described(game_id: str, **options: Any) -> Description:
    env = made(game_id, **options)
    env.close()
    return describe(env)


def vector_size(space: gym.Space[Any]) -> int:
    return len(space.spaces) if isinstance(space, gym.spaces.Tuple) else int(np.prod(space.shape))


@pytest.mark.parametrize("game_id", OWN_IDS)
def test_gymnasiums_own_environments_are_described_in_plain_words(game_id: str) -> None:
    """There are rules; they are text for a player; names and labels are as many as there are things to name."""
    env = made(game_id)
    env.close()
    found = describe(env)
    assert 100 < len(found.rules) <= MOST_CHARACTERS
    # Taxi's map is drawn with bars.
    texts = [re.sub(r"(?m)^    [|+].*\n", "", text) for text in (found.rules, found.about_actions, found.about_observations)]
    for text in [*texts, *found.action_names, *found.action_labels, *found.observation_labels]:
        assert not MARKUP.search(text), MARKUP.search(text)
    assert f"cut off after {env.spec.max_episode_steps} steps" in found.rules or env.spec.max_episode_steps is None
    if isinstance(env.action_space, Discrete):
        assert len(set(found.action_names)) == env.action_space.n
        assert not found.action_labels
    else:
        assert not found.action_names
        assert len(found.action_labels) == vector_size(env.action_space)
        assert found.noop is None
    if found.observation_labels:
        assert len(set(found.observation_labels)) == vector_size(env.observation_space)


UNLABELLED = {
    "CarRacing-v3",  # an image
    "FrozenLake-v1",
    "FrozenLake8x8-v1",
    "CliffWalking-v1",
    "CliffWalkingSlippery-v1",
    "Taxi-v4",  # one number
    "Reacher-v4",
    "InvertedDoublePendulum-v4",
    "Humanoid-v4",
    "HumanoidStandup-v4",  # vectors of another size than the documented fifth version's
}


@pytest.mark.parametrize("game_id", OWN_IDS)
def test_all_vectors_whose_elements_are_documented_are_labelled(game_id: str) -> None:
    assert bool(described(game_id).observation_labels) == (game_id not in UNLABELLED)


@pytest.mark.parametrize(
    ("game_id", "options", "names", "noop"),
    [
        ("CartPole-v1", {}, ("left", "right"), None),
        ("MountainCar-v0", {}, ("Accelerate to the left", "Don't accelerate", "Accelerate to the right"), 1),
        ("FrozenLake-v1", {}, ("left", "down", "right", "up"), None),
        ("Blackjack-v1", {}, ("Stick", "Hit"), None),
        (
            "LunarLander-v3",
            {},
            ("do nothing", "fire left orientation engine", "fire main engine", "fire right orientation engine"),
            0,
        ),
        ("CarRacing-v3", {"continuous": False}, ("do nothing", "steer right", "steer left", "gas", "brake"), 0),
    ],
)
def test_names_of_actions_and_the_one_that_does_nothing(game_id: str, options: dict[str, Any], names: tuple[str, ...], noop: Any) -> None:
    found = described(game_id, **options)
    assert (found.action_names, found.noop) == (names, noop)


def test_acrobats_second_action_does_nothing() -> None:
    found = described("Acrobot-v1")
    assert found.action_names[1] == "apply 0 torque to the actuated joint"
    assert found.noop == 1


@pytest.mark.parametrize(
    ("game_id", "labels"),
    [
        ("Pendulum-v1", ("Torque",)),
        ("MountainCarContinuous-v0", ("force on the car",)),
        ("CarRacing-v3", ("steering", "gas", "braking")),
        ("Swimmer-v5", ("Torque applied on the first rotor", "Torque applied on the second rotor")),
        (
            "LunarLanderContinuous-v3",
            ("main engine throttle (off below 0)", "side engine throttle (left below -0.5, right above 0.5, else off)"),
        ),
    ],
)
def test_labels_of_the_numbers_of_an_action(game_id: str, labels: tuple[str, ...]) -> None:
    assert described(game_id).action_labels == labels


def test_what_is_said_of_a_label_is_no_part_of_it() -> None:
    """The label is the key of an answer; what stood behind its comma is still told."""
    assert described("CarRacing-v3").about_actions == "steering: -1 is full left, +1 is full right"


def labelled(game_id: str, **options: Any) -> tuple[Any, dict[str, float]]:
    """Return a game after some random steps, and its observation by label."""
    env = made(game_id, **options)
    env.action_space.seed(1)
    env.reset(seed=1)
    for _ in range(20):
        observation = env.step(env.action_space.sample())[0]
    return env.unwrapped, dict(zip(describe(env).observation_labels, observation.tolist(), strict=True))


def test_the_labels_of_a_robot_are_those_of_its_joints() -> None:
    """What is observed under a label is what the simulation says of the joint."""
    game, values = labelled("HalfCheetah-v5")
    assert values["z-coordinate of the front tip"] == game.data.joint("rootz").qpos
    assert values["angle of the back thigh"] == game.data.joint("bthigh").qpos
    assert values["angular velocity of the front foot"] == game.data.joint("ffoot").qvel


def test_positions_that_are_left_out_by_default_are_labelled_where_they_are_not() -> None:
    game, values = labelled("HalfCheetah-v5", exclude_current_positions_from_observation=False)
    assert values["x-coordinate of the front tip"] == game.data.joint("rootx").qpos
    assert values["angle of the back thigh"] == game.data.joint("bthigh").qpos


def test_labels_that_are_the_same_for_both_legs_are_told_apart() -> None:
    game, values = labelled("Walker2d-v5")
    assert values["angular velocity of the thigh hinge (thigh_joint)"] == game.data.joint("thigh_joint").qvel
    assert values["angular velocity of the thigh hinge (thigh_left_joint)"] == game.data.joint("thigh_left_joint").qvel


def test_long_observations_are_labelled_by_their_documented_parts() -> None:
    """The forces on an ant are documented by their number only."""
    game, values = labelled("Ant-v5")
    assert values["angular velocity of the angle between back right links"] == game.data.joint("ankle_4").qvel
    assert [values[f"cfrc_ext[{place}]"] for place in range(78)] == game.contact_forces[1:].ravel().tolist()
    short = described("Ant-v5", include_cfrc_ext_in_observation=False).observation_labels
    assert (len(short), short[-1]) == (27, "angular velocity of the angle between back right links")
    # Without the inertias, the parts are others than the documented ones.
    assert described("Humanoid-v5", include_cinert_in_observation=False).observation_labels == ()


def test_labels_that_were_read_from_the_source_are_those_of_the_simulation() -> None:
    game, values = labelled("BipedalWalker-v3")
    state = {
        "hull angle": game.hull.angle,
        "hip angle of leg 1": game.joints[0].angle,
        "knee angle of leg 1": game.joints[1].angle + 1,
        "hip angle of leg 2": game.joints[2].angle,
        "leg 2 touches the ground": float(game.legs[3].ground_contact),
        "lidar 10 of 10": game.lidar[9].fraction,
    }
    assert {label: values[label] for label in state} == pytest.approx(state)
    game, values = labelled("LunarLander-v3")
    assert values["angle"] == pytest.approx(game.lander.angle)
    assert np.sign(values["x velocity"]) == np.sign(game.lander.linearVelocity.x)
    assert np.sign(values["y velocity"]) == np.sign(game.lander.linearVelocity.y)


def test_another_robot_than_the_documented_one_has_no_labels() -> None:
    pytest.importorskip("mujoco")
    import gymnasium.envs.mujoco as mujoco

    model = Path(mujoco.__file__).parent / "assets" / "half_cheetah.xml"
    found = described("HalfCheetah-v5", xml_file=str(model))
    assert (found.action_labels, found.observation_labels) == ((), ())
    assert str(model) not in found.rules


def test_rules_tell_the_settings_that_they_depend_on_and_the_limit_that_holds() -> None:
    assert "is_slippery = False" in described("FrozenLake-v1", is_slippery=False).rules
    assert "continuous = True" in described("LunarLanderContinuous-v3").rules
    rules = described("CartPole-v1", max_episode_steps=7).rules
    assert "after 7 steps" in rules
    assert "500" not in rules


def test_the_drawing_of_a_taxi_can_be_read() -> None:
    """What the legend says of colours and of the map is what the drawing shows of a state, wherever taxi and passenger are."""
    env = made("Taxi-v4", render_mode="ansi")
    env.reset(seed=0)
    game: Any = env.unwrapped
    rules, legend = describe(env).rules, describe(env).about_drawing
    assert "yellow is the empty taxi, green the taxi with the passenger" in legend
    assert "blue the waiting passenger, magenta the destination" in legend
    for column, row in enumerate([0, 0, 4, 4]):
        place = f"{('Red', 'Green', 'Yellow', 'Blue')[column]} in row {row} and column {game.locs[column][1]}"
        assert place.replace("Red in", "Red is in") in rules
        assert game.locs[column][0] == row
    for state in range(500):
        taxi_row, taxi_column, passenger, destination = game.decode(state)
        game.s = state
        squares = re.findall(r"\[([^\]:]):([a-z,]+)\]", without_colours(env.render()))
        expected: dict[tuple[int, int], set[str]] = {}
        for place, colour in [
            ((taxi_row, taxi_column), "green" if passenger == 4 else "yellow"),
            (game.locs[destination], "magenta"),
            *([(game.locs[passenger], "blue")] if passenger < 4 else []),
        ]:
            expected.setdefault(tuple(place), set()).add(colour)
        assert [set(colours.split(",")) for _, colours in squares] == [expected[place] for place in sorted(expected)]


def test_drawings_are_explained_apart_from_the_rules() -> None:
    assert "x is you" in described("CliffWalking-v1").about_drawing
    assert "H is a hole" in described("FrozenLake-v1").about_drawing
    for game_id in ("CliffWalking-v1", "FrozenLake-v1", "Taxi-v4"):
        assert "drawing" not in described(game_id).rules
    assert "ansi" not in described("Taxi-v4").about_observations


def test_a_player_who_sees_numbers_is_told_the_map_of_a_lake_unless_each_game_has_another() -> None:
    assert described("FrozenLake-v1").about_observations.endswith("\n\nSFFF\nFHFH\nFFFH\nHFFG")
    assert described("FrozenLake-v1", desc=["SH", "FG"]).about_observations.endswith("\n\nSH\nFG")
    assert "map_name = 4x4" in described("FrozenLake-v1").rules
    assert "map_name" not in described("FrozenLake-v1", desc=["SH", "FG"]).rules
    assert "The map (" not in described("FrozenLake-v1", map_name=None).about_observations


def change_by(game_id: str, action: Any) -> dict[str, float]:
    """Return how an action changes what is observed, on average over some games."""
    env = made(game_id)
    changes = []
    for seed in range(20):
        before = env.reset(seed=seed)[0]
        for _ in range(3):
            after = env.step(action)[0]
        changes.append(after - before)
    return dict(zip(describe(env).observation_labels, np.mean(changes, axis=0).tolist(), strict=True))


def test_what_is_said_of_directions_is_true_of_the_simulations() -> None:
    idle, left, main, right = (change_by("LunarLander-v3", action) for action in range(4))
    assert "The left orientation engine pushes it to the left and turns it counter-clockwise" in described("LunarLander-v3").rules
    assert left["x velocity"] < idle["x velocity"] < right["x velocity"]
    assert left["angle"] > idle["angle"] > right["angle"]
    assert main["y velocity"] > idle["y velocity"]
    lander: Any = made("LunarLander-v3").unwrapped
    lander.reset(seed=0)
    assert lander.legs[0].position.x > lander.lander.position.x  # leg 1 is the right leg
    lander.close()
    assert "A positive torque makes the angular velocity of theta2 grow" in described("Acrobot-v1").rules
    negative, positive = (change_by("Acrobot-v1", action) for action in (0, 2))
    assert positive["Angular velocity of theta2"] > negative["Angular velocity of theta2"]
    assert positive["Angular velocity of theta1"] < negative["Angular velocity of theta1"]
    assert "A positive torque makes the angular velocity grow" in described("Pendulum-v1").rules
    assert change_by("Pendulum-v1", [2.0])["Angular Velocity"] > change_by("Pendulum-v1", [-2.0])["Angular Velocity"]


def test_wrappers_that_change_a_space_take_its_labels_away() -> None:
    """A flattened hand of cards is no longer sum, dealer's card and ace."""
    cards = gym.make("Blackjack-v1")
    assert describe(cards).observation_labels == ("Player current sum", "Dealer showing card value", "Usable Ace")
    flat = describe(gym.wrappers.FlattenObservation(cards))
    assert (flat.observation_labels, flat.action_names) == ((), ("Stick", "Hit"))
    pendulum = gym.wrappers.RescaleAction(gym.make("Pendulum-v1"), np.float32(0), np.float32(1))
    assert describe(pendulum).action_labels == ()
    assert len(describe(pendulum).observation_labels) == 3


def test_wrappers_that_change_a_space_take_away_what_is_said_of_it() -> None:
    cards, flat = gym.make("Blackjack-v1"), gym.wrappers.FlattenObservation(gym.make("Blackjack-v1"))
    assert "3-tuple" in describe(cards).about_observations
    assert describe(flat).about_observations == ""
    pendulum = gym.make("Pendulum-v1")
    for wrapped in (gym.wrappers.RescaleAction(pendulum, np.float32(0), np.float32(1)), gym.wrappers.DiscretizeAction(pendulum, 3)):
        assert describe(wrapped).about_actions == ""
        assert describe(wrapped).about_observations == describe(pendulum).about_observations
        assert describe(wrapped).rules == describe(pendulum).rules


class Game(gym.Env[Any, Any]):
    action_space: gym.Space[Any] = Discrete(2)
    observation_space: gym.Space[Any] = Discrete(3)


class Guess(Game):
    """Guess a number.

    You win if you *hit* it.

    Args:
        secret: The number.
    """


class StillGuessing(Guess):
    pass


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


class Vectors(Game):
    """Two wheels.

    ## Action Space
    | Num | Action | Unit |
    |-----|--------|------|
    | 0   | left wheel | m/s |
    | 1   | right wheel | m/s |
    """

    action_space = MultiDiscrete([3, 3])
    observation_space = Box(-1, 1, (2,))


class Ambiguous(Game):
    """Two lists, both of two.

    ## Action Space
    On land:
    - 0: walk
    - 1: run

    At sea:
    - 0: swim
    - 1: dive
    """


def test_a_docstring_without_headings_is_the_rules_up_to_its_arguments() -> None:
    rules = "Guess a number.\n\nYou win if you hit it."
    assert describe(Guess()) == Description(rules=rules)
    assert describe(StillGuessing()) == Description(rules=rules)


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


class Underlined(Game):
    """Digging
    =======

    Dig for treasure.

    Rules
    -----
    You may dig three times.

    Action Space
    ------------
    - 0: dig
    - 1: leave

    Parameters
    ----------
    place : int
        The secret.

    Goal
    ~~~~
    Find the treasure.
    """


class StillDigging(Digging):
    pass


@pytest.mark.parametrize("game", [Digging, StillDigging])
def test_whatever_a_docstring_of_somebody_elses_says_is_told_but_what_is_for_programmers(game: type[Game]) -> None:
    assert describe(game()) == Description(
        rules="Dig for treasure, whatever its shape."
        "\n\nRules:\nYou may dig three times (the map is an ndarray)."
        "\n\nThe Goal:\nFind the treasure."
        "\n\nStarting State:\nYou stand at the border."
        "\n\nRewards:\n10 points for the treasure.",
        action_names=("dig", "leave"),
        observation_names=("nothing", "a hole", "treasure"),
    )


def test_underlined_headings_are_headings() -> None:
    assert describe(Underlined()) == Description(
        rules="Digging:\nDig for treasure.\n\nRules:\nYou may dig three times.\n\nGoal:\nFind the treasure.",
        action_names=("dig", "leave"),
    )


def test_an_environment_that_says_nothing_has_an_empty_description() -> None:
    assert describe(Game()) == Description()


LINES = [
    "Text.",
    "",
    "## Action Space",
    "## Observation Space",
    "## Starting State",
    "| Num | Action | Name |",
    "| Observation | Values |",
    "|---|---|---|",
    "| 0 | left | a |",
    "| 1 | left | b |",
    "| 1 |",
    "| excluded | x-coordinate | c |",
    "- 0: stay",
    "- 1: go",
    "- *parts (2 elements):* two",
]


@given(st.lists(st.sampled_from(LINES), max_size=12), st.sampled_from([Discrete(2), Box(-1, 1, (2,)), Box(-1, 1, (3,))]))
def test_no_docstring_breaks_a_description_or_names_more_or_less_than_there_is(lines: list[str], space: gym.Space[Any]) -> None:
    class Careless(Game):
        action_space = observation_space = space

    Careless.__doc__ = "\n".join(lines)
    found = describe(Careless())
    for names in (found.action_names, found.observation_names):
        assert len(names) in (0, 2) if isinstance(space, Discrete) else not names
        assert len(set(names)) == len(names)
    for labels in (found.action_labels, found.observation_labels):
        assert not labels if isinstance(space, Discrete) else len(labels) in (0, space.shape[0])


def test_names_of_observations_and_actions_of_an_environment_documented_like_gymnasiums() -> None:
    assert describe(Documented()) == Description(
        rules="Weather to be guessed.\n\nRewards:\nYou get 1 for each dry day.",
        action_names=("wait", "go out"),
        observation_names=("dry", "wet", "unknown"),
    )
    assert describe(Vectors()).action_labels == ("left wheel", "right wheel")


@pytest.mark.parametrize("space", [Discrete(3), Box(-1, 1, (2,)), MultiDiscrete([2, 2])])
def test_names_that_do_not_fit_the_space_are_no_names(space: gym.Space[Any]) -> None:
    env = Documented()
    env.action_space = space
    assert describe(env).action_names == ()


def test_two_lists_that_both_fit_name_nothing_and_are_told_in_full() -> None:
    found = describe(Ambiguous())
    assert found.action_names == ()
    assert found.about_actions == "On land:\n- 0: walk\n- 1: run\n\nAt sea:\n- 0: swim\n- 1: dive"


def test_the_action_that_does_nothing_is_an_action_and_no_place_in_a_list() -> None:
    class Offset(Game):
        """Counts from five.

        ## Action Space
        - 0: jump
        - 1: do nothing
        """

        action_space = Discrete(2, start=5)

    assert describe(Offset()).noop == 6


def test_arguments_of_other_peoples_environments_are_not_told() -> None:
    """They may be what the player has to find out."""

    class Secretive(Game):
        """Guess the `secret` number."""

    env = Secretive()
    env.spec = gym.envs.registration.EnvSpec("Secretive-v0", entry_point=Secretive, kwargs={"secret": 1234567})
    assert describe(env).rules == "Guess the secret number."


def test_long_rules_are_cut_at_a_paragraph() -> None:
    class Long(Game):
        pass

    Long.__doc__ = "\n\n".join(f"Rule {number}. {'x' * 90}" for number in range(100))
    rules = describe(Long()).rules
    assert MOST_CHARACTERS - 200 < len(rules) <= MOST_CHARACTERS
    assert rules.endswith("x" * 90)
