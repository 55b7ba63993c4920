"""What stands beside an action in a marked text: brackets around it, a label before it, a remark behind it."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

from vfgym.codecs.sentences import words_in
from vfgym.data import answer_words

_MOST_HEADS = 8
"""Beginnings of a marked text that are tried as the action."""

_IN_PARENTHESES = re.compile(r"(.*\S)\s*\(([^()]*)\)", re.DOTALL)
_LABELLED = re.compile(r"([^\W\d][\w ]{0,40}?)[ ]?[:=\uff1a]\s*(\S.*)", re.DOTALL)
_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">", "\u300c": "\u300d", "\u300e": "\u300f", "\u3010": "\u3011", "\uff08": "\uff09"}
_DIGIT = re.compile(r"\d")
_BRACKETS = re.compile(f"[{re.escape(''.join([*_PAIRS, *_PAIRS.values()]))}]")


class Remarked(NamedTuple):
    """A marked text as an action and a remark."""

    action: str
    remark: str
    is_reason: bool
    """Whether it says why, so that it may say what is not so."""
    is_in_parentheses: bool = False


def without_brackets(text: str) -> str | None:
    """Return what stands in the brackets that a text begins and ends with; None where others stand in them, or there are none."""
    inner = text[1:-1].strip()
    return inner if inner and _PAIRS.get(text[:1]) == text[-1:] and not _BRACKETS.search(inner) else None


def without_label(text: str) -> tuple[str, str] | None:
    """Return the label that a text begins with, in lower case, and the rest: ``position`` and 4 of "position: 4"."""
    labelled = _LABELLED.fullmatch(text)
    return (labelled[1].casefold(), labelled[2]) if labelled else None


def in_parentheses(text: str) -> Remarked | None:
    """Return a text as an action and the remark in parentheses at its end."""
    found = _IN_PARENTHESES.fullmatch(text)
    return Remarked(found[1], found[2], False, is_in_parentheses=True) if found else None


def remarked(text: str) -> Iterator[Remarked]:
    """Give the ways in which a text may be an action with a remark behind it, the shortest action first.

    >>> [(each.action, each.remark, each.is_reason) for each in remarked("down, it is free")]
    [('down', 'it is free', False)]
    >>> next(remarked("2 because it is free"))
    Remarked(action='2', remark='because it is free', is_reason=True, is_in_parentheses=False)
    """
    signs = _signs()
    for number, sign in enumerate(signs.finditer(text)):
        if number == _MOST_HEADS:
            return
        remark = text[sign.start("reason") if sign["reason"] else sign.end() :].strip()
        if remark and sign.start():
            first = next(iter(words_in(remark[:20])), "")
            listed = answer_words()
            is_reason = sign["reason"] is not None or remark.casefold().startswith(listed.reasons)
            is_reason = is_reason or (first in listed.purposes and not _DIGIT.search(remark))  # "for 3 steps" is no reason
            yield Remarked(text[: sign.start()], remark, is_reason)


@functools.cache
def _signs() -> re.Pattern[str]:
    """Return what finds where remarks begin: a comma, dash, colon or full stop, or a word such as "because"."""
    reasons = "|".join(re.escape(word) for word in answer_words().reasons)
    signs = r"[,;.!:](?=\s)|[\uff0c\u3002\uff1b\uff1a\u3001\u2014\n]|[ ](?:[-\u2013]+|=)[ ]|(?<=\d)="
    return re.compile(rf"{signs}|(?<=\S)[ ](?P<reason>(?:{reasons})(?!\w))", re.IGNORECASE)
