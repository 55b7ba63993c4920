r"""Marks: where an answer says which part of it is the action.

There are five kinds, strongest first; the marks of the strongest kind that an answer has are what it says:

1. tags: ``<action>``, ``<answer>``, ``<move>``, ``<tool_call>``. The last one need not be closed. In TextArena ``[x]`` is a mark too,
   beside those of any kind.
2. boxes: ``\boxed{...}``.
3. JSON or a call on lines of its own or in a fence: what stands under the keys ``action``, ``move`` and ``answer``, or in a call of
   the tool.
4. labels: lines that begin, after bullets and emphasis, with "Action:", "My final answer =" and the like. Their text is the rest of the
   line, or else the next line.
5. a fence, if it ends the answer.

Marks with nothing in them, or with "...", do not count.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from vfgym.codecs.data import json_text
from vfgym.codecs.relaxed import outermost_brackets, read_relaxed

TOOL_NAME = "act"
"""The tool that plays a game."""

EMPTY = frozenset({"", "...", "\u2026"})
"""What stands in marks that do not count."""

KEYS = frozenset({"action", "move", "answer"})
"""Keys of JSON that mark an action."""

_TAG_NAMES = ("action", "answer", "move", "tool_call")
_OPENING = re.compile(rf"<({'|'.join(_TAG_NAMES)})>", re.IGNORECASE)
_ENDS = {name: re.compile(rf"<(/?){name}>", re.IGNORECASE) for name in _TAG_NAMES}
_TAGGED = re.compile(rf"<({'|'.join(_TAG_NAMES)})>.*?(?:</\1>|\Z)", re.IGNORECASE | re.DOTALL)
_IN_BRACKETS = re.compile(r"\[([^\[\]\n]*+)\]")
_BOX = re.compile(r"\\boxed\s*+\{")
_SIGN_BEFORE_BOX = re.compile(r"[-\u2212]\$*\Z")
"""A sign right before a box belongs to the number in it; a bullet has a space after it."""

_BRACES = re.compile(r"(?<!\\)[{}]")
_TEX_STYLE = re.compile(r"\\(?:text|math)[a-z]*+\s*+\{([^{}]*+)\}")
_FENCE = re.compile(r"```(?:[\w+-]*+[ \t]*+\n)?(.*?)(```|\Z)", re.DOTALL)
_CALL = re.compile(r"([\w.]++)\((.*)\)", re.DOTALL)
_SPACES = r" \t\r\x0b\x0c\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space inside a line. What is looked for at the beginning of each line must not go over ends of lines, or a run of those takes
quadratic time."""
_CALL_ON_ITS_LINE = re.compile(rf"^[{_SPACES}`*]*+([\w.]++\(.*\))[{_SPACES}`*.;]*+$", re.MULTILINE)
_ONLY_MARKUP = re.compile(rf"[{_SPACES}`*.;]*+")
_ONLY_MARKUP_FOLLOWS = re.compile(rf"[{_SPACES}`*.;]*+$", re.MULTILINE)
_LABEL = re.compile(
    r"""^(?:[ \t>*_#`~+\u2022-]|\d++[.)][ \t])*+
    (?:(?:my|the|final|next|best|chosen)[ \t*_]++)*+(?:action|answer|move|choice|decision)
    [ \t*_`]*+[:=\uff1a][ \t*_]*+(?P<text>.*)$""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_NEXT_LINE = re.compile(r"\s*+(.*)")


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
    in_brackets = _without_empty(_IN_BRACKETS.findall(_TAGGED.sub(" ", text))) if with_brackets else []
    for contents in _find_kinds(text, closed_only, own_keys, keys):
        found = _without_empty(contents)
        if found:
            return [*in_brackets, *found]
    return in_brackets


def has_marks(text: str) -> bool:
    """Say whether a text has marks, empty ones included."""
    return any(True for contents in _find_kinds(text, False, (), KEYS) for _ in contents)


def _without_empty(contents: Iterable[str]) -> list[str]:
    return [content for content in map(str.strip, contents) if content not in EMPTY]


def _find_kinds(text: str, closed_only: bool, own_keys: Collection[str], keys: Collection[str]) -> tuple[Iterable[str], ...]:
    """Return the contents of the marks of each kind, the strongest first. They are looked for when they are iterated."""
    return (
        _find_tags(text, closed_only) if "<" in text else (),
        _find_boxes(text, closed_only) if "\\boxed" in text else (),
        _find_data(text, own_keys, keys),
        () if closed_only else _find_labelled(text),
        () if closed_only or "```" not in text else _find_fence_at_end(text),
    )


def _find_tags(text: str, closed_only: bool) -> Iterator[str]:
    place = 0
    while opening := _OPENING.search(text, place):
        end = _ENDS[opening[1].casefold()].search(text, opening.end())
        if not closed_only or (end and end[1]):
            yield text[opening.end() : end.start() if end else len(text)]
        place = len(text) if end is None else end.end() if end[1] else end.start()


def _find_boxes(text: str, closed_only: bool) -> Iterator[str]:
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
            yield f"-{content}" if sign else content
        place = end


def _find_data(text: str, own_keys: Collection[str], keys: Collection[str]) -> Iterator[str]:
    """Give what stands under the keys of JSON, or in calls, on lines of their own and in fences."""
    if "{" not in text and "(" not in text:
        return
    for fence in _FENCE.finditer(text):
        yield from _contents_of(fence[1].strip(), own_keys, keys)
    outside = _FENCE.sub("\n", text)
    for start, end in _lone_brackets(outside):
        if outside[start] != "(":
            yield from _contents_of(outside[start:end], own_keys, keys)
    for call in _CALL_ON_ITS_LINE.finditer(outside):
        yield from _contents_of(call[1], own_keys, keys)


def _lone_brackets(text: str) -> Iterator[tuple[int, int]]:
    """Give where the outermost brackets begin and end that stand on lines of their own."""
    end_before = 0
    for start, end in outermost_brackets(text):
        line = text.rfind("\n", end_before, start) + 1
        begins_line = (line > 0 or end_before == 0) and _ONLY_MARKUP.fullmatch(text, line, start)
        if begins_line and _ONLY_MARKUP_FOLLOWS.match(text, end):
            yield start, end
        end_before = end


def _contents_of(text: str, own_keys: Collection[str], keys: Collection[str]) -> Iterator[str]:
    """Give the actions in a text that is JSON or a call, as text."""
    try:
        if text[:1] in ("{", "["):
            data = read_relaxed(text)
            for item in data if isinstance(data, list) else [data]:
                yield from _actions_in(item, own_keys, keys)
        elif call := _CALL.fullmatch(text):
            is_the_tool = call[1] == TOOL_NAME or call[1] in keys
            arguments = read_relaxed(call[2])
            if is_the_tool and isinstance(arguments, Mapping) and not frozenset(own_keys).isdisjoint(arguments):
                yield _as_text(arguments)
            elif isinstance(arguments, Mapping):
                yield from _actions_in(arguments, own_keys, keys)
            elif is_the_tool:
                yield _as_text(arguments)
    except (ValueError, RecursionError):
        return


def _actions_in(data: Any, own_keys: Collection[str], keys: Collection[str]) -> Iterator[str]:
    if not isinstance(data, Mapping):
        return
    call = data["function"] if isinstance(data.get("function"), Mapping) else data
    if call.get("name") == TOOL_NAME:
        for key in ("arguments", "parameters", "input"):
            if isinstance(call.get(key), str):
                yield from _contents_of(call[key], own_keys, keys)
            else:
                yield from _actions_in(call.get(key), own_keys, keys)
        return
    for key, value in data.items():
        if key.casefold() == TOOL_NAME and isinstance(value, Mapping):
            yield from _actions_in(value, own_keys, keys)
        elif (key.casefold() in keys or key.casefold() == TOOL_NAME) and (key not in own_keys or isinstance(value, Mapping)):
            yield _as_text(value)


def _as_text(data: Any) -> str:
    return data if isinstance(data, str) else "" if data is None else json_text(data)


def _find_labelled(text: str) -> Iterator[str]:
    """Give the texts of labels: each goes on to the end of a bracket or a fence that begins with it."""
    bracket_ends: dict[int, int] | None = None
    for label in _LABEL.finditer(text):
        start, end = label.span("text")
        if not label["text"].strip(" \t*_`"):
            start, end = _NEXT_LINE.match(text, end).span(1)  # type: ignore[union-attr]
        if text.startswith("```", start) and (fence := _FENCE.match(text, start)):
            yield fence[1]
        elif text[start : start + 1] in ("[", "{", "(") and end < len(text):
            bracket_ends = dict(outermost_brackets(text)) if bracket_ends is None else bracket_ends
            yield text[start : max(end, bracket_ends.get(start, end))]
        else:
            yield _close_emphasis(text[label.start() : start], text[start:end].strip())


def _close_emphasis(before: str, text: str) -> str:
    """Return a label's text without the end of the emphasis that began before it: 42 of "**Answer: 42**"."""
    for sign in ("**", "__", "*", "_", "`"):
        if before.count(sign) % 2:
            text = text.removesuffix(sign)
        before = before.replace(sign, "")
    return text


def _find_fence_at_end(text: str) -> Iterator[str]:
    end = len(text.rstrip())
    for fence in _FENCE.finditer(text):
        if fence.end() >= end:
            yield fence[1]
