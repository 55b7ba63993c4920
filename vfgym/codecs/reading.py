r"""How an answer is read: what is marked as the action, or is nothing but an action, counts. Nothing is guessed.

Thinking is dropped. If the answer has marks (see `vfgym.codecs.marks`), all marks of its strongest kind must give one and the same action,
each as a whole; a mark inside a mark is read again. An answer without marks is read if it is nothing but an action, or if its last line is
exactly one, is neither a question nor an item of a list, and no other line is a different action. Everything else is asked again, as is
what could be meant in two ways.

What a text *is* as a whole, the codec of the space says (`Codec.match`).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Iterable
from typing import Any, Protocol

from vfgym.codecs.marks import MarkedPart, marks_of
from vfgym.codecs.problems import CUT_OFF, DOUBTFUL, NO_ACTION, STILL_THINKING, ActionNotFound, AnswerUnclear, several_actions
from vfgym.codecs.sentences import is_doubtful, without_corrected
from vfgym.codecs.thinking import drop_thinking

LONGEST_TAIL = 100_000
"""Characters at the end of an answer, its thinking left out, in which an action is looked for. Where the actions of a space may be half
as long, it is twice the longest one."""

_DEEPEST_MARK = 8
"""Marks inside each other that are read."""

_TOKENS_AT_END = re.compile(r"(?:(?:>\|[^|<>\n]{1,40}+\|<|>s/<)\s*+)++")
"""Tokens of chat templates that end an answer, in a text that is read backwards: forwards, white space inside it would be gone over from
each of its characters."""

_LIST_ITEM = re.compile(r"(?<!\s)\s*+(?:[-+*\u2022]\s++|(?<!\d)\d++[.)]\s++)")


class Where(enum.IntEnum):
    """Where a text stands that may be an action. The further down, the more of its form is set aside."""

    LAST_LINE = 0
    """An answer without marks ends with it: it must be an exact name or value."""
    WHOLE_ANSWER = 1
    """It is all that was answered: words such as "go" and "my" say nothing besides."""
    MARK = 2
    """It was marked as the action: words that only one name has are that name."""


class Reader(Protocol):
    """What knows which texts are actions: the codec of a space."""

    own_keys: Collection[str]
    """Keys of the action itself, where it is an object."""
    has_brackets: bool
    """Whether ``[x]`` is a mark."""
    longest: int
    """About how many characters the longest action has as text; 0 where it has few."""

    def read_exactly(self, text: str) -> Any:
        """Return the action that is written exactly so, or ``None``."""

    def match(self, text: str, where: Where) -> Any:
        """Return the action that a text is as a whole, or ``None``; raise `ActionNotFound` about a value that is no action."""

    def to_json(self, action: Any) -> Any:
        """Return the JSON data of an action, which tells it from others."""


def read_answer(answer: str, reader: Reader, *, is_cut_off: bool = False) -> Any:
    """Return the action that an answer names.

    Args:
        answer: What a model wrote.
        reader: Knows the actions.
        is_cut_off: Whether the limit of its length cut it off, so that only closed tags, boxes and JSON count.

    Raises:
        ActionNotFound: If it names no action, or several, or does not say clearly which. `ActionNotFound.sentence` says why.
    """
    said, is_closed = drop_thinking(answer)
    if not is_closed:
        raise AnswerUnclear(CUT_OFF if is_cut_off else STILL_THINKING)
    said = _without_tokens_at_end(said.strip())
    if not is_cut_off or said[:1] in ("{", "["):
        action = reader.read_exactly(said)
        if action is not None:
            return action
    tail = said if len(said) <= LONGEST_TAIL else tail_of(said, reader)
    marks = _find_marks(tail, reader, is_cut_off)
    if marks:
        return _read_said(tail, marks, reader)
    if is_cut_off:
        raise AnswerUnclear(CUT_OFF)
    return _read_unmarked(tail, reader, is_whole=tail == said)


def tail_of(said: str, reader: Reader, actions: int = 1) -> str:
    """Return the end of an answer in which actions are looked for.

    Args:
        said: An answer without its thinking.
        reader: Knows how long its actions are.
        actions: How many of them the answer may hold.
    """
    return said[-max(LONGEST_TAIL, 2 * actions * reader.longest) :]


def _without_tokens_at_end(text: str) -> str:
    tokens = _TOKENS_AT_END.match(text[::-1]) if text.endswith(("|>", "</s>")) else None
    return text[: -tokens.end()] if tokens else text


def _find_marks(text: str, reader: Reader, is_cut_off: bool = False) -> list[MarkedPart]:
    return marks_of(text, closed_only=is_cut_off, with_brackets=reader.has_brackets, own_keys=reader.own_keys)


def _read_said(text: str, marks: list[MarkedPart], reader: Reader) -> Any:
    """Return the one action of the marks that an answer has and does not take back.

    Raises:
        ActionNotFound: If it doubts one of them, or as `read_marks` does.
    """
    kept = marks if len(marks) == 1 else without_corrected(text, marks)
    contents = []
    for content, start, end in kept:
        if (end < len(text) or (start and text[start - 1] != "\n")) and is_doubtful(text, start, end):
            raise AnswerUnclear(f"It is unclear whether {_quote(content)} is your choice. {DOUBTFUL}")
        contents.append(content)
    return read_marks(contents, reader)


def read_marks(marks: Iterable[str], reader: Reader, depth: int = 1) -> Any:
    """Return the one action that all of these marks give.

    Raises:
        ActionNotFound: If one of them cannot be read, or they give different actions.
    """
    found: dict[str, Any] = {}
    contents = dict.fromkeys(marks)
    for content in contents:
        action = reader.read_exactly(content)
        if action is None:
            inner = _find_marks(content, reader) if depth < _DEEPEST_MARK else []
            action = read_marks([mark.content for mark in inner], reader, depth + 1) if inner else reader.match(content, Where.MARK)
        if action is None:
            raise AnswerUnclear(f"{_quote(content)} is not an action")
        if len(contents) == 1:
            return action
        found.setdefault(str(reader.to_json(action)), action)
    if len(found) > 1:
        raise several_actions([*found])
    return next(iter(found.values()))


def _read_unmarked(tail: str, reader: Reader, *, is_whole: bool) -> Any:
    """Return the action that an answer without marks is, or that its last line is.

    Args:
        tail: The end of the answer.
        reader: Knows the actions.
        is_whole: Whether it is the whole answer: else its first line may be a part of one.
    """
    problem: ActionNotFound = AnswerUnclear(NO_ACTION)
    try:
        action = reader.match(tail, Where.WHOLE_ANSWER) if is_whole else None
    except ActionNotFound as error:
        problem, action = error, None
    if action is not None:
        return action
    lines = [line for each in tail.splitlines()[0 if is_whole else 1 :] if (line := each.strip())]
    action = _read_line(lines[-1], reader) if len(lines) > 1 and not _LIST_ITEM.match(lines[-1]) else None
    if action is None:
        raise problem
    found = {str(reader.to_json(action)): action}
    for line in lines[:-1]:
        other = _read_line(_LIST_ITEM.sub("", line, count=1), reader)
        if other is not None:
            found[str(reader.to_json(other))] = other
    if len(found) > 1:
        raise several_actions([*found])
    return action


def _read_line(line: str, reader: Reader) -> Any:
    try:
        return reader.match(line, Where.LAST_LINE)
    except ActionNotFound:
        return None


def _quote(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 60 else f"{line[:50]}...")
