"""Environments by their ids: which there are, what each is in a line, and what is made of them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.cases import DATASET, GAME
from vfgym.cli import environments
from vfgym.cli.environments import check_id, description, make_environment
from vfgym.errors import ConfigurationError
from vfgym.registration import list_registered_ids


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("gymnasium/CartPol-v1", "Did you mean `gymnasium/CartPole-v1`"),
        ("leg_counting", "Did you mean `reasoning-gym/leg_counting-v0`"),
        ("xyzzy", "`vfgym list` shows all ids"),
    ],
)
def test_an_id_that_is_not_registered_is_refused(env_id: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        check_id(env_id)


@pytest.mark.parametrize("env_id", [GAME, DATASET, "FrozenLake-v1", "some_module:Game-v0"])
def test_ids_that_are_registered_or_will_be_are_let_through(env_id: str) -> None:
    check_id(env_id)


@pytest.mark.parametrize(
    ("env_id", "described"),
    [
        (DATASET, "reasoning tasks: arithmetic"),
        (GAME, "game of Gymnasium's toy_text, discrete actions"),
        ("gymnasium/CartPole-v1", "game of Gymnasium's classic_control, discrete actions"),
        ("gymnasium/Pendulum-v1", "game of Gymnasium's classic_control, box actions"),
        ("gymnasium/Ant-v5", "game of Gymnasium's mujoco, box actions, cannot go back in an episode"),
        ("gymnasium/LunarLander-v3", "game of Gymnasium's box2d, discrete actions, cannot go back in an episode"),
        ("textarena/TicTacToe-v0", "game of TextArena for 2 players"),
        ("textarena/Taboo-v0-city-country-train", "game of TextArena for 4 players, told as in training"),
        ("textarena/GuessTheNumber-v0-raw", "game of TextArena for 1 player, moves untouched"),
        ("pettingzoo/chess-v6", "game of PettingZoo for 2 players"),
    ],
)
def test_an_id_is_described(env_id: str, described: str) -> None:
    assert description(env_id).partition(" (cannot run here: ")[0] == described


def test_every_id_is_described() -> None:
    assert not [env_id for env_id in list_registered_ids() if description(env_id).startswith("vfgym.")]


@pytest.fixture
def without_packages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in environments._PACKAGES.values():
        monkeypatch.setitem(sys.modules, name, None)  # as if not installed
    environments._is_installed.cache_clear()
    yield
    environments._is_installed.cache_clear()


@pytest.mark.usefixtures("without_packages")
@pytest.mark.parametrize(
    ("env_id", "extra"),
    [
        ("gymnasium/LunarLander-v3", "box2d"),
        ("gymnasium/Ant-v5", "mujoco"),
        ("pettingzoo/chess-v6", "pettingzoo"),
        (DATASET, "reasoning-gym"),
        ("textarena/TicTacToe-v0", "textarena"),
        (GAME, None),
    ],
)
def test_the_extra_that_is_missing_is_named(env_id: str, extra: str | None) -> None:
    said = f" (cannot run here: pip install 'vfgym[{extra}]')"
    assert description(env_id).endswith(said) is (extra is not None)
    assert extra is not None or "cannot run here" not in description(env_id)


@pytest.mark.parametrize(
    ("env_id", "arguments", "kind"),
    [
        ("FrozenLake-v1", {"max_turns": 3}, "GymnasiumGame"),
        (GAME, {"max_turns": 3}, "GymnasiumGame"),
        (DATASET, {"num_eval_examples": 3}, "ReasoningGymEnv"),
    ],
)
def test_a_chat_environment_is_made_also_of_a_game(env_id: str, arguments: dict[str, int], kind: str) -> None:
    env, seat = make_environment(env_id, arguments)
    with contextlib.closing(env):
        definition: Any = seat.definition
        assert type(definition).__name__ == kind
        assert (len(definition.tasks_of("eval")) if env_id == DATASET else definition.max_turns) == 3
