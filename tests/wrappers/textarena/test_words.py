"""Words for the games that ask NLTK for them: always there, from this computer, the same in every process."""

from __future__ import annotations

import copy
import importlib
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.programs import run_python
from tests.wrappers.textarena.playing import begun, playable
from vfgym.data import english_words
from vfgym.messages import AssistantMessage
from vfgym.wrappers.textarena import TextArenaGame, textarena_games
from vfgym.wrappers.textarena import words as words_module
from vfgym.wrappers.textarena.words import NLTK_NAMES, Dictionary

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


@pytest.fixture
def no_nltk_data(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """NLTK finds nothing on this computer."""
    monkeypatch.setattr(words_module, "_nltk_with", lambda resource: None)
    yield from emptied()


def emptied() -> Iterator[None]:
    for cached in (words_module._words, words_module._tag):
        cached.cache_clear()
    yield
    for cached in (words_module._words, words_module._tag):
        cached.cache_clear()


def test_without_nltks_data_the_words_are_those_that_come_along(no_nltk_data: None) -> None:
    """The easy ones are vfgym's; the others hold them, and TextArena's spelling dictionaries."""
    corpus = NLTK_NAMES["words"]
    basic = english_words()["nouns"] | english_words()["others"]
    assert corpus.words("en-basic") == corpus.words(fileids="en-basic") == sorted(basic)
    spelled = corpus.words()
    assert spelled == corpus.words("en") == [*corpus] == sorted({*spelled})
    assert basic < {*spelled}
    assert all(word.isalpha() and word.isascii() and word.islower() for word in spelled)
    assert "adept" in corpus
    assert "adept" in spelled
    assert "adept" not in corpus.words("en-basic")
    assert not {"zzzzz", "", 3} & {*spelled}
    assert 3 not in corpus
    for fileids in (None, "en", "en-basic"):
        assert copy.deepcopy(corpus.words(fileids)) is corpus.words(fileids)


def test_names_of_nltk_are_given_what_games_ask_of_them(no_nltk_data: None) -> None:
    nltk = NLTK_NAMES["nltk"]
    assert nltk.download("words", quiet=True) is True
    assert nltk.corpus.words is NLTK_NAMES["words"] is NLTK_NAMES["en_uk_dict"]
    assert nltk.pos_tag is NLTK_NAMES["pos_tag"]
    noun, other = min(english_words()["nouns"]), min(english_words()["others"])
    assert nltk.pos_tag([other, noun, noun]) == [(other, "OTHER"), (noun, "NN"), (noun, "NN")]
    assert nltk.pos_tag([]) == []


def test_nltks_own_data_goes_before_the_words_that_come_along(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {None: ["one", "two"], "en-basic": ["one"]}
    asked: list[str] = []
    nltk = SimpleNamespace(
        corpus=SimpleNamespace(words=SimpleNamespace(words=lambda fileids: files[fileids])), pos_tag=lambda words: [(words[0], "VB")]
    )
    monkeypatch.setattr(words_module, "_nltk_with", lambda resource: asked.append(resource) or nltk)  # type: ignore[func-returns-value]
    for _ in emptied():
        assert [NLTK_NAMES["words"].words(fileids) for fileids in files] == [["one", "two"], ["one"]]
        assert NLTK_NAMES["pos_tag"](["run"]) == [("run", "VB")]
    assert asked == ["corpora/words", "corpora/words", "taggers/averaged_perceptron_tagger_eng"]


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
