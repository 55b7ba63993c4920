"""Messages: from any raw form, to text that can be shown, and to data that can be kept.

What comes out are the messages of this package's environments (`verifiers_compat.messages`): dicts that can be written to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from verifiers_compat.messages import MESSAGE_TYPES, UserMessage
from vfgym.errors import InvalidMessage
from vfgym.messages import Message, as_message, as_messages
from vfgym.output.terminal import display_text
from vfgym.results.plain_json import as_json
from vfgym.results.rows import saved_part

if TYPE_CHECKING:
    from rich.text import Text

_STANDS_FOR = {"image_url": "[image]", "input_audio": "[audio]"}
_COLORS = {"system": "dim", "user": "cyan", "assistant": "green", "tool": "yellow", "text": "cyan"}


class NotAMessage(InvalidMessage, TypeError):
    """A value is of a type that no message comes in."""


def from_raw_content_part(part: Any) -> dict[str, Any]:
    """Return one content part as a dict.

    Raises:
        vfgym.errors.InvalidMessage: If it has no type, or not the field that its type asks for.
    """
    message = UserMessage([part.model_dump(exclude_none=True) if hasattr(part, "model_dump") else part])
    return dict(message["content"][0])


def from_raw_message(message: Any) -> Message:
    """Return a message in any raw form (a dict with a role, a message, an object with a role and content) as a message.

    Tool calls may be nested as OpenAI has them, flat, or JSON text. Arguments given as an object are encoded, a call without an
    id gets the name of its function.

    Raises:
        vfgym.errors.InvalidMessage: If its role is unknown or a field does not fit (a ``ValueError``).
        NotAMessage: If it is something else altogether (a ``TypeError`` too).
    """
    _check_type(message, "message")
    return as_message(message, MESSAGE_TYPES)


def normalize_messages(value: Any, field_name: str = "messages") -> list[Message]:
    """Return a conversation in any raw form as a fresh list of messages.

    Args:
        value: A string (one `TextMessage`), one message, or an iterable of messages.
        field_name: What the value is, for the error's text.

    Raises:
        vfgym.errors.InvalidMessage: If a message does not fit; the text names it (a ``ValueError``).
        NotAMessage: If the value, or an item of it, is something else altogether (a ``TypeError`` too).
    """
    if isinstance(value, Mapping | str) or hasattr(value, "role"):
        return as_messages(value, MESSAGE_TYPES, name=field_name)
    if not isinstance(value, Iterable):
        raise NotAMessage(f"{field_name} must be a list of messages (or one message, or text), got {type(value).__name__}: {value!r:.120}")
    messages = list(value)
    for index, message in enumerate(messages):
        _check_type(message, f"{field_name}[{index}]")
    return as_messages(messages, MESSAGE_TYPES, name=field_name)


def maybe_normalize_messages(value: Any, field_name: str = "messages") -> list[Message]:
    """Return a list of messages itself; anything else as `normalize_messages` does."""
    if isinstance(value, list) and all(isinstance(message, Message) for message in value):
        return value
    return normalize_messages(value, field_name)


def _check_type(value: Any, name: str) -> None:
    is_object = hasattr(value, "role") and hasattr(value, "content")
    if not isinstance(value, Mapping) and not is_object and not hasattr(value, "model_dump"):
        raise NotAMessage(f"{name} must be a message (a dict with role and content), got {type(value).__name__}: {value!r:.120}")


def concat_messages(messages_list: Iterable[Any]) -> list[Message]:
    """Return several conversations, each in any raw form, as one."""
    return [message for messages in messages_list for message in maybe_normalize_messages(messages)]


def message_to_printable(message: Any) -> dict[str, Any]:
    """Return a message as a plain dict whose content is text: images and audio stand as ``[image]`` and ``[audio]``."""
    printable = serialize_message_for_output(message)
    content = printable.get("content")
    if isinstance(content, list):
        printable["content"] = "\n\n".join(_printable_part(part) for part in content)
    return printable


def _printable_part(part: Mapping[str, Any]) -> str:
    return str(part["text"]) if part["type"] == "text" else _STANDS_FOR.get(part["type"], f"[{part['type']}]")


def messages_to_printable(messages: Any) -> list[dict[str, Any]]:
    """Return a conversation, in any raw form, with `message_to_printable` for each message."""
    return [message_to_printable(message) for message in maybe_normalize_messages(messages)]


def serialize_message_for_output(message: Any) -> dict[str, Any]:
    """Return a message, in any raw form, as plain data for JSON. Fields that are None are left out, tool calls are dicts.

    Audio is base64 without whitespace in a format in lower case; audio without data is the text ``[audio]``.
    """
    if isinstance(message, Mapping) and isinstance(message.get("content"), list | tuple):
        parts = [saved_part(part) if isinstance(part, Mapping) else part for part in message["content"]]
        message = {**message, "content": parts}
    data = as_json(from_raw_message(message), repr)
    return {key: value for key, value in data.items() if value is not None}


def serialize_messages_for_output(messages: Any) -> list[dict[str, Any]]:
    """Return a conversation, in any raw form, with `serialize_message_for_output` for each message."""
    is_list = isinstance(messages, list) and all(isinstance(message, Mapping) for message in messages)
    return [serialize_message_for_output(message) for message in (messages if is_list else maybe_normalize_messages(messages))]


def sanitize_tool_calls(messages: Any) -> list[dict[str, Any]]:
    """Return a conversation as plain dicts whose tool calls are JSON text, so that all fit one column of a table.

    Whatever reads messages here reads such tool calls too.
    """
    plain = serialize_messages_for_output(messages)
    for message in plain:
        if "tool_calls" in message:
            message["tool_calls"] = [json.dumps(call, ensure_ascii=False) for call in message["tool_calls"]]
    return plain


def format_messages(messages: Any) -> Text:
    """Return a conversation, in any raw form, as text for a terminal: each message with its role, reasoning and tool calls."""
    from rich.text import Text

    text = Text()
    if isinstance(messages, str):
        return text.append(display_text(messages))
    for index, message in enumerate(maybe_normalize_messages(messages)):
        color = _COLORS.get(message["role"], "")
        text.append("\n\n" if index else "").append(f"{message['role']}: ", style=f"bold {color}")
        if message.get("reasoning_content"):
            text.append(display_text(f"[reasoning] {message['reasoning_content']}\n"), style="dim")
        text.append(display_text(message_to_printable(message).get("content") or ""), style=color)
        for call in message.get("tool_calls") or []:
            text.append(display_text(f"\n[tool call] {call.name}({call.arguments})"), style=color)
    return text
