"""`make_aec`: environments by id or function, parallel ones too; what cannot be made says why."""

from __future__ import annotations

import functools
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import vfgym
from tests.wrappers.pettingzoo.tables import Elimination, Guessing, factory
from vfgym.errors import ConfigurationError, MissingExtra
from vfgym.wrappers.pettingzoo import PettingZooGame, to_pettingzoo
from vfgym.wrappers.pettingzoo.making import make_aec

pettingzoo = pytest.importorskip("pettingzoo")
from pettingzoo.env_registry.exceptions import FailedToImport  # noqa: E402


@pytest.mark.parametrize("make_parallel", [Guessing, "classic/rps_v2", "butterfly/knights_archers_zombies_v11"])
def test_the_agents_of_a_parallel_environment_act_in_turn(make_parallel: Any) -> None:
    if isinstance(make_parallel, str):
        factory(make_parallel)
        make_parallel = functools.partial(pettingzoo.make, "parallel", make_parallel)
    table, rng = PettingZooGame(make_parallel, max_moves=50), np.random.default_rng(0)
    table.reset(0, None)
    movers = []
    while table.turn is not None:
        movers.append(table.turn)
        assert table.move(table.sample_move(table.turn, rng)).is_valid
    assert movers[: 2 * len(table.players)] == [*table.players] * 2
    table.close()


def test_a_parallel_environment_is_found_by_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    from pettingzoo.env_registry import registration

    monkeypatch.delitem(registration.aec_registry, "classic/rps-v2")
    env = vfgym.to_chat("classic/rps_v2")
    env.reset(seed=0)
    assert not env.step("rock").truncated


@pytest.mark.parametrize(
    ("make_env", "options", "said"),
    [
        (lambda: gym.make("CartPole-v1"), {}, "plays PettingZoo's environments, got TimeLimit"),
        (Elimination(), {}, "an id or a function that makes an environment, got Elimination"),
        (functools.partial(Elimination, size=1000), {}, "give obs_to_text"),
        (Elimination, {"on_invalid": "ignore"}, "on_invalid must be one of feedback, terminate"),
        ("classic/tictactoe_v0", {}, "Did you mean `classic/tictactoe_v3`"),
        ("classic/ches_v6", {}, "Did you mean `classic/chess_v6`"),
        ("board/chess_v6", {}, "Did you mean `classic/chess_v6`"),
        (Elimination, {"max_moves": 0}, "max_moves must be at least 1"),
        (Elimination, {"action_names": ["a"]}, "names"),
    ],
)
def test_what_cannot_be_played_is_refused(make_env: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        PettingZooGame(make_env, **options)


def test_without_pettingzoo_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    with pytest.raises(MissingExtra, match=r"PettingZooGame needs .*vfgym\[pettingzoo\]"):
        PettingZooGame("classic/tictactoe_v3")
    with pytest.raises(MissingExtra, match=r"to_pettingzoo needs .*vfgym\[pettingzoo\]"):
        to_pettingzoo(lambda: PettingZooGame(Elimination))


def test_an_environment_of_the_registry_is_made_to_draw_if_it_can_and_nobody_says_otherwise() -> None:
    factory("tictactoe_v3")
    modes = [
        make_aec("classic/tictactoe_v3", options, draws).render_mode
        for options, draws in (({}, True), ({}, False), ({"render_mode": None}, True), ({"render_mode": "ansi"}, True))
    ]
    assert modes == ["rgb_array", None, None, "ansi"]


def test_what_does_not_say_who_plays_is_refused() -> None:
    class Nobody(Elimination):
        def __init__(self) -> None:
            super().__init__()
            self.possible_agents = []

    with pytest.raises(ConfigurationError, match="does not say who plays it: it needs possible_agents"):
        make_aec(Nobody, {}, False)


def test_an_environment_whose_requirements_are_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise FailedToImport("no module named chess")

    monkeypatch.setattr(pettingzoo, "make", fail)
    with pytest.raises(ConfigurationError, match=r"PettingZoo cannot make 'classic/chess_v6': no module named chess"):
        make_aec("classic/chess_v6", {}, False)


def test_options_reach_the_environment_whatever_makes_it() -> None:
    factory("go_v5")
    assert make_aec("classic/go_v5", {"board_size": 5}, False).action_space("black_0").n == 5 * 5 + 1
    made = make_aec(Elimination, {"longest": 3}, True)
    assert (type(made), made.longest, made.render_mode) == (Elimination, 3, None)


def test_an_environment_that_was_only_asked_what_it_draws_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def make(kind: str, env_id: str, **options: Any) -> Any:
        env = Elimination()
        vars(env).update(metadata={"render_modes": ["ansi", "rgb_array"]}, close=lambda: made.append("closed"))
        made.append((kind, env_id, options))
        return env

    monkeypatch.setattr(pettingzoo, "make", make)
    env = make_aec("classic/rps_v2", {"size": 3}, True)
    first = ("aec", "classic/rps_v2", {"size": 3})
    assert made == [first, "closed", (*first[:2], {"size": 3, "render_mode": "rgb_array"})]
    env.metadata["render_modes"] = []
    make_aec("classic/rps_v2", {}, False)
    assert made[3:] == [(*first[:2], {})]
