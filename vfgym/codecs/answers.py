"""Where in a message the answer stands: after the reasoning, in ``<action>`` tags, after a label, in a code fence."""

from __future__ import annotations

import re

# The last opening tag, up to its closing tag or the end. The first part is greedy, so that it is the last one.
_TAGGED = re.compile(r".*<action>(.*?)(?:</action>|\Z)", re.DOTALL | re.IGNORECASE)
_LABEL = re.compile(
    r"^[ \t>*_#`-]*(?:(?:so|my|the|final|next|best|chosen) )*(?:action|answer|move)(?: is)?[ \t*_`]*[:=][ \t*_]*",
    re.MULTILINE | re.IGNORECASE,
)
_FENCE = re.compile(r"```[\w+-]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)

MARKUP = re.compile(r"</?(?:action|think)", re.IGNORECASE)
"""What must not stand in a text that is written into a message as an action."""


def answer_in(text: str) -> str:
    """Return the part of a message that is its answer: after the reasoning, and inside the last ``<action>`` tag if there is one.

    >>> answer_in("<think>1 or 2?</think> I go <Action> 2 </action>!")
    '2'
    """
    if "</think>" in text:
        text = text.rpartition("</think>")[2]
    tagged = _TAGGED.match(text) if "<" in text else None
    return (text if tagged is None else tagged[1]).strip()


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
