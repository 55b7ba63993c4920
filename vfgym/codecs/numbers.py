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

_CHUNK = re.compile(
    r"[^\s\[\](){}<>,;:=|\"'`*~!?#$\\\u201c\u201d\u00ab\u00bb\u3001\u3002\u3008-\u3011\u3014\u3015"
    r"\uff01\uff08\uff09\uff0c\uff1a-\uff1c\uff1e\uff1f\uff3b\uff3d\uff5b\uff5d]+"
)
_SIGNED = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_NAMED_NUMBER = re.compile(r"[+-]?inf(?:inity)?|nan", re.IGNORECASE)
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)", re.IGNORECASE)
_CALCULATION_IN_WORD = re.compile(r"[-+/.\u2014\u2015]\d")
"""Makes it unclear whether digits in a word are a part of its name: "torque-0.5", "pi/2"."""

_IN_UNITS = "/\u00b7\u22c5"
_SCALE = r"[kKMGT]|pi|\u03c0|hundred|thousand|million|billion|dozen|per[ ]?cent|minus|plus|times|over|divided|squared"
_NO_UNIT = re.compile(rf"[eExX].*|[bBoO]|per|{_SCALE}")
"""What stands after a number like a unit and changes it: half an exponent, another base, thousands, a calculation."""

_FORMATTING = r"boxed|fbox|text\w*|math\w*|left|displaystyle|bf|emph"
SIGN_WORD = re.compile(r"(?<![^\W_])(minus|negative|plus|positive)\s+\Z", re.IGNORECASE)
_UNCLEAR_BEFORE = re.compile(
    rf"""(?:
        (?<!-)[-\u2014\u2015]=?(?:\\(?:{_FORMATTING})\b|&\w+;|</?\w*>|[\s\u200b\u2060\ufeff(\[{{*_~$\\"'`])*
                                                                       # a dash that may be a sign, a bullet or a pause
      | (?:(?<![^\W_])(?i:minus|negative)|-)[\s:;=,]*(?:\\(?:{_FORMATTING})\b|[\s:;=,(\[{{*_~$\\"'`])+  # a sign before something else
      | \w\(                                                           # a function's argument
      | \\(?!(?:{_FORMATTING})\b)[a-zA-Z]+[\s({{\[]*                   # a function or a sign of TeX
      | (?:\w[ \t]*[*/^+\u00d7\u00f7\u00b7]|\u221a[ (]*)\s*           # a calculation
    )\Z""",
    re.VERBOSE,
)
_UNCLEAR_AFTER = re.compile(
    rf"""[ \t]*(?:
        [^\S\n]*[\\}})$]*(?:[%\u2030^\u00d7\u00f7\u00b7/]|(?:{_SCALE}|times|cdot|div)\b)
      | \*\w | [ \t]\*[ \t]+\w | \+[ \t]*\w | [eE][+-]?\d
    )""",
    re.VERBOSE,
)
_ARRAY_CALL = re.compile(
    r"(?:\b(?:[A-Za-z_]\w*\.)*"
    r"(?:act|action|step|move|play|array|asarray|tensor|float(?:16|32|64)?)\((?=\s*[\[(]*\s*\Z)[\s\[(]*)+\Z"
)
"""What a number may be an argument of, since it gives back the same number."""

_CHANGED_BEFORE = re.compile(
    r"(?:(?<!-)-[^\S \t]*\$*\Z|[(\[]\s*-\s*[)\]]\s*\Z|[=:(]\s*-\s*\Z|(?<![^\W_])(?:minus|negative|neg|abs|sqrt|times)[\s:=,(*$]*\Z"
    r"|[\w)][*/^+\u00d7\u00f7\u00b7]\s*\Z|[\w)][ \t]+[*/^+\u00d7\u00f7\u00b7][ \t]+\Z)",
    re.IGNORECASE,
)
_CHANGED_AFTER = re.compile(
    r"\)*[ \t]*(?:%|[/^\u00d7\u00f7\u00b7][ \t]*[-+\w(]|\*[-+]?[\w(]|[ \t]\*[ \t]+[-+\w(]"
    r"|[+-][ \t]*[\d.(\[]|(?:times|over|divided|percent|squared)\b)"
)
_NEGATION = re.compile(
    r"""(?:
        (?:(?<![^\W_])(?:not|never|cannot|avoid|without|neither|nor|instead\ of|rather\ than|(?:any|every)thing\ but|refuse(?:\ to)?
            |(?:do|does|did|wo|ca|should|would|could)nt
            |unable(?:\ to)?|declin(?:e|ing)(?:\ to)?)
          |n't)
        (?:[ \t]+[\w'-]+(?:\.\w+)*){0,3}(?:[ \t]*\([^()\n]*\))?[ \t]*:?
      | (?<![^\W_])no[ \t]
    )[ \t"'`*(\[{<$\\]*\Z""",
    re.IGNORECASE | re.VERBOSE,
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


def without_array_call(before: str) -> str:
    """Return what stands before a number, without the calls at its end that give back the same number: "env.step(np.array(["."""
    return _ARRAY_CALL.sub("", before)


def is_bare(text: str, place: int) -> bool:
    """Say whether a number that begins at a place is not part of something that changes it: of "- 1", "minus 1", "2 * 1"."""
    before = without_array_call(text[max(0, place - _LONGEST_CONTEXT) : place])
    return not (_UNCLEAR_BEFORE.search(before) or SIGN_WORD.search(before))


def is_changed(text: str, start: int, end: int) -> bool:
    """Say whether data in brackets is a part of something that changes it: of "-[1]", "2 * [1]" or "[1] / 2".

    A dash with white space between it and the bracket is a bullet or a pause.
    """
    before = with_plain_signs(text[max(0, start - _LONGEST_CONTEXT) : start])
    # The bracket may itself be that of a call.
    is_changed_before = any(_CHANGED_BEFORE.search(without_array_call(each)) for each in (before, f"{before}("))
    after = with_plain_signs(text[end : end + _LONGEST_CONTEXT])
    return is_changed_before or _CHANGED_AFTER.match(after) is not None


def numbers_in(text: str) -> dict[Number, list[tuple[int, int]]]:
    """Return the numbers that a text mentions, in order, with the places where each begins and ends.

    Digits inside a word ("leg2") and ordinals ("the 2nd") are not numbers.

    >>> numbers_in("At leg2 I apply \u22121.5Nm, yes: minus 1.5 Nm.")
    {-1.5: [(16, 22), (35, 38)]}
    >>> numbers_in("2-3")
    Traceback (most recent call last):
    ValueError: It is unclear which number '2-3' is

    Raises:
        ValueError: If it is unclear which number is written, or whether it is meant.
    """
    text = with_plain_signs(text)
    places: dict[Number, list[tuple[int, int]]] = {}
    for match in _CHUNK.finditer(text):
        chunk = match[0].strip("_").rstrip(".\u2026")
        number = _read(chunk)
        if number is None:
            continue
        start = match.start() + match[0].index(chunk)
        number = _in_context(text, start, match.end(), number, chunk)
        earlier = places.setdefault(number, [])
        if earlier and not any(character.isalpha() for character in text[earlier[-1][1] : start]):
            raise ValueError(f"It is unclear why {chunk!r} stands there twice")
        earlier.append((start, start + len(chunk)))
    return places


def _read(chunk: str) -> Number | None:
    """Return the number of a chunk that is one, with a unit or without; ``None`` for a word."""
    if _NAMED_NUMBER.fullmatch(chunk):
        return float(chunk)
    if not any(character.isdigit() for character in chunk) or _ORDINAL.fullmatch(chunk):
        return None
    if chunk[0].isalpha() and not _CALCULATION_IN_WORD.search(chunk):
        if all(character.lower() != character.upper() for character in chunk if character.isalpha()):
            return None
        raise _unclear(chunk)  # scripts without cases put no spaces between words and numbers
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
    sign = SIGN_WORD.search(before)
    if sign is not None:
        if chunk[0] in "+-":
            raise _unclear(before + chunk)
        before = before[: sign.start()]
        if sign[1].casefold() in ("minus", "negative"):
            number = -number
    before = without_array_call(before)
    if _UNCLEAR_BEFORE.search(before) or _UNCLEAR_AFTER.match(text, end, end + _LONGEST_CONTEXT):
        raise _unclear(text[max(0, start - 10) : end + 10])
    if _NEGATION.search(before):
        raise ValueError(f"It is unclear whether {chunk!r} is meant")
    return number


def _unclear(written: str) -> ValueError:
    return ValueError(f"It is unclear which number {written[-30:].strip()!r} is")
