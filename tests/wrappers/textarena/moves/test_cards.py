"""Moves of the games with cards and dice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.wrappers.textarena.moves.checking import listed, moves_of_games
from tests.wrappers.textarena.playing import begun
from vfgym.messages import AssistantMessage
from vfgym.wrappers.textarena.moves import cards, legal_moves, sample_move

pytest.importorskip("textarena", reason="needs the extra textarena")

test_the_game_takes_what_is_listed_and_drawn, test_random_games_end = moves_of_games(cards.LEGAL, cards.SAMPLED)


def test_a_bid_of_liars_dice_never_asks_for_more_dice_than_there_are() -> None:
    game = begun("LiarsDice-v0-small")
    game.move(AssistantMessage("[Bid: 5, 6]"))
    assert legal_moves(game.raw, 1) == ["[Call]", "[Bid: 6, 6]"]


@pytest.mark.parametrize(
    ("env_id", "moves"),
    [
        ("Blackjack-v0", {"[Hit]", "[Stand]"}),
        ("PigDice-v0", {"[roll]", "[hold]"}),
        ("KuhnPoker-v0", {"[check]", "[bet]"}),
        ("Golf-v0", {"[draw]", "[take]"}),
        ("Briscola-v0", {f"[play {place}]" for place in (1, 2, 3)}),
        ("GermanWhist-v0", {f"[play {place}]" for place in range(1, 14)}),
        ("HighSociety-v0", {f"[{card}]" for card in range(1, 12)}),
        ("LiarsDice-v0-small", {f"[Bid: {quantity}, {face}]" for quantity in range(1, 7) for face in range(1, 7)}),
        *((f"{game}-v0", {f"[{card}]" for card in ("A", *range(2, 11), *"JQK")}) for game in ("GameOfPureStrategy", "ThreePlayerGOPS")),
    ],
)
def test_what_is_legal_at_the_beginning(env_id: str, moves: set[str]) -> None:
    assert listed(env_id) == moves


def test_a_card_that_was_drawn_may_be_discarded_and_one_that_was_taken_not() -> None:
    swaps = {f"[swap {row} {col}]" for row in (1, 2) for col in (1, 2)}
    drawn, taken = listed("Golf-v0", "[draw]"), listed("Golf-v0", "[take]")
    assert drawn >= swaps | {"[discard]"}
    assert taken >= swaps
    assert "[discard]" not in taken


def test_bets_are_within_the_means_of_the_player() -> None:
    raw = begun("Poker-v0").raw
    state, rng = raw.state.game_state, np.random.default_rng(0)
    drawn = {sample_move(raw, 0, rng) for _ in range(300)}
    due = max(0, state["current_bet"] - state["player_bets"][0])
    amounts = [int(move.strip("[]").split()[1]) for move in drawn if " " in move]
    assert raw.big_blind <= min(amounts) <= max(amounts) <= state["player_chips"][0] - due
    state["player_chips"][0] = due
    assert {sample_move(raw, 0, rng) for _ in range(50)} == ({"[fold]", "[call]"} if due else {"[check]"})


def test_a_hand_is_filled_up_while_there_are_cards() -> None:
    raw = begun("SpiteAndMalice-v0").raw
    own = raw.players[0]
    full = own["hand"][:5]
    for hand, deck, can_draw in ((full, raw.deck, False), (full[:4], raw.deck, True), ([], raw.deck, True), (full[:4], [], False)):
        own["hand"], raw.deck = hand, deck
        assert ("[draw]" in (legal_moves(raw, 0) or [])) == can_draw


def raw_of(**attributes: Any) -> Any:
    """Return a game in a state that a test says; `state` are entries of its state."""
    state = attributes.pop("state", {})
    return SimpleNamespace(state=SimpleNamespace(game_state=state), **attributes)


@pytest.mark.parametrize(
    ("list_moves", "state", "moves"),
    [
        (cards.briscola, {"players": {0: {"hand": "abc"}, 1: {"hand": "ab"}}}, ["[play 1]", "[play 2]"]),
        (cards.briscola, {"players": {1: {"hand": ""}}}, []),
        (cards.pure_strategy, {"player_hands": {0: [2], 1: [1, 10, 11, 12, 13]}}, ["[A]", "[10]", "[J]", "[Q]", "[K]"]),
        (cards.high_society, {"player_money": {0: [3], 1: [1, 11]}}, ["[1]", "[11]"]),
        (cards.kuhn_poker, {"current_legal_action_tree": {"call": 0, "fold": {}}}, ["[call]", "[fold]"]),
        (cards.texas_holdem, {"legal_actions": ["check", "bet 4x"]}, ["[check]", "[bet 4x]"]),
    ],
)
def test_moves_are_those_of_the_players_own_cards_and_of_the_games_lists(list_moves: Any, state: dict[str, Any], moves: list[str]) -> None:
    assert list_moves(raw_of(state=state), 1) == moves


def test_a_suit_that_was_led_is_followed_by_the_cards_that_the_game_takes() -> None:
    hand = [("hearts", 2), ("spades", 3), ("hearts", 9)]
    raw = raw_of(state={"players": {1: {"hand": hand}}}, _is_valid_play=lambda player, card: player == 1 and card[0] == "hearts")
    assert cards.german_whist(raw, 1) == ["[play 1]", "[play 3]"]


@pytest.mark.parametrize(
    ("state", "moves"),
    [
        ({"turn_phase": "draw", "discard_pile": []}, ["[draw]"]),
        ({"turn_phase": "draw", "discard_pile": ["a"]}, ["[draw]", "[take]"]),
        ({"turn_phase": "play", "discard_pile": []}, [*(swaps := ["[swap 1 1]", "[swap 1 2]", "[swap 1 3]"]), "[discard]"]),
        ({"turn_phase": "play", "discard_pile": [], "took_from_discard": False}, [*swaps, "[discard]"]),
        ({"turn_phase": "play", "discard_pile": ["a"], "took_from_discard": True}, swaps),
    ],
)
def test_a_turn_of_golf_has_two_parts(state: dict[str, Any], moves: list[str]) -> None:
    assert cards.golf(raw_of(state=state, num_rows=1, num_columns=3), 1) == moves
    assert cards.golf(raw_of(state=state, num_rows=1, num_columns=3), 1) is not cards.golf(
        raw_of(state=state, num_rows=1, num_columns=3), 1
    )


def test_cards_are_played_from_the_tops_of_piles_and_from_the_hand_each_once() -> None:
    own = {"payoff": ["9", "1"], "discard": [["7", "2"], [], ["1"]], "hand": ["3", "3", "1"]}
    raw = raw_of(players=[{}, own], center_piles=[["x"], []], deck=["a"], _can_play_on_center=lambda card, pile: card == "1" or bool(pile))
    plays = ["[play 1 0]", "[play 2 0]", "[play 3 0]", "[play 1 1]"]
    assert cards.spite_and_malice(raw, 1) == [*plays, *(f"[discard {card} {i}]" for i in range(4) for card in "31"), "[draw]"]


def drawn(sample: Any, raw: Any) -> set[str]:
    rng = np.random.default_rng(0)
    return {sample(raw, 1, rng) for _ in range(200)}


@pytest.mark.parametrize(
    ("chips", "to_call", "moves"),
    [
        (13, 0, {"[check]", "[bet 1]", "[bet 2]", "[bet 3]"}),
        (10, 0, {"[check]"}),
        (13, 1, {"[fold]", "[call]", "[raise 1]", "[raise 2]"}),
        (13, 3, {"[fold]", "[call]"}),
        (13, 4, {"[fold]"}),
    ],
)
def test_the_antes_of_rounds_to_come_are_kept(chips: int, to_call: int, moves: set[str]) -> None:
    """Five of them, of two chips."""
    state = {"player_chips": {0: 99, 1: chips}, "current_round": 3, "highest_bet": to_call + 1, "current_bets": {0: 50, 1: 1}}
    assert drawn(cards.indian_poker, raw_of(state=state, ante=2, max_rounds=8)) == moves


@pytest.mark.parametrize(
    ("chips", "current_bet", "own_bet", "moves"),
    [
        (6, 0, 0, {"[check]", "[bet 4]", "[bet 5]", "[bet 6]"}),
        (2, 0, 0, {"[check]", "[bet 2]"}),
        (0, 0, 0, {"[check]"}),
        (5, 4, 4, {"[check]", "[raise 4]", "[raise 5]"}),
        (6, 4, 2, {"[fold]", "[call]", "[raise 4]"}),
        (2, 4, 2, {"[fold]", "[call]"}),
        (1, 4, 2, {"[fold]", "[call]"}),
        (5, 4, 6, {"[check]", "[raise 4]", "[raise 5]"}),
    ],
)
def test_a_bet_is_at_least_the_big_blind_or_all_that_there_is(chips: int, current_bet: int, own_bet: int, moves: set[str]) -> None:
    state = {"player_chips": {0: 99, 1: chips}, "current_bet": current_bet, "player_bets": {0: 50, 1: own_bet}}
    assert drawn(cards.poker, raw_of(state=state, big_blind=4)) == moves


@pytest.mark.parametrize(
    ("last", "dice", "moves"),
    [
        ((0, 0), (1, 1), [f"[Bid: {quantity}, {face}]" for quantity in (1, 2) for face in range(1, 7)]),
        ((1, 5), (1, 1), ["[Call]", "[Bid: 1, 6]", "[Bid: 2, 5]", "[Bid: 2, 6]"]),
        ((2, 6), (1, 1), ["[Call]"]),
        ((1, 6), (1, 0), ["[Call]"]),
    ],
)
def test_a_bid_is_above_the_last_in_one_number_and_below_in_none(last: tuple[int, int], dice: tuple[int, int], moves: list[str]) -> None:
    state = {"current_bid": {"quantity": last[0], "face_value": last[1]}, "remaining_dice": dict(enumerate(dice))}
    assert cards.liars_dice(raw_of(state=state), 1) == moves
