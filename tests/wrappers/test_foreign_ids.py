"""Ids that packages register as they are imported: their package is imported, or what installs it is said."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import gymnasium as gym
import pytest

from vfgym.errors import MissingExtra
from vfgym.wrappers import foreign_ids
from vfgym.wrappers.foreign_ids import is_registered, register_package_of
from vfgym.wrappers.to_chat import import_id


@pytest.mark.parametrize(
    ("env_id", "extra"), [("ALE/Pong-v5", "atari"), ("ale/Nothing-v0", "atari"), ("MiniGrid-Empty-5x5-v0", "minigrid")]
)
def test_an_id_whose_package_is_missing_names_the_extra(env_id: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_ids, "is_registered", lambda env_id: False)
    monkeypatch.setattr(foreign_ids.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(foreign_ids.gym, "registry", {})
    with pytest.raises(MissingExtra, match=rf"pip install 'vfgym\[{extra}\]'"):
        import_id(env_id)


@pytest.mark.parametrize("env_id", ["gymnasium/Nope-v0", "minihack/x-v0", "cartpol", "vfgym/x", "", "/", "v0"])
def test_other_ids_are_left_to_gymnasium(env_id: str) -> None:
    assert import_id(env_id) == env_id


@pytest.mark.parametrize(
    ("env_id", "is_known"),
    [
        ("CartPole-v1", True),
        ("CartPole", True),
        ("CartPole-v99", True),
        ("a b c!", True),
        ("", True),
        ("Nope-v0", False),
        ("nope/X-v0", False),
    ],
)
def test_an_id_is_known_in_any_version(env_id: str, is_known: bool) -> None:
    """Of what is no id at all Gymnasium says so itself."""
    assert is_registered(env_id) is is_known


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the modules that are imported; each is installed, and none of their ids is registered."""
    names: list[str] = []
    monkeypatch.setattr(foreign_ids, "is_registered", lambda env_id: False)
    monkeypatch.setattr(foreign_ids.gym, "registry", {})
    monkeypatch.setattr(foreign_ids.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(foreign_ids.importlib, "import_module", lambda name: names.append(name) or ModuleType(name))  # type: ignore[func-returns-value]
    return names


@pytest.mark.parametrize(("env_id", "module"), [("ALE/Pong-v5", "ale_py"), ("MiniGrid-Empty-5x5-v0", "minigrid")])
def test_a_package_that_is_installed_is_imported_once(
    env_id: str, module: str, imported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    register_package_of(env_id)
    assert imported == [module]
    monkeypatch.setattr(foreign_ids, "is_registered", lambda env_id: True)
    register_package_of(env_id)
    assert imported == [module]


def test_a_package_whose_ids_are_there_is_not_imported_for_one_that_it_lacks(imported: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    other, own = gym.envs.registration.EnvSpec("Other/Pong-v5"), gym.envs.registration.EnvSpec("ALE/Pong-v5")
    for specs, names in (([other], ["ale_py"]), ([other, own], ["ale_py"])):
        monkeypatch.setattr(foreign_ids.gym, "registry", {spec.id: spec for spec in specs})
        register_package_of("ALE/Nothing-v0")
        assert imported == names


@pytest.mark.parametrize(
    ("requires", "found"),
    [
        (["ale-py; extra == 'all'", "minigrid; extra == 'all'", "ale-py>=0.1; extra == 'atari'"], ("atari", "ale-py")),
        (["ale_tools; extra == 'x'"], ("x", "ale_tools")),
        (["ale-py"], None),
        (["alex; extra == 'x'"], None),
        (None, None),
    ],
)
def test_of_several_extras_the_smallest_is_named(requires: Any, found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_ids.importlib.metadata, "requires", lambda name: requires)
    assert foreign_ids._package_of("ALE/Pong-v5") == found
    assert foreign_ids._package_of("vfgym/x") is None
