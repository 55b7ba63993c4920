"""The English in which models say what they do: its words, and the forms of sentences that they make.

`choices` searches in what stands before a mention of an action in its sentence, up to the mention, and matches what stands after it.
"""

import re
from functools import partial
from typing import NamedTuple

_compiled = partial(re.compile, flags=re.IGNORECASE)

# Who does what: "I will now go".
_VERB = r"(?:choose|pick|pickup|take|play|select|go|move|turn|push|press|step|head|walk|steer|accelerate|fire|use|try|apply|say|answer|opt)"
_DOING = r"(?:(?:choos|pick|tak|play|select|go|mov|turn|push|press|stepp|head|walk|us|try|apply)ing)"
_PLACE = r"(?:place|put|drop|block|mark|claim|fill|occupy|insert)"
_PLACING = r"(?:(?:plac|putt|dropp|block|mark|claim|fill|occupy|insert)ing)"
_WILL = r"(?:will|shall|should|must|need to|have to|want to|would like to|would rather|would|choose to|decided? to)"
_I = (
    r"\b(?:(?:i|we)(?:'ll|'d(?: like to| rather| better)?|(?:'m|'re| am| are)(?: now)? going to)?"
    rf"(?:\s+(?:{_WILL}|now|then|therefore|thus|also|just|simply)){{0,3}}|let'?s|let us)"
)
_AM = r"\b(?:am|are|'m|'re)\s+"
_ME = rf"(?:{_I}|\blet me)"
_SO = r"\b(?:so|thus|therefore|hence)\b"
_ORDERED = rf"(?:\A\W*|[,:;\u2014-]\s*|{_SO}\s+|\b(?:then|now|please|just)\s+)"
_OPENING = rf"(?:\A\W*(?:(?:ok(?:ay)?|sure|alright|first|next|then|now|please|just|finally)\b\W*)+|{_SO},?\s+)"  # not "The rule says, "

# What it is done to. (A quantity is applied, and not seen as an angle or a position is.)
_NOUN = r"(?:action|answer|move|choice|decision|option|direction|step|\u52a8\u4f5c|\u7b54\u6848)"
_THING = r"(?:number|cell|card|column|row|square|field|slot|position|key|button)"
_QUANTITY = r"(?:torque|force|thrust|throttle|steering|gas|brake|power|tau|u)"
_LINK = rf"(?:\s+(?:to|for|with|towards?|in|an?|one|the|my|{_NOUN}|{_THING}|cart|agent|piece|it|torque|force|of|value)){{0,4}}"
_PLACE_LINK = rf"(?:\s+(?:at|in|into|on|onto|to|for|an?|the|my|x|o|mark|token|dis[ck]|piece|stone|symbol|spot|{_NOUN}|{_THING})){{0,6}}"
_THOUGHT = r"look|moment|break|guess|second|minute|try|question|point|board|map|state|grid|position|situation|rules?|options?|problem|table"
_OBJECT = rf"(?:\s+(?:with |on )?(?:it|me|this|that|them|\d+|(?:the|an?|my|this|that) (?!(?:\w+ )?(?:{_THOUGHT})\b)\w+(?: \w+)?))"

# What stands directly before and after the mention.
_OPENED = r"(?:[\s\"'`*_$(\[{<#\u201c\u2018]|\\(?:f?box(?:ed)?|text\w*|math\w*|emph)\{)*\Z"
_CLOSED = r"[\"'`*_)\]}>$\u201d]*"
_REASON = r"(?:because|since|as)\b"
_PAUSE = r"(?:\Z|[.!,:(\u2014]|-\s)"
_TO_A_PAUSE = rf"{_CLOSED}\s*(?:{_PAUSE}|{_REASON})"
_TO_A_PURPOSE = (
    r"(?:\s+(?:now|here|again|next|first|immediately|please|once more|this time|for now|from (?:here|there)"
    r"|(?:into|onto) (?:the|an?) (?:\w+ ){0,2}(?:cell|tile|square|field|space|room|corridor|corner|goal|spot)))*"
    rf"\s*(?:{_PAUSE}|{_REASON}|(?:so|to|and|by|then|with|towards?|in order)\b)"
)
_TO_THE_END = rf"[^\w?%]*(?:\Z|[\s,(]{_REASON})"

# What a name may be that one does ("I jump", but not "I left"), or begin with ("turn left" is "left" after "turn").
_NO_VERB = r"(?:left|right|up|down|forwards?|back|backwards?|north|south|east|west|straight|yes|no|none|noop|nothing|done)"
_A_VERB = _compiled(rf"(?!{_NO_VERB}\Z)[^\W\d]")
OWN_VERB = _compiled(rf"{_VERB}[\s_]+")
_A_PHRASE = _compiled(rf"(?:{_VERB}|do|don't)[\s_]")  # "pick up", "do nothing"


class Form(NamedTuple):
    """A form of sentences that say that what they mention is the choice, with examples that have the mention in brackets."""

    examples: tuple[str, ...]
    before: re.Pattern[str]
    after: re.Pattern[str]
    mention: re.Pattern[str] = re.compile("")  # what the choice may be


FORMS = (
    Form(
        ("I go [left].", "I'll now move to the [left] to win", "Let me try [left]", "It is ice, so turn [left] now", "I am going [left]"),
        _compiled(rf"(?:{_ME}\s+{_VERB}|{_ORDERED}[\"'`*_(]*{_VERB}|{_AM}{_DOING}){_LINK}{_OPENED}"),
        _compiled(_CLOSED + _TO_A_PURPOSE),
    ),
    Form(
        ("I place my X at [4]", "Block [4] and win.", "I'm dropping into column [4]"),
        _compiled(rf"(?:(?:{_ME}\s+|\A\W*|\b(?:so|then|now)\s+)(?:{_PLACE}|{_VERB})|(?:\A\W*|{_AM}){_PLACING}){_PLACE_LINK}{_OPENED}"),
        _compiled(_CLOSED + _TO_A_PURPOSE),
        _compiled(r".*\d\Z"),
    ),
    Form(
        ("I [jump].", "I'd rather [jump] to win", "Let's [drop] the key again"),
        _compiled(_I + _OPENED),
        _compiled(rf"{_CLOSED}{_OBJECT}?{_TO_A_PURPOSE}"),
        _A_VERB,
    ),
    Form(("It is a key. [Drop] the ball first",), _compiled(r"\A\W*\Z"), _compiled(_CLOSED + _OBJECT + _TO_A_PURPOSE), _A_VERB),
    Form(
        (
            "Let me [do nothing].",
            "Ok, [do nothing] now",
            "First, [do nothing].",
            "Next: [do nothing]",
            "Please [don't accelerate]",
            "First, [don't accelerate].",
            "Let me [pick up] the key",
            "Then [pick up] the ball.",
            "Next, [pick up] the key to open the door",
            "The key is here, so [pick up] the key",
        ),
        _compiled(rf"(?:{_ME}|{_OPENING}){_OPENED}"),
        _compiled(rf"{_CLOSED}{_OBJECT}?{_TO_A_PURPOSE}"),
        _A_PHRASE,
    ),
    Form(
        (
            "My action is [left].",
            "The best move is to go [left] because it is free",
            "The safest is **[left]**.",
            r"We get $\boxed{[left]}$.",
        ),
        _compiled(rf"(?:\b(?:{_NOUN}|best|safest)\s+(?:is|will be)(?:\s*:)?(?:\s+to)?(?:\s+{_VERB})?{_LINK}|\\boxed){_OPENED}"),
        _compiled(_TO_A_PAUSE),
    ),
    Form(
        ("[Left] it is.", "There, [left] is the best move", "The **[left]** is what I choose"),
        _compiled(""),
        _compiled(rf"{_CLOSED}\s+(?:it is|is (?:(?:the )?(?:best|safest|optimal)(?: {_NOUN})?|my {_NOUN}|what (?:i|we) {_VERB}))\W*\Z"),
    ),
    Form(
        ("It is ice, so [left]", "Ice -> [left] because it is free"),
        _compiled(rf"(?:{_SO},?|[\u2192\u21d2]|[-=]>){_OPENED}"),
        _compiled(_TO_THE_END),
    ),
    Form(
        ("My next move: [left]", "final: [left]", "I choose as you say: [left]"),
        _compiled(
            rf"(?:(?:\b|_)(?:{_NOUN}|{_QUANTITY}|{_SO}|final|best|conclusion|result|output|try)|(?:{_ME}\s+|\A\W*){_VERB}(?:\s+\w+){{0,3}})"
            rf"[\s*_\"']*[:\uff1a]{_OPENED}"
        ),
        _compiled(_TO_THE_END),
    ),
    Form(
        ("Going [left]", "Torque = [4]", "Option [4]", "A torque of [4]"),
        _compiled(rf"\A\W*(?:{_DOING}{_LINK}|(?:{_NOUN}|{_QUANTITY})\s*=|{_NOUN}|{_THING}|an?\s+\w+\s+of){_OPENED}"),
        _compiled(_TO_THE_END),
    ),
    Form(("I see ice. [Left] because it is free",), _compiled(r"\A\W*\Z"), _compiled(rf"[^\w?%]*[\s,(]{_REASON}")),
)

# What may follow a name ("the left cell") or a number ("1.5 Nm") without a change to what is said of it.
NOUN_AFTER = _compiled(rf"\A{_CLOSED}\s+(?:{_NOUN}|{_THING})\b")
UNIT_AFTER = _compiled(rf"\A(?:\]\s?N\W?m\b|\s?(?!(?:{_REASON}|so|to|and|by|is|it|then|with)\b)[^\W\d_][\w\u00b7\u22c5/^]{{0,6}})(?=\W|\Z)")

# Doubt: "Maybe I go left", "I go left or stay", "I'd go left, but it is blocked", "My last move was to go left".
CONDITION_BEFORE = _compiled(
    r"\b(?:if|unless|whether|when|until|could|(?<!\bi )(?<!\bwe )would(?! like)|can(?!')|might|may|maybe|perhaps|suppose|imagine|doubt"
    r"|earlier i|they say|(?:should|shall|do|did) (?:i|we))\b"
)
CONDITION_AFTER = _compiled(r"(?:(?!\b(?:because|since)\b).)*?\b(?:if|unless|or)\b")
WISH = _compiled(r"(?:\bwould|'d)\b")
OBJECTION = _compiled(r"\b(?:but|though|although|however|except)\b")
ANOTHER_ACTION = _compiled(
    rf"\b(?:last|previous|earlier|worst|wrong|losing|bad|opposite|blocked|current|illegal|invalid)\s+(?:\w+\s+)?(?:{_NOUN}|{_THING})\W*"
    rf"(?:(?:is|was|will be)\b)?\W*(?:to\b)?(?:\s*{_VERB}\b)?{_LINK}{_OPENED}"
)

# A remark on what an answer begins with: "left. It is free", but not "Right. Let me think", "left - blocked" or the list item "1. Think".
PAUSE_BEFORE_REMARK = re.compile(
    rf"{_CLOSED}(?:[.!;](?=\s)|[ \t]*\n|\s+-\s(?![b-hj-z]\b)|\s*\u2014\s*(?=[^\W\d])|\s*\((?=[^()]*\)[ \t]*(?:[.!,;:\n\u2014-]|\Z)))"
)
LIST_ITEM = _compiled(r"[.)][ \t]+(?!(?:it|this|that|because|since|as)\b)")
NO_REASON = _compiled(
    r"\A\W*(?:(?:first(?:ly)?|[hu]+m+|ok(?:ay)?|well|so|now|before|then|next|looking|thinking|considering|given|here|your?"
    r"|the (?:task|question|rules?|problem|puzzle|situation|first)|that(?:'s| is| was)? (?:makes sense|right|true|correct)"
    r"|if|unless|when|whether|maybe|perhaps|what|why|where|who|how|which|but|however|though|although|no|nope|not|never|or|and)\b"
    rf"|(?:i|we)\b(?! (?:picked|selected|chose|{_VERB}|think (?:it|this|that)|believe)\b)"
    r"|(?:(?:it|that|this|there)\b(?:'s|\s+(?:is|was|looks|seems))?\s+)?(?:(?:already|too|also|an?|the)\s+)*"
    r"(?:wrong|blocked|taken|occupied|bad|illegal|invalid|impossible|forbidden|dangerous|unsafe|risky|falls?|falling|lead(?:s|ing)? into"
    r"|would|might|could)\b)"
    r"|\?|\b(?:let me|let'?s|let us|think about|cannot|can't|won't|refuse|unable|wait|instead|actually|second thoughts?|mistake)\b"
)

# What ends a sentence, and formatting with letters in it, which are not words.
SENTENCE_BREAK = re.compile(r"([.!?;\u2026\u3002\uff1f][\"'`*_)\]}>$]*(?=\s|\Z)|\n|\u3002)")
MARKUP = re.compile(r"\\[a-zA-Z]+|</?\w+>|<\|\w+\|>")
