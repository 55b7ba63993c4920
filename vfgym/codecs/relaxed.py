"""Reading what is almost JSON: single quotes, trailing commas, bare words, missing brackets.

A reader of its own and not `ast.literal_eval`, which warns about odd escapes and numbers in what a model wrote, and knows neither
bare words (``{move: left}``) nor missing brackets (``steer: 0.5, gas: 1``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from vfgym.bounded_json import is_deep, may_be_deep
from vfgym.codecs.numbers import DASHES, number_of

_DEEPEST = 64
"""Levels of brackets that are followed: more is not an action but an attempt to exhaust the stack."""

_TOKEN = re.compile(
    rf"""[ \t]*(?:
        (?P<number>[+\-{DASHES}]?(?:(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?|(?i:infinity|inf|nan))(?=[\s,;:=\[\](){{}}]|\Z))
      | (?P<string>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')
      | (?P<mark>[\[\](){{}},;:=]|\s)
      | (?P<word>[^\s,;:=\[\](){{}}"']+(?:[ \t]+[^\s,;:=\[\](){{}}"']+)*)
    )""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {"true": True, "false": False, "null": None, "none": None}
# The strings have an end in sight, so that a text of quotes alone does not take quadratic time.
_BRACKET_OR_STRING = re.compile(r'"(?:[^"\\\n]|\\.){0,300}+"|[\[\](){}]')
_CLOSERS = {"[": "]", "(": ")", "{": "}"}


class NotReadable(ValueError):
    """A text is not even almost JSON."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise NotReadable("a key stands there twice")
    return data


_strict = json.JSONDecoder(object_pairs_hook=_unique_keys)
_scan = _strict.scan_once  # type: ignore[attr-defined]


def read_json(text: str) -> Any:
    """Return the data of a JSON text.

    Raises:
        ValueError: If it is not JSON, an object has a key twice, or the data have too many levels.
    """
    try:
        try:
            data, end = _scan(text, 0)  # a third of the time of `decode`, which looks for white space around it
            data = data if end == len(text) else _strict.decode(text)
        except StopIteration:
            data = _strict.decode(text)
        if may_be_deep(text) and is_deep(data):
            raise RecursionError
    except RecursionError:
        raise NotReadable("the brackets are nested too deeply") from None
    return data


def read_relaxed(text: str) -> Any:
    """Return the data of a text that is JSON or almost JSON.

    >>> read_relaxed("steer: 0.5, gas: 1"), read_relaxed("(1 2, 3,)"), read_relaxed("{'move': left}")
    ({'steer': 0.5, 'gas': 1}, [1, 2, 3], {'move': 'left'})

    Raises:
        ValueError: If it is neither.
    """
    try:
        return read_json(text)
    except ValueError:
        entries = _Reader(text).entries("", 0)
    if not entries:
        raise NotReadable("there is nothing to read")
    return entries[0] if isinstance(entries, list) and len(entries) == 1 else entries


def outermost_brackets(text: str) -> list[tuple[int, int]]:
    """Return where the outermost pairs of matching brackets in a text begin and end.

    >>> outermost_brackets("From [0, (1)] on :-)")
    [(5, 13)]
    """
    spans: list[tuple[int, int]] = []
    opened: list[int] = []
    for match in _BRACKET_OR_STRING.finditer(text):
        mark = match[0]
        if mark in _CLOSERS:
            opened.append(match.start())
        elif len(mark) > 1 or mark == '"':
            continue
        elif opened and _CLOSERS[text[opened[-1]]] == mark:
            place = opened.pop()
            while spans and spans[-1][0] > place:
                spans.pop()
            spans.append((place, match.end()))
        else:
            opened.clear()
    return spans


class _Reader:
    """Reads one text, token after token."""

    def __init__(self, text: str) -> None:
        self.tokens = self._tokens(text.strip())

    @staticmethod
    def _tokens(text: str) -> Iterator[tuple[str, Any]]:
        """Yield the tokens as kind and value."""
        place = 0
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None:
                raise NotReadable(f"cannot read on from {text[place : place + 20]!r}")
            place = match.end()
            kind = str(match.lastgroup)
            token = match[kind]
            if kind == "number":
                yield "value", number_of(token)
            elif kind == "string":
                yield "value", _unquoted(token)
            elif kind == "word":
                yield "value", _WORDS.get(token.casefold(), token)
            else:
                yield "mark", "\n" if token.isspace() else token

    def entries(self, closer: str, depth: int) -> Any:
        """Return what stands until `closer`: a dict if it is pairs, a list if it is not, and what is alone in parentheses."""
        if depth > _DEEPEST:
            raise NotReadable("the brackets are nested too deeply")
        values: list[Any] = []
        keys: list[str] = []
        value_is_due = has_comma = False
        for kind, token in self.tokens:
            if kind == "mark":
                if token == closer:
                    break
                if token in _CLOSERS:
                    token = self.entries(_CLOSERS[token], depth + 1)
                elif token in (":", "="):
                    if value_is_due or len(values) != len(keys) + 1 or not isinstance(values[-1], str | int):
                        raise NotReadable(f"{token!r} stands after no key")
                    keys.append(str(values.pop()))
                    value_is_due = True
                    continue
                elif token in (",", ";", "\n"):
                    if value_is_due and token != "\n":
                        raise NotReadable(f"there is no value for {keys[-1]!r}")
                    has_comma = has_comma or token == ","
                    continue
                else:
                    raise NotReadable(f"{token!r} closes nothing")
            values.append(token)
            value_is_due = False
        else:
            if closer:
                raise NotReadable(f"{closer!r} is missing")
        if value_is_due or (keys and len(keys) != len(values)):
            raise NotReadable("there are keys without values, or values without keys")
        if keys or (closer == "}" and not values):
            return _unique_keys(list(zip(keys, values, strict=True)))
        return values[0] if closer == ")" and len(values) == 1 and not has_comma else values


def _unquoted(token: str) -> str:
    inner = token[1:-1]
    if token[0] == "'":
        inner = inner.replace("\\'", "'").replace('"', '\\"')
    return str(json.loads(f'"{inner}"', strict=False))
