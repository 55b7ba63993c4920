"""`to_textarena`: which game a chat environment becomes."""

from __future__ import annotations

import gymnasium
import pytest

import vfgym
from vfgym.errors import ConfigurationError

pytest.importorskip("textarena", reason="needs the extra textarena")

from vfgym.wrappers.textarena.native import NativeTextArena, OnePlayerTextArena


def test_a_game_of_textarena_becomes_that_game_for_all_its_players() -> None:
    """However it is given; wrappers, which know one seat only, are left out."""
    env_id, env = "textarena/Poker-v0", vfgym.TextArenaEnv("Poker-v0", 3)
    sources = [env_id, gymnasium.spec(env_id), gymnasium.make(env_id), env, env.fork(), gymnasium.wrappers.TimeLimit(env, 1)]
    for source, players in zip(sources, [2, 2, 2, 3, 3, 3], strict=True):
        game = vfgym.to_textarena(source)
        assert type(game) is NativeTextArena
        game.reset(seed=0)
        assert (game.env_id, game.state.num_players, game.step("[Call]")[0]) == ("Poker-v0", players, False)


def test_any_other_environment_becomes_a_game_for_one_inside_its_wrappers() -> None:
    game = vfgym.to_textarena(gymnasium.wrappers.TimeLimit(vfgym.to_chat("FrozenLake-v1"), 1))
    assert type(game) is OnePlayerTextArena
    game.reset(seed=0)
    assert game.step("left")[0]


def test_what_is_not_a_chat_environment_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="not a chat environment"):
        vfgym.to_textarena(gymnasium.make("CartPole-v1"))
