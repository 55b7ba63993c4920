"""What ``import vfgym`` registers: the ids, what they name, and what an id that is not among them gets."""

from __future__ import annotations

import json

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec

from tests.programs import run_python
from vfgym import registration
from vfgym.cli.environments import description, make_environment
from vfgym.data import gymnasium_environments, pettingzoo_environments, reasoning_gym_datasets, textarena_environments

registration.register_all()


def test_every_dataset_and_game_of_the_data_files_is_registered() -> None:
    """The ids are the names of the packages, in a namespace for each."""
    expected = {
        *(f"reasoning-gym/{name}-v0" for name in reasoning_gym_datasets()),
        *(f"gymnasium/{game}" for game in gymnasium_environments()),
        *(f"pettingzoo/{game.removeprefix('classic/').replace('_v', '-v')}" for game in pettingzoo_environments()),
        *(f"textarena/{game.replace('/', '-')}" for game in textarena_environments()),
    }
    assert set(registration.list_registered_ids()) == expected
    assert len(expected) >= 106 + 27 + 9 + 712
    assert {"reasoning-gym/leg_counting-v0", "reasoning-gym/composite-v0", "gymnasium/FrozenLake-v1"} <= expected


def test_specs_are_plain_data() -> None:
    """A spec survives JSON."""
    for env_id in registration.list_registered_ids():
        spec = gymnasium.spec(env_id)
        assert (EnvSpec.from_json(spec.to_json()), json.loads(spec.to_json())["id"]) == (spec, env_id)


def test_registering_again_changes_nothing() -> None:
    """Not even a warning, of which Gymnasium gives one for each id that is replaced."""
    before = dict(gymnasium.registry)
    registration.register_all()
    assert dict(gymnasium.registry) == before


def test_registering_imports_nothing_behind_the_ids() -> None:
    program = "import sys, vfgym.registration as r; r.register_all(); print('reasoning_gym' in sys.modules, len(r.list_registered_ids()))"
    result = run_python(program, "-W", "error")
    assert result.stdout.split() == ["False", str(len(registration.list_registered_ids()))], result.stderr


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ("reasoning-gym/leg_countin-v0", "reasoning-gym/leg_counting-v0"),
        ("leg_counting", "reasoning-gym/leg_counting-v0"),
        ("counting", "reasoning-gym/leg_counting-v0"),
        ("frozenlake", "gymnasium/FrozenLake-v1"),
        ("cartpole", "gymnasium/CartPole-v1"),
        ("CartPole-v0", "gymnasium/CartPole-v1"),
        ("tic tac toe", "textarena/TicTacToe-v0"),
        ("textarena/TicTacToe-v1", "textarena/TicTacToe-v0"),
        ("textarena/Poker-v0-ra", "textarena/Poker-v0"),
        ("chess", "pettingzoo/chess-v6"),
    ],
)
def test_nearest_ids(given: str, nearest: str) -> None:
    """Slips, missing namespaces and parts of a name are understood."""
    found = registration.nearest_ids(given)
    assert nearest in found
    assert len(set(found)) == len(found) <= 3


def test_a_missing_extra_is_named_by_make() -> None:
    """Without reasoning-gym its ids are there, and making one says what to install."""
    program = (
        "import sys; sys.modules['reasoning_gym'] = None\n"
        "import gymnasium, vfgym.registration as r\n"
        "r.register_all()\n"
        "gymnasium.make('reasoning-gym/leg_counting-v0')"
    )
    result = run_python(program, "-W", "error")
    assert result.returncode == 1
    assert "MissingExtra: ReasoningGymEnv needs an optional dependency: pip install 'vfgym[reasoning-gym]'" in result.stderr


def test_every_id_stands_in_the_namespace_of_the_library_too() -> None:
    for env_id in registration.list_registered_ids():
        spec, own = gymnasium.spec(env_id), gymnasium.spec(registration.own_id(env_id))
        assert own.id.startswith("vfgym/")
        assert (own.entry_point, own.vector_entry_point, own.kwargs) == (spec.entry_point, spec.vector_entry_point, spec.kwargs)
        assert own.kwargs is not spec.kwargs
    own_ids = [env_id for env_id in gymnasium.registry if env_id.startswith("vfgym/")]
    assert len(own_ids) == len(registration.list_registered_ids()), "no two are called alike"
    env = gymnasium.make("vfgym/gymnasium-FrozenLake-v1")
    assert env.reset(seed=1)[0] == gymnasium.make("gymnasium/FrozenLake-v1").reset(seed=1)[0]
    assert description("vfgym/gymnasium-FrozenLake-v1") == description("gymnasium/FrozenLake-v1")


def test_games_of_gymnasium_are_played_by_their_own_ids() -> None:
    env, seat = make_environment("CartPole-v1", {"max_turns": 3})
    env.reset(seed=0)
    assert seat.definition.max_turns == 3  # type: ignore[attr-defined]
    env.close()


def test_the_family_of_an_id_is_known_whatever_its_namespace() -> None:
    ids = ["reasoning-gym/leg_counting-v0", "gymnasium/CartPole-v1", "pettingzoo/chess-v6", "textarena/TicTacToe-v0"]
    for env_id, family in zip(ids, ["reasoning-gym", "gymnasium", "pettingzoo", "textarena"], strict=True):
        assert registration.family_of(gymnasium.spec(env_id)) == family
        assert registration.family_of(gymnasium.spec(registration.own_id(env_id))) == family
    assert registration.family_of(gymnasium.spec("CartPole-v1")) is None
    assert registration.family_of(EnvSpec("mine/Env-v0", entry_point=lambda: None)) is None


def test_variants_are_near_only_where_one_is_asked_for() -> None:
    for variant in ("-train", "-raw"):
        assert f"textarena/TicTacToe-v0{variant}" in registration.nearest_ids(f"textarena/TicTacToe-v1{variant}")
        assert not any(each.endswith(variant) for each in registration.nearest_ids("textarena/TicTacToe-v1"))
    assert registration.nearest_ids("qqqqqqqqqqqq") == []
