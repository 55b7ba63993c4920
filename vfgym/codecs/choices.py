"""Whether a sentence that mentions an action says that it is the choice: "I go left", but not "Going left leads into a hole".

A mention counts where one of a few forms says that it is the choice (`_CHOOSING`, emphasis, an answer that begins with its action), and
not where a word beside it takes that back: a question, a condition, the last action or the worst. Both are lists of English, so neither is
complete. Where they do not reach, an answer is rather asked for again than guessed at; a name of several words, which can be nothing else
than an action, needs no form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from vfgym.codecs.numbers import Number, numbers_in, with_plain_signs, without_array_call
from vfgym.codecs.problems import STATE_IT, ActionNotFound, several

_SENTENCE_BREAK = re.compile(r"[.!?;\u2026\u3002\uff1f][\"'`*_)\]}>$]*(?=\s|\Z)|\n|\u3002")
_LONGEST_SENTENCE = 300
"""Characters before and after a mention that are looked at."""

_MOST_MENTIONS = 32

_MARKUP = re.compile(r"\\[a-zA-Z]+|</?\w+>|<\|\w+\|>")
"""Formatting with letters in it, which are no words."""

_IN_DOUBT_BEFORE = re.compile(
    r"\b(?:if|unless|whether|when|until|could|(?<!\bi )(?<!\bwe )would(?! like)|can(?!')|might|may|maybe|perhaps|suppose|imagine|doubt"
    r"|(?:should|shall|do|did) (?:i|we))\b",
    re.IGNORECASE,
)
_IN_DOUBT_AFTER = re.compile(r"\b(?:if|unless|or)\b", re.IGNORECASE)
_WISH = re.compile(r"(?:\bwould|'d)\b", re.IGNORECASE)
"""A choice ("I'd go left"), unless an objection follows."""

_OBJECTION = re.compile(r"\b(?:but|though|although|however|except)\b", re.IGNORECASE)

_VERB = r"(?:choose|pick|take|play|select|go|move|turn|push|press|step|head|walk|steer|use|try|apply|say|answer|opt)"
_DOING = (
    r"(?:choosing|picking|taking|playing|selecting|going|moving|turning|pushing|pressing|stepping|heading|walking|using|trying|applying)"
)
_WILL = r"(?:will|shall|should|must|need to|have to|want to|would like to|would rather|would|choose to|decided? to)"
_WISHED = r"'d(?: like to| rather| better)?"
_I = (
    rf"\b(?:(?:i|we)(?:'ll|'m|'re|{_WISHED})?(?:\s+(?:{_WILL}|am|going to|now|then|therefore|thus|also|just|simply)){{0,3}}"
    r"|let'?s|let us|let me)"
)
_NOUN = r"(?:action|answer|move|choice|decision|option|direction|step|\u52a8\u4f5c|\u7b54\u6848)"
_QUANTITY = r"(?:torque|force|thrust|throttle|steering|gas|brake|power|tau|u)"
"""What is applied, other than what is seen: an angle, a velocity, a position."""

_THING = r"(?:number|cell|card|column|row|square|field|slot|position|key|button)"
_LINK = rf"(?:\s+(?:to|for|with|towards?|in|an?|one|the|my|{_NOUN}|{_THING}|cart|agent|piece|it|torque|force|of|value)){{0,4}}"
_PLACE = r"(?:place|put|drop|block|mark|claim|fill|occupy|insert)"
_PLACING = r"(?:placing|putting|dropping|blocking|marking|claiming|filling|occupying|inserting)"
_PLACE_LINK = rf"(?:\s+(?:at|in|into|on|onto|to|for|an?|the|my|x|o|mark|token|dis[ck]|piece|stone|symbol|spot|{_NOUN}|{_THING})){{0,6}}"
_OPENED = r"[\s\"'`*_$(\[{<#\u201c\u2018]*\Z"
_CLOSED = r"[\"'`*_)\]}>$\u201d]*"
_REASON = r"(?:because|since|as)\b"
_PAUSE = r"(?:\Z|[.!,:(\u2014]|-\s)"
_PURPOSE = r"(?:because|since|as|so|to|and|by|then|with|towards?|in order)\b"
_ADVERBS = (
    r"(?:\s+(?:now|here|again|next|first|immediately|please|once more|this time|for now|from (?:here|there)"
    r"|(?:into|onto) (?:the|an?) (?:\w+ ){0,2}(?:cell|tile|square|field|space|room|corridor|corner|goal|spot)))*"
)
_OBJECT = (
    r"\s+(?:(?:with |on )?(?:it|me|this|that|them|\d+)"
    r"|(?:with |on )?(?:the|an?|my|this|that) (?!(?:\w+ )?(?:look|moment|break|guess|second|minute|try|question|point|board|map|state|grid"
    r"|position|situation|rules?|options?|problem|table)\b)\w+(?: \w+)?)"
)
"""What an action is done to, in a few words; not what one does to think."""

_TO_THE_END = re.compile(rf"[^\w?%]*(?:\Z|[\s,(]{_REASON})", re.IGNORECASE)
_WITH_A_REASON = re.compile(rf"[^\w?%]*[\s,(]{_REASON}", re.IGNORECASE)
_TO_A_PAUSE = re.compile(rf"{_CLOSED}\s*(?:{_PAUSE}|{_REASON})", re.IGNORECASE)
_TO_A_PURPOSE = re.compile(rf"{_CLOSED}{_ADVERBS}\s*(?:{_PAUSE}|{_PURPOSE})", re.IGNORECASE)
_WITH_AN_OBJECT = re.compile(rf"{_CLOSED}(?:{_OBJECT}){_ADVERBS}\s*(?:{_PAUSE}|{_PURPOSE})", re.IGNORECASE)
_DONE = re.compile(rf"{_CLOSED}(?:{_OBJECT})?{_ADVERBS}\s*(?:{_PAUSE}|{_REASON}|to\b)", re.IGNORECASE)

_ANY = re.compile("")
_A_VERB = re.compile(
    r"(?!(?:left|right|up|down|forwards?|back|backwards?|north|south|east|west|straight|yes|no|none|noop|nothing|done)\Z)[^\W\d]",
    re.IGNORECASE,
)
"""A name that may be what one does: I jump, but not I left."""

_A_NUMBER = re.compile(r".*\d\Z")

_CHOOSING = (
    # "I go", "I will now move to the", "Let's try", "I am going", "Turn", "so play": what follows may be a purpose
    (
        re.compile(
            rf"(?:{_I}\s+{_VERB}|(?:\A\W*|[,:;\u2014-]\s*|\b(?:so|then|now|thus|therefore|hence|please|just)\s+)[\"'`*_(]*{_VERB}"
            rf"|\b(?:am|are|'m|'re)\s+{_DOING}){_LINK}{_OPENED}",
            re.IGNORECASE,
        ),
        _ANY,
        _TO_A_PURPOSE,
    ),
    # "I place my X at", "Block", "Dropping into column"
    (
        re.compile(
            rf"(?:(?:{_I}\s+|\A\W*|\b(?:so|then|now)\s+)(?:{_PLACE}|{_VERB})|(?:\A\W*|\b(?:am|are|'m|'re)\s+){_PLACING})"
            rf"{_PLACE_LINK}{_OPENED}",
            re.IGNORECASE,
        ),
        _A_NUMBER,
        _TO_A_PURPOSE,
    ),
    # "My action is", "the best move is to go"
    (
        re.compile(
            rf"\b(?:{_NOUN}|best|safest)\s+(?:is|will be)(?:\s*:)?(?:\s+to)?(?:\s+{_VERB})?{_LINK}{_OPENED}",
            re.IGNORECASE,
        ),
        _ANY,
        _TO_A_PAUSE,
    ),
    # "I" (jump), "let's" (drop the key)
    (
        re.compile(
            rf"\b(?:(?:i|we)(?:'ll|{_WISHED}|\s+{_WILL}|\s+(?:am|are) going to|'m going to|'re going to)?"
            rf"|let'?s|let us){_OPENED}",
            re.IGNORECASE,
        ),
        _A_VERB,
        _DONE,
    ),
    # "so", "move:", "I choose:", "torque =", "option", "column", "a torque of", "going"
    (
        re.compile(
            rf"(?:\b(?:so|thus|therefore|hence)\b,?|[\u2192\u21d2]|[-=]>"
            rf"|(?:(?:\b|_)(?:{_NOUN}|{_QUANTITY}|final|best|so|thus|therefore|hence|conclusion|result|output|try)"
            rf"|(?:{_I}\s+|\A\W*){_VERB}(?:\s+\w+){{0,3}})[\s*_\"']*[:\uff1a]"
            rf"|\A\W*(?:{_DOING}{_LINK}|(?:{_NOUN}|{_QUANTITY})\s*=|{_NOUN}|{_THING}|an?\s+\w+\s+of)){_OPENED}",
            re.IGNORECASE,
        ),
        _ANY,
        _TO_THE_END,
    ),
    # What is named first is named for a reason.
    (re.compile(r"\A\W*\Z"), _ANY, _WITH_A_REASON),
)
"""What stands before a choice, what the choice may be, and what may follow it then."""

_NO_CHOICE = re.compile(
    rf"\b(?:last|previous|earlier|worst|wrong|bad|opposite|blocked|current|illegal|invalid)\s+(?:\w+\s+)?(?:{_NOUN}|{_THING})\W*"
    rf"(?:(?:is|was|will be)\b)?\W*(?:to\b)?(?:\s*{_VERB}\b)?{_LINK}{_OPENED}",
    re.IGNORECASE,
)
"""What names an action that is not the one to play now."""

_FIRST = re.compile(
    rf"{_CLOSED}(?:[.!;](?=\s)|[ \t]*\n|\s+-\s(?![b-hj-z]\b)|\s*\u2014\s*(?=[^\W\d])|\s*\((?=[^()]*\)[ \t]*(?:[.!,;:\n\u2014-]|\Z)))"
)
"""What stands between an answer and its explanation."""

_LISTED = re.compile(r"[.)][ \t]+(?!(?:it|this|that|because|since|as)\b)", re.IGNORECASE)
"""Makes a number the first one of a list."""

_NO_REASON = re.compile(
    rf"""\W*(?:
        (?:let|lets|first(?:ly)?|h+m+|u+m+|oka?y|ok|well|so|now|wait|actually|before|then|next|looking|thinking|considering|given
          |here|you|your|the\ (?:task|question|rules?|problem|puzzle|situation|first))\b
      | (?:if|unless|when|whether|maybe|perhaps|is|are|am|does|do|did|can|shall|should|what|why|where|who|how|which)\b
      | (?:but|however|though|although|no|nope|not|never|or|and)\b
      | that(?:'s|\ is|\ was)?\ (?:makes\ sense|right|true|correct)\b
      | (?:i|we)\b(?!\ (?:picked|(?:select|choose|chose)(?:ed)?|{_VERB}|think\ (?:it|this|that)|believe)\b)
      | (?:(?:it|that|this|there)\b(?:'s|\s+(?:is|was|looks|seems))?\s+)?(?:(?:already|too|also|an?|the)\s+)*
        (?:wrong|blocked|taken|occupied|bad|illegal|invalid|impossible|forbidden|dangerous|unsafe|risky|falls?|falling|lead(?:s|ing)?\ into
          |would|might|could)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_REFUSAL = re.compile(
    r"\?|\b(?:let me|let'?s|let us|think about|cannot|can't|won't|refuse|unable|wait|instead|actually|second thoughts?|mistake)\b",
    re.IGNORECASE,
)
"""What follows a word that is no answer: thinking, an objection, a question."""

_IS_IT = re.compile(
    rf"{_CLOSED}\s+(?:it is|is (?:the )?(?:best|safest|optimal)(?: {_NOUN})?|is my {_NOUN}|is what (?:i|we) (?:choose|pick|play|do))\W*\Z",
    re.IGNORECASE,
)
_EMPHASIS_BEFORE = re.compile(r"(?:[*_`\"'\[<\u201c\u2018\u00ab]|\\(?:boxed|f?box|text\w*|math\w*|emph)\{)\Z")
_EMPHASIS_AFTER = re.compile(
    rf"[.!]?[*_`\"'\]>}}\u201d\u2019\u00bb][\"'`*_)\]}}>$\u201d\u2019\u00bb]*(?:\s?(?:N\W?m|N|units?)\b)?"
    rf"\s*(?:{_PAUSE}|{_REASON}|(?:to|towards?)\b)",
    re.IGNORECASE,
)
_NO_EMPHASIS = re.compile(
    r"(?:(?<!final answer)[:=\uff1a]|\b(?:is|are|was|were|be|at|word|command|cell|said|says|say|called)"
    r"|\b(?:rul(?:e|es|ed|ing) out|exclud\w+|reject\w*|dismiss\w*|discard\w*|eliminat\w+|wrong|worst|last|previous|opposite|blocked|current"
    r"|you|they|he|she|opponent)\b.*)"
    rf"{_OPENED}",
    re.IGNORECASE | re.DOTALL,
)
"""What is emphasised for another reason than that it is the choice: a word is quoted, a number is seen, an action is ruled out."""

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

    It is where the text ends with it alone, or begins with it and then says why, where it is emphasised and nothing else is said of it, and
    where the sentence says so: "I go left", "my action is left", "so left". It is not in a question or a condition, nor as the last action
    or the worst.

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
    rest = "" if sentence_end is None else text[sentence_end.end() : sentence_end.end() + _LONGEST_SENTENCE]
    is_first = says_nothing(context)
    is_question = sentence_end is not None and sentence_end[0][0] in "?\uff1f"
    is_in_doubt = is_question or _IN_DOUBT_BEFORE.search(before) or _IN_DOUBT_AFTER.search(after) or _NO_CHOICE.search(before)
    if is_in_doubt and (is_specific or not is_first):
        return False
    if _WISH.search(before) and (_OBJECTION.search(after) or _OBJECTION.match(rest.lstrip())):
        return False
    if is_specific:
        return True
    mention = text[start:end]
    if is_first and not is_in_doubt and (_is_explained(text, start, end) or (_A_VERB.match(mention) and _WITH_AN_OBJECT.match(after))):
        return True
    if _EMPHASIS_BEFORE.search(before) and not _NO_EMPHASIS.search(before):
        closed = _EMPHASIS_AFTER.match(after)
        if closed and not _NO_REASON.match(after, closed.end()):
            return True
    before = _SIGN_WORD.sub("", without_array_call(before))
    endings = (after, (_UNIT if text[end - 1].isdigit() else _KIND).sub("", after, count=1))
    is_last_word = says_nothing(before) and any(map(says_nothing, endings)) and says_nothing(rest)
    if is_last_word or _IS_IT.match(after):
        return True
    return any(cue.search(before) and kind.match(mention) and any(map(tail.match, endings)) for cue, kind, tail in _CHOOSING)


def _is_explained(text: str, start: int, end: int) -> bool:
    """Say whether what a text begins with is followed by a remark or a reason, and not by thinking."""
    pause = _FIRST.match(text, end)
    if pause is None or (text[end - 1].isdigit() and _LISTED.match(text, end)):
        return False
    remark = text[pause.end() : pause.end() + _LONGEST_SENTENCE]
    return not says_nothing(remark) and not _NO_REASON.match(remark) and not _REFUSAL.search(remark)


def chosen_number(text: str, is_marked: bool) -> Number | None:
    """Return the only number in a text, or ``None`` if there is none.

    Args:
        text: A text.
        is_marked: Whether it stood in tags or after a label, so that the number need not be said to be the choice.

    Raises:
        ActionNotFound: If there are several, or it is unclear whether the number is the choice. The message is a sentence without its
            full stop.
    """
    try:
        numbers = numbers_in(text)
    except ValueError as error:
        raise ActionNotFound(str(error)) from None
    if len(numbers) > 1:
        raise several(len(numbers))
    for number, places in numbers.items():
        if not is_marked and not is_chosen(with_plain_signs(text), places):
            raise ActionNotFound(f"It is unclear whether {number} is your choice: {STATE_IT}")
        return number
    return None
