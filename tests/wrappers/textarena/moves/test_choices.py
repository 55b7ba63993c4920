"""Moves of the games of choices, offers and votes."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest

from tests.wrappers.textarena.moves.checking import listed, moves_of_games
from tests.wrappers.textarena.playing import begun
from vfgym.messages import AssistantMessage
from vfgym.wrappers.textarena.moves import choices, legal_moves, sample_move
from vfgym.wrappers.textarena.moves.parts import REMARKS

pytest.importorskip("textarena", reason="needs the extra textarena")

test_the_game_takes_what_is_listed_and_drawn, test_random_games_end = moves_of_games(choices.LEGAL, choices.SAMPLED)


def test_an_offer_is_answered_only_while_it_is_open() -> None:
    game, rng = begun("NewRecruit-v0"), np.random.default_rng(0)
    assert {sample_move(game.raw, 0, rng).split()[0] for _ in range(50)} == {"[Propose]"}
    game.move(AssistantMessage("[Propose] AAAAAAAA"))
    assert {sample_move(game.raw, 1, rng).split()[0] for _ in range(50)} == {"[Propose]", "[Accept]", "[Reject]"}


@pytest.mark.parametrize(
    ("env_id", "moves"),
    [
        ("IteratedMatchingPennies-v0", {"[heads]", "[tails]"}),
        ("IteratedRockPaperScissors-v0", {"[rock]", "[paper]", "[scissors]"}),
        ("IteratedUltimatumGame-v0", {f"[Offer: ${share}]" for share in range(51)}),
        ("SettlersOfCatan-v0", {"[1]", "[2]"}),
        *((f"{game}-v0", set()) for game in ("IteratedPrisonersDilemma", "MarketEntryGame", "PublicGoodsGame", "NewRecruit")),
    ],
)
def test_what_is_legal_at_the_beginning(env_id: str, moves: set[str]) -> None:
    assert listed(env_id) == moves


@pytest.mark.parametrize(
    ("game", "moves"),
    [
        ("IteratedPrisonersDilemma", {"[Cooperate]", "[Defect]"}),
        ("MarketEntryGame", {"[E]", "[S]"}),
        ("PublicGoodsGame", {f"[{tokens}]" for tokens in range(21)}),
        ("ThreePlayerIPD", {f"[1 {one}] [2 {other}]" for one in ("cooperate", "defect") for other in ("cooperate", "defect")}),
    ],
)
def test_once_the_talk_is_over_decisions_are_listed(game: str, moves: set[str]) -> None:
    table = begun(f"{game}-v0")
    state = table.raw.state.game_state
    for _ in range(100):
        if state["phase"] == "decision" and table.turn == 0:
            break
        table.move(table.sample_move(table.turn, np.random.default_rng(0)))
    assert set(legal_moves(table.raw, 0) or []) == moves
    if game == "ThreePlayerIPD":
        assert set(legal_moves(table.raw, 1) or []) == {move.replace("[1", "[0") for move in moves}


def test_a_votes_targets_follow_from_the_phase_of_the_game() -> None:
    """Of the mafia, of the others at night, and of all by day; nobody while the day is discussed."""
    table = begun("SecretMafia-v0")
    raw, phases = table.raw, type(table.raw.phase)
    mafia = {player for player, role in raw.player_roles.items() if role == "Mafia"}
    alive = set(raw.state.game_state["alive_players"])
    for phase, targets in (("DAY_VOTING", alive), ("NIGHT_MAFIA", alive - mafia), ("NIGHT_DOCTOR", alive - {0})):
        raw.phase = phases[phase]
        assert {*(legal_moves(raw, 0) or [])} == {f"[{target}]" for target in targets}
    raw.phase = phases["DAY_DISCUSSION"]
    assert legal_moves(raw, 0) is None


def test_units_are_all_sent_and_bids_can_be_paid() -> None:
    blotto, auction = begun("ColonelBlotto-v0").raw, begun("SimpleBlindAuction-v0").raw
    auction.state.game_state["phase"] = "bidding"
    for seed in range(30):
        sent = sample_move(blotto, 0, np.random.default_rng(seed)).strip("[]").split(", ")
        assert [part.split(":")[0] for part in sent] == blotto.field_names
        assert sum(int(part.split(":")[1]) for part in sent) == blotto.num_total_units
        bids = re.findall(r"Item (\d+): (\d+)", sample_move(auction, 0, np.random.default_rng(seed)))
        assert 0 < sum(int(bid) for _, bid in bids) <= auction.state.game_state["remaining_capital"][0]
        assert len({item for item, _ in bids}) == len(bids)


def test_offers_are_of_what_one_has_for_something_else() -> None:
    raw = begun("SimpleNegotiation-v0").raw
    own = raw.state.game_state["player_resources"][0]
    one, *_ = raw.resource_names
    own.update(dict.fromkeys(raw.resource_names, 0) | {one: 3})
    said = {choices.simple_negotiation(raw, 0, np.random.default_rng(seed)) for seed in range(200)}
    offers = [re.fullmatch(r"\[Offer: (\d+) (.+) -> (\d+) (.+)\]", each) for each in said - {*REMARKS}]
    found = [offer.groups() for offer in offers if offer]
    assert len(found) == len(offers), "what is not an offer is a remark"
    assert ({given for given, *_ in found}, {wanted for _, _, wanted, _ in found}) == ({*"123"}, {*"12345"})
    assert {(given, wanted) for _, given, _, wanted in found} == {(one, each) for each in raw.resource_names if each != one}
    own[one] = 0
    assert {choices.simple_negotiation(raw, 0, np.random.default_rng(seed)) for seed in range(20)} <= {*REMARKS}
    raw.state.game_state["current_offer"] = {"to_player": 0, "requested_resources": {one: 1}}
    drawn = {choices.simple_negotiation(raw, 0, np.random.default_rng(seed)) for seed in range(40)}
    assert drawn - {*REMARKS} == {"[Deny]"}
    own[one] = 1
    drawn = {choices.simple_negotiation(raw, 0, np.random.default_rng(seed)) for seed in range(40)}
    assert {"[Deny]", "[Accept]"} < drawn


def test_guesses_and_votes_come_when_the_talk_is_over() -> None:
    truth, conclave = begun("TruthAndDeception-v0").raw, begun("CharacterConclave-v0").raw
    assert legal_moves(truth, 0) is None
    truth.state.turn = truth.state.max_turns - 1
    assert legal_moves(truth, 0) == ["[Fact 1]", "[Fact 2]"]
    talk = choices.conclave_remarks(conclave, 0, np.random.default_rng(0))
    assert (len(talk), all(remark in talk for remark in REMARKS)) == (sum(map(len, REMARKS)) + len(REMARKS) - 1, True)
    assert legal_moves(conclave, 1) is None
    conclave.state.game_state["phase"] = "voting"
    assert legal_moves(conclave, 1) == [f"[player {other}]" for other in range(conclave.state.num_players) if other != 1]


def test_a_proposal_of_two_dollars_is_answered_by_the_other_and_who_may_not_give_way_does_not() -> None:
    raw = begun("TwoDollar-v0").raw
    raw.total_amount = 0.02

    def drawn(player: int, proposer: int | None) -> set[str]:
        raw.current_proposal = {"amount": None if proposer is None else 0.0, "proposer": proposer}
        return {sample_move(raw, player, np.random.default_rng(seed)) for seed in range(60)}

    proposals = {f"[Propose] $0.0{cents}" for cents in range(3)}
    assert drawn(0, None) == drawn(0, 0) == proposals
    assert drawn(0, 1) == drawn(1, 0) == {*proposals, "[Accept]", "[Reject]"}
    raw.player_proposal_history[1] = [0.0, 0.02, 0.01]
    assert drawn(1, None) == proposals
    raw.player_roles[1] = {"name": "high_tension"}
    assert drawn(1, None) == proposals - {"[Propose] $0.00"}
    raw.player_proposal_history[1] = []
    assert drawn(1, None) == proposals


def test_shares_guesses_and_bids_keep_to_their_limits() -> None:
    ultimatum, average, auction = (
        begun(f"{game}-v0").raw for game in ("IteratedUltimatumGame", "IteratedTwoThirdsAverage", "SimpleBlindAuction")
    )
    ultimatum.state.game_state["phase"] = "responding"
    assert legal_moves(ultimatum, 1) == ["[Accept]", "[Reject]"]
    average.min_guess, average.max_guess = 3.0, 5.0
    assert {sample_move(average, 0, np.random.default_rng(seed)) for seed in range(40)} == {"[3]", "[4]", "[5]"}
    assert {sample_move(auction, 0, np.random.default_rng(seed)) for seed in range(60)} == {*REMARKS}
    auction.state.game_state.update(phase="bidding", remaining_capital={0: 7, 1: 1000})
    auction.num_items = 2
    bids = {sample_move(auction, 0, np.random.default_rng(seed)) for seed in range(300)}
    assert bids == {f"[Bid on Item {item}: {bid}]" for item in range(2) for bid in range(1, 8)} | {
        f"[Bid on Item 0: {one}] [Bid on Item 1: {other}]" for one in range(1, 4) for other in range(1, 4)
    }


def test_a_stag_is_hunted_once_the_talk_is_over() -> None:
    """The game itself needs a later Python than others."""
    for phase, moves in (("decision", ["[Stag]", "[Hare]"]), ("conversation", None)):
        assert choices.stag_hunt(SimpleNamespace(state=SimpleNamespace(game_state={"phase": phase})), 0) == moves


def test_remarks_that_all_shall_hear_stand_in_braces() -> None:
    for game in ("MarketEntryGame", "PublicGoodsGame"):
        raw = begun(f"{game}-v0").raw
        assert {sample_move(raw, 0, np.random.default_rng(seed)) for seed in range(80)} == {f"{{{each}}}" for each in REMARKS}


def test_an_own_offer_is_not_denied_and_five_pieces_are_the_most_of_one() -> None:
    raw = begun("SimpleNegotiation-v0").raw
    one, *_ = raw.resource_names
    raw.state.game_state["player_resources"][0].update(dict.fromkeys(raw.resource_names, 0) | {one: 9})
    raw.state.game_state["current_offer"] = {"to_player": 1, "requested_resources": {one: 1}}
    said = {choices.simple_negotiation(raw, 0, np.random.default_rng(seed)) for seed in range(300)}
    assert {"[Deny]", "[Accept]"}.isdisjoint(said)
    assert said > {*REMARKS}
    assert {each.split()[1] for each in said - {*REMARKS}} == {*"12345"}


def test_settlers_negotiate_with_who_is_left_and_accept_what_both_can_pay() -> None:
    raw = begun("SettlersOfCatan-v0").raw
    state = raw.state.game_state
    state.update(turn_phase="negotiation_start", eliminated_players={3})
    assert legal_moves(raw, 1) == ["[0]", "[2]"]
    state.update(turn_phase="negotiation", main_negotiator=0)
    assert legal_moves(raw, 1) is None
    hands = [raw.board.players[raw.board.str_to_enum(raw.roles[seat])].hand for seat in range(2)]
    one, other = map(type(next(iter(hands[0]))), ("wheat", "wood"))
    for hand in hands:
        hand.clear()

    def drawn(player: int) -> set[str]:
        return {sample_move(raw, player, np.random.default_rng(seed)) for seed in range(80)}

    assert drawn(1) == {*REMARKS}
    assert drawn(0) == {*REMARKS, "[Done]"}
    hands[1][one] = 1
    offers = drawn(1) - {*REMARKS}
    assert {each.partition(" -> ")[0] for each in offers} == {f"[Offer: 1 {one.value}"}
    state["current_offer"] = {"from_player": 0, "to_player": 1, "offered_resources": {other: 2}, "requested_resources": {one: 1}}
    assert drawn(1) == {"[Deny]"}
    hands[0][other] = 2
    assert drawn(1) == {"[Deny]", "[Accept]"}
    hands[1][one] = 0
    assert drawn(1) == {"[Deny]"}
    assert "[Deny]" not in drawn(0)
