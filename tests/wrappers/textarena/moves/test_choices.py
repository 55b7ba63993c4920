"""Moves of the games of choices, offers and votes."""

from __future__ import annotations

import re

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
