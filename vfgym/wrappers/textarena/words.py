"""English words for the games that look for them in NLTK, which would download them.

TextArena's modules are given `NLTK_NAMES` for what they import of it (see `package`). They never ask the network: they read the corpora
``words`` and ``averaged_perceptron_tagger_eng`` where NLTK finds them on this computer (in ``NLTK_DATA``, for example), and else the words
that come with vfgym and with TextArena. To play with the real corpora:
``python -m nltk.downloader words averaged_perceptron_tagger_eng``.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

from vfgym.data import english_words


class _Words(list[str]):
    """A list of words that knows its members (WordSearch asks for every part of its grid), and of which copies are not made."""

    def __init__(self, words: Iterable[str], fileids: str | None) -> None:
        super().__init__(words)
        self._members = frozenset(self)
        self._fileids = fileids

    def __contains__(self, word: object) -> bool:
        return word in self._members

    def __reduce__(self) -> tuple[Any, ...]:
        return _words, (self._fileids,)


@functools.cache
def _words(fileids: str | None) -> _Words:
    nltk = _nltk_with("corpora/words")
    if nltk is not None:
        return _Words(nltk.corpus.words.words(fileids), fileids)
    basic = {word for words in english_words().values() for word in words}
    if fileids == "en-basic":
        return _Words(sorted(basic), fileids)
    spelled = importlib.import_module("textarena.envs.utils.word_lists").EnglishDictionary(include_nltk=False).get_all_words()
    return _Words(sorted(basic.union(word for word in spelled if word.isalpha() and word.isascii() and word.islower())), fileids)


class _Corpus:
    """Stands in for ``nltk.corpus.words``."""

    def words(self, fileids: str | None = None) -> list[str]:
        """Return the words of NLTK's file ``en-basic`` or ``en``, or of both.

        Without NLTK's data, ``en-basic`` is the word list of vfgym, and ``en`` the spelling dictionaries that come with TextArena.
        """
        return _words(fileids)

    def __contains__(self, word: object) -> bool:
        return word in self.words()

    def __iter__(self) -> Iterator[str]:
        return iter(self.words())


def _tag_words(words: list[str]) -> list[tuple[str, str]]:
    """Stand in for ``nltk.pos_tag``: games ask only whether a word by itself is a noun, ``"NN"``."""
    return [(word, _tag(word)) for word in words]


@functools.cache
def _tag(word: str) -> str:
    nltk = _nltk_with("taggers/averaged_perceptron_tagger_eng")
    if nltk is not None:
        tag: str = nltk.pos_tag([word])[0][1]
        return tag
    return "NN" if word in english_words()["nouns"] else "OTHER"


@functools.cache
def _nltk_with(resource: str) -> Any:
    """Return the module ``nltk`` if it finds a resource on this computer, else None."""
    nltk = importlib.import_module("nltk")
    try:
        nltk.data.find(resource)
    except LookupError:
        return None
    return nltk


def _pretend_download(*names: object, **options: object) -> bool:
    """Stand in for ``nltk.download``."""
    return True


class Dictionary:
    """Stands in for TextArena's ``EnglishDictionary``, which takes a second to make: all games share one, copies included."""

    def __init__(self, **options: Any) -> None:
        self._options = options

    @property
    def _shared(self) -> Any:
        return _dictionary(**self._options)

    def is_english_word(self, word: str) -> bool:
        """Return whether a word is in one of the dictionaries."""
        return bool(self._shared.is_english_word(word))

    def get_all_words(self) -> frozenset[str]:
        """Return all words."""
        return _all_words(**self._options)

    def get_basic_words(self) -> set[str]:
        """Return the words of NLTK's file ``en-basic``."""
        basic: set[str] = self._shared.get_basic_words()
        return basic


@functools.cache
def _dictionary(**options: Any) -> Any:
    return importlib.import_module("textarena.envs.utils.word_lists").EnglishDictionary(**options)


@functools.cache
def _all_words(**options: Any) -> frozenset[str]:
    return frozenset(_dictionary(**options).get_all_words())


_CORPUS = _Corpus()

NLTK_NAMES: dict[str, Any] = {
    "nltk": SimpleNamespace(download=_pretend_download, corpus=SimpleNamespace(words=_CORPUS), pos_tag=_tag_words),
    "words": _CORPUS,
    "pos_tag": _tag_words,
    "en_uk_dict": _CORPUS,  # LetterAuction's set of all words
}
"""What stands in for NLTK in the modules of TextArena, by the names that they know it by."""
