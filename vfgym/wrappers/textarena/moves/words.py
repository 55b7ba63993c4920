"""Moves of the games with words: spelling, guessing, describing."""

from __future__ import annotations

import functools
import itertools
import re
import string
import sys

import numpy as np

from vfgym.wrappers.textarena.moves.parts import MOST_LISTED, REMARKS, Legal, Raw, Sampler, pick, remark

COMMON_NOUNS = (
    "animal", "bridge", "circle", "doctor", "evening", "forest", "garden", "hammer", "island", "journey", "kitchen", "letter",
    "mirror", "nation", "orange", "pencil", "quarter", "river", "summer", "ticket", "uncle", "village", "winter", "yellow",
)  # fmt: skip
"""What is guessed and given as a clue where no list of words is public."""


# Words of a dictionary


@functools.lru_cache(maxsize=2)
def _by_length(words: frozenset[str]) -> dict[int, list[str]]:
    """Return the words that can be said, by their number of letters, in alphabetical order: some hundred thousand, so once for each set."""
    by_length: dict[int, list[str]] = {}
    for word in sorted(words):
        if word.isascii() and word.isalpha() and word.islower():
            by_length.setdefault(len(word), []).append(word)
    return by_length


@functools.lru_cache(maxsize=16)
def _words_from(letters: frozenset[str], words: frozenset[str]) -> list[str]:
    """Return the words that can be said and need these letters only, shorter ones first: to look through all takes 20 ms."""
    return [word for _, of_length in sorted(_by_length(words).items()) for word in of_length if letters.issuperset(word)]


@functools.lru_cache(maxsize=256)
def _beginning_with(letter: str, length: int, words: frozenset[str]) -> list[str]:
    """Return the words of a length that can be said and begin with a letter."""
    return [word for word in _by_length(words).get(length, []) if word.startswith(letter)]


def _words_by_length(raw: Raw) -> dict[int, list[str]]:
    """Return the words that a game takes, by their number of letters."""
    return _by_length(frozenset(raw.dictionary.get_all_words()))


def wordle(raw: Raw, player: int) -> list[str] | None:
    """A word of the dictionary that was not guessed, where there are not too many; the feedback is not used."""
    state = raw.state.game_state
    if len(_words_by_length(raw).get(state["word_length"], [])) - len(state["guess_history"]) > MOST_LISTED:
        return None
    return [f"[{word}]" for word in _not_guessed(raw)]


def wordle_guess(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """A word of the dictionary that was not guessed."""
    return f"[{pick(rng, _not_guessed(raw))}]"


def _not_guessed(raw: Raw) -> list[str]:
    state = raw.state.game_state
    guessed = {word for word, _ in state["guess_history"]}
    return [word for word in _words_by_length(raw).get(state["word_length"], []) if word not in guessed]


def word_chains(raw: Raw, player: int) -> list[str]:
    """A word of the length that is asked for, with the last letter of the last word as its first. At some length there is none."""
    state = raw.state.game_state
    return [
        f"[{word}]"
        for word in _beginning_with(state["required_start_letter"], state["required_length"], frozenset(raw.dictionary.get_all_words()))
        if word not in state["used_words"]
    ]


def word_ladder(raw: Raw, player: int) -> list[str]:
    """A word that differs from the last in one letter."""
    current = raw.current_word
    changed = (current[:i] + letter + current[i + 1 :] for i in range(len(current)) for letter in string.ascii_lowercase)
    return [f"[{word}]" for word in changed if word != current and word in raw.universal_word_list]


def spelling_bee(raw: Raw, player: int) -> list[str]:
    """A word of the letters that are allowed, no shorter than the last one. In the end there is none."""
    state = raw.state.game_state
    used, letters = state["word_history"], frozenset(map(str, state["allowed_letters"]))
    least = len(used[-1]) if used else 1
    made_of = _words_from(letters, frozenset(raw.dictionary.get_all_words()))
    return [f"[{word}]" for word in made_of if len(word) >= least and word not in used]


def letter_auction(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """Pass, or bid a little more than the other; at last a word of two or three of one's letters, if they spell any."""
    own, other = raw.player_states[player], raw.player_states[1 - player]
    if raw.round_number < len(raw.letters):
        outbid = other["letter_bid_history"][raw.round_number] == "bid"
        least = raw.bid_amount + 1 if outbid else raw.bid_amount
        most = min(own["coins"], least + 9)
        return pick(rng, ["[pass]", f"[bid {int(rng.integers(least, most + 1))}]"]) if most >= least else "[pass]"
    letters = [letter.lower() for letter in own["letters"]]
    english = sys.modules[type(raw).__module__].en_uk_dict
    spelled = ("".join(word) for length in (2, 3) for word in itertools.product(letters, repeat=length))
    return f"[{pick(rng, [word for word in spelled if word in english] or ['pass'])}]"


# Letters and places


def hangman(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """A letter that was not guessed."""
    return f"[{pick(rng, [letter for letter in string.ascii_uppercase if letter not in raw.state.game_state['guessed_letters']])}]"


def word_search(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """A place, across or down, where one of the words that are still looked for would fit."""
    size = len(raw.state.game_state["board"])
    missing = sorted(set(raw.placed_words) - raw.correct_words)
    while True:
        length = len(pick(rng, missing))
        along, across = int(rng.integers(size - length + 1)), int(rng.integers(size))
        start, end = (across, along), (across, along + length - 1)
        if rng.integers(2):
            start, end = start[::-1], end[::-1]
        if (*start, *end) not in raw.incorrect_attempts:
            return f"[{start[0]} {start[1]} {end[0]} {end[1]}]"


# Descriptions


def codenames(raw: Raw, player: int) -> list[str] | None:
    """For who guesses: a word that is not revealed, or to pass. The game reads words of small letters only."""
    if player in (0, 2):
        return None
    revealed = raw.state.game_state["guessed_words"]
    words = [word for word in raw.board if word not in revealed and re.fullmatch(r"\w+", word) and word == word.lower()]
    return [f"[{word}]" for word in words] + ["[pass]"]


def codenames_clue(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """A clue that is not part of a word on the board, and has none as a part."""
    clues = [noun for noun in COMMON_NOUNS if not any(noun in word or word in noun for word in raw.board)]
    return f"[{pick(rng, clues or ['xyzzy'])} {int(rng.integers(1, 4))}]"


def taboo(raw: Raw, player: int, rng: np.random.Generator) -> str:
    """A guess; or, for who gives the clues, a remark without a word that may not be said."""
    if raw.state.role_mapping[player] == "Guesser":
        return f"[{pick(rng, COMMON_NOUNS)}]"
    state = raw.state.game_state
    forbidden = [word.casefold() for word in (*state["taboo_words"], state["word_to_guess"])]
    return pick(rng, [words for words in REMARKS if not any(word in words.casefold() for word in forbidden)] or ["..."])


LEGAL: dict[str, Legal] = {
    "Codenames": codenames,
    "SpellingBee": spelling_bee,
    "WordChains": word_chains,
    "WordLadder": word_ladder,
    "Wordle": wordle,
}

SAMPLED: dict[str, Sampler] = {
    "Codenames": codenames_clue,
    "Debate": remark,
    "DontSayIt": remark,
    "GuessWho": remark,
    "Hangman": hangman,
    "LetterAuction": letter_auction,
    "ScenarioPlanning": remark,
    "Taboo": taboo,
    "TwentyQuestions": remark,
    "WordSearch": word_search,
    "Wordle": wordle_guess,
}
