"""`register_description`: what somebody says about a game goes before what vfgym and the game say, and after what `to_chat` is told."""

from __future__ import annotations

import dataclasses
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.spaces import Box

import vfgym
from tests.wrappers.gymnasium.toys import Toy, first_content
from vfgym.errors import ConfigurationError
from vfgym.wrappers.gymnasium import registered
from vfgym.wrappers.gymnasium.descriptions import describe


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """Leave to other tests the games as they are."""
    before = dict(registered._registered)
    yield
    registered._registered.clear()
    registered._registered.update(before)


class Maze(Toy):
    """A maze of the package's docstring."""

    observation_space = Box(-1, 1, (2,))

    def seen(self) -> Any:
        return np.zeros(2, np.float32)


LARGE = type("LargeMaze", (Maze,), {})()


def written(observation: Any) -> str:
    return f"You are at {observation.tolist()}."


def test_all_that_is_said_is_told() -> None:
    vfgym.register_description(Maze, rules="Find the way out.", action_names=["left", "stay", "right"], labels=["x (m)", "y (m)"])
    prompt = first_content(vfgym.to_chat(Maze))
    assert "Find the way out.\n\nActions: 0 (left), 1 (stay), 2 (right)." in prompt
    assert prompt.endswith("x (m): 0\ny (m): 0")
    assert "docstring" not in prompt


def test_observations_are_written_and_explained_as_somebody_says() -> None:
    vfgym.register_description(Maze, obs_to_text=written, legend="Places are x and y.", failure_reward=-7)
    env = vfgym.to_chat(Maze)
    assert "A maze of the package's docstring.\n\nPlaces are x and y.\n\n" in first_content(env)
    assert first_content(env).endswith("You are at [0.0, 0.0].")
    assert env.failure_reward == -7
    assert first_content(pickle.loads(pickle.dumps(env))) == first_content(env)
    own = {"rules": "Run.", "action_names": ["x", "y", "z"], "obs_to_text": lambda _: "Here.", "failure_reward": -1.0}
    env = vfgym.to_chat(Maze, **own)  # goes before what is registered
    assert "Run.\n\nActions: 0 (x), 1 (y), 2 (z)." in first_content(env)
    assert (first_content(env)[-7:], env.failure_reward) == ("\n\nHere.", -1)
    changed = describe(gym.wrappers.RescaleObservation(Maze(), np.float32(0), np.float32(1)))
    assert changed.obs_to_text is None


@pytest.mark.filterwarnings("ignore:.*is out of date:DeprecationWarning")
def test_an_id_goes_before_all_its_versions_and_these_before_classes() -> None:
    def rules_of(game_id: str) -> str:
        return describe(gym.make(game_id)).rules.partition("\n")[0]

    assert rules_of("CartPole-v1") == rules_of("CartPole-v0")
    vfgym.register_description(gym.Env, rules="Any game.")
    vfgym.register_description(CartPoleEnv, rules="The class.")
    assert (rules_of("CartPole-v1"), rules_of("MountainCar-v0")) == ("The class.", "Any game.")
    vfgym.register_description("CartPole", rules="All versions.")
    vfgym.register_description("CartPole-v1", rules="Version 1.")
    assert (rules_of("CartPole-v1"), rules_of("CartPole-v0")) == ("Version 1.", "All versions.")
    assert describe(CartPoleEnv()).rules == "The class."
    vfgym.register_description(type(LARGE), labels=["east", "north"])  # a subclass inherits, and may say more
    assert (describe(LARGE).rules, describe(LARGE).observation_labels) == ("Any game.", ("east", "north"))


def test_what_is_not_said_stays_as_it_was() -> None:
    before = describe(gym.make("CartPole-v1"))
    vfgym.register_description("CartPole", action_names=["west", "east"])
    after = describe(gym.make("CartPole-v1"))
    assert after.action_names == ["west", "east"]
    assert dataclasses.replace(after, action_names=before.action_names) == before
    vfgym.register_description("CartPole", rules="Balance.")
    after = describe(gym.make("CartPole-v1"))
    assert after.action_names == ("left", "right")  # a second call replaces the first
    assert after.prompts_version is None  # these are no longer vfgym's own rules


@pytest.mark.parametrize(
    ("id_or_class", "said", "message"),
    [
        ("", {"rules": "x"}, "takes an id or a class"),
        (int, {"rules": "x"}, "takes an id or a class"),
        (Maze(), {"rules": "x"}, "takes an id or a class"),
        ("A-v0", {}, "nothing is said about 'A-v0'"),
        ("A-v0", {"rules": 7}, "rules must be text"),
        ("A-v0", {"legend": ["x"]}, "legend must be text"),
        ("A-v0", {"labels": "xy"}, "labels must be texts"),
        ("A-v0", {"labels": ["x", "x"]}, "all different"),
        ("A-v0", {"labels": [1, 2]}, "labels must be texts"),
        ("A-v0", {"obs_to_text": "text"}, "must be a function"),
        ("A-v0", {"failure_reward": float("nan")}, "must be a number"),
        ("A-v0", {"failure_reward": "low"}, "must be a number"),
        (Maze, {"labels": ["x", "y", "z"]}, r"3 labels are registered for Maze, whose observations .* have 2"),
    ],
)
def test_what_nobody_could_tell_is_refused(id_or_class: Any, said: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):  # noqa: PT012 -- at once, or where the game is made
        vfgym.register_description(id_or_class, **said)
        vfgym.to_chat(Maze)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rules", 0, "rules must be text, got 0"),
        ("legend", b"x", "legend must be text, got b'x'"),
        ("labels", "", "labels must be texts, all different, one for each number of an observation; got ''"),
        ("labels", ["x", None], "labels must be texts, all different, one for each number of an observation; got ['x', None]"),
        ("obs_to_text", 0, "obs_to_text must be a function from an observation to text, got 0"),
        *(("failure_reward", wrong, f"failure_reward must be a number, got {wrong!r}") for wrong in (float("inf"), float("-inf"), "", [])),
    ],
)
def test_what_is_wrong_is_named_and_said_of_no_game(name: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        vfgym.register_description("A-v0", **{"rules": "Run.", name: value})
    assert str(caught.value) == message
    assert "A-v0" not in registered._registered


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ({"failure_reward": 0}, {"failure_reward": 0.0}),
        ({"rules": ""}, {"rules": ""}),
        ({"legend": ""}, {"legend": ""}),
        ({"labels": []}, {"labels": ()}),
        ({"action_names": []}, {"action_names": []}),
        ({"obs_to_text": str}, {"obs_to_text": str}),
    ],
    ids=str,
)
def test_nothing_and_zero_are_something_that_is_said(said: dict[str, Any], kept: dict[str, Any]) -> None:
    vfgym.register_description(Maze, rules="Old.")
    vfgym.register_description(Maze, **said)
    assert [*registered.registered_descriptions(Maze())] == [registered.RegisteredDescription(**kept)]


def test_labels_are_kept_as_they_were_given_and_a_reward_of_zero_is_one() -> None:
    labels = ["x", "y"]
    vfgym.register_description(Maze, labels=labels, failure_reward=0)
    labels.clear()
    env = vfgym.to_chat(Maze)
    assert (env.failure_reward, type(env.failure_reward)) == (0.0, float)
    assert first_content(env).endswith("\n\nx: 0\ny: 0")


def test_what_is_said_comes_from_the_widest_to_the_closest() -> None:
    game = Maze()
    game.spec = gym.envs.registration.EnvSpec("mazes/Maze-v2", Maze)
    for number, key in enumerate(("mazes/Maze-v2", "Maze", "mazes/Maze", "Maze-v2", Maze, "mazes/Maze-v1", Toy, gym.Env)):
        vfgym.register_description(key, rules=str(number))
    assert [said.rules for said in registered.registered_descriptions(game)] == ["7", "6", "4", "2", "0"]
    game.spec = gym.envs.registration.EnvSpec("mazes/Maze", Maze)
    assert [said.rules for said in registered.registered_descriptions(gym.Wrapper(game))] == ["7", "6", "4", "2"]


Install = Callable[[str, str], tuple[str, list[str]]]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return what installs a second distribution, an entry point and its module, and tells what a game's rules are then, with warnings."""

    def install(entry_points: str, code: str) -> tuple[str, list[str]]:
        info = tmp_path / "mygames-1.0.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mygames\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{registered.ENTRY_POINTS}]\n{entry_points}\n")
        (tmp_path / "mygames.py").write_text(code)
        monkeypatch.setattr(registered, "_are_loaded", False)
        monkeypatch.syspath_prepend(tmp_path)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rules, again = (describe(gym.make("CartPole-v1")).rules for _ in range(2))
        sys.modules.pop("mygames", None)
        assert again == rules
        return rules, [str(each.message) for each in caught]

    return install


_REGISTERS = "import vfgym\n\ndef register():\n    vfgym.register_description('CartPole', rules='Told by a package.')\n"


def test_an_installed_package_describes_games_once(install: Install) -> None:
    code = f"{_REGISTERS}    calls.append(1)\n    assert len(calls) == 1\n\ncalls = []\n"
    assert install("mygames = mygames:register", code) == ("Told by a package.", [])
    vfgym.register_description("CartPole", rules="Mine.")  # who plays goes before an installed package
    assert install("mygames = mygames:register", _REGISTERS) == ("Mine.", [])


@pytest.mark.parametrize(
    ("entry_point", "why"),
    [
        ("mygames:no_such", "AttributeError"),
        ("no_such_module:register", "ModuleNotFoundError"),
        ("mygames:fails", "ZeroDivisionError"),
        ("mygames:wrong", "ConfigurationError: nothing is said"),
    ],
)
def test_a_broken_entry_point_is_a_warning_with_its_name_and_every_game_is_played(install: Install, entry_point: str, why: str) -> None:
    code = f"{_REGISTERS}\ndef fails():\n    1 / 0\n\ndef wrong():\n    vfgym.register_description('A-v0')\n"
    rules, (warning,) = install(f"broken = {entry_point}\nmygames = mygames:register", code)
    assert rules == "Told by a package."
    assert f"entry point broken = {entry_point}" in warning
    assert why in warning
