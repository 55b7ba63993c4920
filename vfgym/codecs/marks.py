r"""Marks: where an answer says which part of it is the action.

There are seven kinds, strongest first; the marks of the strongest kind that an answer has are what it says:

1. tags: ``<action>``, ``<answer>``, ``<move>``, ``<final_answer>``, ``<tool_call>``. The last one need not be closed. In TextArena ``[x]``
   is a mark too, beside those of any kind.
2. boxes: ``\boxed{...}``.
3. JSON or a call on lines of its own or in a fence: what stands under the keys ``action``, ``move`` and ``answer``, or in a call of
   the tool (`vfgym.codecs.calls`).
4. tags around all that is said: ``<final>``, ``<output>``, ``<response>``.
5. labels: lines that begin, after bullets and emphasis, with "Action:", "My final answer =" and the like (`vfgym.codecs.labels`). Their
   text is the rest of the line, or else the next line.
6. a fence, if it ends the answer.
7. labels without a colon: "Answer - left", "My move is **left**".

Marks with nothing in them, or with "...", do not count.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from vfgym.codecs.calls import TOOL_NAME, find_data
from vfgym.codecs.labels import FENCE, MarkedPart, find_labelled

__all__ = ["EMPTY", "KEYS", "TOOL_NAME", "MarkedPart", "find_marks", "has_marks", "marks_of"]

EMPTY = frozenset({"", "...", "\u2026"})
"""What stands in marks that do not count."""

KEYS = frozenset({"action", "move", "answer"})
"""Keys of JSON that mark an action."""

_TAGS = ("action", "answer", "move", "final_answer", "tool_call")
_TAGS_AROUND = ("final", "output", "response")
_SQUARE_TAG = re.compile(rf"\[(/?)({'|'.join(_TAGS[:-1])})\]", re.IGNORECASE)
_IN_BRACKETS = re.compile(r"\[([^\[\]\n]*+)\]")
_BOX = re.compile(r"\\boxed\s*+\{")
_SIGN_BEFORE_BOX = re.compile(r"[-\u2212]\$*\Z")
"""A sign right before a box belongs to the number in it; a bullet has a space after it."""

_BRACES = re.compile(r"(?<!\\)[{}]")
_TEX_STYLE = re.compile(r"\\(?:text|math)[a-z]*+\s*+\{([^{}]*+)\}")


class _TagPatterns:
    """What finds the tags of some names."""

    def __init__(self, names: tuple[str, ...]) -> None:
        listed, after = "|".join(names), r"(?: [^<>\n]{0,80})?\|?>"
        self.opening = re.compile(rf"<[| ]?({listed}){after}", re.IGNORECASE)
        self.ends = {name: re.compile(rf"<[| ]?(/?) ?{name}{after}", re.IGNORECASE) for name in names}
        self.tagged = re.compile(rf"<[| ]?({listed}){after}.*?(?:<[| ]?/ ?\1[ |]?>|\Z)", re.IGNORECASE | re.DOTALL)


_PATTERNS, _PATTERNS_AROUND = _TagPatterns(_TAGS), _TagPatterns(_TAGS_AROUND)


def find_marks(
    text: str, *, closed_only: bool = False, with_brackets: bool = False, own_keys: Collection[str] = (), keys: Collection[str] = KEYS
) -> list[str]:
    r"""Return what stands in the marks of the strongest kind that a text has; nothing where it has none.

    >>> find_marks("I thought of <action>...</action>, but <action>left</action>. Action: up")
    ['left']
    >>> find_marks("Next move: **up**\n\nIt is free."), find_marks('{"why": "It is free.", "action": 2}'), find_marks("I go up.")
    (['up'], ['2'], [])

    Args:
        text: An answer, or what stands in a mark.
        closed_only: Whether the text was cut off, so that only closed tags, boxes and JSON count.
        with_brackets: Whether ``[x]`` is a mark, which counts beside those of the strongest other kind.
        own_keys: Keys of the action itself, which mark nothing, unless an object stands under them.
        keys: Keys of JSON that mark an action.
    """
    marks = marks_of(text, closed_only=closed_only, with_brackets=with_brackets, own_keys=own_keys, keys=keys)
    return [mark.content for mark in marks]


def marks_of(
    text: str, *, closed_only: bool = False, with_brackets: bool = False, own_keys: Collection[str] = (), keys: Collection[str] = KEYS
) -> list[MarkedPart]:
    """Return the marks that `find_marks` finds, in order, with their places; those in brackets come first."""
    in_brackets = _without_empty(_find_brackets(text)) if with_brackets else []
    for found in _find_kinds(text, closed_only, own_keys, keys):
        marks = _without_empty(found)
        if marks:
            return [*in_brackets, *marks]
    return in_brackets


def has_marks(text: str) -> bool:
    """Say whether a text has marks, empty ones included."""
    return any(True for found in _find_kinds(text, False, (), KEYS) for _ in found)


def _without_empty(marks: Iterable[MarkedPart]) -> list[MarkedPart]:
    found = []
    for mark in marks:
        content = mark[0].strip()
        if content not in EMPTY:
            found.append(mark if content == mark[0] else MarkedPart(content, mark[1], mark[2]))
    return found


def _find_kinds(text: str, closed_only: bool, own_keys: Collection[str], keys: Collection[str]) -> Iterator[Iterable[MarkedPart]]:
    """Give the marks of each kind, the strongest first. They are looked for when they are iterated."""
    has_tags = "<" in text
    if has_tags or "[/" in text:
        yield _find_tags(text, _PATTERNS, closed_only)
    if "\\boxed" in text:
        yield _find_boxes(text, closed_only)
    yield find_data(text, own_keys, keys)
    if has_tags:
        yield _find_tags(text, _PATTERNS_AROUND, closed_only)
    if closed_only:
        return
    yield find_labelled(text, TOOL_NAME)
    if "```" in text:
        yield _find_fence_at_end(text)
    yield find_labelled(text, TOOL_NAME, is_spaced=True)


def _find_brackets(text: str) -> Iterator[MarkedPart]:
    outside = _PATTERNS.tagged.sub(lambda tagged: " " * len(tagged[0]), text)
    for found in _IN_BRACKETS.finditer(outside):
        yield MarkedPart(found[1], *found.span())


def _find_tags(text: str, patterns: _TagPatterns, closed_only: bool) -> Iterator[MarkedPart]:
    if "[" in text and "[/" in text:
        text = _without_square_tags(text)
    place = 0
    while opening := patterns.opening.search(text, place):
        end = patterns.ends[opening[1].casefold()].search(text, opening.end())
        if not closed_only or (end and end[1]):
            until = end.start() if end else len(text)
            yield MarkedPart(text[opening.end() : until], opening.start(), end.end() if end and end[1] else until)
        place = len(text) if end is None else end.end() if end[1] else end.start()


def _without_square_tags(text: str) -> str:
    """Return a text of the same length with ``<action>`` in place of ``[action]``, where ``[/action]`` stands, too."""
    closed = {tag[2].casefold() for tag in _SQUARE_TAG.finditer(text) if tag[1]}
    return _SQUARE_TAG.sub(lambda tag: f"<{tag[1]}{tag[2]}>" if tag[2].casefold() in closed else tag[0], text)


def _find_boxes(text: str, closed_only: bool) -> Iterator[MarkedPart]:
    place = 0
    while box := _BOX.search(text, place):
        depth, end = 1, len(text)
        for brace in _BRACES.finditer(text, box.end()):
            depth += 1 if brace[0] == "{" else -1
            if not depth:
                end = brace.start()
                break
        if not depth or not closed_only:
            sign = _SIGN_BEFORE_BOX.search(text[max(0, box.start() - 4) : box.start()])
            content = _TEX_STYLE.sub(r"\1", text[box.end() : end]).replace("\\_", "_").replace("\\ ", " ")
            yield MarkedPart(f"-{content}" if sign else content, box.start(), min(end + 1, len(text)))
        place = end


def _find_fence_at_end(text: str) -> Iterator[MarkedPart]:
    end = len(text.rstrip())
    for fence in FENCE.finditer(text):
        if fence.end() >= end:
            yield MarkedPart(fence[1], *fence.span())
