"""Where in a message the answer stands: after the reasoning, in ``<action>`` tags, after a label, in a code fence."""

from __future__ import annotations

import re

_REASONING_TAG = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
# The last opening tag, up to its closing tag or the end. The first part is greedy, so that it is the last one.
_TAGGED = re.compile(r".*<action>(.*?)(?:</action>|\Z)", re.DOTALL | re.IGNORECASE)
_LABEL = re.compile(
    r"^[ \t>*_#`-]*(?:(?:so|my|the|final|next|best|chosen) )*(?:action|answer|move)(?: is)?[ \t*_`]*[:=\uff1a][ \t*_]*"
    r"|^[ \t]*(?:#+[ \t]|\*\*)(?:(?:my|the|final|next|best|chosen) )*(?:action|answer|move)[ \t*_`]*\n\s*",
    re.MULTILINE | re.IGNORECASE,
)
_FENCE = re.compile(r"```[\w+-]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)

_LONGEST_SEARCHED = 16384
"""Characters of an answer in which an action may stand in a sentence: the last ones, or those after a label."""

MARKUP = re.compile(r"</?(?:action|think|reasoning)", re.IGNORECASE)
"""What must not stand in a text that is written into a message as an action."""


def answer_in(text: str) -> str:
    """Return the part of a message that is its answer: after the reasoning, and inside the last ``<action>`` tag if there is one.

    Reasoning ends at the last ``</think>`` (or ``</thinking>``, ``</reasoning>``). What begins after that, and was cut off, is no
    answer either.

    >>> answer_in("<think>1 or 2?</think> I go <Action> 2 </action>!"), answer_in("<Think>If I go left")
    ('2', '')
    """
    if "<" not in text:
        return text.strip()
    start, end = 0, len(text)
    if _REASONING_TAG.search(text) is not None:
        for tag in _REASONING_TAG.finditer(text):
            start, end = (tag.end(), len(text)) if tag[1] else (start, min(end, tag.start()))
        text = text[start:end]
    tagged = _TAGGED.match(text)
    return (text if tagged is None else tagged[1]).strip()


def without_reasoning(text: str) -> str:
    """Return what a message says beside its reasoning, before it too.

    >>> without_reasoning("Hello. <think>Shall I?</think>[4]<THINK>I should have"), without_reasoning("Shall I?</think>[4]")
    ('Hello. [4]', '[4]')
    """
    said: list[str] = []
    start, is_thought = 0, False
    for tag in _REASONING_TAG.finditer(text):
        if not tag[1]:
            if not is_thought:
                said.append(text[start : tag.start()])
            is_thought = True
        else:
            if not is_thought:  # it was opened before the message begins
                said.clear()
            start, is_thought = tag.end(), False
    return "".join(said if is_thought else [*said, text[start:]])


def labelled(answer: str) -> list[str]:
    r"""Return an answer and, if it has a label, what stands after the last one, and that one's line.

    >>> labelled("I turn.\nAction: left\nIt is free there.")
    ['I turn.\nAction: left\nIt is free there.', 'left\nIt is free there.', 'left']
    """
    labels = list(_LABEL.finditer(answer))
    if not labels:
        return [answer]
    rest = answer[labels[-1].end() :].strip()
    return [answer, rest, rest.partition("\n")[0].strip()] if "\n" in rest else [answer, rest]


def narrowings(answer: str) -> list[str]:
    """Return all that may be meant by an answer, from the whole to the most specific: after a label, and in a code fence."""
    if "```" not in answer:
        return labelled(answer)
    found: list[str] = []
    for text in labelled(answer):
        fences = _FENCE.findall(text)
        found += [text, *labelled(fences[-1].strip())] if fences else [text]
    return list(dict.fromkeys(found))


def where_to_search(answer: str) -> list[str]:
    r"""Return the parts of an answer that may mention an action in a sentence, the most specific first.

    What stands before a label is none of them: it is what led to the answer.

    >>> where_to_search("Left is blocked.\nAction: go up\nIt is free there.")
    ['go up', 'go up\nIt is free there.']
    """
    parts = labelled(answer)
    if len(parts) > 1:  # what is a long way from its label is no more clear than what stands before it
        return [part for part in parts[:0:-1] if len(part) <= _LONGEST_SEARCHED]
    return parts if len(answer) <= _LONGEST_SEARCHED else re.split(r"\s", answer[-_LONGEST_SEARCHED:], maxsplit=1)[1:]
