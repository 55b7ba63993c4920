"""A branch of a search may have other hidden hands: as possible as those that are dealt, and nothing that the policy has seen changes."""

from __future__ import annotations

import copy
import functools
import pickle
from typing import Any

import pytest
from gymnasium.utils.env_checker import data_equivalence

import vfgym
from tests.wrappers.games.nim import NimEnv
from vfgym.errors import ConfigurationError


def leduc(**options: Any) -> Any:
    pytest.importorskip("rlcard")
    return vfgym.PettingZooEnv("classic/leduc_holdem_v4", **options)


def openspiel(name: str, **options: Any) -> Any:
    shimmy = pytest.importorskip("shimmy.openspiel_compatibility")
    pytest.importorskip("pyspiel")
    return vfgym.PettingZooEnv(functools.partial(shimmy.OpenSpielCompatibilityV0, game_name=name), **options)


def hands(seat: Any) -> list[str]:
    game = seat.state.session.game.env.unwrapped.env.game
    return [*(player.hand.get_index() for player in game.players), *(card.get_index() for card in game.dealer.deck)]


def first_legal(observation: Any, info: dict[str, Any]) -> str:
    return str(info["legal_actions"][0])


def test_hands_and_deck_that_nobody_saw_are_dealt_anew_and_the_own_hand_is_not() -> None:
    env = leduc(opponents=first_legal)
    observation, _ = env.reset(seed=0)
    dealt = hands(env)
    seen = set()
    for seed in range(40):
        branch = env.branch(seed, hidden="resample")
        now = hands(branch)
        assert sorted(now) == sorted(dealt)
        assert now[0] == dealt[0]
        seen.add(now[1])
        assert env.restore(env.snapshot())[0] == observation
    assert seen == set(dealt) - {dealt[0]}
    assert hands(env) == hands(env.branch(3)) == dealt  # without it nothing is
    branch = env.branch(5, hidden="resample")
    assert hands(branch) == hands(env.branch(5, hidden="resample")) == hands(branch.branch())
    again = pickle.loads(pickle.dumps(branch.state.session.game))
    assert [player.hand.get_index() for player in again.env.unwrapped.env.game.players] == hands(branch)[:2]


def test_an_opponent_sees_its_new_hand_and_remembers_no_other() -> None:
    told: list[list[Any]] = []

    def opponent(observation: Any, info: dict[str, Any]) -> str:
        told.append(list(observation))
        return str(info["legal_actions"][0])

    env = leduc(opponents=opponent, system_prompt="Play well.")
    _, info = env.reset(seed=2)
    while not told:  # the opponent has acted once
        _, *_, info = env.step(info["legal_actions"][0])
    for seed in range(10):
        branch = env.branch(seed, hidden="resample")
        told.clear()
        branch.step(branch.restore(branch.snapshot())[1]["legal_actions"][0])
        if not told:
            continue
        first = told[0]
        assert [message["role"] for message in first] == ["system", "user"]
        assert "You are playing" in first[1].content
        card = branch.state.session.game.env.unwrapped.env.game.players[1].hand.get_index()
        assert f"Your card: {'10' if card[1] == 'T' else card[1]}" in first[1].content
        return
    pytest.fail("the opponent never acted")


def test_in_self_play_the_hands_of_all_but_who_answers_next_are_dealt_anew() -> None:
    env = leduc(opponents="self")
    _, info = env.reset(seed=0)
    env.step(info["legal_actions"][0])
    turn = env.state.session.game.turn
    own = env.state.session.game.players.index(turn)
    dealt = hands(env)
    branches = [env.branch(seed, hidden="resample") for seed in range(20)]
    assert {hands(branch)[own] for branch in branches} == {dealt[own]}
    assert len({hands(branch)[1 - own] for branch in branches}) > 1
    branch = branches[0]
    other = next(player for player in branch.state.session.game.players if player != turn)
    assert branch.state["conversations"][other] == []
    while branch.state.session.game.turn == turn:
        observation, *_ = branch.step(env.state.session.game.legal_moves(turn)[0])
    assert "You are playing" in observation[0].content


def test_openspiel_deals_anew_what_is_alike_with_what_was_seen() -> None:
    env = openspiel("leduc_poker", opponents=first_legal)
    _, info = env.reset(seed=0)
    privates = set()
    for seed in range(40):
        branch = env.branch(seed, hidden="resample")
        state = branch.state.session.game.env.unwrapped.game_state
        mine, other = (state.information_state_string(player) for player in (0, 1))
        assert mine == env.state.session.game.env.unwrapped.game_state.information_state_string(0)
        privates.add(other)
        assert copy.deepcopy(branch.state.session.game).env.unwrapped.game_state.history() == state.history()
    assert len(privates) > 1
    assert env.branch(0, hidden="resample").step(info["legal_actions"][0])


@pytest.mark.parametrize("make", [lambda: openspiel("tic_tac_toe"), lambda: vfgym.PettingZooEnv("classic/tictactoe_v3")])
def test_where_everybody_sees_everything_nothing_changes(make: Any) -> None:
    env = make()
    _, info = env.reset(seed=0)
    move = info["legal_actions"][0]
    assert data_equivalence(env.branch(1, hidden="resample").step(move), env.branch(1).step(move))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: openspiel("liars_dice"), "OpenSpiel cannot deal anew what is hidden in Liars Dice"),
        (lambda: vfgym.PettingZooEnv("classic/rps_v2"), "cannot deal anew what is hidden from player_0"),
        (NimEnv, "cannot deal anew what is hidden from"),
        (lambda: vfgym.to_chat("Blackjack-v1"), "GymnasiumGame cannot draw anew what the policy has not seen"),
    ],
)
def test_a_game_that_cannot_says_so(make: Any, message: str) -> None:
    env = make()
    env.reset(seed=0)
    with pytest.raises(ConfigurationError, match=message):
        env.branch(0, hidden="resample")
    assert env.branch(0).state
    with pytest.raises(ConfigurationError, match="hidden must be one of 'keep', 'resample'; got 'shuffle'"):
        env.branch(0, hidden="shuffle")
    with pytest.raises(ConfigurationError, match="give a seed, too"):
        env.branch(hidden="resample")
