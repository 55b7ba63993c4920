"""What players of Gymnasium's own games are told: complete, in plain words, and true of the game as it was made."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.spaces import Discrete

import vfgym
from vfgym.codecs import without_colours
from vfgym.data import gymnasium_environments, gymnasium_prompts, other_prompts
from vfgym.wrappers.gymnasium.curated import Settings, curated_prompt, other_title, write
from vfgym.wrappers.gymnasium.descriptions import Description, describe

OWN_IDS = [
    spec.id
    for spec in gym.registry.values()
    if spec.namespace is None and isinstance(spec.entry_point, str) and re.match(r"gymnasium\.envs\.\w+[.:]\w", spec.entry_point)
]
"""Gymnasium's own environments, without those that only tell that they are gone, and without those that need JAX."""

MARKUP = re.compile(r"\$|\\|```|`|http|\[\^|\||\]\(|</?\w+>|\*\*|\n{4}|  +\Z| \.(?:\s|\Z)|:\Z|[{}]")
FOR_PROGRAMMERS = re.compile(
    r"ranges above|\bsee \w+_|\w+_barto|is_slippery|sutton|ndarray|\binfo\b|\bTrue\b|\bFalse\b|\bNone\b|\bRL\b|gymnasium|"
    r"\bdefault|\bargument|\bparameter|observation space|action space|\w+_\w+|\bMDP\b|\bv\d\b",
    re.IGNORECASE,
)


def made(game_id: str, **options: Any) -> gym.Env[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return gym.make(game_id, disable_env_checker=True, **options)
        except (gym.error.DependencyNotInstalled, ImportError) as error:
            pytest.skip(str(error))


def described(game_id: str, **options: Any) -> Description:
    return describe(made(game_id, **options))


def vector_size(space: gym.Space[Any]) -> int:
    return len(space.spaces) if isinstance(space, gym.spaces.Tuple) else int(np.prod(space.shape))


def newest(game_id: str) -> Any:
    """Leave older versions to the exhaustive run."""
    spec = gym.spec(game_id)
    is_old = any(other.name == spec.name and (other.version or 0) > (spec.version or 0) for other in gym.registry.values())
    return pytest.param(game_id, marks=pytest.mark.exhaustive if is_old else ())


@pytest.mark.parametrize("game_id", [newest(game_id) for game_id in OWN_IDS])
def test_all_that_a_player_needs_is_told_in_plain_words(game_id: str) -> None:
    """Goal, rewards, end and limit of steps; a name for each action, a label for each number; nothing for programmers."""
    env = made(game_id)
    found = describe(env)
    assert curated_prompt(type(env.unwrapped)) is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        assert vfgym.to_chat(game_id).prompt_problems == ()
    assert found.prompts_version == gymnasium_prompts()["version"]
    # Taxi's map is drawn with bars.
    texts = [re.sub(r"(?m)^    [|+].*\n?", "", text) for text in (found.rules, found.about_actions, found.about_observations, found.legend)]
    for text in [*texts, *found.action_names, *found.action_labels, *found.observation_labels]:
        assert not MARKUP.search(text), MARKUP.search(text)
        assert not FOR_PROGRAMMERS.search(text), FOR_PROGRAMMERS.search(text)
    goal, _, rest = found.rules.partition("\n\nRewards:\n")
    rewards, _, end = rest.partition("\n\nEpisode end:\n")
    assert min(len(goal), len(rewards)) > 30
    assert (f"An episode is cut off after {env.spec.max_episode_steps} steps." in end) == (env.spec.max_episode_steps is not None)
    if isinstance(env.action_space, Discrete):
        assert len(set(found.action_names)) == env.action_space.n
        assert not found.action_labels
    else:
        assert not found.action_names
        assert len(set(found.action_labels)) == vector_size(env.action_space)
        assert found.noop is None
    space = env.observation_space
    if isinstance(space, Discrete):
        assert found.about_observations
    elif len(space.shape or "1") == 1:
        assert len(set(found.observation_labels)) == vector_size(space)


def test_every_registered_game_is_curated_and_nothing_else() -> None:
    """No entry is for a class that is no more."""
    keys = set()
    for game_id in OWN_IDS:
        entry_point = gym.spec(game_id).entry_point
        module, _, name = entry_point.partition(":")
        keys.add(f"{re.sub(r'_v[0-9]+$', '', module)}:{name}".replace("mujoco:", "mujoco."))
    assert keys == set(gymnasium_prompts()["games"])
    assert set(gymnasium_environments()) <= set(OWN_IDS)


def test_texts_have_another_version_when_they_change() -> None:
    """Results record the version. After a change of a text, raise it, and put both numbers here."""
    prompts = gymnasium_prompts()
    digest = hashlib.sha256(json.dumps(prompts["games"], sort_keys=True).encode()).hexdigest()[:16]
    assert (prompts["version"], digest) == (1, "a1b759e696635fda")


@pytest.mark.parametrize(
    ("game_id", "options", "told", "not_told"),
    [
        ("CartPole-v1", {"max_episode_steps": 7}, "cut off after 7 steps", "500"),
        ("FrozenLake-v1", {"success_rate": 0.75}, "With probability 0.75", "0.333"),
        ("FrozenLake-v1", {"is_slippery": False}, "You move by one square", "slip"),
        ("FrozenLake-v1", {"reward_schedule": (10, -5, -1)}, "reward of 10, falling into a hole -5, and any other step -1", "hole 0"),
        ("CliffWalkingSlippery-v1", {}, "each with probability 1/3", "moves"),
        ("Taxi-v4", {"is_rainy": True, "rainy_probability": 0.6}, "with probability 0.6 the taxi moves", "fickle"),
        ("Blackjack-v1", {}, "A natural (an ace and a card that counts 10, dealt at the start) wins", "1.5"),
        ("Blackjack-v1", {"sab": False, "natural": True}, "dealt at the start) gives 1.5", "unless the dealer has one"),
        ("MountainCar-v0", {"goal_velocity": 0.02}, "its velocity 0.02 or more", "position is 0.5 or more."),
        ("LunarLander-v3", {"enable_wind": True, "wind_power": 12.5}, "with up to 12.5 units of force", "Gravity"),
        ("LunarLanderContinuous-v3", {}, "Fuel costs up to 0.3", "Fuel costs 0.3"),
        ("BipedalWalkerHardcore-v3", {}, "stumps", "slightly uneven"),
        ("CarRacing-v3", {"lap_complete_percent": 0.5}, "a share of 0.5", "0.95"),
        ("Ant-v5", {"healthy_reward": 2.5}, "- 2.5 for each step after which", "- 1 for each step"),
        ("Hopper-v5", {}, "- 1 for each step after which the robot is upright", "each step\n"),
        ("Hopper-v4", {}, "- 1 for each step\n", "after which"),
        ("Ant-v4", {"use_contact_forces": True}, "squares of the contact forces", "goes on"),
        ("Reacher-v5", {"reward_control_weight": 0.1}, "- minus 0.1 times", "- minus 1 times the sum"),
    ],
)
def test_settings_are_told_as_they_are(game_id: str, options: dict[str, Any], told: str, not_told: str) -> None:
    rules = described(game_id, **options).rules
    assert told in rules
    assert not_told not in rules


def test_what_is_not_known_is_not_told() -> None:
    """A game that was made without a spec does not say whether it is slippery; what it does say is told."""
    rules = describe(FrozenLakeEnv(is_slippery=False, desc=["SF", "HG"])).rules
    assert "a grid of 2 rows and 2 columns" in rules
    assert "slip" not in rules
    assert "{" not in rules


def labelled(game_id: str, **options: Any) -> tuple[Any, dict[str, float]]:
    env = made(game_id, **options)
    env.action_space.seed(1)
    env.reset(seed=1)
    for _ in range(20):
        observation = env.step(env.action_space.sample())[0]
    return env.unwrapped, dict(zip(describe(env).observation_labels, observation.tolist(), strict=True))


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(
    ("robot", "joints"),
    [
        ("HalfCheetah", {"torso angle": "rooty", "back thigh angle": "bthigh", "front foot angle": "ffoot"}),
        ("Hopper", {"height of the torso": "rootz", "torso angle": "rooty", "leg joint angle": "leg_joint"}),
        ("Walker2d", {"right thigh joint angle": "thigh_joint", "left foot joint angle": "foot_left_joint"}),
        ("Swimmer", {"angle of the front link": "free_body_rot", "angle of the second rotor": "motor2_rot"}),
        ("Ant", {"front left hip angle": "hip_1", "back left ankle angle": "ankle_3", "back right hip angle": "hip_4"}),
        ("Humanoid", {"abdomen y angle": "abdomen_y", "right hip z angle": "right_hip_z", "left elbow angle": "left_elbow"}),
        ("HumanoidStandup", {"abdomen x angle": "abdomen_x", "left knee angle": "left_knee", "right shoulder 2 angle": "right_shoulder2"}),
        ("InvertedPendulum", {"angle of the pole": "hinge", "position of the cart": "slider"}),
        ("Pusher", {"elbow flex angle": "r_elbow_flex_joint", "wrist roll angle": "r_wrist_roll_joint"}),
    ],
)
def test_the_labels_of_a_robot_are_those_of_its_joints(robot: str, version: int, joints: dict[str, str]) -> None:
    """What is observed under a label is what the simulation says of the joint, and so is its velocity."""
    game, values = labelled(f"{robot}-v{version}")
    for label, joint in joints.items():
        unit = "m" if label.startswith(("height", "position")) else "radians"
        assert values[f"{label} ({unit})"] == game.data.joint(joint).qpos
        if unit == "radians" and "angle of" not in label:
            angular = f"{label.removesuffix('angle')}angular velocity (radians/s)"
            assert values[angular] == np.clip(game.data.joint(joint).qvel, -10, 10) or values[angular] == game.data.joint(joint).qvel


def test_parts_of_an_observation_have_labels_where_they_are_not_hidden() -> None:
    for robot, name in (("Ant-v4", "torso"), ("Swimmer-v5", "front tip")):
        game, values = labelled(robot, exclude_current_positions_from_observation=False)
        assert values[f"x of the {name} (m)"] == game.data.qpos[0]
    assert described("Ant-v5", include_cfrc_ext_in_observation=False).observation_labels[-1].startswith("back right ankle angular velocity")
    for name in ("cinert", "cvel", "qfrc_actuator", "cfrc_ext"):
        env = made("Humanoid-v5", **{f"include_{name}_in_observation": False})
        assert len(describe(env).observation_labels) == env.observation_space.shape[0]


def test_labels_of_other_games_are_those_of_the_simulation() -> None:
    game, values = labelled("BipedalWalker-v3")
    state = {
        "hull angle (radians)": game.hull.angle,
        "hip angle of leg 1 (radians)": game.joints[0].angle,
        "knee angle of leg 1 (radians)": game.joints[1].angle + 1,
        "hip angle of leg 2 (radians)": game.joints[2].angle,
        "leg 2 touches the ground": float(game.legs[3].ground_contact),
        "lidar 10 of 10": game.lidar[9].fraction,
    }
    assert {label: values[label] for label in state} == pytest.approx(state)
    game, values = labelled("LunarLander-v3")
    # The units that the prompt gives: 10 units of length, 5 and 7.5 of them per second, and 2.5 radians per second.
    assert values["x"] == pytest.approx((game.lander.position.x - 10) / 10)
    assert values["x velocity"] == pytest.approx(game.lander.linearVelocity.x / 5)
    assert values["y velocity"] == pytest.approx(game.lander.linearVelocity.y / 7.5, rel=1e-3)
    assert values["angle"] == pytest.approx(game.lander.angle)
    assert values["angular velocity"] == pytest.approx(game.lander.angularVelocity / 2.5)


def test_another_robot_than_the_usual_one_has_no_labels() -> None:
    pytest.importorskip("mujoco")
    import gymnasium.envs.mujoco as mujoco

    model = Path(mujoco.__file__).parent / "assets" / "half_cheetah.xml"
    found = described("HalfCheetah-v5", xml_file=str(model))
    assert (found.action_labels, found.observation_labels) == ((), ())
    assert str(model) not in found.rules


# What is told is true of the games


@pytest.mark.exhaustive
@pytest.mark.parametrize("robot", ["Ant", "HalfCheetah", "Hopper", "Walker2d", "Swimmer", "Humanoid", "Reacher"])
def test_actions_are_the_torques_that_are_told(robot: str) -> None:
    """The first number of an action, alone, acts on the joint of the first label with the torque that the prompt gives."""
    env = made(f"{robot}-v5")
    env.reset(seed=0)
    game: Any = env.unwrapped
    largest, action = float(env.action_space.high[0]), np.zeros(env.action_space.shape, np.float32)
    action[0] = largest
    env.step(action)
    torque = game.data.qfrc_actuator[game.model.jnt_dofadr[game.model.actuator_trnid[0][0]]]
    told = re.search(r"A number of (\S+) is a torque of\s(\d+) N m", describe(env).about_actions)
    assert told is not None
    assert [float(number) for number in told.groups()] == pytest.approx([largest, torque], rel=1e-3)


@pytest.mark.exhaustive
def test_forces_inertias_and_velocities_are_those_of_the_parts_of_a_body() -> None:
    """MuJoCo gives torques before forces, whatever Gymnasium's docstrings say."""
    mujoco = pytest.importorskip("mujoco")
    game, values = labelled("Humanoid-v5")
    shin = game.data.body("left_shin")
    assert values["mass of the left shin (kg)"] == pytest.approx(game.model.body("left_shin").mass[0])
    for name, found in (
        ("angular velocity about {} of the left shin (radians/s)", shin.cvel[:3]),
        ("velocity along {} of the left shin (m/s)", shin.cvel[3:]),
    ):
        assert [values[name.format(axis)] for axis in "xyz"] == found.tolist()
    assert values["motor torque at the right knee (N m)"] == game.data.joint("right_knee").qfrc_actuator
    game, values = labelled("Ant-v5")
    part = "on the front left leg part 3"
    felt = [values[f"{name} {axis} {part} ({unit})"] for name, unit in (("torque about", "N m"), ("force along", "N")) for axis in "xyz"]
    assert felt == game.contact_forces[4].tolist()
    env = made("Ant-v5")
    env.reset(seed=0)
    game = env.unwrapped
    game.data.body("torso").xfrc_applied[:] = [0, 0, 0.25, 0, 0, 7.0]
    game.data.qpos[2] = 3  # above the ground, so that nothing else is felt
    mujoco.mj_forward(game.model, game.data)
    mujoco.mj_rnePostConstraint(game.model, game.data)
    labels = [label for label in describe(env).observation_labels if "on the torso" in label]
    alone = dict(zip(labels, game.data.cfrc_ext[1], strict=True))
    assert [alone["force along z on the torso (N)"], alone["torque about z on the torso (N m)"]] == pytest.approx([0.25, 7.0])


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


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("game_id", "told", "label", "rising"),
    [
        ("LunarLander-v3", "pushes it to the left and turns it counter-clockwise", "x velocity", [1, 0, 3]),
        ("LunarLander-v3", "pushes it to the left and turns it counter-clockwise", "angle", [3, 0, 1]),
        ("LunarLander-v3", "The main engine pushes it where its top points", "y velocity", [0, 2]),
        ("Acrobot-v1", "A positive torque makes the angular velocity of theta2 grow", "angular velocity of theta2 (radians/s)", [0, 1, 2]),
        ("Acrobot-v1", "and that of theta1 fall", "angular velocity of theta1 (radians/s)", [2, 1, 0]),
        ("Pendulum-v1", "A torque above 0 makes the angular velocity grow", "angular velocity (radians/s)", [[-2.0], [0.0], [2.0]]),
        ("CartPole-v1", "Position and velocities are above 0 to the right", "Cart Velocity (m/s)", [0, 1]),
    ],
)
def test_what_is_said_of_directions_is_true(game_id: str, told: str, label: str, rising: list[Any]) -> None:
    found = described(game_id)
    assert told in found.rules + found.about_actions + found.about_observations
    changes = [change_by(game_id, action)[label] for action in rising]
    assert changes == sorted(changes)
    assert len(set(changes)) == len(rising)


@pytest.mark.exhaustive
def test_the_first_leg_of_a_lander_is_the_right_one() -> None:
    game, _ = labelled("LunarLander-v3")
    assert game.legs[0].position.x > game.lander.position.x


@pytest.mark.exhaustive
def test_the_formulas_of_the_valley_and_of_the_pendulum_are_the_games_own() -> None:
    env: Any = made("MountainCar-v0")
    assert "0.001 * push - 0.0025 * cos(3 * position), where push is -1 (to the left), 0 or 1" in describe(env).rules
    position, velocity = map(float, env.reset(seed=3)[0])
    velocity += 0.001 - 0.0025 * np.cos(3 * position)
    assert env.step(2)[0].tolist() == pytest.approx([position + velocity, velocity], abs=1e-6)
    env = made("Pendulum-v1", g=9.81)
    rules = describe(env).rules
    assert "0.05 * (1.5 * 9.81 * sin(angle) + 3 * torque)" in rules
    assert "-(angle^2 + 0.1 * angular velocity^2 + 0.001 * torque^2)" in rules
    cosine, sine, speed = env.reset(seed=3)[0].tolist()
    (*_, spun), reward = env.step(np.array([1.5], np.float32))[:2]
    assert spun == pytest.approx(speed + 0.05 * (1.5 * 9.81 * sine + 3 * 1.5), abs=1e-4)
    assert reward == pytest.approx(-(np.arctan2(sine, cosine) ** 2 + 0.1 * speed**2 + 0.001 * 1.5**2), abs=1e-4)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("game_id", "options", "names", "noop"),
    [
        ("CartPole-v1", {}, ("left", "right"), None),
        ("MountainCar-v0", {}, ("Accelerate to the left", "Don't accelerate", "Accelerate to the right"), 1),
        ("FrozenLake-v1", {}, ("left", "down", "right", "up"), None),
        ("Blackjack-v1", {}, ("Stick", "Hit"), None),
        ("LunarLander-v3", {}, ("do nothing", "fire left orientation engine", "fire main engine", "fire right orientation engine"), 0),
        ("CarRacing-v3", {"continuous": False}, ("do nothing", "steer right", "steer left", "gas", "brake"), 0),
    ],
)
def test_names_of_actions_and_the_one_that_does_nothing(game_id: str, options: dict[str, Any], names: tuple[str, ...], noop: Any) -> None:
    found = described(game_id, **options)
    assert (found.action_names, found.noop, found.action_labels) == (names, noop, ())


@pytest.mark.exhaustive
def test_a_lake_is_slippery_as_told() -> None:
    env = made("FrozenLake-v1", success_rate=0.5)
    assert "With probability 0.5 you move" in describe(env).rules
    game: Any = env.unwrapped
    assert sorted(chance for chance, *_ in game.P[0][1]) == pytest.approx([0.25, 0.25, 0.5])


@pytest.mark.exhaustive
def test_the_drawing_of_a_taxi_can_be_read() -> None:
    """What the legend says of colours and of the map is what the drawing shows of a state, wherever taxi and passenger are."""
    env = made("Taxi-v4", render_mode="ansi")
    env.reset(seed=0)
    game: Any = env.unwrapped
    found = describe(env)
    assert "yellow is the empty taxi, green the taxi with the passenger" in found.legend
    assert "blue the waiting passenger, magenta the destination" in found.legend
    assert "((taxi row * 5 + taxi column) * 5 + passenger) * 4 + destination" in found.about_observations
    for (row, column), place in zip(game.locs, ("Red is", "Green", "Yellow", "Blue"), strict=True):
        assert f"{place} in row {row} and column {column}" in found.rules
    for state in range(500):
        taxi_row, taxi_column, passenger, destination = game.decode(state)
        assert ((taxi_row * 5 + taxi_column) * 5 + passenger) * 4 + destination == state
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


def test_a_player_who_sees_numbers_is_told_the_map_of_a_lake_unless_each_game_has_another() -> None:
    assert described("FrozenLake-v1").about_observations.endswith("\n\nSFFF\nFHFH\nFFFH\nHFFG")
    assert "H is a hole" in described("FrozenLake-v1").legend
    assert described("FrozenLake-v1", desc=["SH", "FG"]).about_observations.endswith("\n\nSH\nFG")
    assert "The map (" not in described("FrozenLake-v1", map_name=None).about_observations


def test_results_say_which_texts_a_model_was_told() -> None:
    """The version is recorded where a game's texts are curated, and nobody put others in their place."""

    def recorded(env: Any) -> Any:
        return vfgym.evaluate(env, "random", num_examples=1, progress=False)["metadata"]["version_info"].get("prompts_version")

    assert recorded(vfgym.to_chat("Blackjack-v1")) == recorded("gymnasium/Blackjack-v1") == gymnasium_prompts()["version"]
    own = (vfgym.to_chat("Blackjack-v1", **{name: "Play cards."}) for name in ("rules", "prompt"))
    assert [recorded(env) for env in (*own, vfgym.SingleTurnEnv([{"question": "?", "answer": "!"}]))] == [None] * 3


def written(key: str, **attributes: Any) -> Description:
    module, _, name = key.partition(":")
    game = type(name, (gym.Env,), {"__module__": module, "action_space": Discrete(3), "observation_space": Discrete(2), **attributes})()
    settings = attributes.get("settings")
    if settings is not None:
        game.spec = gym.envs.registration.EnvSpec("Other-v0", entry_point=type(game), kwargs=settings)
    return describe(game)


@pytest.mark.parametrize("key", other_prompts())
def test_other_packages_games_are_told_in_plain_words(key: str) -> None:
    prompt = other_prompts()[key]
    items = [item for field in ("rules", "actions", "observations") for item in prompt.get(field, [])]
    texts = [text for item in items for text in ([item] if isinstance(item, str) else item["texts"])]
    assert texts or prompt["title"]
    assert not [text for text in texts if re.search(r"\$|\\|```|http|\*\*|  |\. \.|\.\.", text)]


def test_texts_of_other_packages_games_hold_for_the_game_as_it_was_made() -> None:
    def rules(**part: Any) -> str:
        return written("minatar.gym:BaseEnv", game=SimpleNamespace(**part)).rules

    breakout, freeway = rules(env_name="breakout", sticky_action_prob=0.1), rules(env_name="freeway", sticky_action_prob=0.0)
    assert ["with probability 0.1" in breakout, "paddle" in breakout, "chicken" in breakout] == [True, True, False]
    assert ["probability" in freeway, "paddle" in freeway, "chicken" in freeway] == [False, False, True]
    assert rules() == ""  # nothing is known of what it plays


def test_what_is_written_goes_before_the_docstring_and_after_what_was_registered() -> None:
    key = "vizdoom.gymnasium_wrapper.gymnasium_env_defns:VizdoomScenarioEnv"
    assert "Find the vest" in written(key, __doc__="A game.", settings={"scenario_config_file": "my_way_home.cfg"}).rules
    assert written(key, __doc__="A game.", settings={"scenario_config_file": "mine.cfg"}).rules == "A game."


def test_a_class_without_a_name_of_its_own_has_a_title() -> None:
    assert other_title(type("Env", (), {"__module__": "crafter.env"})) == "Crafter"
    assert other_title(type("Env", (), {"__module__": "elsewhere"})) is None


class Made(gym.Env[Any, Any]):
    """A game that was made with settings."""

    def __init__(self, speed: float = 0.5, level: int = 3, secret: Any = None) -> None:
        self.speed = speed
        self._level = level
        self.part = SimpleNamespace(size=0, map=np.array([[b"S", b"F"], [b"H", b"G"]]))


def settings_of(with_spec: bool = True, **arguments: Any) -> Settings:
    env = Made(**arguments)
    if with_spec:
        env.spec = gym.envs.registration.EnvSpec("Made-v0", entry_point=Made, max_episode_steps=9, kwargs={"level": 5, "mode": 0})
    return Settings(env, {"older": 1, "level": 7})


def test_an_attribute_goes_before_an_argument_and_that_before_a_default() -> None:
    settings, names = settings_of(speed=0.0), ("speed", "level", "mode", "secret", "older", "max_episode_steps", "part.size")
    assert [settings[name] for name in names] == [0.0, 3, 0, None, 1, 9, 0]
    bare = settings_of(with_spec=False)
    assert bare["older"] == 1
    for name in ("mode", "max_episode_steps", "secret"):
        with pytest.raises(KeyError):
            bare[name]


@pytest.mark.parametrize(
    ("item", "texts"),
    [
        ("Speed {speed}.", ["Speed 0.5."]),
        ("Speed {speed:.2f}, level {level}, size {part.size}.", ["Speed 0.50, level 3, size 0."]),
        ("Map:\n{part.map}", ["Map:\nSF\nHG"]),
        ("Unknown {colour}.", []),
        ("None of {secret}.", []),
        ("No {part.colour}.", []),
        ({"texts": ["a", "b"]}, ["a", "b"]),
        ({"when": {"level": 3}, "texts": ["a"]}, ["a"]),
        ({"when": {"level": [1, 3], "speed": 0.5}, "texts": ["a"]}, ["a"]),
        ({"when": {"level": 3, "speed": 0.6}, "texts": ["a"]}, []),
        ({"when": {"colour": "red"}, "texts": ["a"]}, []),
        ({"unless": {"level": 3}, "texts": ["a"]}, []),
        ({"unless": {"level": 3, "speed": 0.6}, "texts": ["a"]}, ["a"]),
        ({"unless": {"part.colour": 1}, "texts": ["a"]}, ["a"]),
        ({"each": ["x", "y"], "texts": ["{each} of {level}", "{each}"]}, ["x of 3", "x", "y of 3", "y"]),
    ],
)
def test_texts_are_told_where_they_hold(item: Any, texts: list[str]) -> None:
    assert write([item], settings_of()) == texts


def test_the_version_in_a_modules_name_is_a_setting() -> None:
    def ant(version: int, name: str = "AntEnv") -> Any:
        return type(name, (gym.Env,), {"__module__": f"gymnasium.envs.mujoco.ant_v{version}"})

    assert Settings(ant(12)(), {})["version"] == 12
    assert curated_prompt(ant(12)) == curated_prompt(ant(5)) is not None
    assert curated_prompt(ant(12, "Ant")) is None
