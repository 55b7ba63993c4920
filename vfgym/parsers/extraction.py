r"""Answers marked inside one text: ``\boxed{...}`` as in MATH, ``####`` as in GSM8K.

Both functions read the text a bounded number of times, so what a model writes cannot make them slow.
"""

from __future__ import annotations

import re

_BOX = r"\boxed{"
_BRACE = re.compile(r"[{}]")
_HASHES = "####"


def extract_boxed_answer(text: str, strict: bool = False) -> str:
    r"""Return what the last ``\boxed{...}`` holds.

    Braces inside the box are matched, and the content is not stripped. An earlier box is not looked at where the last one
    is never closed, because a model that was cut off in its answer has not answered.

    Args:
        text: What the model wrote.
        strict: Return ``""`` where there is no complete last box; else `text` comes back unchanged.

    >>> extract_boxed_answer(r"So \boxed{1}, no: \boxed{\frac{1}{2}}.")
    '\\frac{1}{2}'
    >>> extract_boxed_answer("It is 7.")
    'It is 7.'
    >>> extract_boxed_answer("It is 7.", strict=True)
    ''
    """
    unboxed = "" if strict else text
    box = text.rfind(_BOX)
    if box == -1:
        return unboxed
    start = box + len(_BOX)
    depth = 1
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return text[start : brace.start()]
    return unboxed


def extract_hash_answer(text: str) -> str:
    """Return what follows the first ``####``, up to the next one, stripped; the text unchanged where there is none.

    >>> extract_hash_answer("6 * 7 = 42 #### 42")
    '42'
    """
    if _HASHES not in text:
        return text
    return text.split(_HASHES, maxsplit=2)[1].strip()
