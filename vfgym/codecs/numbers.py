"""Numbers as models write them: with any dash for a minus sign, and with a unit."""

from __future__ import annotations

import re

from vfgym.data import answer_words

Number = int | float

DASHES = "\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"
"""What is written for a minus sign or a hyphen."""

_PLAIN = str.maketrans(dict.fromkeys(DASHES, "-") | dict.fromkeys("\u2018\u2019", "'"))
JOINED = re.compile(r"_|(?<=\w)-(?=[^\W\d])|(?<=\d)(?:->|\u2192)(?=[^\W\d])")
"""What joins words where others put a space, and the squares of a move. (A hyphen before a digit may be a sign.)"""

_NUMBER = re.compile(r"([+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?|[+-]?inf(?:inity)?|nan)(?:\s*+(\D.*))?", re.IGNORECASE)


def with_plain_signs(text: str) -> str:
    """Return a text with ASCII's own dashes and apostrophes.

    >>> with_plain_signs("\u22121 or \u20132, it\u2019s 3")
    "-1 or -2, it's 3"
    """
    return text if text.isascii() else text.translate(_PLAIN)


def number_of(token: str) -> Number:
    """Return the number that a token writes: digits with a sign, point and exponent, infinity or NaN."""
    token = with_plain_signs(token)
    try:
        return int(token)
    except ValueError:  # a fraction, or more digits than Python converts
        return float(token)


def read_quantity(text: str) -> Number | None:
    """Return the number that a text is, with a unit or without; None where it is anything else.

    Units are those of ``answer_words.json``. What changes a number is not a unit: percentages, fractions, ranges and decimal commas.

    >>> read_quantity("\u22121.5 Nm"), read_quantity("3 m/s"), read_quantity("50 %"), read_quantity("1/2"), read_quantity("0,5")
    (-1.5, 3, None, None, None)
    """
    match = _NUMBER.fullmatch(with_plain_signs(text).strip())
    if match is None or (match[2] is not None and match[2].strip() not in answer_words().units):
        return None
    return number_of(match[1])
