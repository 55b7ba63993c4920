"""`NamedMessages`: what passes of the messages of a program, which writes them itself.

Fields and kinds of content that are named here pass. What a provider said beside them (`vfgym.clients.formats.native_output`, say) goes
back to it as it came, and only as it came: a program has it from an answer of its endpoint, and what it never was given it has made up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from vfgym.interception.strict_json import check_arguments
from vfgym.interception.wire import plain_data
from vfgym.messages import Message, as_message
from vfgym.messages.responses import ResponseMessage

_FIELDS = frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content", "thinking_blocks"})
_TEXTS = ("name", "tool_call_id", "reasoning_content")
_PARTS: Mapping[str, frozenset[str]] = {
    "text": frozenset(),
    "refusal": frozenset(),
    "image_url": frozenset({"url", "detail"}),
    "input_audio": frozenset({"data", "format"}),
    "file": frozenset({"file_data", "file_url", "filename"}),
}
"""The kinds of parts: each is in the field of its own name, as text or with these fields."""
_THINKING: Mapping[str, frozenset[str]] = {"thinking": frozenset({"thinking", "signature"}), "redacted_thinking": frozenset({"data"})}
_PLACES = ("data:", "http://", "https://")


class NamedMessages:
    """The messages of one endpoint's programs, which knows what they were answered."""

    def __init__(self) -> None:
        """Begin without an answer."""
        self._given: set[bytes] = set()

    def note(self, message: Message) -> None:
        """Remember what a program is answered: all but what belongs to this one answer, such as its tokens, which it never sees."""
        own = _FIELDS | ResponseMessage.OWN_FIELDS
        self._given.update(_digest(name, value) for name, value in message.items() if name not in own)

    def named(self, messages: Sequence[Message]) -> tuple[list[Message], tuple[str, ...]]:
        """Return what passes of messages, and the names of the fields that do not.

        Raises:
            ValueError: If content is of a kind that is not named, or lies at the provider.
        """
        aside: set[str] = set()
        own = [self._named_message(message, aside) for message in messages]
        return own, tuple(sorted(aside))

    def _named_message(self, message: Message, aside: set[str]) -> Message:
        kept = {name: value for name, value in message.items() if name in _FIELDS or _digest(name, value) in self._given}
        aside.update(name for name, value in message.items() if name not in kept and value is not None)
        for name in _TEXTS:
            if not isinstance(kept.get(name, ""), str | None):
                raise ValueError(f"{name} of a message must be a text, got {type(kept[name]).__name__}")
        for call in message.get("tool_calls") or ():
            check_arguments(call["function"]["arguments"])
        content, blocks = message.get("content"), message.get("thinking_blocks")
        if isinstance(content, list):
            kept["content"] = [_named_part(part, aside) for part in content]
        if blocks:
            kept["thinking_blocks"] = [_named_block(block, aside) for block in blocks]
        return message if kept == message else as_message(kept)


def _digest(name: str, value: Any) -> bytes:
    return hashlib.blake2b(json.dumps([name, plain_data(value)], sort_keys=True).encode(), digest_size=16).digest()


def _named_part(part: Mapping[str, Any], aside: set[str]) -> dict[str, Any]:
    kind = part["type"]
    if kind not in _PARTS:
        raise ValueError(f"content of type {kind!r} does not pass, only {', '.join(_PARTS)}")
    value = part.get(kind)
    aside.update(part.keys() - {"type", kind})
    if _PARTS[kind]:
        value = _texts(kind, value, _PARTS[kind], aside)
        url = value.get("url", value.get("file_url"))
        if kind == "file" and url is None and "file_data" not in value:
            raise ValueError("a file is sent as file_data: the files that a provider keeps are its account's, not a program's")
        if url is not None and not url.lower().startswith(_PLACES):
            raise ValueError(f"the URL of {kind} must begin with one of {', '.join(_PLACES)}, got {url[:20]!r}")
    elif not isinstance(value, str):
        raise ValueError(f"content of type {kind!r} must have a text {kind!r}")
    return {"type": kind, kind: value}


def _named_block(block: Any, aside: set[str]) -> dict[str, Any]:
    kind = block.get("type") if isinstance(block, Mapping) else None
    if not isinstance(kind, str) or kind not in _THINKING:
        raise ValueError(f"a block of thinking must be of type {' or '.join(_THINKING)}, got {kind!r}")
    return {"type": kind, **_texts(kind, block, _THINKING[kind] | {"type"}, aside)}


def _texts(kind: str, value: Any, names: frozenset[str], aside: set[str]) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError(f"content of type {kind!r} must have an object {kind!r}")
    aside.update(name for name in value if name not in names)
    texts = {name: value[name] for name in value if name in names}
    for name, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"{name} of {kind} must be a text, got {type(text).__name__}")
    return texts
