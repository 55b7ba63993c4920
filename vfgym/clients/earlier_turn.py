"""The turn of an episode that a conversation goes on from: its token ids need not be made again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vfgym.messages import Message, as_messages
from vfgym.messages.chat import convert_all


def earlier_turn(
    prompt: Sequence[Mapping[str, Any]], state: Any, native: Callable[[Message], dict[str, Any]]
) -> tuple[int, Mapping[str, Any]] | None:
    """Return the turn whose prompt and answer are the longest beginning of a conversation.

    Args:
        prompt: The conversation in a client's format.
        state: The episode's state, with its ``trajectory``; anything else has no turns.
        native: Makes a message of that format.

    Returns:
        The number of messages that the turn covers, and its trajectory step. None if there is no such turn.
    """
    trajectory = state.get("trajectory") if isinstance(state, Mapping) else None
    best, longest = None, 0
    for step in reversed(trajectory or ()):
        length = len(step["prompt"]) + len(step["completion"])
        if not step["completion"] or length <= longest or length >= len(prompt):
            continue
        messages = convert_all(as_messages([*step["prompt"], *step["completion"]]), native)
        if all(map(_is_same, messages, prompt)):
            best, longest = step, length
    return None if best is None else (longest, best)


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one is other or one == other or {**one, "content": one["content"] or ""} == {**other, "content": other["content"] or ""}
