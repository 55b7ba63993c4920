"""The classic games in words: they are the games themselves, and are shown as players know them."""

from __future__ import annotations

import itertools
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


def test_go_tells_who_captured_how_many_stones() -> None:
    table = opened("go_v5")
    play(table, "A4", "A5", "B5")
    assert "Stones captured: by black 1, by white 0. Komi: 7.5." in table.observe("black_0")
    play(table, "E5", "pass", "D5", "E4", "A1", "D4", "C4", "pass", "D3", "pass", "E3")
    assert "\n 5 . X . O O\n 4 X . O . .\n 3 . . . O O\n" in table.observe("white_0")
    assert "Stones captured: by black 1, by white 2." in table.observe("black_0")


def test_chess_is_drawn_with_its_coordinates_and_says_who_is_in_check() -> None:
    table = opened("chess_v6")
    play(table, "e4", "f5")
    drawn = table.observe("player_0").split("\n\n")[-2].splitlines()
    assert drawn[:-1] == [
        *("8 r n b q k b n r", "7 p p p p p . p p", "6 . . . . . . . .", "5 . . . . . p . .", "4 . . . . P . . .", "3 . . . . . . . ."),
        *("2 P P P P . P P P", "1 R N B Q K B N R", "  a b c d e f g h"),
    ]
    fen = "rnbqkbnr/ppppp1pp/8/5p2/4P3/8/PPPP1PPP/RNBQKBNR w KQkq"
    assert drawn[-1].startswith(f"White's pieces are capitals. FEN: {fen}")
    assert not drawn[-1].endswith("in check.")
    play(table, "Qh5+")
    assert " Black is in check.\n" in table.observe("player_1")
    table.reset(0, None)
    play(table, "f4", "e5", "a3", "Qh4+")
    assert " White is in check.\n" in table.observe("player_0")


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("tictactoe_v3", "X", "O"),
        ("connect_four_v3", "X", "O"),
        ("go_v5", "black stones, X", "white stones, O"),
        ("chess_v6", "White", "Black"),
    ],
)
def test_players_are_told_what_is_theirs(name: str, first: str, second: str) -> None:
    table = opened(name)
    told = [f"You are {player} ({role})." for player, role in zip(table.players, (first, second), strict=True)]
    assert [[each in table.rules(player) for each in told] for player in table.players] == [[True, False], [False, True]]


@pytest.mark.parametrize(
    ("name", "bet", "chips"),
    [
        ("leduc_holdem_v4", "raise", [4, 2]),
        ("texas_holdem_v4", "raise", [4, 2]),
        ("texas_holdem_no_limit_v6", "raise full pot", [4, 2]),
    ],
)
def test_cards_and_chips_are_told_from_the_side_of_who_looks(name: str, bet: str, chips: list[int]) -> None:
    table = opened(name)
    first = table.turn
    play(table, bet)
    for player in table.players:
        seen = [f"{'you' if other == player else other} {chips[other != first]}" for other in table.players]
        left = [f"{'you' if other == player else other} {100 - chips[other != first]}" for other in table.players]
        told = table.observe(player)
        assert ": none yet.\n" in told
        assert f"\nChips bet: {', '.join(seen)}." in told
        assert (f"\nChips left: {', '.join(left)}." in told) == ("limit" in name)
    play(table, "<action>check/call</action>" if "limit" in name else "call")
    game = table.env.unwrapped.env.game
    public = [game.public_card] if "leduc" in name else game.public_cards
    assert len(public) == (1 if "leduc" in name else 3)
    names = [card.get_index() for card in public]
    shown = " ".join(f"{card[1].replace('T', '10')}{'♠♥♦♣'['SHDC'.index(card[0])]}" for card in names)
    assert f"ublic card{'' if 'leduc' in name else 's'}: {shown}." in table.observe(first)


@pytest.mark.parametrize("name", ["texas_holdem_v4", "texas_holdem_no_limit_v6"])
def test_hands_of_two_cards_are_dealt_anew_from_what_nobody_saw(name: str) -> None:
    def hands(table: PettingZooGame) -> list[list[str]]:
        game = table.env.unwrapped.env.game
        return [[card.get_index() for card in cards] for cards in (*(player.hand for player in game.players), game.dealer.deck)]

    dealt = hands(opened(name))
    others = []
    for seed in (0, 0, 1):
        table = opened(name)
        table.resample_hidden("player_1", np.random.default_rng(seed))
        anew = hands(table)
        assert (anew[1], [len(cards) for cards in anew]) == (dealt[1], [2, 2, 48])
        assert sorted(itertools.chain(*anew)) == sorted(itertools.chain(*dealt))
        others.append(anew[0])
    assert others[0] == others[1] != others[2]


def test_hanabi_tells_a_hand_to_the_others() -> None:
    table = opened("hanabi_v5")
    game = table.env.unwrapped.hanabi_env.game_state
    for seat, player in enumerate(table.players):
        assert (
            table.observe(player).partition("Life tokens")[2].startswith(game.observation_string(seat).strip().partition("Life tokens")[2])
        )
