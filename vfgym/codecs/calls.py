"""Calls of the tool that plays a game, and other JSON, as models write them into their answers: the actions in them, as text.

Each serves a chat template: JSON (Hermes, Llama 3, Mistral, Kimi, DeepSeek), XML with parameters (Claude, MiniMax, Qwen Coder), pairs of
keys and values (GLM), a call of Python (Llama 4, Gemma).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from vfgym.codecs.data import json_text
from vfgym.codecs.labels import FENCE, MarkedPart
from vfgym.codecs.relaxed import outermost_brackets, read_relaxed

TOOL_NAME = "act"
"""The tool that plays a game."""

_SPACES = r" \t\r\x0b\x0c\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space inside a line. What is looked for at the beginning of each line must not go over ends of lines, or a run of those takes
quadratic time."""
_CALL = re.compile(r"([\w.]++)\((.*)\)", re.DOTALL)
_CALL_ON_ITS_LINE = re.compile(rf"^[{_SPACES}`*]*+([\w.]++\(.*\))[{_SPACES}`*.;]*+$", re.MULTILINE)
_ONLY_MARKUP = re.compile(rf"[{_SPACES}`*.;]*+")
_ONLY_MARKUP_FOLLOWS = re.compile(rf"[{_SPACES}`*.;]*+$", re.MULTILINE)
_TOKEN = re.compile(r"<\|[^|<>\n]{1,40}\|>|\[(?:TOOL_CALLS|ARGS)\]")
"""Tokens of chat templates: what stands behind one stands on a line of its own."""

_OPENING = re.compile(r"<(?:\w{1,20}:)?(?:invoke name=\"?|function=)([\w.-]{1,80})\"?[ ]?>|\A\s*+([\w.]{1,80})\s*+(?=<arg_key>)")
_PARAMETER = re.compile(
    r"<(?:\w{1,20}:)?parameter(?: name=\"?|=)([\w.-]{1,80})\"?[^<>\n]{0,40}>|<arg_key>([^<>\n]{1,80})</arg_key>\s*+<arg_value>"
)


def find_data(text: str, own_keys: Collection[str], keys: Collection[str]) -> Iterator[MarkedPart]:
    """Give what stands under the keys of JSON, or in calls, on lines of their own and in fences.

    Args:
        text: An answer.
        own_keys: Keys of the action itself, which mark nothing, unless an object stands under them.
        keys: Keys of JSON that mark an action.
    """
    if "<" in text:
        yield from _find_tagged_calls(text, own_keys, keys)
    if "{" not in text and "(" not in text:
        return
    for fence in FENCE.finditer(text) if "```" in text else ():
        for content in _contents_of(fence[1].strip(), own_keys, keys):
            yield MarkedPart(content, fence.start(), fence.end())
    outside = FENCE.sub(_blanks, text)
    if "<|" in outside or "[TOOL" in outside:
        outside = _TOKEN.sub(_blanks, outside)
    for start, end in _lone_brackets(outside) if "{" in outside or "[" in outside else ():
        if outside[start] != "(":
            for content in _contents_of(outside[start:end], own_keys, keys):
                yield MarkedPart(content, start, end)
    for call in _CALL_ON_ITS_LINE.finditer(outside):
        for content in _contents_of(call[1], own_keys, keys):
            yield MarkedPart(content, *call.span(1))


def _blanks(found: re.Match[str]) -> str:
    """Return as many characters, in which one line ends and another begins."""
    return f"\n{' ' * (len(found[0]) - 2)}\n"


def _lone_brackets(text: str) -> Iterator[tuple[int, int]]:
    """Give where the outermost brackets begin and end that stand on lines of their own."""
    end_before = 0
    for start, end in outermost_brackets(text):
        line = text.rfind("\n", end_before, start) + 1
        begins_line = (line > 0 or end_before == 0) and _ONLY_MARKUP.fullmatch(text, line, start)
        if begins_line and _ONLY_MARKUP_FOLLOWS.match(text, end):
            yield start, end
        end_before = end


def _find_tagged_calls(text: str, own_keys: Collection[str], keys: Collection[str]) -> Iterator[MarkedPart]:
    """Give the actions in calls that are written with tags."""
    openings = list(_OPENING.finditer(text))
    for opening, following in itertools.zip_longest(openings, openings[1:]):
        end = len(text) if following is None else following.start()
        name = (opening[1] or opening[2]).rpartition(".")[2]
        arguments: Any = {}
        for parameter in _PARAMETER.finditer(text, opening.end(), end):
            close = text.find("</", parameter.end(), end)
            arguments[parameter[1] or parameter[2]] = text[parameter.end() : end if close < 0 else close].strip()
        if not arguments:
            close = text.find("</", opening.end(), end)
            arguments = text[opening.end() : end if close < 0 else close].strip()
        for content in _actions_in({"name": name, "arguments": arguments}, own_keys, keys):
            yield MarkedPart(content, opening.start(), end)


def _contents_of(text: str, own_keys: Collection[str], keys: Collection[str]) -> Iterator[str]:
    """Give the actions in a text that is JSON or a call, as text."""
    try:
        if text[:1] in ("{", "["):
            data = read_relaxed(text)
            for item in data if isinstance(data, list) else [data]:
                yield from _actions_in(item, own_keys, keys)
        elif call := _CALL.fullmatch(text):
            is_the_tool = call[1] == TOOL_NAME or call[1] in keys
            if not is_the_tool and not any(key in call[2].casefold() for key in (*keys, TOOL_NAME)):
                return
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
            arguments = call.get(key)
            if isinstance(arguments, str):
                yield from _contents_of(arguments, own_keys, keys)
            elif isinstance(arguments, Mapping) and arguments and not frozenset(own_keys).isdisjoint(arguments):
                yield _as_text(arguments)
            else:
                yield from _actions_in(arguments, own_keys, keys)
        return
    for key, value in data.items():
        if key.casefold() == TOOL_NAME and isinstance(value, Mapping):
            yield from _actions_in(value, own_keys, keys)
        elif (key.casefold() in keys or key.casefold() == TOOL_NAME) and (key not in own_keys or isinstance(value, Mapping)):
            yield _as_text(value)


def _as_text(data: Any) -> str:
    return data if isinstance(data, str) else "" if data is None else json_text(data)
