"""Whether a sentence that mentions an action says that it is the choice: "I go left", but not "Going left leads into a hole".

The rule of this module is that a mention counts where it is said to be the choice, and that there is no list of all that a sentence
may say instead. What is read as a choice is so little that nothing else reads alike; who is not understood is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from vfgym.codecs.numbers import without_array_call

_SENTENCE_BREAK = re.compile(r"[.!?;\u2026\u3002\uff1f][\"'`*_)\]}>$]*(?=\s|\Z)|\n|\u3002")
_LONGEST_SENTENCE = 300
"""Characters before and after a mention that are looked at."""

_MOST_MENTIONS = 32

_MARKUP = re.compile(r"\\[a-zA-Z]+|</?\w+>|<\|\w+\|>")
"""Formatting with letters in it, which are no words."""

_IN_DOUBT_BEFORE = re.compile(
    r"\b(?:if|unless|whether|when|until|could|would(?! like)|can(?!')|might|may|maybe|perhaps|suppose|imagine"
    r"|(?:should|shall|do|did) (?:i|we))\b",
    re.IGNORECASE,
)
_IN_DOUBT_AFTER = re.compile(r"\b(?:if|unless|or)\b", re.IGNORECASE)

_VERB = r"(?:choose|pick|take|play|select|go|move|turn|push|press|step|head|walk|steer|use|try|apply|say|answer|opt)"
_DOING = (
    r"(?:choosing|picking|taking|playing|selecting|going|moving|turning|pushing|pressing|stepping|heading|walking|using|trying|applying)"
)
_WILL = r"(?:will|shall|should|must|need to|have to|want to|would like to|choose to|decided? to)"
_I = (
    rf"\b(?:(?:i|we)(?:'ll|'m|'re|'d like to)?(?:\s+(?:{_WILL}|am|going to|now|then|therefore|thus|also|just|simply)){{0,3}}"
    r"|let'?s|let us|let me)"
)
_NOUN = r"(?:action|answer|move|choice|decision|option|direction|step)"
_THING = r"(?:number|cell|card|column|row|square|field|slot|position|key|button)"
_LINK = (
    rf"(?:\s+(?:to|for|with|towards?|in|an?|one|the|my|{_NOUN}|number|cell|card|column|square|key|button|cart|agent|piece|it|torque|force"
    r"|of|value)){0,4}"
)
_OPENED = r"[\s\"'`*_$(\[{<#\u201c\u2018]*\Z"
_CLOSED = r"[\"'`*_)\]}>$\u201d]*"
_REASON = r"(?:because|since|as)\b"

_TO_THE_END = re.compile(rf"[^\w?%]*(?:\Z|[\s,(]{_REASON})", re.IGNORECASE)
_WITH_A_REASON = re.compile(rf"[^\w?%]*[\s,(]{_REASON}", re.IGNORECASE)
_TO_A_PAUSE = re.compile(rf"{_CLOSED}\s*(?:\Z|[.!,:(\u2014]|-\s|{_REASON})", re.IGNORECASE)
_TO_A_PURPOSE = re.compile(
    rf"{_CLOSED}\s*(?:\Z|[.!,:(\u2014]|-\s|(?:because|since|as|so|to|and|by|then|with|towards?|in order)\b)", re.IGNORECASE
)

_CHOOSING = (
    # "I go", "I will now move to the", "Let's try", "I am going", "Turn", "so play": what follows may be a purpose
    (
        re.compile(
            rf"(?:{_I}\s+{_VERB}|(?:\A\W*|[,:;\u2014-]\s*|\b(?:so|then|now|thus|therefore|hence|please|just)\s+)[\"'`*_(]*{_VERB}"
            rf"|\b(?:am|are|'m|'re)\s+{_DOING}){_LINK}{_OPENED}",
            re.IGNORECASE,
        ),
        _TO_A_PURPOSE,
    ),
    # "My action is", "the best move is to go", "I" (jump)
    (
        re.compile(
            rf"(?:\b{_NOUN}\s+(?:is|will be)(?:\s+to)?(?:\s+{_VERB})?{_LINK}|\b(?:(?:i|we)(?:'ll|'d like to|\s+{_WILL})?|let'?s|let us))"
            rf"{_OPENED}",
            re.IGNORECASE,
        ),
        _TO_A_PAUSE,
    ),
    # "so", "torque:", "torque =", "option", "column", "a torque of", "going"
    (
        re.compile(
            rf"(?:\b(?:so|thus|therefore|hence)\b,?|[:\uff1a\u2192\u21d2]|[-=]>"
            rf"|\A\W*(?:{_DOING}{_LINK}|\w+\s*=|{_NOUN}|{_THING}|an?\s+\w+\s+of)){_OPENED}",
            re.IGNORECASE,
        ),
        _TO_THE_END,
    ),
    # What is named first is named for a reason.
    (re.compile(r"\A\W*\Z"), _WITH_A_REASON),
)
"""What stands before a choice, and what may follow it then."""

_IS_IT = re.compile(rf"{_CLOSED}\s+(?:it is|is (?:the )?best|is my {_NOUN})\W*\Z", re.IGNORECASE)
_EMPHASIS_BEFORE = re.compile(r"(?:[*_`\"'\[<\u201c\u2018\u00ab]|\\(?:boxed|f?box|text\w*|math\w*|emph)\{)\Z")
_EMPHASIS_AFTER = re.compile(r"[.!]?[*_`\"'\]>}\u201d\u2019\u00bb]")
_SIGN_WORD = re.compile(r"(?<![^\W_])(?:minus|negative|plus|positive)\s+\Z", re.IGNORECASE)
_KIND = re.compile(rf"\A{_CLOSED}\s+(?:{_NOUN}|button|key|card|column|cell|square)\b", re.IGNORECASE)
_UNIT = re.compile(rf"\A\s?(?!(?:{_REASON}|so|to|and|by|is|it|then|with)\b)[^\W\d_][\w\u00b7\u22c5/^]{{0,6}}(?=\W|\Z)")


def says_nothing(text: str) -> bool:
    """Say whether there are no words in a text, only decoration and formatting.

    >>> says_nothing(" **?** </s>"), says_nothing("a"), says_nothing("1")
    (True, False, True)
    """
    return not any(character.isalpha() for character in _MARKUP.sub("", text))


def is_chosen(text: str, places: Sequence[tuple[int, int]], is_specific: bool = False) -> bool:
    """Say whether what a text mentions is said to be the choice at one of the places where it is mentioned.

    It is where the text ends with it alone, where it is emphasised, and where the sentence says so: "I go left", "my action is left",
    "so left". It is not in a question or a condition.

    >>> [is_chosen(text, [(text.index("up"), text.index("up") + 2)]) for text in ("I move up to win.", "I give up.", "Should I go up?")]
    [True, False, False]

    Args:
        text: A text with plain signs.
        places: Where each mention begins and ends, in order; of very many only the last ones are looked at.
        is_specific: Whether it can be nothing else than an action, so that a sentence which is in no doubt about it need not say more.
    """
    return any(_is_chosen_at(text, start, end, is_specific) for start, end in places[-_MOST_MENTIONS:])


def _is_chosen_at(text: str, start: int, end: int, is_specific: bool) -> bool:
    context = text[max(0, start - _LONGEST_SENTENCE) : start]
    before = _SENTENCE_BREAK.split(context)[-1]
    sentence_end = _SENTENCE_BREAK.search(text, end, end + _LONGEST_SENTENCE)
    after = text[end : sentence_end.start() if sentence_end else end + _LONGEST_SENTENCE]
    if is_specific or not says_nothing(context):
        is_question = sentence_end is not None and sentence_end[0][0] in "?\uff1f"
        if is_question or _IN_DOUBT_BEFORE.search(before) or _IN_DOUBT_AFTER.search(after):
            return False
    if is_specific or (_EMPHASIS_BEFORE.search(before) and _EMPHASIS_AFTER.match(after)):
        return True
    before = _SIGN_WORD.sub("", without_array_call(before))
    endings = (after, (_UNIT if text[end - 1].isdigit() else _KIND).sub("", after, count=1))
    rest = "" if sentence_end is None else text[sentence_end.end() : sentence_end.end() + _LONGEST_SENTENCE]
    is_last_word = says_nothing(before) and any(map(says_nothing, endings)) and says_nothing(rest)
    if is_last_word or _IS_IT.match(after):
        return True
    return any(cue.search(before) and any(map(tail.match, endings)) for cue, tail in _CHOOSING)
