"""Numbers as people write them: with any dash for a minus sign, with a unit, in the middle of a sentence.

The rule of this module is that a number which may stand for another one than its digits say is refused, not guessed.
"""

from __future__ import annotations

import re

Number = int | float

DASHES = "\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"
"""What is written for a minus sign or a hyphen. (The long dash is one before a digit only.)"""

_PLAIN = str.maketrans(dict.fromkeys(DASHES, "-") | dict.fromkeys("\u2018\u2019", "'"))
_LONG_DASH = re.compile(r"(?<!\w)[\u2014\u2015](?=\.?\d)")

_CHUNK = re.compile(r"[^\s\[\](){}<>,;:=|\"'`*~!?#$\\\u201c\u201d]+")
_SIGNED = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_NAMED_NUMBER = re.compile(r"[+-]?inf(?:inity)?|nan", re.IGNORECASE)
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)", re.IGNORECASE)
_CALCULATION_IN_WORD = re.compile(r"[-+/.\u2014\u2015]\d")
"""Makes it unclear whether digits in a word are a part of its name: "torque-0.5", "pi/2"."""

_IN_UNITS = "/\u00b7\u22c5"
_SCALE = r"[kKMGT]|pi|\u03c0|hundred|thousand|million|billion|dozen|percent|minus|plus|times|over|divided|squared"
_NO_UNIT = re.compile(rf"[eExX].*|[bBoO]|{_SCALE}")
"""What stands after a number like a unit and changes it: half an exponent, another base, thousands, a calculation."""

_SIGN_WORD = re.compile(r"\b(minus|negative|plus|positive)[ \t]+$", re.IGNORECASE)
_UNCLEAR_BEFORE = re.compile(
    r"""(?:
        (?<!-)[-\u2014\u2015]=?[ \t(\[{*_$\\"'`]*                                # a dash that may be a sign, a bullet or a pause
      | \b(?i:minus|negative)[ \t]*[(\[{*_$\\"'`]+[ \t]*             # a sign before a bracket
      | \w\(                                                         # a function's argument
      | (?:\w[ \t]*[*/^+\u00d7\u00f7\u00b7]|\u221a[ (]*)[ \t]*       # a calculation
    )\Z""",
    re.VERBOSE,
)
_UNCLEAR_AFTER = re.compile(rf"[ \t]*(?:[%\u2030^\u00d7\u00f7\u00b7/]|\*\w|[ \t]\*[ \t]+\w|\+[ \t]*\w|(?:{_SCALE})\b)")
_NEGATION = re.compile(
    r"(?:\b(?:not|never|cannot|avoid|without|neither|nor|instead of|rather than)|n't)(?:[ \t]+[\w'-]+){0,3}[ \t\"'`*(\[{<$\\]*\Z",
    re.IGNORECASE,
)
_LONGEST_CONTEXT = 80
"""Characters before a number or a name that are looked at."""


def with_plain_signs(text: str) -> str:
    """Return a text with ASCII's own dashes and apostrophes.

    >>> with_plain_signs("\u22121 or \u20132, it\u2019s \u20143")
    "-1 or -2, it's -3"
    """
    return text if text.isascii() else _LONG_DASH.sub("-", text.translate(_PLAIN))


def number_of(token: str) -> Number:
    """Return the number that a token writes: digits with a sign, point and exponent, infinity or NaN."""
    token = with_plain_signs(token)
    try:
        return int(token)
    except ValueError:  # a fraction, or more digits than Python converts
        return float(token)


def is_negated(text: str, place: int) -> bool:
    """Say whether what stands at a place may be what is *not* meant: "don't go left".

    >>> is_negated("don't go left", 9), is_negated("It is not far. I go left", 20)
    (True, False)
    """
    return _NEGATION.search(text[max(0, place - _LONGEST_CONTEXT) : place]) is not None


def is_bare(text: str, place: int) -> bool:
    """Say whether a number that begins at a place is no part of something that changes it: of "- 1", "minus 1", "2 * 1"."""
    before = text[max(0, place - _LONGEST_CONTEXT) : place]
    return not (_UNCLEAR_BEFORE.search(before) or _SIGN_WORD.search(before))


def numbers_in(text: str) -> list[Number]:
    """Return the numbers that a text mentions, in order; one that is said again later is there once.

    Digits inside a word ("leg2") and ordinals ("the 2nd") are no numbers.

    >>> numbers_in("At leg2 I apply \u22121.5Nm, yes: minus 1.5 Nm.")
    [-1.5]
    >>> numbers_in("2-3")
    Traceback (most recent call last):
    ValueError: It is unclear which number '2-3' is

    Raises:
        ValueError: If it is unclear which number is written, or whether it is meant.
    """
    text = with_plain_signs(text)
    ends: dict[Number, int] = {}
    for match in _CHUNK.finditer(text):
        chunk = match[0].strip("_").rstrip(".\u2026")
        number = _read(chunk)
        if number is None:
            continue
        start = match.start() + match[0].index(chunk)
        number = _in_context(text, start, match.end(), number, chunk)
        if number in ends and not any(character.isalpha() for character in text[ends[number] : start]):
            raise ValueError(f"It is unclear why {chunk!r} stands there twice")
        ends[number] = match.end()
    return list(ends)


def _read(chunk: str) -> Number | None:
    """Return the number of a chunk that is one, with a unit or without; ``None`` for a word."""
    if _NAMED_NUMBER.fullmatch(chunk):
        return float(chunk)
    if not any(character.isdigit() for character in chunk) or _ORDINAL.fullmatch(chunk):
        return None
    if chunk[0].isalpha() and not _CALCULATION_IN_WORD.search(chunk):
        return None
    signed = _SIGNED.match(chunk)
    if signed is not None:
        unit = chunk[signed.end() :]
        is_unit = unit[:1].isalpha() and all(character.isalpha() or character in _IN_UNITS for character in unit)
        if not unit or (is_unit and not _NO_UNIT.fullmatch(unit)):
            return number_of(signed[0])
    raise _unclear(chunk)


def _in_context(text: str, start: int, end: int, number: Number, chunk: str) -> Number:
    """Return a number with the sign that stands before it as a word."""
    before = text[max(0, start - _LONGEST_CONTEXT) : start]
    sign = _SIGN_WORD.search(before)
    if sign is not None:
        if chunk[0] in "+-":
            raise _unclear(before + chunk)
        before = before[: sign.start()]
        if sign[1].casefold() in ("minus", "negative"):
            number = -number
    if _UNCLEAR_BEFORE.search(before) or _UNCLEAR_AFTER.match(text, end):
        raise _unclear(text[max(0, start - 10) : end + 10])
    if _NEGATION.search(before):
        raise ValueError(f"It is unclear whether {chunk!r} is meant")
    return number


def _unclear(written: str) -> ValueError:
    return ValueError(f"It is unclear which number {written[-30:].strip()!r} is")
