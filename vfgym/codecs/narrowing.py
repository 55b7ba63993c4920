"""How an answer is narrowed down to its action: to its tags, labels, fences, and in the end to a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from vfgym.codecs.answers import after_reasoning, fenced, first_line, labelled, tagged, where_to_search
from vfgym.codecs.problems import NO_ACTION, ActionNotFound, SeveralActions, several


class Reader(Protocol):
    """What reads the parts of an answer: the codec of a space."""

    def alone(self, text: str) -> Any:
        """Return the action that a text is, but for its format, or ``None``; may raise `ActionNotFound` about a value."""

    def prose(self, text: str, is_marked: bool) -> Any:
        """Return the action that a text mentions, or ``None``; may raise `ActionNotFound` with a sentence without its full stop."""

    def to_json(self, action: Any) -> Any:
        """Return the JSON data of an action, which tells it from others."""


def search(answer: str, reader: Reader) -> Any:
    """Return the action that stands somewhere in an answer, which is not just its JSON.

    Args:
        answer: What a model wrote.
        reader: Reads parts of it.

    Raises:
        ActionNotFound: If it names no action, or several. The message is a sentence without its full stop.
    """
    said = after_reasoning(answer)
    tags = tagged(said)
    if len(tags) > 1:
        return _agreed(tags, reader, _within)
    return _within(tags[0], reader) if tags else _within(said, reader, is_marked=False)


def _agreed(parts: Iterable[str], reader: Reader, read: Callable[[str, Reader], Any]) -> Any:
    """Return the one action that is read from parts of an answer, each of which says what the answer is.

    Parts that hold no action at all do not count: they quote the form of an answer.
    """
    found: dict[str, Any] = {}
    problem = ActionNotFound(NO_ACTION)
    for part in dict.fromkeys(parts):
        try:
            action = read(part, reader)
        except SeveralActions:
            raise
        except ActionNotFound as error:
            problem = error
        else:
            found[str(reader.to_json(action))] = action
    if not found:
        raise problem
    return _only(found)


def _only(found: Mapping[str, Any]) -> Any:
    """Return the one action among those that were found."""
    if len(found) > 1:
        raise several(len(found))
    return next(iter(found.values()))


def _after_label(part: str, reader: Reader) -> Any:
    return _within(part, reader, is_labelled=True)


def _within(part: str, reader: Reader, *, is_marked: bool = True, is_labelled: bool = False) -> Any:
    """Return the action of a part of an answer: the whole of it, or what is labelled in it, or fenced, or mentioned.

    Args:
        part: An answer, or what stood in tags or after a label.
        reader: Reads parts of it.
        is_marked: Whether it stood in tags or after a label.
        is_labelled: Whether it stood after a label, so that its first line may be all that is meant.
    """
    problem = None
    try:
        action = reader.alone(part)
    except ActionNotFound as error:
        problem = ActionNotFound(error.sentence())
    else:
        if action is not None:
            return action
    if not is_labelled and (labels := labelled(part)):
        return _agreed(labels, reader, _after_label)
    lines = [line] if is_labelled and (line := first_line(part)) != part else []
    found: dict[str, Any] = {}
    for narrower in (*lines, *fenced(part)):
        try:
            action = reader.alone(narrower)
        except ActionNotFound as error:
            problem = problem or ActionNotFound(error.sentence())
        else:
            if action is not None:
                found[str(reader.to_json(action))] = action
    if found:
        return _only(found)
    for searched in (*lines, part):
        try:
            action = reader.prose(where_to_search(searched, is_marked), is_marked)
        except ActionNotFound as error:
            problem = error
        else:
            if action is not None:
                return action
    raise problem or ActionNotFound(NO_ACTION)
