"""Moves of the games with cards and dice."""

from __future__ import annotations

import functools

import numpy as np

from vfgym.wrappers.textarena.moves.parts import Legal, Raw, Sampler, pick

FACES = {1: "A", 11: "J", 12: "Q", 13: "K"}


# A card of the hand


def briscola(raw: Raw, player: int) -> list[str]:
    """Any card of the hand, by its position."""
    return [f"[play {position}]" for position in range(1, len(raw.state.game_state["players"][player]["hand"]) + 1)]


def german_whist(raw: Raw, player: int) -> list[str]:
    """A card of the suit that was led, or any if there is none."""
    hand = raw.state.game_state["players"][player]["hand"]
    return [f"[play {position}]" for position, card in enumerate(hand, start=1) if raw._is_valid_play(player, card)]


def pure_strategy(raw: Raw, player: int) -> list[str]:
    """A card that was not bid yet (GOPS, for two or three players)."""
    return [f"[{FACES.get(card, card)}]" for card in raw.state.game_state["player_hands"][player]]


def high_society(raw: Raw, player: int) -> list[str]:
    """A money card that was not spent."""
    return [f"[{card}]" for card in raw.state.game_state["player_money"][player]]


@functools.cache
def _swaps(rows: int, columns: int) -> tuple[str, ...]:
    return tuple(f"[swap {row} {col}]" for row in range(1, rows + 1) for col in range(1, columns + 1))


def golf(raw: Raw, player: int) -> list[str]:
    """Draw from a pile; then put the card in the place of another, or, if it was drawn from the deck, discard it."""
    state = raw.state.game_state
    if state["turn_phase"] == "draw":
        return ["[draw]", "[take]"] if state["discard_pile"] else ["[draw]"]
    swaps = _swaps(raw.num_rows, raw.num_columns)
    return [*swaps] if state.get("took_from_discard") else [*swaps, "[discard]"]


def spite_and_malice(raw: Raw, player: int) -> list[str]:
    """Play a card onto a centre pile, discard one, or fill up the hand. The stock runs out, and who then has an empty hand is stuck."""
    own = raw.players[player]
    tops = [pile[-1] for pile in (own["payoff"], *own["discard"]) if pile]
    playable = dict.fromkeys([*tops, *own["hand"]])
    plays = [f"[play {card} {i}]" for i, pile in enumerate(raw.center_piles) for card in playable if raw._can_play_on_center(card, pile)]
    discards = [f"[discard {card} {i}]" for i in range(4) for card in dict.fromkeys(own["hand"])]
    draws = ["[draw]"] if raw.deck and len(own["hand"]) < 5 else []
    return plays + discards + draws


# Betting


def kuhn_poker(raw: Raw, player: int) -> list[str]:
    """Check or bet; call or fold."""
    return [f"[{action}]" for action in raw.state.game_state["current_legal_action_tree"]]


def indian_poker(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """Check or bet, or call, raise or fold. The antes of the rounds to come are kept: who cannot pay them is refused every move."""
    state = raw.state.game_state
    chips = state["player_chips"][player] - raw.ante * (raw.max_rounds - state["current_round"])
    to_call = state["highest_bet"] - state["current_bets"][player]
    most = chips - to_call
    actions = ["[check]"] if to_call == 0 else ["[fold]", "[call]"] if most >= 0 else ["[fold]"]
    if most > 0:
        actions.append("raise" if to_call else "bet")
    return _with_amount(pick(rng, actions), 1, most, rng)


def poker(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """Check or bet, or call, raise or fold; a bet is at least the big blind, or all that the player has."""
    state = raw.state.game_state
    due = max(0, state["current_bet"] - state["player_bets"][player])
    most = int(state["player_chips"][player] - due)
    actions = ["[fold]", "[call]"] if due else ["[check]"]
    if most > 0:
        actions.append("raise" if state["current_bet"] else "bet")  # the big blind raises what it has bet itself
    return _with_amount(pick(rng, actions), raw.big_blind, most, rng)


def _with_amount(action: str, least: int, most: int, rng: np.random.Generator) -> str:
    """Return an action in brackets as it is, and another with an amount between the limits."""
    return action if action.startswith("[") else f"[{action} {int(rng.integers(min(least, most), most + 1))}]"


def texas_holdem(raw: Raw, player: int) -> list[str]:
    """The actions that the game lists for its phase."""
    return [f"[{action}]" for action in raw.state.game_state["legal_actions"]]


# Dice, and cards of a banker


def blackjack(raw: Raw, player: int) -> list[str]:
    """Another card, or none."""
    return ["[Hit]", "[Stand]"]


def pig_dice(raw: Raw, player: int) -> list[str]:
    """Another roll, or none."""
    return ["[roll]", "[hold]"]


def liars_dice(raw: Raw, player: int) -> list[str]:
    """A call, or a bid that is not below the last in either number; not of more dice than are on the table."""
    state = raw.state.game_state
    last = (state["current_bid"]["quantity"], state["current_bid"]["face_value"])
    quantities = range(max(1, last[0]), sum(state["remaining_dice"].values()) + 1)
    bids = [(quantity, face) for quantity in quantities for face in range(max(1, last[1]), 7)]
    calls = ["[Call]"] if last[0] else []
    return calls + [f"[Bid: {quantity}, {face}]" for quantity, face in bids if (quantity, face) != last]


LEGAL: dict[str, Legal] = {
    "Blackjack": blackjack,
    "Briscola": briscola,
    "GameOfPureStrategy": pure_strategy,
    "GermanWhist": german_whist,
    "Golf": golf,
    "HighSociety": high_society,
    "KuhnPoker": kuhn_poker,
    "LiarsDice": liars_dice,
    "PigDice": pig_dice,
    "SpiteAndMalice": spite_and_malice,
    "ThreePlayerGOPS": pure_strategy,
    "UltimateTexasHoldem": texas_holdem,
}

SAMPLED: dict[str, Sampler] = {
    "IndianPoker": indian_poker,
    "Poker": poker,
}
