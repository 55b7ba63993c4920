"""What is said around a mark: a correction, a question, or that it is an example, of the past, or not to be done.

Words are those of ``answer_words.json``, in all languages at once. A mark about which there is a doubt is asked again.
"""

from __future__ import annotations

import functools
import re

from vfgym.codecs.labels import MarkedPart
from vfgym.data import answer_words

_LONGEST_BETWEEN = 600
"""Characters between a mark and its correction, at most."""

_LONGEST_SENTENCE = 160
"""Characters of a sentence, at most, before and after a mark in it."""

_END_OF_SENTENCE = re.compile(r"(?<!\be\.g)\.(?!g\b)|[!?\n\u3002\uff01\uff1f]")
_END_OF_CLAUSE = re.compile(r"[,;\u2013\u2014\uff0c]|\b(?:so|therefore|but|and|then)\b", re.IGNORECASE)
_END_OF_PARAGRAPH = re.compile(r"\n")
_SENTENCE_ABOUT_IT = re.compile(r"[ \t]{1,3}(?:is|was|would|will|can|could|may|might|should)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")
_SHORT_NOT = re.compile(r"(?<=[^\W\d])n['\u2019]t\b", re.IGNORECASE)
_APOSTROPHE = re.compile(r"(?<=[^\W\d])['\u2019](?=[^\W\d])")
QUESTION = re.compile(r"[?\uff1f\u061f\u00bf]")
_CROSSED_OUT = re.compile("[\u2716\u2717\u2718\u274c\u274e\u26d4\U0001f44e\U0001f6ab\U0001f914\U0001f937]")
_UNSPACED = "\u3000"
"""From here on, characters are of languages without spaces between words."""


def words_in(text: str) -> list[str]:
    r"""Return the words of a text, in lower case and without apostrophes.

    >>> words_in("Don\u2019t go 2 steps, it's a trap")
    ['do', 'not', 'go', 'steps', 'its', 'a', 'trap']
    """
    return _WORD.findall(_APOSTROPHE.sub("", _SHORT_NOT.sub(" not", text)).casefold())


def turns(text: str, *, may_say_what_is_not: bool = False) -> bool:
    """Say whether a remark turns what it remarks on into something else: an alternative, a condition, a doubt, a question, a negation.

    Args:
        text: What is said after an action.
        may_say_what_is_not: Whether negations are no doubt, as in a reason.
    """
    listed = answer_words()
    if QUESTION.search(text):
        return True
    found = set(words_in(text))
    if not found.isdisjoint(listed.turns) or (not may_say_what_is_not and not found.isdisjoint(listed.negations)):
        return True
    return not text.isascii() and (_unspaced(may_say_what_is_not).search(text) is not None or _CROSSED_OUT.search(text) is not None)


@functools.cache
def _unspaced(without_negations: bool) -> re.Pattern[str]:
    """Return what finds such words of languages without spaces between words."""
    listed = answer_words()
    words = listed.turns | (frozenset() if without_negations else listed.negations)
    return re.compile("|".join(sorted(word for word in words if word >= _UNSPACED)))


@functools.cache
def _correction() -> re.Pattern[str]:
    """Return what begins a correction, after a sentence or a clause: several words, or one with a comma or a colon behind it."""
    listed = answer_words().corrections
    phrases = "|".join(re.escape(words) for words in listed if " " in words)
    words = "|".join(re.escape(word) for word in listed if " " not in word)
    begins = r"(?:(?<=[.!?;:,\n\u2014\u2013\u2026(])[ *_]?|\A[\s*_(\u2013\u2014-]{0,9})"
    return re.compile(rf"{begins}(?:(?:{phrases})(?!\w)|(?:{words})\s{{0,3}}(?:[,.!:;\u2026\u2014\u2013\uff0c\uff1a-]|\Z))", re.IGNORECASE)


def without_corrected(text: str, marks: list[MarkedPart]) -> list[MarkedPart]:
    """Return the marks of an answer that it does not take back: those behind the last correction ("no, ...", "Wait: ...").

    Args:
        text: The answer.
        marks: Its marks.
    """
    for number in range(len(marks) - 1, 0, -1):
        one, other = marks[number - 1], marks[number]
        between = text[one.end : other.start]
        if (
            one.content != other.content
            and len(between) <= _LONGEST_BETWEEN
            and _correction().search(between)
            and answer_words().not_corrections.isdisjoint(words_in(between))
        ):
            return marks[number:]
    return marks


def is_doubtful(text: str, start: int, end: int) -> bool:
    """Say whether what is said around a mark makes it a question, an example, something of the past, or takes it back.

    Args:
        text: The answer.
        start: Where the mark begins.
        end: Where it ends.
    """
    after = text[end : end + _LONGEST_SENTENCE]
    if is_taken_back(after):
        return True
    if not start or text[start - 1] == "\n":
        return False
    before = _END_OF_SENTENCE.split(text[max(0, start - _LONGEST_SENTENCE) : start])[-1]
    if not words_in(before):
        return False
    stop = _END_OF_SENTENCE.search(after)
    if stop and QUESTION.match(stop[0]):
        return True
    clause = _END_OF_CLAUSE.split(before)[-1]
    if _said_of_others().search(clause):
        return True
    leads_to_it = clause.rstrip(" \t*_`$\"'(").endswith((":", "\uff1a"))
    return not leads_to_it and not set(words_in(clause)).isdisjoint(answer_words().negations)


def is_taken_back(after: str) -> bool:
    r"""Say whether what stands behind a mark takes it back: a correction that says no ("Wait, no."), or a sentence about it that does.

    >>> is_taken_back(" Wait, that is wrong."), is_taken_back(" is not what I play"), is_taken_back("\nIt is not far.")
    (True, True, False)
    """
    about_it = _SENTENCE_ABOUT_IT.match(after)
    if not after or not (about_it or _correction().match(after)):
        return False
    end = (_END_OF_SENTENCE if about_it else _END_OF_PARAGRAPH).search(after, 2)
    return not set(words_in(after[: end.start()] if end else after)).isdisjoint(answer_words().negations)


@functools.cache
def _said_of_others() -> re.Pattern[str]:
    phrases = "|".join(re.escape(phrase) for phrase in answer_words().said_of_others)
    return re.compile(rf"(?<!\w)(?:{phrases})(?!\w)", re.IGNORECASE)
