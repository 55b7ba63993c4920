"""How answers to TextArena's games are read: the same move, however it is marked."""

from __future__ import annotations

import json

import numpy as np
import pytest

from vfgym import AssistantMessage
from vfgym.codecs import ActionNotFound
from vfgym.wrappers.textarena.answers import read_move
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

GAMES = [
    *("TicTacToe-v0", "ConnectFour-v0", "Nim-v0", "KuhnPoker-v0", "LiarsDice-v0", "Poker-v0", "PigDice-v0", "Othello-v0", "Battleship-v0"),
    *("UltimateTicTacToe-v0", "WildTicTacToe-v0", "Breakthrough-v0", "Chopsticks-v0", "IteratedRockPaperScissors-v0", "ColonelBlotto-v0"),
    *("FrozenLake-v0", "GuessTheNumber-v0", "Blackjack-v0", "TowerOfHanoi-v0", "Minesweeper-v0", "Countdown-v0", "Mastermind-v0"),
]


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


def test_games_of_sentences_get_the_whole_answer() -> None:
    table = TextArenaGame("TruthAndDeception-v0")
    table.reset(seed=0)
    said = "<think>Which?</think>I read [Fact 1] and [Fact 2].\nBoth are true, I think."
    assert table.move(AssistantMessage(said)).is_valid
    assert (0, "I read [Fact 1] and [Fact 2].\nBoth are true, I think.") in table.raw.state.logs


def test_a_move_that_the_game_refuses_without_a_word_is_said_to_be_refused() -> None:
    table = TextArenaGame("SimpleNegotiation-v0")
    table.reset(seed=0)
    table.observe(0)
    assert not table.move(AssistantMessage("I offer. [Offer: 99 Wood -> 1 Sheep]")).is_valid
    assert "not valid" in table.observe(0)
