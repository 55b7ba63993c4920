"""Labels: lines that begin with "Action:", "My final answer =", "Réponse finale :" and the like, and what they label.

The words of labels, in the languages in which models answer, are those of ``answer_words.json``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

from vfgym.codecs.pictures import PICTURES
from vfgym.codecs.relaxed import outermost_brackets
from vfgym.data import answer_words

FENCE = re.compile(r"```(?:[\w+-]*+[ \t]*+\n)?(.*?)(```|\Z)", re.DOTALL)

_LONGEST_HEAD = 80
"""Characters before the colon of a label, at most, with what decorates it."""

_MOST_SPACES = 12
"""Spaces in it, at most."""

_HEAD = re.compile(rf"^([^\n:=\uff1a\u2192\u21d2]{{1,{_LONGEST_HEAD}}}+)[:=\uff1a\u2192\u21d2][=>]?[ \t*_]*+", re.MULTILINE)
_SPACED_HEAD = re.compile(
    rf"^([^\n:=]{{1,{_LONGEST_HEAD}}}?) (?:[-\u2013\u2014] (?=[^\W\d])|is (?=[*_`\"\u201c\d]))[ \t*_]*+", re.MULTILINE
)
_SPACED_SIGN = re.compile(r" is [*_`\"\u201c\d]| [-\u2013\u2014] [^\W\d]")
_BEFORE_HEAD = re.compile(rf"(?:[\s>*_#`~+\u2022-]|\d++[.)](?=[ \t])|{PICTURES})*+")
_BETWEEN_WORDS = re.compile(r"[\s*_`]+")
_NEXT_LINE = re.compile(r"\s*+(.*)")


class MarkedPart(NamedTuple):
    """A part of an answer that is marked as the action."""

    content: str
    start: int
    """Where the mark begins in the answer, its signs included."""
    end: int


def find_labelled(text: str, tool_name: str, *, is_spaced: bool = False) -> Iterator[MarkedPart]:
    """Give the texts of labels: each goes on to the end of a bracket or a fence that begins with it.

    Args:
        text: An answer.
        tool_name: What stands behind "Action:" where an "Action Input:" follows.
        is_spaced: Whether to look for labels without a colon instead: "Answer - left", "My move is **left**".
    """
    if is_spaced and not _SPACED_SIGN.search(text):
        return
    bracket_ends: dict[int, int] | None = None
    found, has_input = [], False
    for head in (_SPACED_HEAD if is_spaced else _HEAD).finditer(text):
        words = None if head[1].count(" ") > _MOST_SPACES else _words_of(head[1])
        if words is None:
            continue
        has_input = has_input or words[-1] == "input"
        line, start = head.start(), head.end()
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if not text[start:end].strip(" \t*_`"):
            start, end = _NEXT_LINE.match(text, end).span(1)  # type: ignore[union-attr]
        if text.startswith("```", start) and (fence := FENCE.match(text, start)):
            content, end = fence[1], fence.end()
        elif text[start : start + 1] in ("[", "{", "(") and end < len(text):
            bracket_ends = dict(outermost_brackets(text)) if bracket_ends is None else bracket_ends
            end = max(end, bracket_ends.get(start, end))
            content = text[start:end]
        else:
            content = _close_emphasis(text[line:start], text[start:end].strip())
        found.append(MarkedPart(content, line, end))
    for mark in found:
        if not (has_input and mark.content.strip() == tool_name):
            yield mark


def is_label(head: str) -> bool:
    """Say whether a text before a colon is a label, such as "**My final answer**"."""
    return _words_of(head) is not None


def _words_of(head: str) -> list[str] | None:
    """Return the words of a label; None if the text is none."""
    known, beside, joined = _vocabulary()
    last = head.rstrip(" \t*_`").rpartition(" ")[2].lstrip("*_`#>").casefold()
    if last not in known and last not in beside and last.isascii():
        return None  # nearly all lines with a colon
    start = _BEFORE_HEAD.match(head).end()  # type: ignore[union-attr]
    words = _BETWEEN_WORDS.split(head[start:].strip(" \t\n*_`").casefold())
    is_label = False
    for word in words:
        if word in known:
            is_label = True
        elif word not in beside:
            if word.isascii() or not (match := joined.fullmatch(word)):
                return None
            is_label = is_label or match[1] is not None
    return words if is_label else None


@functools.cache
def _vocabulary() -> tuple[frozenset[str], frozenset[str], re.Pattern[str]]:
    """Return the words of labels, those beside them, and how they are joined where a language puts no space between words."""
    words = answer_words()

    def unspaced(several: frozenset[str]) -> str:
        return "|".join(sorted((word for word in several if word >= "\u3000"), key=len, reverse=True))

    joined = re.compile(rf"(?:{unspaced(words.beside_labels)})*+({unspaced(words.labels)})?(?:{unspaced(words.beside_labels)})*+")
    return words.labels, words.beside_labels, joined


def _close_emphasis(before: str, text: str) -> str:
    """Return a label's text without the end of the emphasis that began before it: 42 of "**Answer: 42**"."""
    for sign in ("**", "__", "*", "_", "`"):
        if before.count(sign) % 2:
            text = text.removesuffix(sign)
        before = before.replace(sign, "")
    return text
