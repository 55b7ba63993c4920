"""How answers to TextArena's games are read: the same move, however it is marked."""

from __future__ import annotations

import pytest

from tests.wrappers.textarena.playing import begun, playable
from vfgym import AssistantMessage
from vfgym.codecs import ActionNotFound
from vfgym.wrappers.textarena import textarena_games
from vfgym.wrappers.textarena.answers import GAMES_OF_SENTENCES, read_move


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "I could play [0] or [8], but [4] is best.",
            "[0] [1]",
            "[3] is bad.\nFinal answer: 4",
            "<move>0</move> or [1]",
            "I think.\nSo 4.",
        ),
        *("[4] <think>", "[4]<think>I should have", "I look.\nThe middle.", "<action>[4]</action> <action>[0]</action>"),
        *("<action>[4</action>", "<action>4]</action>", "<action>a\nb</action>"),
    ],
)
def test_different_moves_are_asked_again(answer: str) -> None:
    with pytest.raises(ActionNotFound, match="Write your move in brackets"):
        read_move(answer)


@pytest.mark.parametrize(
    ("answer", "move"),
    [
        ("I look at the board. [0 1]", "[0 1]"),
        ("0 1", "[0 1]"),
        ("It is free.\n<action>0 1</action>", "[0 1]"),
        ("<think>[0]?</think><answer>[0 1]</answer> It is free.", "[0 1]"),
        ("So $\\boxed{0 1}$", "[0 1]"),
        ('```json\n{"why": "It is free.", "action": "0 1"}\n```\nGood luck!', "[0 1]"),
        ("It is free.\n\n**My move:** 0 1", "[0 1]"),
        ("I play [Bet 10]. Yes: [bet  10]", "[Bet 10]"),
        ("Countdown: <action>0 1 *</action>", "[0 1 *]"),
        ("[ ] is empty, so **[4]**", "[4]"),
        *((answer, "[4]") for answer in ("**4**", "`4`", "'4'", "4.", "*" * 100 + "4" + "*" * 100)),
        ("4..", "[4..]"),
        ("*" * 150 + "4" + "*" * 150, f"[{'*' * 50}4{'*' * 50}]"),
        ("**4*", "[*4]"),
    ],
)
def test_a_move_is_the_same_however_it_is_marked(answer: str, move: str) -> None:
    assert read_move(answer) == move


SENTENCES = {
    *("CharacterConclave", "Debate", "DontSayIt", "GuessWho", "IteratedPrisonersDilemma", "IteratedStagHunt", "IteratedUltimatumGame"),
    *("MarketEntryGame", "NewRecruit", "PublicGoodsGame", "ScenarioPlanning", "ScorableGames", "SecretMafia", "SettlersOfCatan"),
    *("SimpleBlindAuction", "SimpleNegotiation", "Taboo", "Tak", "ThreePlayerIPD", "TruthAndDeception", "TwentyQuestions", "TwoDollar"),
    *("UsedCar", "UsedCarNegotiation"),
}


def test_games_of_sentences_get_the_whole_answer() -> None:
    """Without the thinking before it; other moves that stand in it are not asked about."""
    assert SENTENCES == GAMES_OF_SENTENCES <= {game["game"] for game in textarena_games().values()}
    for env_id in sorted({f"{game}-v0" for game in SENTENCES} & {*playable("default")}):
        table, seen = begun(env_id), []
        table.raw.step = lambda action, seen=seen: (seen.append(action), (False, {}))[1]
        table.move(AssistantMessage("<think>Which?</think>I read [Fact 1] and [Fact 2].\nBoth are true, I think."))
        assert seen == ["I read [Fact 1] and [Fact 2].\nBoth are true, I think."], env_id


@pytest.mark.parametrize(("variant", "text"), [("", "Your move was not valid."), ("-train", "")])
def test_a_move_that_the_game_refuses_without_a_word_is_said_to_be_refused(variant: str, text: str) -> None:
    """Not in training, where TextArena's wrappers say nothing."""
    table = begun(f"SimpleNegotiation-v0{variant}")
    table.observe(0)
    assert not table.move(AssistantMessage("I offer. [Offer: 99 Wood -> 1 Sheep]")).is_valid
    assert table.observe(0) == text


def test_an_answer_that_was_cut_off_names_a_move_in_a_closed_mark_only() -> None:
    assert read_move("<action>4</action> since", is_cut_off=True) == "[4]"
    with pytest.raises(ActionNotFound):
        read_move("4", is_cut_off=True)
