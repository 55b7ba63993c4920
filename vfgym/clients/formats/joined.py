"""What a client made of a whole conversation, kept from turn to turn, so that a turn costs what its new messages cost.

The conversation's last answer keeps what was made of all the messages before it: that answer belongs to this conversation alone,
and is let go with it. The next prompt begins with the same messages, which is seen without a step of Python for each. A prompt
that begins in another way (history was rewritten), or whose messages were written to since, is put together anew, from what is
kept with each message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from vfgym.errors import InvalidMessage
from vfgym.messages import AssistantMessage, Message, as_messages
from vfgym.messages.chat import Writes, converted_all

T = TypeVar("T")
W = TypeVar("W")

_SHORT = 40
"""With fewer messages than this, putting together anew is cheaper."""


class Joined:
    """What was made of the first messages of a conversation. It does not change, since branches and threads may share it."""

    __slots__ = ("_count", "_watched", "add", "convert", "messages", "whole", "writes")

    def __init__(
        self,
        messages: list[Message],
        convert: Callable[[Message], Any],
        add: Callable[[Any, list[Any]], Any],
        whole: Any,
        writes: Writes,
        watched: Iterable[Writes],
    ) -> None:
        """Keep what was made.

        Args:
            messages: The messages.
            convert: Made something of each.
            add: Put these together.
            whole: What came out.
            writes: Counts the writes to messages that were joined here first.
            watched: Count the writes to the others.
        """
        self.messages = messages
        self.convert = convert
        self.add = add
        self.whole = whole
        self.writes = writes
        self._watched = tuple(watched)
        self._count = self._written()

    @property
    def is_current(self) -> bool:
        """Whether none of the messages was written to since."""
        return self._written() == self._count

    def _written(self) -> int:
        return self.writes.count + sum([each.count for each in self._watched])

    def watched_with(self, others: set[Writes]) -> Iterable[Writes]:
        """Return what counts the writes to messages that were joined elsewhere first, these and others."""
        return others.union(self._watched) if others else self._watched


def conversation(value: Any) -> list[Message]:
    """Return a conversation in any of its raw forms as a fresh list of messages; what is known of it is not checked again.

    Raises:
        InvalidMessage: If it is no conversation.
    """
    if value.__class__ is not list or len(value) < _SHORT:
        return as_messages(value)
    host = _host(value)
    if host is None:
        return as_messages(value)
    known: list[Message] = host.joined.messages
    try:
        return known + as_messages(value[len(known) :])
    except InvalidMessage:
        return as_messages(value)  # its error counts from the first message


def joined(messages: list[Message], convert: Callable[[Message], T], add: Callable[[W | None, list[T]], W]) -> W:
    """Return what is made of a conversation.

    Args:
        messages: The conversation.
        convert: Makes something of a message.
        add: Adds what was made of further messages to what was made of those before (None at first), which it leaves as it is.
    """
    if len(messages) < _SHORT:
        return add(None, converted_all(messages, convert))
    host = _host(messages)
    before: Joined | None = None if host is None else host.joined
    own = Writes() if before is None else before.writes
    if before is not None and not (before.convert is convert and before.add is add and before.is_current):
        before = None
    start, whole = (0, None) if before is None else (len(before.messages), before.whole)
    end = next((at for at in range(len(messages) - 1, start, -1) if isinstance(messages[at], AssistantMessage)), start)
    if end > start:
        others: set[Writes] = set()
        made = []
        for message in messages[start:end]:
            kept = message._converted
            if kept is None or kept.convert is not convert:  # asked here, since a call for each old message would show
                kept = message.kept(convert)
            made.append(kept.made)
            writes = kept.writes
            if writes is None:
                kept.writes = own
            elif writes is not own:
                others.add(writes)
        whole = add(whole, made)
        watched = others if before is None else before.watched_with(others)
        messages[end].kept(convert).joined = Joined(messages[:end], convert, add, whole, own, watched)
        if host is not None:
            host.joined = None
    return add(whole, converted_all(messages[end:], convert))


def _host(messages: list[Any]) -> Any:
    """Return the `Kept` of one of the last two answers whose joined messages are a prefix of this conversation, else None.

    Messages that equal each other are the same here: the same is made of them.
    """
    answers = 0
    for message in reversed(messages):
        if isinstance(message, AssistantMessage):
            kept = message._converted
            before = None if kept is None else kept.joined
            if before is not None:
                return kept if messages[: len(before.messages)] == before.messages else None
            answers += 1
            if answers == 2:
                break
    return None
