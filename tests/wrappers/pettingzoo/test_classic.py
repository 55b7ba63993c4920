"""The classic games in words: they are the games themselves, and are shown as players know them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.wrappers.pettingzoo.tables import CLASSIC, check_same_game, factory, opened, play
from vfgym.wrappers.pettingzoo import PettingZooGame

# PettingZoo's spaces of no-limit hold'em have more digits than their dtype.
pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered by casting:UserWarning")


GAMES = [
    *((name, {}) for name in CLASSIC),
    ("hanabi_v5", {"players": 3, "colors": 4, "hand_size": 3}),
    ("texas_holdem_v4", {"num_players": 4}),
    ("rps_v2", {"num_actions": 7}),
]


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 30), marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(("name", "arguments"), GAMES)
def test_played_in_words_it_is_the_same_game(name: str, arguments: dict[str, Any], seeds: range) -> None:
    """The same seed and the same moves give the same observations, rewards, terminations and truncations."""
    is_long = name == "chess_v6"
    for seed in seeds[:10] if is_long else seeds:
        check_same_game(factory(name, **arguments), seed, most=30 if is_long and seed < 3 else 2000)


def test_connect_four_is_drawn_with_its_columns() -> None:
    table = opened("connect_four_v3")
    play(table, "3", "3", "Column: 0\nAction: 0")
    drawn = table.observe("player_1").splitlines()[-9:-2]
    assert drawn == ["0 1 2 3 4 5 6", *[". . . . . . ."] * 4, ". . . O . . .", "X . . X . . ."]


def test_go_is_played_on_named_points() -> None:
    table = opened("go_v5")
    play(table, "B2", "<action>C3</action>", "Pass.")
    assert "white_0 played: C3" in table.observe("black_0")
    drawn = table.observe("white_0").splitlines()[-9:-2]
    assert drawn[:-1] == ["   A B C D E", " 5 . . . . .", " 4 . . . . .", " 3 . . O . .", " 2 . X . . .", " 1 . . . . ."]
    assert drawn[-1] == "Stones captured: by black 0, by white 0. Komi: 7.5."


@pytest.mark.parametrize("name", ["leduc_holdem_v4", "texas_holdem_v4", "texas_holdem_no_limit_v6"])
def test_cards_of_others_are_not_shown(name: str) -> None:
    """The own hand, in suits, and no other; with the chips of all."""
    for seed in range(20):
        table = opened(name, seed)
        hands = {}
        for seat, player in enumerate(table.players):
            cards = table.env.unwrapped.env.game.get_state(seat)["hand"]
            cards = [cards] if isinstance(cards, str) else cards
            hands[player] = {f"{card[1].replace('T', '10')}{'♠♥♦♣'['SHDC'.index(card[0])]}" for card in cards}
        for player in table.players:
            text = table.observe(player)
            words = set(text.replace(".", " ").split())
            assert hands[player] <= words
            assert not any(hands[other] & words for other in table.players if other != player)
            assert "Chips bet: " in text
            assert len(text.partition("\n\n")[2].partition("\n\nPlayers: ")[0]) > 150, "the rules are told"
            assert not any(word in text for word in ("Our implementation", "```", "| Creation", "Observation Space", "array(", "import "))


@pytest.mark.parametrize(
    ("name", "lost", "said"),
    [
        ("leduc_holdem_v4", -0.5, "half of the chips that were won"),
        ("texas_holdem_v4", -0.5, "half of the chips that were won"),
        ("texas_holdem_no_limit_v6", -1.0, "at the end, the chips that were won"),
    ],
)
def test_rewards_of_poker_are_what_the_rules_say(name: str, lost: float, said: str) -> None:
    """Whoever bets first and folds has lost one chip: the small blind."""
    table = opened(name)
    folding = table.turn
    assert folding is not None
    assert said in table.observe(folding)
    assert play(table, "fold").rewards[folding] == lost


def test_hanabi_calls_its_moves_as_open_spiel_does_and_hides_the_own_hand() -> None:
    for arguments in ({}, {"players": 3, "colors": 3, "ranks": 2, "hand_size": 2}):
        table = PettingZooGame(factory("hanabi_v5", **arguments))
        table.reset(0, None)
        game = table.env.unwrapped.hanabi_env.game_state
        for action in np.flatnonzero(table.env.last()[0]["action_mask"]):
            name = game.action_to_string(0, int(action))
            assert f"({table.codecs['player_0'].encode(action)})".lower() == name.lower()
        for player in table.players:
            own, *_ = table.observe(player).partition("Hands:\n")[2].replace("Cur player\n", "").split("-----")
            assert set(own.split("\n")[0].partition("|")[0].strip()) == {"X"}


def test_choices_that_are_made_at_once_are_told_when_all_have_made_theirs() -> None:
    table = opened("rps_v2")
    play(table, "rock")
    assert "rock" not in table.observe("player_1").rpartition("</action>")[2]
    assert play(table, "Paper!").rewards == {"player_0": -1.0, "player_1": 1.0}
    assert table.observe("player_0").endswith("Your opponent's last choice: paper.\n\nYou earned -1.")
    for _ in range(14):
        play(table, "rock", "rock")
    assert (table.turn, table.was_truncated) == (None, True)
    larger = PettingZooGame(factory("rps_v2", num_actions=5))
    larger.reset(0, None)
    assert [play(larger, one, other).rewards["player_0"] for one, other in (("spock", "rock"), ("lizard", "spock"))] == [1.0, 1.0]
