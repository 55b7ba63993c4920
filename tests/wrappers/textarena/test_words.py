"""Words for the games that ask NLTK for them: always there, from this computer, the same in every process."""

from __future__ import annotations

import copy
import importlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.programs import run_python
from tests.wrappers.textarena.playing import begun, playable
from vfgym.data import english_words
from vfgym.messages import AssistantMessage
from vfgym.wrappers.textarena import TextArenaGame, textarena_games
from vfgym.wrappers.textarena.words import Dictionary

pytest.importorskip("textarena", reason="needs the extra textarena")

GAMES = {"Codenames", "DontSayIt", "Hangman", "LetterAuction", "SpellingBee", "WordChains", "WordLadder", "WordSearch", "Wordle"}

NO_NETWORK = """
import socket, sys
def refuse(*args, **kwargs): raise AssertionError("the network was asked")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
from vfgym.wrappers.textarena import TextArenaGame
"""


def run(code: str, **environ: str) -> str:
    """Return what a program prints that must not reach the network."""
    return run_python(NO_NETWORK + code, "-W", "error", check=True, env={**os.environ, "NLTK_DATA": "", **environ}).stdout


def test_the_word_list() -> None:
    nouns, others = english_words()["nouns"], english_words()["others"]
    assert len(nouns) > 1400
    assert not nouns & others
    assert all(3 <= len(word) <= 8 and word.isascii() and word.isalpha() and word.islower() for word in nouns | others)
    assert all(sum(len(word) == length for word in nouns) >= 50 for length in range(3, 9))


def test_secrets_are_common_nouns() -> None:
    nouns = english_words()["nouns"]
    assert nouns.issuperset(begun("DontSayIt-v0").raw.state.game_state["target_words"].values())
    assert nouns.issuperset(begun("Codenames-v0").raw.board)


@pytest.mark.exhaustive
def test_the_corpora_of_nltk_are_read_where_there_are_any(tmp_path: Path) -> None:
    corpus = tmp_path / "corpora" / "words"
    corpus.mkdir(parents=True)
    (corpus / "en-basic").write_text("zyzzyva\nzyzzyvas\n")
    (corpus / "en").write_text("zyzzyva\nqwertyuiop\n")
    code = "for level in ('', '-hardcore'): table = TextArenaGame('Hangman-v0' + level); print(table.raw.word_list)"
    assert run(code, NLTK_DATA=str(tmp_path)) == "['zyzzyva', 'zyzzyvas']\n['zyzzyva', 'qwertyuiop']\n"


def test_a_word_of_the_dictionary_is_a_word() -> None:
    """The dictionaries that come with TextArena are used too."""
    table = begun("Wordle-v0", 3)
    assert table.raw.state.game_state["secret_word"] in english_words()["nouns"]
    assert not table.move(AssistantMessage("[zzzzz]")).is_valid
    assert table.move(AssistantMessage("[adept]")).is_valid
    assert "adept" not in english_words()["nouns"] | english_words()["others"]


@pytest.mark.parametrize("env_id", ["Hangman-v0", "Hangman-v0-hardcore"])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda table: pickle.loads(pickle.dumps(table))], ids=["deepcopy", "pickle"])
def test_the_copy_of_a_game_goes_on_with_its_words(env_id: str, duplicate: Callable[[TextArenaGame], TextArenaGame]) -> None:
    """The easy game with the easy ones; and the list itself is not copied."""
    table = begun(env_id, 3)
    assert duplicate(table).raw.word_list is table.raw.word_list


@pytest.mark.parametrize("options", [{}, {"keep_proper_nouns": True}, {"include_nltk": False}])
def test_the_shared_dictionary_has_the_words_of_textarenas_own_with_the_same_options(options: dict[str, bool]) -> None:
    TextArenaGame("Wordle-v0")  # whose modules look for words where vfgym has them
    own = importlib.import_module("textarena.envs.utils.word_lists").EnglishDictionary(**options)
    shared = Dictionary(**options)
    assert shared.get_all_words() == own.get_all_words()
    assert shared.get_basic_words() == own.get_basic_words()
    for word in ("adept", "Adept", "london", "zzzzz"):
        assert shared.is_english_word(word) == own.is_english_word(word), word


PLAYED = """
import numpy as np
for env_id in {}:
    table = TextArenaGame(env_id, max_moves=12)
    table.reset(3)
    rng = np.random.default_rng(3)
    while table.turn is not None:
        print(table.observe(table.turn))
        table.move(table.sample_move(table.turn, rng))
    print(env_id, [table.observe(player) for player in table.players])
"""


@pytest.mark.exhaustive
def test_a_seed_gives_the_same_game_in_every_process() -> None:
    """Sets of strings are in another order in each process; no game depends on it."""
    ids = list({textarena_games()[env_id]["game"]: env_id for env_id in playable("default")}.values())
    one, other = (run(PLAYED.format(ids), PYTHONHASHSEED=str(seed)) for seed in (1, 2))
    assert one.splitlines() == other.splitlines()
