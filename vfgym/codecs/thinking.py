"""What a model thinks before it answers, and the markup that must not stand in an action."""

from __future__ import annotations

import re

_TAG = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)

MARKUP = re.compile(r"</?(?:action|answer|move|tool_call|think|thinking|reasoning)>", re.IGNORECASE)
"""What must not stand in a text that is written into a message as an action."""


def drop_thinking(text: str) -> tuple[str, bool]:
    """Return what a message says beside its thinking, and whether all thinking was closed.

    >>> drop_thinking("Hello. <think>Shall I?</think>[4]")
    ('Hello. [4]', True)
    >>> drop_thinking("Shall I?</think>[4]<THINK>I should have")
    ('[4]', False)
    """
    if "<" not in text:
        return text, True
    said: list[str] = []
    start, is_thought = 0, False
    for tag in _TAG.finditer(text):
        if not tag[1]:
            if not is_thought:
                said.append(text[start : tag.start()])
            is_thought = True
        else:
            if not is_thought:  # it was opened before the message begins
                said.clear()
            start, is_thought = tag.end(), False
    return "".join(said if is_thought else [*said, text[start:]]), not is_thought
