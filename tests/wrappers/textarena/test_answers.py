"""How answers to TextArena's games are read: the same move, however it is marked."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.wrappers.textarena.playing import begun, playable
from vfgym import AssistantMessage
from vfgym.codecs import ActionNotFound
from vfgym.wrappers.textarena import textarena_games
from vfgym.wrappers.textarena.answers import GAMES_OF_SENTENCES, read_move
from vfgym.wrappers.textarena.match import TextArenaGame

FORMS = {
    "brackets": "I look at the board. {0}",
    "bare": "{1}",
    "tag": "It is free.\n<action>{1}</action>",
    "tag and brackets": "<think>[0]?</think><answer>{0}</answer> It is free.",
    "box": "So $\\boxed{{{1}}}$",
    "json": '```json\n{{"why": "It is free.", "action": {2}}}\n```\nGood luck!',
    "label": "It is free.\n\n**My move:** {1}",
}

GAMES = ["TicTacToe-v0", "Nim-v0", "LiarsDice-v0", "Poker-v0", "UltimateTicTacToe-v0", "ColonelBlotto-v0", "FrozenLake-v0", "Countdown-v0"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("game", GAMES)
def test_a_move_is_the_same_in_every_form(game: str, form: str) -> None:
    """The game goes as TextArena's own, which is given the moves as they are."""
    table, native = TextArenaGame(game, max_moves=60), TextArenaGame(f"{game}-raw", max_moves=60)
    table.reset(seed=3)
    native.reset(seed=3)
    rng = np.random.default_rng(0)
    while native.turn is not None:
        move = str(native.sample_move(native.turn, rng).content)
        bare = move.removeprefix("[").removesuffix("]")
        assert f"[{bare}]" == move
        said = FORMS[form].format(move, bare, json.dumps(bare))
        expected = native.move(AssistantMessage(move))
        assert table.move(AssistantMessage(said)) == expected, said
        assert table.turn == native.turn


@pytest.mark.parametrize(
    "answer",
    [
        "I could play [0] or [8], but [4] is best.",
        "[0] [1]",
        "[3] is bad.\nFinal answer: 4",
        "<move>0</move> or [1]",
        "I think.\nSo 4.",
        "[4] <think>",
    ],
)
def test_different_moves_are_asked_again(answer: str) -> None:
    with pytest.raises(ActionNotFound, match="Write your move in brackets"):
        read_move(answer)


def test_a_move_that_is_given_twice_counts() -> None:
    assert read_move("I play [Bet 10]. Yes: [bet  10]") == "[Bet 10]"
    assert read_move("Countdown: <action>0 1 *</action>") == "[0 1 *]"
    assert read_move("[ ] is empty, so **[4]**") == "[4]"


SENTENCES = {
    *("CharacterConclave", "Debate", "DontSayIt", "GuessWho", "IteratedPrisonersDilemma", "IteratedStagHunt", "IteratedUltimatumGame"),
    *("MarketEntryGame", "NewRecruit", "PublicGoodsGame", "ScenarioPlanning", "ScorableGames", "SecretMafia", "SettlersOfCatan"),
    *("SimpleBlindAuction", "SimpleNegotiation", "Taboo", "Tak", "ThreePlayerIPD", "TruthAndDeception", "TwentyQuestions", "TwoDollar"),
    *("UsedCar", "UsedCarNegotiation"),
}


def test_which_games_are_games_of_sentences() -> None:
    assert SENTENCES == GAMES_OF_SENTENCES <= {game["game"] for game in textarena_games().values()}


@pytest.mark.parametrize("env_id", sorted(f"{game}-v0" for game in SENTENCES if f"{game}-v0" in playable("default")))
def test_games_of_sentences_get_the_whole_answer(env_id: str) -> None:
    """Without the thinking before it; other moves that stand in it are not asked about."""
    table, seen = begun(env_id), []
    table.raw.step = lambda action: (seen.append(action), (False, {}))[1]
    table.move(AssistantMessage("<think>Which?</think>I read [Fact 1] and [Fact 2].\nBoth are true, I think."))
    assert seen == ["I read [Fact 1] and [Fact 2].\nBoth are true, I think."]


def test_a_move_that_the_game_refuses_without_a_word_is_said_to_be_refused() -> None:
    table = TextArenaGame("SimpleNegotiation-v0")
    table.reset(seed=0)
    table.observe(0)
    assert not table.move(AssistantMessage("I offer. [Offer: 99 Wood -> 1 Sheep]")).is_valid
    assert "not valid" in table.observe(0)


def test_emphasis_is_taken_off_and_a_full_stop_is_not_part_of_a_move() -> None:
    for answer in ("**4**", "`4`", "'4'", "4.", "*" * 100 + "4" + "*" * 100):
        assert read_move(answer) == "[4]"
    assert read_move("4..") == "[4..]"
    assert read_move("*" * 150 + "4" + "*" * 150) == f"[{'*' * 50}4{'*' * 50}]"
    assert read_move("**4*") == "[*4]"


def test_an_answer_that_was_cut_off_names_a_move_in_a_closed_mark_only() -> None:
    assert read_move("<action>4</action> since", is_cut_off=True) == "[4]"
    with pytest.raises(ActionNotFound):
        read_move("4", is_cut_off=True)
