"""Moves of the games with cards and dice."""

from __future__ import annotations

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
