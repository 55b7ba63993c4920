"""`GivenOutputs`: what a provider said in its own form, which goes back to it as it came, and only as it came.

An assistant message may have the items of its provider (`vfgym.clients.formats.native_output`). A program that sends the message again
sends them, too; but items that it was never given it has made up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from vfgym.clients.formats.native_output import FIELD
from vfgym.interception.wire import plain_data
from vfgym.messages import Message, as_message


class GivenOutputs:
    """The outputs that the programs of one endpoint were given."""

    def __init__(self) -> None:
        """Begin with none."""
        self._given: set[bytes] = set()

    def note(self, message: Message) -> None:
        """Remember what a program is answered."""
        if message.get(FIELD) is not None:
            self._given.add(_digest(message))

    def without_forged(self, messages: Sequence[Message]) -> tuple[list[Message], tuple[str, ...]]:
        """Return the messages without outputs that nobody was given, and the field's name where there were any."""
        own = [_without_output(message) if FIELD in message and _digest(message) not in self._given else message for message in messages]
        return own, (FIELD,) if any(new is not old for new, old in zip(own, messages, strict=True)) else ()


def _digest(message: Message) -> bytes:
    return hashlib.blake2b(json.dumps(plain_data(message[FIELD]), sort_keys=True).encode(), digest_size=16).digest()


def _without_output(message: Message) -> Message:
    return as_message({name: value for name, value in message.items() if name != FIELD})
