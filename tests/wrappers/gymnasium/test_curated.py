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
