"""Moves of the games in which players choose at once, divide, trade, bid and vote, most of them after talking about it."""

from __future__ import annotations

import itertools

import numpy as np

from vfgym.wrappers.textarena.moves.parts import REMARKS, Legal, Raw, Sampler, pick, remark

# Choices that are made at once


def matching_pennies(raw: Raw, player: int) -> list[str]:
    """A side of the coin."""
    return ["[heads]", "[tails]"]


def rock_paper_scissors(raw: Raw, player: int) -> list[str]:
    """One of the three."""
    return ["[rock]", "[paper]", "[scissors]"]


def prisoners_dilemma(raw: Raw, player: int) -> list[str] | None:
    """A decision, once the talk is over."""
    return ["[Cooperate]", "[Defect]"] if raw.state.game_state["phase"] == "decision" else None


def stag_hunt(raw: Raw, player: int) -> list[str] | None:
    """A decision, once the talk is over."""
    return ["[Stag]", "[Hare]"] if raw.state.game_state["phase"] == "decision" else None


def three_player_dilemma(raw: Raw, player: int) -> list[str] | None:
    """A decision about each of the others, once the talk is over."""
    if raw.state.game_state["phase"] != "decision":
        return None
    choices = [[f"[{other} {choice}]" for choice in ("cooperate", "defect")] for other in range(3) if other != player]
    return [" ".join(decisions) for decisions in itertools.product(*choices)]


def market_entry(raw: Raw, player: int) -> list[str] | None:
    """Enter or stay out, once the talk is over."""
    return ["[E]", "[S]"] if raw.state.game_state["phase"] == "decision" else None


def public_goods(raw: Raw, player: int) -> list[str] | None:
    """A contribution, once the talk is over."""
    state = raw.state.game_state
    return [f"[{tokens}]" for tokens in range(state["endowment"] + 1)] if state["phase"] == "decision" else None


def public_remark(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """Say something in braces, which is how all get to hear it."""
    return f"{{{remark(raw, player, rng)}}}"


def two_thirds_average(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """An integer within the limits."""
    return f"[{int(rng.integers(int(raw.min_guess), int(raw.max_guess) + 1))}]"


def colonel_blotto(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """All units, each sent to any field."""
    units = rng.multinomial(raw.num_total_units, [1 / raw.num_fields] * raw.num_fields).tolist()
    return f"[{', '.join(f'{field}:{number}' for field, number in zip(raw.field_names, units, strict=True))}]"


# Offers


def ultimatum(raw: Raw, player: int) -> list[str]:
    """A share of the pool, or the answer to one."""
    state = raw.state.game_state
    return ["[Accept]", "[Reject]"] if state["phase"] == "responding" else [f"[Offer: ${share}]" for share in range(state["pool"] + 1)]


def simple_negotiation(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """Accept what can be paid, deny, offer what one has, or only talk."""
    state = raw.state.game_state
    own, offer = state["player_resources"][player], state["current_offer"]
    moves = [_trade(own, raw.resource_names, rng)]
    if offer and offer["to_player"] == player:  # an offer stays until it is accepted or replaced, so it may be one's own
        moves.append("[Deny]")
        if all(own[resource] >= quantity for resource, quantity in offer["requested_resources"].items()):
            moves.append("[Accept]")
    else:
        moves.append(remark(raw, player, rng))
    return pick(rng, moves)


def _trade(own: dict[str, int], wanted: list[str], rng: np.random.Generator) -> str:
    """Return an offer of up to five pieces of one resource that a player has for as many of another, or a remark without any."""
    given = [resource for resource in wanted if own.get(resource, 0) > 0]
    if not given:
        return remark(None, 0, rng)
    offered = pick(rng, given)
    requested = pick(rng, [resource for resource in wanted if resource != offered])
    quantity = int(rng.integers(1, min(own[offered], 5) + 1))
    return f"[Offer: {quantity} {offered} -> {int(rng.integers(1, 6))} {requested}]"


def new_recruit(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """Propose a choice for each issue, or answer the proposal that is open."""
    letters = [pick(rng, sorted(raw.choice_letters[issue])) for issue in raw.issues]
    moves = [f"[Propose] {''.join(letters)}"]
    if raw.state.game_state["current_proposal"]:
        moves += ["[Accept]", "[Reject]"]
    return pick(rng, moves)


def two_dollar(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """Propose a share, or answer the proposal that is open; whose role forbids to give way asks for no less than before."""
    role, proposals = raw.player_roles[player], raw.player_proposal_history[player]
    least = round(100 * proposals[-1]) if role["name"] == "high_tension" and proposals else 0
    cents = int(rng.integers(least, round(100 * raw.total_amount) + 1))
    moves = [f"[Propose] ${cents / 100:.2f}"]
    if raw.current_proposal["amount"] is not None and raw.current_proposal["proposer"] != player:
        moves += ["[Accept]", "[Reject]"]
    return pick(rng, moves)


def blind_auction(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """Bids on some of the items that can all be paid, once the talk is over."""
    state = raw.state.game_state
    if state["phase"] == "conversation":
        return remark(raw, player, rng)
    capital = int(state["remaining_capital"][player])
    number = int(rng.integers(1, raw.num_items + 1))
    items = sorted(rng.choice(raw.num_items, number, replace=False).tolist())
    return " ".join(f"[Bid on Item {item}: {int(rng.integers(1, capital // number + 1))}]" for item in items)


# Settlers of Catan


def catan(raw: Raw, player: int) -> list[str] | None:
    """One of the actions that are listed, or somebody to negotiate with; what is said in a negotiation is free."""
    state = raw.state.game_state
    if state["turn_phase"] == "action":
        return [f"[{number}]" for number in range(1, len(raw.game_moves) + 1)]
    if state["turn_phase"] == "negotiation_start":
        return [f"[{other}]" for other in range(raw.state.num_players) if other != player and other not in state["eliminated_players"]]
    return None


def catan_negotiation(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """Answer the offer that is open, or make one, talk, or, for who began it, end the negotiation."""
    state = raw.state.game_state
    hands = [_hand(raw, seat) for seat in range(raw.state.num_players)]
    offer = state.get("current_offer")
    moves = [_trade(hands[player], ["wheat", "wood", "sheep", "brick", "ore"], rng), remark(raw, player, rng)]
    if offer and offer["to_player"] == player:
        moves = ["[Deny]"]
        sides = ((player, offer["requested_resources"]), (offer["from_player"], offer["offered_resources"]))
        if all(hands[seat].get(terrain.value, 0) >= quantity for seat, side in sides for terrain, quantity in side.items()):
            moves.append("[Accept]")
    if player == state["main_negotiator"]:
        moves.append("[Done]")
    return pick(rng, moves)


def _hand(raw: Raw, player: int) -> dict[str, int]:
    """Return how many cards of each resource a player holds."""
    hand = raw.board.players[raw.board.str_to_enum(raw.roles[player])].hand
    return {terrain.value: number for terrain, number in hand.items()}


# Votes and guesses after talk


def secret_mafia(raw: Raw, player: int) -> list[str] | None:
    """The players whom the game names as targets; nobody while the day is discussed."""
    alive = raw.state.game_state["alive_players"]
    if raw.phase.name == "DAY_DISCUSSION":
        return None
    if raw.phase.name == "DAY_VOTING":
        return [f"[{target}]" for target in alive]
    if raw.phase.name == "NIGHT_MAFIA":
        return [f"[{target}]" for target in alive if raw.player_roles[target] != "Mafia"]
    return [f"[{target}]" for target in alive if target != player]


def truth_and_deception(raw: Raw, player: int) -> list[str] | None:
    """A guess in the last turn."""
    return ["[Fact 1]", "[Fact 2]"] if raw.state.turn == raw.state.max_turns - 1 else None


def conclave(raw: Raw, player: int) -> list[str] | None:
    """A vote for somebody else, once the talk is over."""
    if raw.state.game_state["phase"] == "discussion":
        return None
    return [f"[player {other}]" for other in range(raw.state.num_players) if other != player]


def conclave_remarks(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """All remarks in some order: the talk goes on until thousands of characters are used up."""
    return " ".join(map(str, rng.permutation(REMARKS)))


LEGAL: dict[str, Legal] = {
    "CharacterConclave": conclave,
    "IteratedMatchingPennies": matching_pennies,
    "IteratedPrisonersDilemma": prisoners_dilemma,
    "IteratedRockPaperScissors": rock_paper_scissors,
    "IteratedStagHunt": stag_hunt,
    "IteratedUltimatumGame": ultimatum,
    "MarketEntryGame": market_entry,
    "PublicGoodsGame": public_goods,
    "SecretMafia": secret_mafia,
    "SettlersOfCatan": catan,
    "ThreePlayerIPD": three_player_dilemma,
    "TruthAndDeception": truth_and_deception,
}

SAMPLED: dict[str, Sampler] = {
    "CharacterConclave": conclave_remarks,
    "ColonelBlotto": colonel_blotto,
    "IteratedPrisonersDilemma": remark,
    "IteratedStagHunt": remark,
    "IteratedTwoThirdsAverage": two_thirds_average,
    "MarketEntryGame": public_remark,
    "NewRecruit": new_recruit,
    "PublicGoodsGame": public_remark,
    "SecretMafia": remark,
    "SettlersOfCatan": catan_negotiation,
    "SimpleBlindAuction": blind_auction,
    "SimpleNegotiation": simple_negotiation,
    "ThreePlayerIPD": remark,
    "TruthAndDeception": remark,
    "TwoDollar": two_dollar,
}
