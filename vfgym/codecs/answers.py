"""Where in a message the answer stands: after the reasoning, in ``<action>`` tags, after a label, in a code fence."""

from __future__ import annotations

import re

_REASONING_TAG = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)
_TAGGED = re.compile(r"<action>(.*?)(?:</action>|(?=<action>)|\Z)", re.DOTALL | re.IGNORECASE)
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


def after_reasoning(text: str) -> str:
    """Return what follows the reasoning of a message.

    Reasoning ends at the last ``</think>`` (or ``</thinking>``, ``</reasoning>``). What begins after that, and was cut off, is no
    answer either.

    >>> after_reasoning("<think>1 or 2?</think> I go 2"), after_reasoning("<Think>If I go left")
    ('I go 2', '')
    """
    start, end = 0, len(text)
    for tag in _REASONING_TAG.finditer(text):
        start, end = (tag.end(), len(text)) if tag[1] else (start, min(end, tag.start()))
    return text[start:end].strip()


def tagged(answer: str) -> list[str]:
    """Return what stands in the ``<action>`` tags of an answer; the last one need not be closed.

    >>> tagged("I go <Action> 2 </action>, no: <action>1")
    ['2', '1']
    """
    return [content.strip() for content in _TAGGED.findall(answer)] if "<" in answer else []


def closed_tags(text: str) -> str:
    """Return the ``<action>`` tags after the reasoning of a message, with what stands in them, that are closed.

    >>> closed_tags("I go <action>left</action>, since <action>ri")
    '<action>left</action>'
    """
    return "".join(tag[0] for tag in _TAGGED.finditer(after_reasoning(text)) if tag[0].casefold().endswith("</action>"))


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
    r"""Return what stands after each label of an answer, up to the next one.

    >>> labelled("I turn.\nAction: left\nIt is free there.\nAction: up")
    ['left\nIt is free there.', 'up']
    """
    labels = list(_LABEL.finditer(answer))
    ends = [*(label.start() for label in labels[1:]), len(answer)]
    return [answer[label.end() : end].strip() for label, end in zip(labels, ends, strict=False)]


def fenced(answer: str) -> list[str]:
    r"""Return what stands in the code fences of an answer.

    >>> fenced("I go\n```text\nleft\n```")
    ['left']
    """
    return [content.strip() for content in _FENCE.findall(answer)] if "```" in answer else []


def first_line(part: str) -> str:
    """Return the first line of a part of an answer."""
    return part.partition("\n")[0].strip()


def where_to_search(part: str, is_marked: bool) -> str:
    """Return what of a part of an answer may mention an action in a sentence.

    What is a long way from its label is no more clear than what stands before it; without a label, an answer ends with its conclusion.
    """
    if len(part) <= _LONGEST_SEARCHED:
        return part
    return "" if is_marked else "".join(re.split(r"\s", part[-_LONGEST_SEARCHED:], maxsplit=1)[1:])
