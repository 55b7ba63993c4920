"""Moves of the games with words."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from tests.wrappers.textarena.moves.checking import is_taken, moves_of_games, positions
from tests.wrappers.textarena.playing import begun
from vfgym.wrappers.textarena.moves import legal_moves, sample_move, words

pytest.importorskip("textarena", reason="needs the extra textarena")

test_the_game_takes_what_is_listed_and_drawn, test_random_games_end = moves_of_games(
    words.LEGAL, words.SAMPLED, number={"SpellingBee": 1, "WordChains": 5, "WordLadder": 2, "WordSearch": 5, "Wordle": 5}
)


@pytest.mark.parametrize("env_id", ["Wordle-v0", "SpellingBee-v0-large", "WordChains-v0", "MemoryGame-v0-hard"])
def test_where_there_are_very_many_moves_they_are_drawn_from_but_not_listed(env_id: str) -> None:
    unlisted = [game for game in positions(env_id, 3) if legal_moves(game.raw, int(game.turn or 0)) is None]
    drawn = {sample_move(unlisted[0].raw, int(unlisted[0].turn or 0), np.random.default_rng(seed)) for seed in range(20)}
    assert len(drawn) > 15
    assert all(is_taken(copy.deepcopy(unlisted[0]), move) for move in drawn)


def test_words_follow_the_rules_of_their_game() -> None:
    ladder, bee, chain = (begun(name).raw for name in ("WordLadder-v0", "SpellingBee-v0-small", "WordChains-v0"))
    for move in legal_moves(ladder, 0) or []:
        assert sum(a != b for a, b in zip(move.strip("[]"), ladder.current_word, strict=True)) == 1
    state = bee.state.game_state
    letters = set(map(str, state["allowed_letters"]))
    words = [move.strip("[]") for move in legal_moves(bee, 0) or []]
    assert words
    assert all(set(word) <= letters for word in words)
    longest = max(words, key=len)
    state["word_history"] = [longest]
    assert all(len(move) - 2 >= len(longest) and move != f"[{longest}]" for move in legal_moves(bee, 0) or [])
    state = chain.state.game_state
    words = [move.strip("[]") for move in legal_moves(chain, 0) or []]
    assert words
    assert {(word[0], len(word)) for word in words} == {(state["required_start_letter"], state["required_length"])}
    state["used_words"] = {words[0]}
    assert f"[{words[0]}]" not in (legal_moves(chain, 0) or [])


def test_clues_and_remarks_give_nothing_away() -> None:
    names, taboo, hangman = (begun(name).raw for name in ("Codenames-v0", "Taboo-v0", "Hangman-v0"))
    names.board |= {"animals": "N", "rest": "N"}
    hangman.state.game_state["guessed_letters"] = set("ABCDEFGHIJKLMNOPQRSTUVWXY")
    assert sample_move(hangman, 0, np.random.default_rng(0)) == "[Z]"
    guesser = next(player for player, role in taboo.state.role_mapping.items() if role == "Guesser")
    taboo.state.game_state["taboo_words"] = ["think", "sure", "FAIR"]
    taboo.state.game_state["word_to_guess"] = "Wait"
    for seed in range(80):
        clue, number = sample_move(names, 0, np.random.default_rng(seed)).strip("[]").split()
        assert not any(clue in word or word in clue for word in names.board)
        assert number in ("1", "2", "3")
        said = sample_move(taboo, 1 - guesser, np.random.default_rng(seed)).casefold()
        assert not any(word in said for word in ("think", "sure", "fair", "wait"))
        assert sample_move(taboo, guesser, np.random.default_rng(seed)).startswith("[")
    assert legal_moves(names, 0) is None
    guesses = legal_moves(names, 1) or []
    names.state.game_state["guessed_words"] = {guesses[0].strip("[]")}
    assert legal_moves(names, 1) == guesses[1:]
    assert guesses[-1] == "[pass]"


class Drawn:
    """Draws the highest numbers there are, or the lowest ones."""

    def __init__(self, highest: bool) -> None:
        self.highest = highest

    def integers(self, low: int, high: int | None = None) -> int:
        low, high = (0, low) if high is None else (low, high)
        return high - 1 if self.highest else low


@pytest.mark.parametrize(
    ("coins", "bid", "outbid", "lowest", "highest"),
    [
        (100, 1, False, "[pass]", "[bid 10]"),
        (100, 5, True, "[pass]", "[bid 15]"),
        (8, 5, True, "[pass]", "[bid 8]"),
        (6, 5, True, "[pass]", "[bid 6]"),
        (5, 5, True, "[pass]", "[pass]"),
    ],
)
def test_bids_are_a_little_higher_and_never_more_than_one_has(coins: int, bid: int, outbid: bool, lowest: str, highest: str) -> None:
    raw = begun("LetterAuction-v0").raw
    raw.bid_amount = bid
    raw.player_states[0]["coins"] = coins
    raw.player_states[1]["letter_bid_history"][raw.round_number] = "bid" if outbid else None
    drawn = [words.letter_auction(raw, 0, Drawn(which)) for which in (False, True)]  # type: ignore[arg-type]
    assert drawn == [lowest, highest]


@pytest.mark.parametrize(("letters", "said"), [(["C", "A", "T"], {"[act]", "[cat]", "[at]"}), (["Q", "Z"], {"[pass]"})])
def test_at_last_a_short_word_of_ones_letters_is_said(letters: list[str], said: set[str]) -> None:
    raw = begun("LetterAuction-v0").raw
    raw.round_number = len(raw.letters)
    raw.player_states[0]["letters"] = letters
    drawn = {words.letter_auction(raw, 0, np.random.default_rng(seed)) for seed in range(60)}
    assert (drawn >= said, all(set(move.strip("[]")) <= {*"".join(letters).lower()} for move in drawn - {"[pass]"})) == (True, True)


def test_places_of_a_word_lie_across_or_down() -> None:
    raw = begun("WordSearch-v0").raw
    lengths = {len(word) for word in raw.placed_words}
    ways = set()
    for seed in range(40):
        r, c, end_r, end_c = map(int, sample_move(raw, 0, np.random.default_rng(seed)).strip("[]").split())
        ways.add((end_r > r, end_c > c))
        assert max(end_r - r, end_c - c) + 1 in lengths
    assert ways == {(True, False), (False, True)}
