"""What a model thinks before it answers, and the markup that must not stand in an action."""

from __future__ import annotations

import re

_NAMES = "(?:seed:)?(?:think(?:ing)?|reasoning|thoughts?|reflection|analysis|scratchpad)"
_TAG = re.compile(rf"<(/?){_NAMES}>", re.IGNORECASE)

_MESSAGE = "<|message|>"
"""What begins the text of a channel, in the format of OpenAI's open models (harmony)."""

_MARKS = r"action|answer|move|final_answer|tool_call|final|output|response|(?:\w{1,20}:)?(?:invoke|parameter)|function=|arg_"
MARKUP = re.compile(
    rf"<\||<[/ ]{{0,3}}(?:{_MARKS}|{_NAMES})|\u25c1|\[/?(?:THINK|action|answer|move|final_answer|TOOL_CALLS|ARGS)\]", re.IGNORECASE
)
"""What must not stand in a text that is written into a message as an action: what begins a tag, a token or thinking."""


def drop_thinking(text: str) -> tuple[str, bool]:
    """Return what a message says beside its thinking, and whether all thinking was closed.

    >>> drop_thinking("Hello. <think>Shall I?</think>[4]")
    ('Hello. [4]', True)
    >>> drop_thinking("Shall I?</think>[4]<THINK>I should have")
    ('[4]', False)
    >>> drop_thinking("<|channel|>analysis<|message|>Shall I?<|end|><|start|>assistant<|channel|>final<|message|>[4]")
    ('[4]', True)
    """
    if not text.isascii() and "\u25c1" in text:  # Kimi's
        text = text.replace("\u25c1think\u25b7", "<think>").replace("\u25c1/think\u25b7", "</think>")
    if "[" in text and "THINK]" in text:  # Mistral's
        text = text.replace("[THINK]", "<think>").replace("[/THINK]", "</think>")
    if "<" not in text:
        return text, True
    if "|" in text and _MESSAGE in text:
        before, _, text = text.rpartition(_MESSAGE)
        if before[max(before.rfind("<|end|>"), before.rfind("<|channel|>"), 0) :].removeprefix("<|channel|>").startswith("analysis"):
            return "", False
    if _TAG.search(text) is None:
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
