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


def narrowings(answer: str) -> list[str]:
    r"""Return what may be meant by an answer, from the whole to the most specific: after a label, its line, inside a fence.

    >>> narrowings("I turn.\nAction: left\nIt is free there.")
    ['I turn.\nAction: left\nIt is free there.', 'left\nIt is free there.', 'left']
    """
    found = [answer]
    for _ in range(2):  # a fence after a label, or a label in a fence
        labels = list(_LABEL.finditer(found[-1]))
        if labels:
            labelled = found[-1][labels[-1].end() :].strip()
            found += [labelled, labelled.partition("\n")[0].strip()] if "\n" in labelled and "```" not in labelled else [labelled]
        fenced = _FENCE.findall(found[-1]) if "```" in found[-1] else []
        if fenced:
            found.append(fenced[-1].strip())
    return list(dict.fromkeys(found))
